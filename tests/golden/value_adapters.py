"""Adapters of action values and of distributions of values."""

import numpy as np
from keras import ops

from keras_rl2 import losses
from keras_rl2 import returns


def _td(i, next_q_values):
    """Return the TD error of the actions taken."""
    error = losses.q_learning(
        i["q_tm1"], i["a_tm1"], i["rewards"], i["discounts"], next_q_values
    )
    return {"td": error}


def _every_action(value, like):
    """Give all actions the same value: the best of them is known then."""
    return value[:, None] * ops.ones_like(like)


def _at(values, action):
    """Return values `[B, A, ...]` of one action each."""
    rows = np.arange(values.shape[0])
    index = ops.stack([rows, ops.cast(action, "int64")], axis=-1)
    flat = ops.reshape(values, (-1, *values.shape[2:]))
    return ops.take(flat, index[:, 0] * values.shape[1] + index[:, 1], axis=0)


def _sarsa(i):
    next_value = _at(i["q_t"], i["a_t"])
    return _td(i, _every_action(next_value, i["q_t"]))


def _expected_sarsa(i):
    next_value = ops.sum(i["probs"] * i["q_t"], axis=-1)
    return _td(i, _every_action(next_value, i["q_t"]))


def _q_lambda(i):
    arrays = (i["rewards"], i["discounts"], ops.max(i["q_t"], axis=-1))
    targets = returns.lambda_returns(*map(ops.transpose, arrays), i["lam"])
    # The return is all there is to learn from: nothing follows it.
    targets = ops.reshape(ops.transpose(targets), (-1,))
    q_values = ops.reshape(i["q_tm1"], (-1, i["q_tm1"].shape[-1]))
    action = ops.reshape(i["a_tm1"], (-1,))
    error = losses.q_learning(
        q_values, action, targets, ops.zeros_like(targets), q_values
    )
    return {"td": ops.reshape(error, i["a_tm1"].shape)}


def _double_q_learning(i):
    error = losses.double_q_learning(
        i["q_tm1"],
        i["a_tm1"],
        i["rewards"],
        i["discounts"],
        i["q_t_value"],
        i["q_t_selector"],
    )
    return {"td": error}


def _dqn_huber_loss(i):
    next_q_values = i["next_q"]
    if "next_mask" in i:
        next_q_values = ops.where(i["next_mask"] > 0, next_q_values, -np.inf)
    error = losses.q_learning(
        _every_action(i["q_sa"], next_q_values),
        ops.zeros_like(i["q_sa"]),
        i["rewards"],
        i["discounts"],
        next_q_values,
    )
    return {
        "td_targets": error + i["q_sa"],
        "loss": ops.mean(losses.huber(error, i["delta"])),
    }


def _projected(i, logits):
    """Return the target of a C51 cross-entropy from the next logits [B, N]."""
    atoms = i["rewards"][:, None] + i["discounts"][:, None] * i["atoms"]
    return losses.categorical_projection(
        atoms, ops.softmax(logits, axis=-1), i["atoms"]
    )


def _cross_entropy(target, logits):
    """Return the cross-entropy of logits with a target, `[B]`."""
    return -ops.sum(target * ops.log_softmax(logits, axis=-1), axis=-1)


def _best(i, logits):
    """Return the action of the greatest expected value, `[B]`."""
    values = ops.sum(ops.softmax(logits, axis=-1) * i["atoms"], axis=-1)
    return ops.argmax(values, axis=-1)


def _categorical_td(i):
    target = _projected(i, i["logits_t"])
    return {"loss": _cross_entropy(target, i["logits_tm1"])}


def _categorical_q_target(i):
    logits = i["q_logits_t"]
    return {"target": _projected(i, _at(logits, _best(i, logits)))}


def _categorical_q(i):
    target = _categorical_q_target(i)["target"]
    return {"loss": _cross_entropy(target, _at(i["q_logits_tm1"], i["a_tm1"]))}


def _categorical_double_q(i):
    action = ops.argmax(i["q_t_selector"], axis=-1)
    target = _projected(i, _at(i["q_logits_t"], action))
    return {"loss": _cross_entropy(target, _at(i["q_logits_tm1"], i["a_tm1"]))}


def _categorical_dqn_tfagents(i):
    count, dtype = i["num_atoms"], i["rewards"].dtype
    weights = np.ones((2, 2, count))
    weights[0, 0] = np.arange(count)

    def logits(observation):
        kernel = ops.cast(weights.reshape(2, -1), dtype)
        return ops.reshape(observation @ kernel + 1.0, (-1, 2, count))

    loss = _categorical_q(
        {
            **i,
            "atoms": ops.linspace(i["v_min"], i["v_max"], count, dtype=dtype),
            "a_tm1": i["actions"],
            "q_logits_tm1": logits(i["obs"]),
            "q_logits_t": logits(i["next_obs"]),
        }
    )["loss"]
    return {"loss": ops.mean(loss)}


def _quantile_regression(i):
    loss = losses.quantile_huber(
        i["dist_src"], i["tau_src"], i["dist_target"], i["huber"]
    )
    return {"loss": loss}


def _quantile_huber_sb3(i):
    count = i["current"].shape[1]
    taus = (np.arange(count) + 0.5) / count
    loss = ops.mean(
        losses.quantile_huber(i["current"], taus, i["target"], i["kappa"])
    )
    return {"loss": loss if i["sum_over_quantiles"] else loss / count}


def _quantile_q_target(i):
    """Run double Q-learning on each quantile [B, N, A], as one batch B·N."""
    source = i["dist_q_tm1"]
    batch, count, actions = source.shape
    selector = ops.mean(i["selector"], axis=1, keepdims=True)
    selector = selector * ops.ones_like(source)
    error = losses.double_q_learning(
        ops.reshape(source, (-1, actions)),
        *(ops.repeat(i[k], count) for k in ("a_tm1", "rewards", "discounts")),
        ops.reshape(i["dist_q_t"], (-1, actions)),
        ops.reshape(selector, (-1, actions)),
    )
    source = _at(ops.transpose(source, (0, 2, 1)), i["a_tm1"])
    error = ops.reshape(error, (batch, count))
    return {"src": source, "target": source + error}


ADAPTERS = {
    "q_learning": lambda i: _td(i, i["q_t"]),
    "qv_learning": lambda i: _td(i, _every_action(i["v_t"], i["q_tm1"])),
    "sarsa": _sarsa,
    "expected_sarsa": _expected_sarsa,
    "q_lambda": _q_lambda,
    "double_q_learning": _double_q_learning,
    "dqn_huber_loss": _dqn_huber_loss,
    "cql_discrete": lambda i: {
        "per_sample": losses.conservative_q(i["q"], i["actions"])
    },
    "categorical_projection": lambda i: {
        "projected": losses.categorical_projection(
            i["support"], i["probs"], i["target_support"]
        )
    },
    "categorical_td": _categorical_td,
    "categorical_q": _categorical_q,
    "categorical_double_q": _categorical_double_q,
    "categorical_q_target": _categorical_q_target,
    "categorical_dqn_tfagents": _categorical_dqn_tfagents,
    "quantile_regression": _quantile_regression,
    "quantile_huber_sb3": _quantile_huber_sb3,
    "quantile_q_target": _quantile_q_target,
}
