"""The pages that list all agents, from the registry of algorithms.

    python website/agent_lists.py

writes the agents that these pages lack. The order of the agents in a list, and
remarks on an agent, stay as they were written.
"""

import re
from pathlib import Path

from keras_rl2.presets.algorithms import ALGORITHMS

ROOT = Path(__file__).parents[1]
KINDS = {
    "rollouts": [n for n, each in ALGORITHMS.items() if each.on_policy],
    "replay": [
        name
        for name, each in ALGORITHMS.items()
        if not each.on_policy and not each.offline
    ],
    "recorded data": [n for n, each in ALGORITHMS.items() if each.offline],
}
EVERYWHERE = [n for n, each in ALGORITHMS.items() if each.actions is None]


def within(*spaces):
    """Returns the algorithms that act in spaces of these classes."""
    return [
        name
        for name, each in ALGORITHMS.items()
        if set(spaces) <= set(each.actions or spaces)
    ]


IN_BOX = [name for name in within("Box") if name not in EVERYWHERE]
LISTS = [
    (r"\| on-policy: (.*?) \|", KINDS["rollouts"]),
    (r"\| replay: (.*?) \|", KINDS["replay"]),
    (r"\| offline: (.*?) \|", KINDS["recorded data"]),
    (r"\| `Discrete` \| (.*?) \|", within("Discrete")),
    (r"\| `Box` \| (.*?); ", EVERYWHERE),
    (r"; with finite bounds (.*?) \|", IN_BOX),
    (r"of any of these \| (.*?) \|", EVERYWHERE),
    (r"\| all but (.*?);", [n for n in IN_BOX if n not in within("Discrete")]),
    (r"; (\w+, .*?) with `Discrete`", set(IN_BOX) & {*within("Discrete")}),
]
"""Lists of names in `docs/which_agent.md`: a pattern, and who is in it."""


def page_of(name):
    """Returns the name of the page of an algorithm."""
    return ALGORITHMS[name].page or name.lower()


def listed(text, names):
    """Returns a list of names as it should be, in its own order."""
    old = re.split(", | and ", text)
    new = [name for name in old if name in names]
    new += sorted(set(names) - set(old))
    if " and " in text and len(new) > 1:
        new[-2:] = [" and ".join(new[-2:])]
    return ", ".join(new)


def which_agent(text):
    """Returns `docs/which_agent.md` with all agents."""
    for pattern, names in LISTS:
        [found] = re.finditer(pattern, text)
        start, end = found.span(1)
        text = text[:start] + listed(found[1], names) + text[end:]
    return text


def row(name, remark, kind):
    """Returns the row of an agent in the table of `docs/agents.md`."""
    each = ALGORITHMS[name]
    discrete = each.actions is None or "Discrete" in each.actions
    boxes = each.actions is None or "Box" in each.actions
    everywhere = "yes" if each.actions is None else ""
    partly = "for Discrete actions" if boxes and not everywhere else "yes"
    memory = {None: "yes", (): ""}.get(each.memory, partly)
    cells = [
        *(f"[`{name}`]({page_of(name)}.md){remark}", kind),
        *("yes" if discrete else "", everywhere, everywhere),
        everywhere or ("finite bounds" if boxes else ""),
        *(everywhere, partly if discrete else "", memory),
    ]
    return re.sub(" +", " ", f"| {' | '.join(cells)} |\n")


def agents(text):
    """Returns `docs/agents.md` with the rows of all agents."""
    head, rule, rest = text.partition(f"{'| --- ' * 9}|\n")
    table, gap, rest = rest.partition("\n\n")
    remarks = dict(re.findall(r"(?m)^\| \[`(\w+)`\]\(\w+\.md\)(.*?) \|", table))
    rows = [
        row(name, remarks.get(name, ""), kind)
        for kind, names in KINDS.items()
        for name in listed(", ".join(remarks), names).split(", ")
    ]
    return f"{head}{rule}{''.join(rows)[:-1]}{gap}{rest}"


def readme(text):
    """Returns the README with a row for each agent that it lacked."""
    head, title, rest = text.partition("\n## Agents\n\n")
    table, gap, rest = rest.partition("\n\n")
    for name in ALGORITHMS:
        if f"](docs/{page_of(name)}.md)" not in table:
            page = (ROOT / "docs" / f"{page_of(name)}.md").read_text("utf-8")
            about = re.search(r"\n\n(?:\w+ is )?(.*?)[:.]", page)[1]
            use = about[0].upper() + about[1:]
            table += f"\n| [{name}](docs/{page_of(name)}.md) | {use}. |"
    return f"{head}{title}{table}{gap}{rest}"


def index(text):
    """Returns `docs/index.md` with the pages of all agents in the menu."""
    head, title, rest = text.partition(":caption: Agents\n\nagents\n")
    pages, gap, rest = rest.partition("```")
    pages = sorted({*pages.split(), *map(page_of, ALGORITHMS)})
    lines = "".join(f"{page}\n" for page in pages)
    return f"{head}{title}{lines}{gap}{rest}"


PAGES = {
    "README.md": readme,
    "docs/agents.md": agents,
    "docs/index.md": index,
    "docs/which_agent.md": which_agent,
}

if __name__ == "__main__":
    for path, complete in PAGES.items():
        page = ROOT / path
        page.write_text(complete(page.read_text("utf-8")), encoding="utf-8")
