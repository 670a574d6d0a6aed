"""The library against the published numbers of other libraries.

`ADAPTERS` says which function is behind the name of a case. An adapter takes
the inputs, as arrays of one dtype, and returns a dict of outputs. Cases are
batch-major unless their notes say otherwise, and the library is time-major.
"""

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_rl2 import losses
from keras_rl2 import returns
from keras_rl2.distributions import Categorical
from keras_rl2.distributions import DiagonalGaussian
from keras_rl2.distributions import SquashedGaussian
from support.golden import as_arrays
from support.golden import load_cases


def _column(array):
    """Give a single trajectory [T] the batch axis: [T, 1]."""
    return ops.expand_dims(array, axis=-1)


def _flat(logits):
    """Join the leading axes of logits [B, T, A]: [B * T, A]."""
    return ops.reshape(logits, (-1, logits.shape[-1]))


def _log_prob(i, logits="logits"):
    """Return log-probabilities of actions, in the actions' shape."""
    actions = i["actions"]
    log_prob = Categorical(_flat(i[logits])).log_prob(
        ops.reshape(actions, (-1,))
    )
    return ops.reshape(log_prob, actions.shape)


def _gradient(function, *sources):
    """Return the gradients of the sum of a function's result."""
    with tf.GradientTape() as tape:
        tensors = [tf.convert_to_tensor(source) for source in sources]
        tape.watch(tensors)
        result = ops.sum(function(*tensors))
    return tape.gradient(result, tensors)


def _gae(i):
    rewards, discounts, values = map(
        ops.transpose, (i["rewards"], i["discounts"], i["values"])
    )
    advantages, _ = returns.generalized_advantage_estimation(
        rewards, discounts, values[:-1], values[1:], i["lam"]
    )
    return {"advantages": ops.transpose(advantages)}


def _gae_flags(i, values, next_values, terminated, truncated):
    return returns.generalized_advantage_estimation(
        _column(i["rewards"]),
        i["gamma"] * (1.0 - _column(terminated)),
        _column(values),
        _column(next_values),
        i["lam"],
        _column(truncated),
    )


def _gae_returns_nextvalues(i):
    _, targets = _gae_flags(
        i, i["values"], i["next_values"], i["terminated"], i["truncated"]
    )
    return {"returns": targets[:, 0]}


def _gae_terminated_truncated(i):
    next_values = ops.concatenate([i["values"][1:], i["last_values"][None]])
    next_values = ops.where(i["truncated"] > 0, i["final_values"], next_values)
    advantages, targets = returns.generalized_advantage_estimation(
        i["rewards"],
        i["gamma"] * (1.0 - i["terminated"]),
        i["values"],
        next_values,
        i["lam"],
        i["truncated"],
    )
    return {"advantages": advantages, "returns": targets}


def _lambda_returns(i):
    arrays = (i["rewards"], i["discounts"], i["next_values"])
    result = returns.lambda_returns(*map(ops.transpose, arrays), i["lam"])
    return {"returns": ops.transpose(result)}


def _discounted_returns(i):
    arrays = (i["rewards"], i["discounts"])
    result = returns.discounted_returns(
        *map(ops.transpose, arrays), i["bootstrap"]
    )
    return {"returns": ops.transpose(result)}


def _scan_discounted_sum(i):
    sequence, decays = map(ops.transpose, (i["sequence"], i["decays"]))
    turn = (lambda x: x) if i["reverse"] else (lambda x: ops.flip(x, axis=0))
    result = returns.discounted_returns(
        turn(sequence), turn(decays), i["initial"]
    )
    return {"out": ops.transpose(turn(result))}


def _episodic_returns(i):
    result = returns.discounted_returns(
        _column(i["rewards"]),
        i["gamma"] * (1.0 - _column(i["terminated"])),
        ops.zeros_like(i["rewards"][:1]),
    )
    return {"returns": result[:, 0]}


def _nstep_bootstrapped(i):
    arrays = (i["rewards"], i["discounts"], i["next_values"])
    result = returns.n_step_returns(*map(ops.transpose, arrays), i["n"])
    return {"returns": ops.transpose(result)}


def _vtrace(i):
    log_ratios = _log_prob(i, "target_logits") - _log_prob(
        i, "behaviour_logits"
    )
    next_values = ops.concatenate(
        [i["values"][:, 1:], i["bootstrap"][:, None]], axis=1
    )
    targets, advantages = returns.vtrace(
        ops.transpose(log_ratios),
        ops.transpose(i["rewards"]),
        ops.transpose(i["discounts"]),
        ops.transpose(i["values"]),
        ops.transpose(next_values),
        lambda_=i["lam"],
        clip_rho=i["clip_rho"],
        clip_pg_rho=i["clip_pg_rho"],
    )
    return {
        "errors": ops.transpose(targets) - i["values"],
        "pg_advantages": ops.transpose(advantages),
    }


