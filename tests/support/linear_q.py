"""Q-learners whose values are a table of two states, for sums by hand."""

import gymnasium
import keras
import numpy as np

import keras_rl2 as rl

OBSERVATIONS = gymnasium.spaces.Box(-9.0, 9.0, (2,), np.float32)


def linear_agent(online, target=None, actions=2, rate=0.1, **settings):
    """Makes an agent whose networks are tables of two states.

    Args:
        online: Two rows, the outputs in state (1, 0) and in state (0, 1).
        target: The same of the target network.
        actions: Number of actions.
        rate: Learning rate of plain gradient descent.
        **settings: Of `DQN`.
    """
    online = np.array(online, "float32")
    table = keras.Sequential(
        [
            keras.Input((2,)),
            keras.layers.Dense(online.shape[1], use_bias=False),
        ]
    )
    agent = rl.DQN(
        table,
        observation_space=OBSERVATIONS,
        action_space=gymnasium.spaces.Discrete(actions),
        **{"max_gradient_norm": None, "double": False, **settings},
    )
    agent.compile(keras.optimizers.SGD(rate), run_eagerly=True)
    agent.q_network.set_weights([online])
    target = online if target is None else np.array(target, "float32")
    agent.target_network.set_weights([target])
    return agent


def transitions(*rows):
    """Makes a minibatch from state (1, 0) to state (0, 1).

    Args:
        *rows: Of action, reward, discount and, by default 1, weight.
    """
    action, reward, discount, weight = zip(
        *((*row, 1.0)[:4] for row in rows), strict=True
    )
    batch = {
        "observation": [[1.0, 0.0]] * len(rows),
        "next_observation": [[0.0, 1.0]] * len(rows),
        "reward": reward,
        "discount": discount,
        "weight": weight,
    }
    batch = {k: np.array(v, "float32") for k, v in batch.items()}
    return {**batch, "action": np.array(action, "int32")}
