"""The outputs of a recurrent agent, one step after the other."""

import keras
import numpy as np

from keras_rl2.spaces.trees import map_leaves

CELLS = {
    "lstm": lambda: keras.layers.LSTMCell(6),
    "gru": lambda: keras.layers.GRUCell(5),
    "stacked": lambda: keras.layers.StackedRNNCells(
        [keras.layers.LSTMCell(4), keras.layers.GRUCell(3)]
    ),
}


def stepwise(agent, trajectory):
    """Runs the network of an on-policy agent through a rollout, by steps.

    Returns:
        Log-probabilities and values, `[T, B]`, and the states before each
        step.
    """
    state = [each[0] for each in trajectory.state]
    log_probs, values, states = [], [], []
    for t in range(len(trajectory.reward)):
        states.append(state)
        observation = map_leaves(lambda a, t=t: a[t], trajectory.observation)
        begins = trajectory.begins[t]
        _, value = agent.run_sequences(
            map_leaves(lambda each: each[:, None], observation),
            begins[:, None],
            state,
        )
        policy, state = agent.policy.policy_step(observation, begins, state)
        log_probs.append(policy.log_prob(trajectory.action[t]))
        values.append(value[:, 0])
    return np.array(log_probs), np.array(values), states
