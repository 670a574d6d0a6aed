"""Datasets as Minari keeps them: read, written, and refused."""

import shutil

import gymnasium
import h5py
import numpy as np
import pytest

import keras_rl2 as rl
from support.structured_envs import HYBRID_ACTIONS
from support.structured_envs import OBSERVATIONS
from support.structured_envs import StructuredEnv

MAIN = "data/main_data.hdf5"


@pytest.fixture
def folder(tmp_path):
    """A dataset of CartPole of our own making."""
    path = tmp_path / "cartpole" / "random-v0"
    rl.record("random", "CartPole-v1", 60, path, seed=1)
    return path


@pytest.fixture
def minari(tmp_path, monkeypatch):
    """The real package, with a folder of its own."""
    package = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return package


def transitions(offline):
    """Returns all observations and rewards that are drawn, in one order."""
    agent = rl.DQN.for_env("CartPole-v1", hidden=(4,), seed=0)
    offline.bind(agent)
    batch = offline.sample(3000)
    keys = np.concatenate(
        [
            batch["observation"],
            batch["next_observation"],
            batch["action"][:, None],
            batch["reward"][:, None],
            batch["discount"][:, None],
        ],
        axis=1,
    )
    return np.unique(keys, axis=0)


def test_a_written_dataset_reads_back_equal(folder):
    recorded = rl.record("random", "CartPole-v1", 60, seed=1)
    read = rl.OfflineDataset(folder)
    assert repr(read) == repr(recorded)
    assert read.observation_space == recorded.observation_space
    assert read.action_space == recorded.action_space
    np.testing.assert_array_equal(transitions(read), transitions(recorded))


def test_minari_reads_a_dataset_of_the_library(folder, minari):
    dataset = minari.load_dataset("cartpole/random-v0")
    ours = rl.OfflineDataset(folder)
    assert dataset.total_episodes == ours.episodes
    assert dataset.total_steps == ours.transitions == 60
    assert dataset.observation_space == ours.observation_space
    assert dataset.env_spec.id == "CartPole-v1"
    returns = [episode.rewards.sum() for episode in dataset]
    np.testing.assert_allclose(returns, ours.episode_returns)
    for episode in dataset:
        assert len(episode.observations) == len(episode.actions) + 1
        assert episode.terminations[-1] or episode.truncations[-1]


@pytest.mark.usefixtures("eagerly")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_we_read_minaris(minari):
    space = gymnasium.spaces.Dict(
        {
            "at": gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64),
            "pair": gymnasium.spaces.Tuple(
                [gymnasium.spaces.Discrete(3), gymnasium.spaces.MultiBinary(2)]
            ),
        }
    )
    from minari.data_collector import EpisodeBuffer

    def episode(number, steps):
        ones = np.ones(steps + 1)
        return EpisodeBuffer(
            id=number,
            observations={
                "at": np.stack([number * ones, np.arange(steps + 1.0)], 1),
                "pair": (
                    np.arange(steps + 1) % 3,
                    np.ones((steps + 1, 2), np.int8),
                ),
            },
            actions=np.full((steps, 1), 0.5, np.float32),
            rewards=[1.0] * steps,
            terminations=[False] * (steps - 1) + [number == 0],
            truncations=[False] * (steps - 1) + [number == 1],
        )

    dataset = minari.create_dataset_from_buffers(
        "test/dict-v0",
        [episode(0, 3), episode(1, 5), episode(2, 4)],
        observation_space=space,
        action_space=gymnasium.spaces.Box(-1, 1, (1,), np.float32),
    )
    offline = rl.OfflineDataset(dataset)
    assert offline.observation_space == space
    assert offline.episode_returns.tolist() == [3.0, 5.0, 4.0]
    agent = rl.SAC.for_env(_env_of(space), hidden=(4,), seed=0)
    agent.fit(
        rl.OfflineDataset(dataset, 8, updates_per_epoch=2), epochs=1, verbose=0
    )
    offline.bind(agent)
    batch = offline.sample(500)
    number, step = batch["observation"]["at"].T
    following = batch["next_observation"]["at"]
    np.testing.assert_array_equal(following[:, 0], number)
    np.testing.assert_array_equal(following[:, 1], step + 1)
    over = (number == 0) & (step == 2)
    np.testing.assert_array_equal(batch["discount"] == 0.0, over)
    few = rl.OfflineDataset(dataset.filter_episodes(lambda e: len(e) > 3))
    assert few.episode_returns.tolist() == [5.0, 4.0]