def _td_error(i, next_value):
    target = returns.n_step_returns(
        i["rewards"][None], i["discounts"][None], next_value[None], n=1
    )
    return {"td": target[0] - i["v_tm1"]}


def _td_lambda(i):
    result = _lambda_returns({**i, "next_values": i["v_t"]})["returns"]
    return {"td": result - i["v_tm1"]}


def _huber(i):
    (gradient,) = _gradient(lambda x: losses.huber(x, i["delta"]), i["x"])
    return {"loss": losses.huber(i["x"], i["delta"]), "grad": gradient}


def _expectile(i):
    def loss(predictions):
        return losses.expectile(i["targets"] - predictions, i["expectile"])

    (gradient,) = _gradient(loss, i["predictions"])
    return {"loss": loss(i["predictions"]), "grad": gradient}


def _policy_gradient(i):
    loss = losses.policy_gradient(
        ops.reshape(_log_prob(i), (-1,)), ops.reshape(i["advantages"], (-1,))
    )
    loss = ops.reshape(loss, i["weights"].shape) * i["weights"]
    return {"loss": ops.mean(loss, axis=-1)}


def _clipped_surrogate_from_logits(i):
    loss = losses.clipped_surrogate(
        ops.reshape(_log_prob(i), (-1,)),
        ops.reshape(_log_prob(i, "old_logits"), (-1,)),
        ops.reshape(i["advantages"], (-1,)),
        i["epsilon"],
    )
    return {"loss": ops.mean(ops.reshape(loss, i["actions"].shape), axis=-1)}


def _clipped_surrogate_from_logp(i):
    loss = losses.clipped_surrogate(
        i["log_probs"], i["old_log_probs"], i["advantages"], i["clip"]
    )
    return {"loss": ops.mean(loss)}


def _clipped_value_loss_max(i):
    loss = losses.clipped_value(
        i["values"], i["old_values"], i["returns"], i["clip"]
    )
    return {"loss": i["factor"] * ops.mean(loss)}


def _gaussian_diag(i):
    policy = DiagonalGaussian(i["mu"], ops.log(i["sigma"]))
    other = DiagonalGaussian(i["other_mu"], ops.log(i["other_sigma"]))
    zeros = ops.zeros_like(i["mu"])
    return {
        "log_prob": policy.log_prob(i["sample"]),
        "entropy": policy.entropy(),
        "kl": policy.kl(other),
        "kl_std_normal": policy.kl(DiagonalGaussian(zeros, zeros)),
    }


def _squashed_gaussian_rlax(i):
    def policy(mu, sigma):
        low, high = i["sigma_min"], i["sigma_max"]
        log_std = low + 0.5 * (high - low) * (ops.tanh(sigma) + 1.0)
        return SquashedGaussian(ops.tanh(mu), log_std)

    mine = policy(i["mu"], i["sigma"])
    zeros = ops.zeros_like(i["mu"])
    standard = SquashedGaussian(zeros, zeros)
    # From the bounds to the unit box.
    half = 0.5 * (i["high"] - i["low"]) * ops.ones_like(i["sample"])
    unit = (i["sample"] - i["low"]) / half - 1.0
    log_prob = mine.log_prob(unit) - ops.sum(ops.log(half), axis=-1)
    return {
        "log_prob": log_prob,
        "prob": ops.exp(log_prob),
        "entropy_base": mine.base.entropy(),
        "kl_base": mine.kl(policy(i["other_mu"], i["other_sigma"])),
        "kl_base_std_normal": mine.kl(standard),
    }


def _squashed_gaussian_logprob(i):
    log_prob = SquashedGaussian(i["mean"], i["log_std"]).log_prob(i["action"])
    # SB3 adds epsilon under the logarithm; the library's form is exact.
    slope = 1.0 - ops.square(i["action"])
    added = ops.log(slope) - ops.log(slope + i["epsilon"])
    return {"log_prob": log_prob + ops.sum(added, axis=-1)}


def _sac_critic(i):
    value = losses.soft_value(i["next_log_pi"], [i["next_q_min"]], i["alpha"])
    target = i["rewards"] + i["discounts"] * value
    error = target - i["q_pred"]
    return {
        "td_targets": target,
        "loss": i["n_critics"] * ops.mean(ops.square(error)),
    }


def _sac_actor(i):
    value = losses.soft_value(i["log_pi"], [i["q_min"]], i["alpha"])
    return {"loss": -ops.mean(value)}


