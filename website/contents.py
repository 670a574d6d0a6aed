"""What the site contains: its pages, under the headings of the menu.

`benchmarks`, `changelog`, `contributing` and `examples/index` are made of
texts that lie elsewhere, `reference/...` of the public names.
"""

from keras_rl2.presets.algorithms import ALGORITHMS

PAGES = [each.page or name.lower() for name, each in ALGORITHMS.items()]
CONTENTS = {
    "Getting started": [
        "getting_started",
        "rl_for_keras_people",
        "which_agent",
        "defaults",
        "examples/index",
    ],
    "Your problem": [
        "networks",
        "spaces",
        "datasets",
        "replay",
        "offline",
        "failing_environments",
    ],
    "Training": [
        "callbacks",
        "debugging",
        "numbers",
        "reproducibility",
        "tuning",
        "trackers",
        "command_line",
    ],
    "Speed": [
        "speed",
        "graph_environments",
        "gpu",
        "scaling",
        "systems",
    ],
    "Files": [
        "saving",
        "checkpoints",
        "what_survives",
        "export",
    ],
    "Your own code": [
        "your_own_loop",
        "from_your_ppo",
        "new_algorithm",
        "keras_methods",
    ],
    "Agents": ["agents", *PAGES],
    "Coming from": [
        "coming_from_stable_baselines3",
        "coming_from_keras_rl",
        "coming_from_tf_agents",
        "coming_from_keras_io",
        "coming_from_cleanrl",
    ],
    "Reference": [
        "reference/index",
    ],
    "About": [
        "benchmarks",
        "changelog",
        "architecture",
        "contributing",
        "style",
        "citation",
    ],
}
