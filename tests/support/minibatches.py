"""One minibatch of an agent's own data, and one update on it."""

import keras

from support.agents import make_env


def bound(case, agent, env, **arguments):
    """Ties an agent to a dataset, and returns a minibatch of its first round.

    Args:
        case: `AgentCase`.
        agent: A compiled agent.
        env: The result of `make_env`.
        **arguments: Of the dataset.
    """
    dataset = case.make_dataset(env, **arguments)
    batches = iter(dataset.as_dataset(agent))
    dataset.refresh()
    return next(batches)


def small_agent(case, pair=None, *, compile_arguments=None, **settings):
    """Makes an agent of plain gradient descent, and a minibatch for it.

    Each update is one of all networks, whatever the algorithm's own delays.
    """
    env = make_env(pair or case.pair)
    agent = case.make.for_env(
        env, hidden=(4,), seed=0, **{**case.every_update, **settings}
    )
    agent.compile(
        **{
            "optimizer": keras.optimizers.SGD(0.1),
            "run_eagerly": True,
            **(compile_arguments or {}),
        }
    )
    agent.optimizer.build(agent.trainable_variables)
    return agent, bound(case, agent, env)


def update(agent, batch):
    """Makes one update; returns its logs, as floats."""
    agent.statistics.reset_state()
    return {key: float(value) for key, value in agent.train_step(batch).items()}
