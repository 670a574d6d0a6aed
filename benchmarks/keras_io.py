"""Times keras.io's examples of reinforcement learning beside ours.

    python benchmarks/keras_io.py --theirs FOLDER [--runs 3] [NAME ...]
    python benchmarks/keras_io.py --theirs FOLDER --write

FOLDER holds `ppo_cartpole.py`, `ddpg_pendulum.py`, `actor_critic_cartpole.py`
and `deep_q_network_breakout.py` of keras-team/keras-io, as published; ours are
in `examples/keras_io`. The two run in turn. A run's seconds go from its start,
imports included, to the line that says that the result is reached; a run that
ends without it counts as missed. Of Pendulum it is 40 of the 100 episodes, and
then 40 greedy ones that are not timed. Breakout takes a day: what is compared
there is the environment steps that a second trains on, of some hundred.

What was measured is kept in `benchmarks/results/keras_io`; `--report`
makes the table of it alone, `--write` after the runs, both in
`docs/coming_from_keras_io.md`. A run is given up after ten minutes. Some of
theirs are older than Gymnasium 1.0, and are run with the changes that `FIXES`
lists; lines are counted before. Lines are those with code: neither blank nor
comment nor text.
"""

import argparse
import ast
import io
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OURS = ROOT / "examples" / "keras_io"
KEPT = Path(__file__).resolve().parent / "results" / "keras_io"
PAGE = ROOT / "docs" / "coming_from_keras_io.md"
_HEAD = (
    "| example | until | lines, keras.io | lines, keras_rl2 | "
    "time, keras.io | time, keras_rl2 | ratio |\n"
    "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
)
_LIMIT = 590.0
# Frames of Breakout before the clock starts, and while it runs.
_FIRST, _COUNTED = 200, 500

#: What each is run until, and how that is read off a line.
UNTIL = {
    "actor_critic_cartpole": "mean return over 195",
    "ppo_cartpole": "mean return over 475",
    "ddpg_pendulum": "40 episodes, an update for each step",
    "deep_q_network_breakout": "steps a second",
}
#: What is changed in theirs, so that they run with Gymnasium 1 and Keras 3,
#: show no window, and say when they are done.
FIXES = {
    "actor_critic_cartpole": [],
    "ppo_cartpole": [
        ("from tensorflow import keras", "import keras"),
        ("from tensorflow.keras import layers", "from keras import layers"),
        ("import gym\n", "import gymnasium as gym\n"),
        ('"CartPole-v0"', '"CartPole-v1"'),
        ("= env.action_space.n\n", "= int(env.action_space.n)\n"),
        ("value = tf.squeeze(", "value = keras.ops.squeeze("),
        ("env.reset(), 0, 0", "env.reset()[0], 0, 0"),
        (
            "observation_new, reward, done, _ = env.step(action[0].numpy())",
            "observation_new, reward, ended, cut, _ = env.step("
            "action[0].numpy()); done = ended or cut",
        ),
        (
            "buffer.store(observation, action, reward, value_t, "
            "logprobability_t)",
            "buffer.store(observation, action[0], reward, value_t[0], "
            "logprobability_t[0])",
        ),
        (
            "else critic(observation.reshape(1, -1))",
            "else critic(observation.reshape(1, -1))[0]",
        ),
    ],
    "ddpg_pendulum": [
        (', render_mode="human"', ""),
        ("total_episodes = 100", "total_episodes = 40"),
        ("plt.show()", ""),
        ("plt.plot(avg_reward_list)", "print('trained', flush=True)"),
    ],
    "deep_q_network_breakout": [
        (
            "AtariPreprocessing, FrameStack",
            "AtariPreprocessing, FrameStackObservation as FrameStack",
        ),
        ("import gymnasium as gym\n", "import gymnasium as gym, ale_py\n"),
        ("env.seed(seed)", ""),
        ("max_episodes = 10 ", "max_episodes = 0 "),
        ("max_episodes = 10\n", "max_episodes = 0\n"),
        (
            "frame_count += 1\n",
            "frame_count += 1; frame_count % 100 or "
            "print(frame_count, 'steps,', flush=True)\n",
        ),
        (
            ".predict(state_next_sample)",
            ".predict(state_next_sample, verbose=0)",
        ),
    ],
}
#: What is changed in ours: how long is played, as in theirs; their Breakout
#: updates from the beginning.
SHORTER = {
    "ddpg_pendulum": [("100 * 200", "40 * 200")],
    "deep_q_network_breakout": [
        ("STEPS = 10_000_000", "STEPS = 2000"),
        ("warm_up=50_000", "warm_up=100, rounds_per_epoch=4"),
    ],
}
# Greedy episodes of theirs, which ours plays by itself.
_EVALUATE = """
total = 0.0
for episode in range(40):
    state, done = env.reset(seed=episode)[0], False
    while not done:
        action = keras.ops.squeeze(actor_model(state[None])).numpy()
        state, reward, ended, cut, _ = env.step([action])
        total, done = total + reward, ended or cut
print(f"greedy mean return over 40 episodes: {total / 40:.1f}")
"""


