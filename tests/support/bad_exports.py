"""Bad arguments of what takes an agent elsewhere, or brings it from there."""

import numpy as np

from support import bad_values as bad

EXPORT = {
    "filepath": bad.PATH,
    "format": (None, *bad.CHOICE),
    "deterministic": bad.FLAG,
    "quantize": bad.CHOICE,
    "representative": bad.PATH[1:],
    "batch_size": bad.COUNT,
    "accept": ("x", 3, True),
    "verbose": ("x", 3),
    "input_signature": ("x", 3),
    "fromat": ("onnx",),
}
"""Of `export`, of what is written by TensorFlow."""
EXPORT_LITERT = {
    "filepath": ("nowhere", "nowhere.onnx"),
    "quantize": bad.CHOICE,
}
"""Of `export`, with `format="litert"`."""
EXPORT_INT8 = {
    "representative": (None, 3, True, np.zeros(3), [["a"] * 3]),
}
"""Of `export`, with `quantize="int8"`."""
CHECK_EXPORT = {
    "filepath": bad.PATH,
    "env": (None, 3, [1]),
    "tolerance": bad.WEIGHT,
    "loss": bad.WEIGHT,
    "episodes": bad.COUNT,
    "num_envs": bad.COUNT,
    "seed": bad.SEED,
    "env_kwargs": bad.MAPPING,
    "deterministic": (True,),
    "episode": (3,),
}
POLICY_FILE = {"path": bad.PATH, "manifest": ("x", 3, {}, {"kind": "other"})}
ACT_OF_FILE = {
    "observation": ("x", None, [["a", "b", "c"]], np.zeros(2)),
    "state": ("x", 3, [np.zeros(2)]),
    "noise": (3, "x", np.zeros(3)),
}
FROM_SB3 = {
    "path": bad.PATH,
    "env": (3, [1]),
    "normalization": (
        *("x", 3, True, {}, {"mean": np.zeros(4)}),
        {"mean": np.zeros(3), "variance": np.zeros(3)},
        {"mean": "x", "variance": np.ones(4)},
        {"mean": np.zeros(4), "variance": np.ones(4), "varianec": 1},
    ),
    "seed": bad.SEED,
    "gamma": bad.FRACTION,
    "gama": (0.9,),
}
FROM_KERAS_RL = {
    "path": bad.PATH,
    "network": ("mlp", None, 3),
    "env": (3, [1]),
    "gamma": bad.FRACTION,
    "gama": (0.9,),
}
FIT_SEEDS = {
    "trial": (None, 3, "x"),
    "runs": (None, 3, "x", [], [3], [(3, 3)]),
    "total_steps": bad.COUNT,
    "episodes": (None, 3, "x"),
    "reports": (*bad.COUNT, 10**6),
    "aggregate": (None, "mean", 3),
    "callbacks": ("x", 3, [3], [["x"]], [[], []]),
}
SEARCH_SPACE = {
    "algorithm": ("PPPO", 3),
    "ranges": (
        *(*bad.MAPPING, {}, {"agent.gama": [0.9, 0.99]}),
        *({"agent.gamma": each} for each in (0.9, [0.9], ["a"] * 2, [0.9] * 2)),
        *({"agent.gamma": {"low": low, "high": 0.9}} for low in (0.9, 2, "x")),
    ),
    "source": (3, True),
}
