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


def make_dataset(seed, env="CartPole-v1"):
    return Closing(env, horizon=16, batch_size=16, passes=2, seed=seed)


def make_graph_dataset(seed):
    return make_dataset(seed, rl.envs.GraphVectorEnv("CartPole-v1", 2))


@pytest.mark.parametrize(
    ("make_dataset", "at_once"),
    [
        (make_dataset, 3),
        pytest.param(make_dataset, 1, marks=pytest.mark.slow),
        pytest.param(make_graph_dataset, 1, marks=pytest.mark.slow),
        pytest.param(make_graph_dataset, 3, marks=pytest.mark.slow),
    ],
)
def test_each_is_trained_as_alone(make_dataset, at_once):
    datasets = []

    def make(seed):
        datasets.append(make_dataset(seed))
        return datasets[-1]

    def alone(seed):
        agent = make_agent(seed)
        history = agent.fit(make_dataset(seed), epochs=3, verbose=0)
        return agent, history.history

    trained = rl.train_seeds(
        make_agent, make, (3, 1, 4, 5), epochs=3, at_once=at_once
    )
    assert trained.seeds == [3, 1, 4, 5]
    assert [each.seed for each in trained.agents] == [3, 1, 4, 5]
    assert trained.history["loss"].shape == (4, 3)
    for row in (1, 2):
        agent, history = alone(trained.seeds[row])
        for name, values in history.items():
            if name != "steps_per_second":
                np.testing.assert_array_equal(
                    trained.history[name][row], values, err_msg=name
                )
        for found, expected in zip(
            trained.agents[row].get_weights(), agent.get_weights(), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
    assert all(each.closed for each in datasets)


def test_callbacks_are_those_of_the_seed():
    kept = {}

    def make_callbacks(seed):
        kept[seed] = keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: seen.append((seed, epoch))
        )
        return [kept[seed]]

    seen = []
    trained = rl.train_seeds(
        make_agent,
        make_dataset,
        range(2),
        epochs=2,
        make_callbacks=make_callbacks,
    )
    assert sorted(seen) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [kept[s].model for s in (0, 1)] == trained.agents


def test_a_sweep_is_as_wide_as_its_longest():
    stopping = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda *_: setattr(stopping.model, "stop_training", True)
    )
    trained = rl.train_seeds(
        make_agent,
        make_dataset,
        [0, 1],
        epochs=3,
        make_callbacks=lambda seed: [stopping] if seed == 0 else [],
    )
    np.testing.assert_array_equal(
        np.isnan(trained.history["loss"]),
        [[False, True, True], [False, False, False]],
    )


def test_the_policy_for_dtypes_is_that_of_the_caller():
    seen = []

    class Look(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            seen.append(keras.config.dtype_policy().name)

    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        rl.train_seeds(
            make_agent,
            make_dataset,
            [0],
            epochs=1,
            make_callbacks=lambda seed: [Look()],
        )
    finally:
        keras.config.set_dtype_policy(before)
    assert seen == ["mixed_bfloat16"]


def test_an_error_names_its_seed_and_stops_the_others():
    class Failing(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            raise KeyError("of a user")

    agents = []

    def make(seed):
        agents.append(make_agent(seed))
        return agents[-1]

    datasets = []

    def make_data(seed):
        datasets.append(make_dataset(seed))
        return datasets[-1]

    with pytest.raises(KeyError, match="of a user") as raised:
        rl.train_seeds(
            make,
            make_data,
            [7, 8, 9],
            epochs=10**6,
            make_callbacks=lambda seed: [Failing()] if seed == 8 else [],
            at_once=2,
        )
    assert raised.value.__notes__ == ["In the training of seed 8."]
    assert agents[0].stop_training
    # One that waited for its turn has not begun, or has ended early.
    assert all(each.closed for each in datasets)


@pytest.mark.parametrize("seeds", [[], [1, 2, 1]])
def test_seeds_are_each_once(seeds):
    with pytest.raises(ValueError, match=r"each once\. Received: seeds="):
        rl.train_seeds(make_agent, make_dataset, seeds, epochs=1)


@pytest.mark.parametrize("name", ["epochs", "total_steps", "at_once"])
def test_numbers_are_positive(name):
    with pytest.raises(ValueError, match=f"Received: {name}=0"):
        rl.train_seeds(make_agent, make_dataset, [0], **{name: 0})