def _env_of(space):
    """Returns an environment that is only asked for its spaces."""

    class Env(gymnasium.Env):
        observation_space = space
        action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    return Env()


@pytest.mark.parametrize(
    ("observation", "action"),
    [("dict", "dict"), ("tuple", "tuple"), ("nested", "dict")],
)
def test_trees_are_written_and_read(tmp_path, observation, action):
    env = StructuredEnv(OBSERVATIONS[observation], HYBRID_ACTIONS[action])
    recorded = rl.record("random", env, 40, tmp_path / "tree", seed=0)
    read = rl.OfflineDataset(tmp_path / "tree")
    assert read.observation_space == env.observation_space
    assert read.action_space == env.action_space
    assert repr(read) == repr(recorded)


# What is refused.


def changed(folder, change):
    """Changes the file of a dataset."""
    with h5py.File(folder / MAIN, "a") as file:
        change(file)
    return folder


def _replace(file, path, data, **kwargs):
    del file[path]
    file.create_dataset(path, data=data, **kwargs)


def _nan_observation(file):
    file["episode_1/observations"][2, 0] = np.nan


def test_an_episode_that_is_not_whole(folder, tmp_path):
    for index, (change, text) in enumerate(
        [
            (lambda f: f["episode_1"].pop("rewards"), "rewards"),
            (lambda f: f["episode_1"].pop("observations"), "observations"),
            (lambda f: _replace(f, "episode_1/actions", [0]), "actions"),
        ]
    ):
        path = tmp_path / f"changed-{index}"
        shutil.copytree(folder, path)
        changed(path, change)
        with pytest.raises(ValueError, match=f"Expected .*{text}"):
            rl.OfflineDataset(path)


def test_non_finite_observations_of_a_file_are_refused(folder):
    changed(folder, _nan_observation)
    with pytest.raises(
        ValueError,
        match=r"finite observations.*random-v0.*nan.*episode 1, step 2",
    ):
        rl.OfflineDataset(folder)


def test_an_action_outside_of_its_space(folder):
    def outside(file):
        file["episode_0/actions"][3] = 7

    changed(folder, outside)
    with pytest.raises(
        ValueError, match=r"Discrete\(2\).*7 in episode 0, step 3"
    ):
        rl.OfflineDataset(folder)


def test_a_file_that_is_cut_off(folder):
    file = folder / MAIN
    file.write_bytes(file.read_bytes()[:-3000])
    with pytest.raises(ValueError, match=r"whole Minari dataset"):
        rl.OfflineDataset(folder)


@pytest.mark.parametrize("text", ["{", "[]", '{"observation_space": "{}"}'])
def test_bad_metadata(folder, text):
    (folder / "data/metadata.json").write_text(text)
    with pytest.raises(ValueError, match="a whole Minari dataset"):
        rl.OfflineDataset(folder)


def test_an_empty_folder_and_no_episodes(tmp_path, folder):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="none of these"):
        rl.OfflineDataset(tmp_path / "empty")

    def empty(file):
        for key in [*file]:
            del file[key]

    changed(folder, empty)
    with pytest.raises(ValueError, match="a whole Minari dataset"):
        rl.OfflineDataset(folder)


def test_the_space_that_was_given_is_that_of_the_file(folder):
    with pytest.raises(ValueError, match=r"action space.*Discrete.3."):
        rl.OfflineDataset(folder, action_space=gymnasium.spaces.Discrete(3))


def test_recording_refuses_a_folder_with_files(folder):
    with pytest.raises(ValueError, match=r"new, or empty.*random-v0"):
        rl.record("random", "CartPole-v1", 5, folder)
