"""The glossary of docs/callbacks.md has all that `fit` logs, and no more."""

import pathlib
import re

import keras
import pytest

import keras_rl2 as rl
from support.agents import EVERY_AGENT
from support.agents import make_eager_agent
from support.agents import make_env
from support.events import read

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "callbacks.md"
_ROW = re.compile(r"(?m)^\| (`.*?) \| (.*?) \|")
_WORDS = re.compile(r"`([^`]+)`")
# Of keys and tags that hold the name of an optimizer.
_NAME = "NAME"
# What `TensorBoard` adds to the logs of some agents.
_OF_TENSORBOARD = ("clip_ratio", "std")
# Of processes and games; of estimates that want a training of their own.
_NOT_TRIED = ("lag", "elo", "league_size", "val_fqe_value")


def glossary():
    """Returns the tags by the key, as the page has them."""
    _, _, section = PAGE.read_text("utf-8").partition("\n## Every key\n")
    section, _, _ = section.partition("\n## ")
    table = {}
    for keys, tags in _ROW.findall(section):
        keys, tags = _WORDS.findall(keys), _WORDS.findall(tags)
        for place, key in enumerate(keys):
            assert key not in table, f"{key} is there twice"
            # A tag for each of several keys, or all tags for the one key.
            table[key] = [tags[place]] if len(keys) > 1 else tags
    return table


def entry_of(key, entries):
    """Returns the entry of the glossary for a key or a tag, or None."""
    for entry in entries:
        if re.fullmatch(re.escape(entry).replace(_NAME, r"\w+"), key):
            return entry
    return None


class Keys(keras.callbacks.Callback):
    """Keeps the keys of the logs."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def on_epoch_end(self, epoch, logs=None):
        """Adds those of an epoch."""
        self.seen.update(logs)


def fit(agent, dataset, log_dir, validation_data):
    """Trains an epoch with all that logs; returns keys and tags."""
    keys = Keys()
    callbacks = [
        rl.callbacks.Diagnostics(warn=False),
        rl.callbacks.TensorBoard(log_dir, histogram_freq=0, write_graph=False),
        keys,
    ]
    agent.fit(
        dataset,
        callbacks=callbacks,
        validation_data=validation_data,
        verbose=0,
    )
    return keys.seen, set(read(log_dir).Tags()["scalars"])


def trained(name, log_dir):
    """Trains the agent of a name; returns keys and tags."""
    if name == "offline":
        played = rl.record("random", make_env(), 64, seed=0)
        recorded = rl.OfflineDataset(played.recorded, updates_per_epoch=2)
        agent = make_eager_agent(EVERY_AGENT["DQN"], make_env())
        return fit(agent, recorded, log_dir, recorded)
    case, settings, data = EVERY_AGENT[name], {}, {}
    env = make_env(case.pair)
    if name == "PPO":
        settings["normalize_observations"] = data["scale_rewards"] = True
    if name == "DDPG":
        decay = keras.optimizers.schedules.PolynomialDecay(0.5, 100, 0.1)
        settings["exploration"] = rl.exploration.GaussianNoise(decay)
    # Long enough that units can be told dead.
    data |= {"horizon": 64} if case.on_policy else {"steps_per_round": 128}
    return fit(
        make_eager_agent(case, env, activation="relu", **settings),
        case.make_dataset(env, **data),
        log_dir,
        make_env(case.pair),
    )


def unexplained(keys, tags):
    """Returns those of keys and tags that the glossary does not have."""
    table = glossary()
    missing = {key for key in keys if not entry_of(key, table)}
    known = keys - missing
    explained = [tag for key in known for tag in table[entry_of(key, table)]]
    explained += [tag for key in _OF_TENSORBOARD for tag in table[key]]
    return missing | {tag for tag in tags if not entry_of(tag, explained)}


def test_every_key_and_tag_is_explained(tmp_path):
    for name in ("PPO", "offline"):
        keys, tags = trained(name, tmp_path / name)
        assert "loss" in keys
        assert unexplained(keys, tags) == set(), name
    assert unexplained({"learning_rate_my_adam"}, set()) == set()
    assert unexplained({"episode_returns"}, {"x"}) == {"episode_returns", "x"}


@pytest.mark.slow
def test_keys_of_every_agent_are_explained_and_every_entry_is_logged(tmp_path):
    table = glossary()
    logged, shown = set(_OF_TENSORBOARD), set()
    for name in (*EVERY_AGENT, "offline"):
        keys, tags = trained(name, tmp_path / name)
        assert unexplained(keys, tags) == set(), name
        logged |= {entry_of(key, table) for key in keys}
        shown |= tags
    tried = set(table) - set(_NOT_TRIED)
    assert tried - logged == set()
    entries = [tag for key in tried for tag in table[key]]
    assert {*entries} - {entry_of(tag, entries) for tag in shown} == set()