def _sac_alpha(i):
    entropy = -i["log_pi"]
    loss = losses.temperature_loss(i["log_alpha"], entropy, i["target_entropy"])
    return {"loss": ops.mean(loss)}


def _td(i, next_q_values):
    """Return the TD error of the actions taken."""
    error = losses.q_learning(
        i["q_tm1"], i["a_tm1"], i["rewards"], i["discounts"], next_q_values
    )
    return {"td": error}


def _every_action(value, like):
    """Give all actions the same value: the best of them is known then."""
    return value[:, None] * ops.ones_like(like)


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


ADAPTERS = {
    "q_learning": lambda i: _td(i, i["q_t"]),
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
    "quantile_regression": _quantile_regression,
    "quantile_huber_sb3": _quantile_huber_sb3,
    "sac_critic": _sac_critic,
    "sac_actor": _sac_actor,
    "sac_alpha": _sac_alpha,
    "gae": _gae,
    "gae_returns_nextvalues": _gae_returns_nextvalues,
    "gae_terminated_truncated": _gae_terminated_truncated,
    "lambda_returns": _lambda_returns,
    "discounted_returns": _discounted_returns,
    "scan_discounted_sum": _scan_discounted_sum,
    "episodic_returns": _episodic_returns,
    "nstep_bootstrapped": _nstep_bootstrapped,
    "vtrace": _vtrace,
    "td_error": lambda i: _td_error(i, i["v_t"]),
    "qv_max": lambda i: _td_error(i, ops.max(i["q_t"], axis=-1)),
    "td_lambda": _td_lambda,
    "huber": _huber,
    "expectile": _expectile,
    "policy_gradient": _policy_gradient,
    "categorical_entropy": lambda i: {
        "entropy": Categorical(i["logits"]).entropy()
    },
    "clipped_surrogate_from_logits": _clipped_surrogate_from_logits,
    "clipped_surrogate_from_logp": _clipped_surrogate_from_logp,
    "clipped_value_loss_max": _clipped_value_loss_max,
    "gaussian_diag": _gaussian_diag,
    "squashed_gaussian_rlax": _squashed_gaussian_rlax,
    "squashed_gaussian_logprob": _squashed_gaussian_logprob,
    "categorical_kl": lambda i: {
        "kl": Categorical(i["p_logits"]).kl(Categorical(i["q_logits"]))
    },
    "explained_variance": lambda i: {
        "ev": losses.explained_variance(i["y_pred"], i["y_true"])
    },
}

CASES = load_cases()
OURS = [case for case in CASES if case["function"] in ADAPTERS]
TESTED_WITH_WHAT_THEY_ARE_OF = {
    *("nstep_ring", "nstep_replay"),
    *("sum_tree", "sum_tree_never_zero", "per_weights"),
    *("running_mean_std", "reward_normalisation"),
    *("polyak", "cql_continuous_stochastic"),
    *("a2c_sequence", "a2c_sequence_grad", "ppo_losses_sb3"),
}


def check(case, outputs, dtype):
    """Compares by the published tolerance, tighter where digits allow it."""
    rtol, atol = case["tolerance"]["rtol"], case["tolerance"]["atol"]
    if dtype == "float32":
        rtol, atol = max(rtol, 1e-5), max(atol, 1e-6)
    elif case.get("exact"):
        rtol = atol = 1e-9
    else:
        atol = max(atol, 1e-9)
    for name, expected in as_arrays(case["expected"], "float64").items():
        tf.nest.assert_same_structure(outputs[name], expected)
        ours, theirs = map(tf.nest.flatten, (outputs[name], expected))
        for one, other in zip(ours, theirs, strict=True):
            message = f"{case['id']}: {name}"
            np.testing.assert_allclose(one, other, rtol, atol, err_msg=message)


@pytest.mark.parametrize("case", OURS, ids=lambda case: case["id"])
def test_published_case(case):
    inputs = as_arrays(case["inputs"], "float64")
    check(case, ADAPTERS[case["function"]](inputs), "float64")


@pytest.mark.slow
def test_published_cases_in_graphs_of_float32():
    first_of_each = {case["function"]: case for case in reversed(OURS)}
    for case in first_of_each.values():
        inputs = tf.nest.map_structure(
            lambda item: (
                tf.constant(item) if isinstance(item, np.ndarray) else item
            ),
            as_arrays(case["inputs"], "float32"),
        )
        outputs = tf.function(ADAPTERS[case["function"]])(inputs)
        check(case, outputs, "float32")


def test_no_published_case_is_left_out():
    assert {case["function"] for case in CASES} == (
        TESTED_WITH_WHAT_THEY_ARE_OF | {*ADAPTERS}
    )
