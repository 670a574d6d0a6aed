"""The pages that grew from the texts run as they are printed."""

import pathlib
import re

import keras
import numpy as np
import pytest

import keras_rl2 as rl

DOCS = pathlib.Path(__file__).parents[2] / "docs"


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", ["your_own_loop", "from_your_ppo", "gpu", "spaces"]
)
def test_a_page_runs_from_top_to_bottom(
    page, tmp_path, monkeypatch, without_xla
):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / f"{page}.md").read_text()
    blocks = list(re.finditer(r"(?ms)^```python\n(.*?)^```$", text))
    assert len(blocks) > 3
    names = {}
    for block in blocks:
        # Numbers of lines in an error are those of the page.
        lines = "\n" * (text[: block.start()].count("\n") + 1)
        code = compile(lines + block[1], str(DOCS / f"{page}.md"), "exec")
        exec(code, names)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_what_the_page_says_of_precision(dtype):
    agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), dtype=dtype, seed=0)
    assert agent.actor.compute_dtype == dtype.removeprefix("mixed_")
    assert agent.actor.variable_dtype == "float32"
    scales = isinstance(agent.optimizer, keras.optimizers.LossScaleOptimizer)
    assert scales == (dtype == "mixed_float16")
    assert agent.value(np.zeros((3, 4))).dtype == "float32"
