"""Seeds that are trained together are trained as each of them alone."""

import keras
import numpy as np
import pytest

import keras_rl2 as rl


def make_agent(seed):
    agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=seed)
    agent.compile(jit_compile=False)
    return agent


class Closing(rl.RolloutDataset):
    """Knows whether it was closed."""

    closed = False

    def close(self):
        self.closed = True
        super().close()


def make_dataset(seed):
    return Closing(
        "CartPole-v1", horizon=16, batch_size=16, passes=2, seed=seed
    )


def keeping(make, kept):
    """Returns a function that keeps the object that it makes for a seed."""
    return lambda seed: kept.append(make(seed)) or kept[-1]


def test_each_is_trained_as_alone():
    datasets = []
    make = keeping(make_dataset, datasets)
    trained = rl.train_seeds(make_agent, make, (3, 1), epochs=2, at_once=2)
    assert trained.seeds == [each.seed for each in trained.agents] == [3, 1]
    assert trained.history["loss"].shape == (2, 2)
    # As the second of them is alone.
    agent = make_agent(1)
    history = agent.fit(make_dataset(1), epochs=2, verbose=0).history
    for name in history.keys() - {"steps_per_second"}:
        np.testing.assert_array_equal(
            trained.history[name][1], history[name], err_msg=name
        )
    np.testing.assert_equal(
        trained.agents[1].get_weights(), agent.get_weights()
    )
    assert all(each.closed for each in datasets)


@pytest.mark.usefixtures("eagerly")
def test_callbacks_are_those_of_the_seed():
    class Stopping(keras.callbacks.Callback):
        def __init__(self, seed):
            super().__init__()
            self.seed = seed

        def on_epoch_end(self, epoch, logs=None):
            seen.append((self.seed, epoch))
            # That of the caller.
            policies.add(keras.config.dtype_policy().name)
            if self.seed == 0:
                self.model.stop_training = True

    def make_callbacks(seed):
        kept[seed] = Stopping(seed)
        return [kept[seed]]

    kept, seen, policies = {}, [], set()
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        trained = rl.train_seeds(
            make_agent,
            make_dataset,
            range(2),
            epochs=3,
            make_callbacks=make_callbacks,
        )
    finally:
        keras.config.set_dtype_policy(before)
    assert policies == {"mixed_bfloat16"}
    assert sorted(seen) == [(0, 0), (1, 0), (1, 1), (1, 2)]
    assert [kept[s].model for s in (0, 1)] == trained.agents
    # The history is as wide as the longest.
    np.testing.assert_array_equal(
        np.isnan(trained.history["loss"]),
        [[False, True, True], [False, False, False]],
    )


@pytest.mark.usefixtures("eagerly")
def test_an_error_names_its_seed_and_stops_the_others():
    class Failing(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            raise KeyError("of a user")

    agents, datasets = [], []
    with pytest.raises(KeyError, match="of a user") as raised:
        rl.train_seeds(
            keeping(make_agent, agents),
            keeping(make_dataset, datasets),
            [7, 8, 9],
            epochs=10**6,
            make_callbacks=lambda seed: [Failing()] if seed == 8 else [],
            at_once=2,
        )
    assert raised.value.__notes__ == ["In the training of seed 8."]
    assert agents[0].stop_training
    # One that waited for its turn has not begun, or has ended early.
    assert all(each.closed for each in datasets)


def test_bad_arguments_are_refused():
    for seeds in ([], [1, 2, 1], 3, ["a"]):
        with pytest.raises(ValueError, match=r"each once\. Received: seeds="):
            rl.train_seeds(make_agent, make_dataset, seeds, epochs=1)
    for name in ("epochs", "total_steps", "at_once"):
        with pytest.raises(ValueError, match=f"Received: {name}=0"):
            rl.train_seeds(make_agent, make_dataset, [0], **{name: 0})
    for makers in ((lambda _: None, make_dataset), (make_agent, str)):
        with pytest.raises(ValueError, match=r"Expected `make_\w+\(0\)`"):
            rl.train_seeds(*makers, [0], epochs=1)
