"""BENCHMARKS.md: what is kept, what is run again, and what a row says."""

import pytest

from benchmarks import markdown
from benchmarks import preset_peer
from benchmarks import table
from benchmarks.preset_names import laptop_presets
from benchmarks.preset_names import name_of
from benchmarks.preset_names import preset_of
from benchmarks.results import Results

CARTPOLE = "dqn-CartPole-v1"


def run(value, speed=200.0):
    return {"return": value, "steps_per_second": speed, "peak_rss_mib": 500.0}


def keep(folder, ours, peer, preset=None):
    """Keeps runs of as many seeds as there are returns."""
    kept = Results.read(folder, preset or preset_of(CARTPOLE))
    for seed, value in enumerate(ours):
        kept.add(table.OURS, seed, run(value))
    for seed, value in enumerate(peer):
        kept.add(table.PEER, seed, {**run(value, 100.0), "version": "2.9"})
    kept.write(folder)


def row_of(folder):
    markdown.write(folder, folder / "table.md")
    text = (folder / "table.md").read_text()
    (line,) = [x for x in text.splitlines() if x.startswith(f"| `{CARTPOLE}`")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_names_lead_back_to_presets():
    for name in laptop_presets():
        assert name_of(preset_of(name)) == name
    assert CARTPOLE in laptop_presets()


def test_what_was_run_is_kept(tmp_path):
    preset = preset_of(CARTPOLE)
    keep(tmp_path, [500.0], [])
    kept = Results.read(tmp_path, preset)
    assert kept.has(table.OURS, 0)
    assert not kept.has(table.PEER, 0)
    assert not kept.has(table.OURS, 1)


def test_the_stored_runs_are_those_of_the_presets():
    stored = [path.stem for path in table.KEPT.glob("*.json")]
    assert CARTPOLE in stored
    for name in stored:
        assert Results.read(table.KEPT, preset_of(name)).runs, name


def test_runs_of_other_settings_are_forgotten(tmp_path):
    keep(tmp_path, [500.0], [500.0])
    other = preset_of(CARTPOLE).with_settings({"agent.gamma": 0.5})
    assert not Results.read(tmp_path, other).has(table.OURS, 0)


def test_a_row(tmp_path):
    keep(tmp_path, [100.0, 300.0, 300.0, 500.0], [300.0, 300.0, 300.0])
    # The fourth seed has no peer yet. (100 / 4 + 300 + 300 / 4) / 1.5.
    assert row_of(tmp_path)[1:4] == ["50 000", "3", "266.7 (100.0 to 300.0)"]
    assert row_of(tmp_path)[4:] == [
        *("300.0 (300.0 to 300.0)", "200", "100", "2.00", "500", "500"),
        "return no",
    ]


@pytest.mark.parametrize(
    ("ours", "peer", "holds"),
    [(91.0, 100.0, "yes"), (89.0, 100.0, "return no"), (-109.0, -100.0, "yes")],
)
def test_a_tenth_of_the_peers_return_is_allowed(ours, peer, holds, tmp_path):
    keep(tmp_path, [ours] * 3, [peer] * 3)
    assert row_of(tmp_path)[-1] == holds


def test_two_seeds_say_nothing(tmp_path):
    keep(tmp_path, [500.0] * 2, [100.0] * 2)
    assert row_of(tmp_path)[-1] == "open"


def test_there_is_no_row_without_the_peer(tmp_path):
    keep(tmp_path, [500.0], [])
    markdown.write(tmp_path, tmp_path / "table.md")
    assert not (tmp_path / "table.md").exists()


def test_the_peers_weights_start_as_ours():
    for name, orthogonal in (
        ("ppo-HalfCheetah-v5", False),
        ("ppo-Ant-v5", True),
    ):
        policy = preset_peer.settings(preset_of(name))["policy_kwargs"]
        assert policy.get("ortho_init", True) is orthogonal


def test_the_peer_has_the_published_rounds():
    """Ours of 64 and 64 stand for 1 and 1, or for 4 and 4."""
    for name, steps in (("sac-Pendulum-v1", 1), ("dqn-Acrobot-v1", 4)):
        settings = preset_peer.settings(preset_of(name))
        assert settings["train_freq"] == settings["gradient_steps"] == steps
    # A copy each 128 updates is one each 256 steps.
    settings = preset_peer.settings(preset_of(CARTPOLE))
    assert settings["train_freq"] == 256
    assert settings["gradient_steps"] == 128
    assert settings["target_update_interval"] == 256