def main():
    arguments = parse()
    for name in [] if arguments.report else arguments.names or UNTIL:
        sources = {
            "theirs": (arguments.theirs / f"{name}.py").read_text("utf-8"),
            "ours": (OURS / f"{name}.py").read_text("utf-8"),
        }
        lines = {side: code_lines(text) for side, text in sources.items()}
        sources["theirs"] = changed(sources["theirs"], FIXES[name])
        sources["ours"] = changed(sources["ours"], SHORTER.get(name, []))
        if name == "ddpg_pendulum":
            sources["theirs"] += _EVALUATE
        measured = {"theirs": [], "ours": []}
        for _ in range(arguments.runs):
            for side, found in measured.items():
                found.append(measure(name, sources[side]))
                print(f"{name}, {side}: {found[-1]}", flush=True)
        KEPT.mkdir(exist_ok=True)
        kept = {"lines": lines, "runs": measured}
        (KEPT / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n")
    rows = [
        row(name, **json.loads((KEPT / f"{name}.json").read_text()))
        for name in UNTIL
        if (KEPT / f"{name}.json").exists()
    ]
    table = "\n".join([_HEAD, *rows])
    print(table)
    if arguments.write or arguments.report:
        write(table)


def parse():
    """Returns the arguments of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="of examples")
    parser.add_argument("--theirs", type=Path, metavar="FOLDER")
    parser.add_argument("--runs", type=int, default=3, help="of each, in turn")
    parser.add_argument("--write", action="store_true", help="to the page")
    parser.add_argument("--report", action="store_true", help="that alone")
    arguments = parser.parse_args()
    if arguments.theirs is None and not arguments.report:
        parser.error("Expected --theirs, a folder with their scripts")
    return arguments


def code_lines(source):
    """Returns how many lines have code.

    >>> code_lines("'''text'''\\n\\nx = 1  # one\\n# two\\ny = (\\n    x)\\n")
    3
    """
    texts = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            texts.update(range(node.lineno, node.end_lineno + 1))
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE}
    skipped |= {tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - texts)


def changed(source, changes):
    """Returns a script with parts of it replaced, where they occur."""
    for old, new in changes:
        source = source.replace(old, new)
    return source


def measure(name, source):
    """Runs a script until its result, and returns what is compared.

    Returns:
        dict: `figure`, seconds, or steps a second of Breakout; None where the
        result was not reached. `seconds` that it ran. `note`, the last line.
    """
    # Theirs leave files behind.
    with tempfile.TemporaryDirectory() as folder:
        return _measure(name, source, folder)


def _measure(name, source, folder):
    """Runs a script in a folder; see `measure`."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", source],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"},
        text=True,
    )
    figure, note, first = None, "", None
    limit = threading.Timer(_LIMIT, process.kill)
    limit.start()
    with process:
        for line in process.stdout:
            now = time.perf_counter()
            if not line.strip():
                continue
            note = line.strip()
            if name == "deep_q_network_breakout":
                steps = re.match(r"(\d+) steps,", line)
                if not steps:
                    continue
                at = int(steps[1]), now
                if first is None and at[0] >= _FIRST:
                    first = at
                elif first and at[0] >= first[0] + _COUNTED:
                    figure = (at[0] - first[0]) / (now - first[1])
            elif figure is None and reached(name, line):
                figure = now - began
            learned = name == "ddpg_pendulum" and "greedy" not in line
            if figure is not None and not learned:
                process.kill()
                break
    limit.cancel()
    seconds = time.perf_counter() - began
    return {"figure": figure, "seconds": seconds, "note": note}


def reached(name, line):
    """Says whether a line tells of the result."""
    if name == "ddpg_pendulum":
        return line.strip() == "trained"
    if name == "actor_critic_cartpole" and "Solved" in line:
        return True
    found = re.search(r"(?i)mean return: (\d+\.?\d*)", line)
    goal = float(UNTIL[name].split()[-1])
    return bool(found) and float(found[1]) > goal


def row(name, lines, runs):
    """Returns a row of the table."""
    rate = UNTIL[name] == "steps a second"
    middle, bound = {}, {}
    for side, found in runs.items():
        figures = [each["figure"] for each in found]
        bound[side] = any(figure is None for figure in figures)
        # Of a run that was given up, at least what it took until then.
        middle[side] = statistics.median(
            found[k]["seconds"] if figure is None else figure
            for k, figure in enumerate(figures)
        )
    form = "{:.1f}/s" if rate else "{:.0f} s"
    cells = [
        f"{'over ' if bound[side] else ''}{form.format(middle[side])}"
        for side in ("theirs", "ours")
    ]
    theirs, ours = middle["theirs"], middle["ours"]
    ratio = f"{ours / theirs if rate else theirs / ours:.1f}"
    if bound["theirs"]:
        ratio = f"over {ratio}"
    until = UNTIL[name]
    if name == "ddpg_pendulum":
        scores = [
            statistics.median(
                float(each["note"].split(":")[1]) for each in found
            )
            for found in runs.values()
        ]
        until += f" (greedy, then: {scores[0]:.0f} and {scores[1]:.0f})"
    counts = f"{lines['theirs']} | {lines['ours']}"
    return (
        f"| `{name}.py` | {until} | {counts} | {' | '.join(cells)} | {ratio} |"
    )


def write(table):
    """Puts the table in the place of the one on the page."""
    page = PAGE.read_text("utf-8")
    pattern = re.escape(_HEAD) + r"(\n\|.*)*"
    PAGE.write_text(re.sub(pattern, lambda _: table, page), "utf-8")


if __name__ == "__main__":
    main()
