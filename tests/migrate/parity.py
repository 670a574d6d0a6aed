"""Writes the differences of migrated agents from Stable-Baselines3.

    python tests/migrate/parity.py [--write]

in an environment with Stable-Baselines3. Each policy has random weights and
is asked for a few observations. With `--write` the table in
`docs/coming_from_stable_baselines3.md` is made anew.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import keras_rl2 as rl
from support import sb3_parity
from support.any_space_env import AnySpaceEnv

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "coming_from_stable_baselines3.md"
HEAD = (
    "| algorithm, policy | observations | actions | action | value or Q "
    "| target Q | log-probability |\n"
    "| --- | --- | --- | ---: | ---: | ---: | ---: |"
)
COLUMNS = (("greedy",), ("value", "q_values"), ("target_q_values",))
COLUMNS += (("log_prob",),)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="to the page")
    arguments = parser.parse_args()
    table = "\n".join([HEAD, *rows()])
    print(table)
    if arguments.write:
        page = PAGE.read_text("utf-8")
        pattern = re.escape(HEAD) + r"(\n\|.*)*"
        PAGE.write_text(re.sub(pattern, lambda _: table, page), "utf-8")


def rows():
    """Yields a row for each policy."""
    from migrate import make_sb3

    cases = {**make_sb3.CASES, **make_sb3.MORE_CASES}
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(cases):
            kind, policy, observed, acted, options = cases[name]
            given = make_sb3.make(name, folder)
            env = AnySpaceEnv(observed, acted)
            path = Path(folder, f"{name}.zip")
            agent = rl.migrate.from_sb3(path, env, seed=0)
            apart = sb3_parity.differences(agent, given)
            cells = []
            for keys in COLUMNS:
                found = [apart[key] for key in keys if key in apart]
                cells.append(f"{found[0]:.0e}" if found else "")
            activation = options.get("activation_fn")
            words = [kind.__name__, policy]
            words += [activation.__name__] if activation else []
            if options.get("share_features_extractor") is False:
                words.append("two extractors")
            yield (
                f"| {', '.join(words)} | {described(observed)} | "
                f"{described(acted)} | " + " | ".join(cells) + " |"
            )


def described(space):
    """Returns a space in a few words."""
    words = type(space).__name__
    if space.shape:
        words += " " + " x ".join(map(str, space.shape))
    return words + (" of bytes" if str(space.dtype) == "uint8" else "")


if __name__ == "__main__":
    main()
