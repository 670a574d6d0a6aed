"""The library's function behind the name of each published case.

An adapter takes a case's inputs, as arrays of one dtype, and returns a dict of
outputs. A case is batch-major unless its notes say otherwise: adapters turn it
to the library's time-major order and back.
"""

import numpy as np
import tensorflow as tf
from keras import ops

from golden import value_adapters
from keras_rl2 import losses
from keras_rl2 import returns
from keras_rl2.distributions import Categorical
from keras_rl2.distributions import DiagonalGaussian
from keras_rl2.distributions import SquashedGaussian


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


def _gae_constant_value(i):
    steps, episodes = i["max_steps"], i["episodes"]
    last = np.arange(1, steps * episodes + 1) % steps == 0
    last = np.asarray(last[:, None], dtype="float64")
    values = np.full_like(last, i["value"])
    advantages, _ = returns.generalized_advantage_estimation(
        i["reward_last"] * last,
        i["gamma"] * (1.0 - last),
        values,
        values,
        i["lam"],
    )
    episodes = ops.reshape(advantages, (episodes, steps))
    return {"advantages_first_episode": episodes[0]}


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


def _unknown_final(i):
    """Give abandoned steps the next value that makes their TD error 0."""
    values, rewards = i["values"][:-1], i["rewards"]
    zeroing = (values - rewards) / i["gamma"]
    return ops.where(i["abandoned"] > 0, zeroing, i["values"][1:])


def _gae_seed(i):
    advantages, targets = _gae_flags(
        i, i["values"][:-1], _unknown_final(i), i["terminated"], i["abandoned"]
    )
    return {"advantages": advantages[:, 0], "targets": targets[:, 0]}


def _gae_ragged(i):
    advantages = []
    # Of equal lengths, the values have become one array [2, 3].
    for episode, rewards in enumerate(i["rewards"]):
        values = i["values"][episode]
        length = rewards.shape[0]
        terminated = np.zeros(length, dtype=rewards.dtype.name)
        if values.shape[0] == length:
            terminated[-1] = 1.0
            values = ops.concatenate([values, values[-1:]])
        estimate, _ = _gae_flags(
            {**i, "rewards": rewards},
            values[:-1],
            values[1:],
            terminated,
            np.zeros_like(terminated),
        )
        advantages.append(estimate[:, 0])
    return {"advantages": advantages}


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


def _masked_returns(i):
    rewards = ops.transpose(i["rewards"])
    step = np.arange(rewards.shape[0])[:, None]
    inside = ops.cast(step < ops.cast(i["lengths"], "int64"), rewards.dtype)
    result = returns.discounted_returns(
        rewards * inside, i["gamma"] * inside, ops.zeros_like(rewards[0])
    )
    return {"returns": ops.transpose(result)}


def _nstep_bootstrapped(i):
    arrays = (i["rewards"], i["discounts"], i["next_values"])
    result = returns.n_step_returns(*map(ops.transpose, arrays), i["n"])
    return {"returns": ops.transpose(result)}


def _nstep_seed(i):
    result = returns.n_step_returns(
        _column(i["rewards"]),
        i["gamma"] * (1.0 - _column(i["terminated"])),
        _column(_unknown_final(i)),
        i["n"],
        _column(i["abandoned"]),
    )
    return {"targets": result[:, 0]}


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


def _entropy_loss(i):
    entropy = Categorical(_flat(i["logits"])).entropy()
    loss = -i["weights"] * ops.reshape(entropy, i["weights"].shape)
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


def _ppo_gaussian_pg(i):
    policy = DiagonalGaussian(_column(i["loc"]), ops.log(_column(i["scale"])))
    log_prob = policy.log_prob(_column(i["actions"]))
    return _clipped_surrogate_from_logp({**i, "log_probs": log_prob})


def _ppo_losses_sb3(i):
    policy = Categorical(i["logits"])
    log_prob, old = policy.log_prob(i["actions"]), i["old_log_probs"]
    policy_loss = ops.mean(
        losses.clipped_surrogate(log_prob, old, i["advantages"], i["clip"])
    )
    value_loss = ops.mean(
        losses.clipped_value(i["values"], i["values"], i["returns"], 1.0)
    )
    entropy_loss = -ops.mean(policy.entropy())
    return {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy_loss": entropy_loss,
        "approx_kl": ops.mean(losses.approximate_kl(log_prob, old)),
        "clip_fraction": ops.mean(
            losses.clip_fraction(log_prob, old, i["clip"])
        ),
        "total_loss": policy_loss
        + i["ent_coef"] * entropy_loss
        + i["vf_coef"] * value_loss,
        "explained_variance": losses.explained_variance(
            i["old_values"], i["returns"]
        ),
    }


def _clipped_value_loss_max(i):
    loss = losses.clipped_value(
        i["values"], i["old_values"], i["returns"], i["clip"]
    )
    return {"loss": i["factor"] * ops.mean(loss)}


def _mse(i):
    loss = losses.clipped_value(i["pred"], i["pred"], i["target"], 1.0)
    return {"loss": ops.mean(loss)}


def _gaussian_entropy_mean(i):
    log_std = ops.log(_column(i["scale"]))
    policy = DiagonalGaussian(ops.zeros_like(log_std), log_std)
    return {"entropy": ops.mean(policy.entropy())}


def _a2c_sequence(i):
    policy = Categorical(i["logits"])
    targets = returns.discounted_returns(
        _column(i["rewards"]), _column(i["discounts"]), i["bootstrap"][None]
    )[:, 0]
    targets = ops.stop_gradient(targets)
    policy_loss = ops.sum(
        losses.policy_gradient(
            policy.log_prob(i["actions"]), targets - i["values"]
        )
    )
    baseline_loss = i["baseline_cost"] * ops.sum(
        losses.expectile(targets - i["values"], 0.5)
    )
    entropy = ops.sum(policy.entropy())
    return {
        "returns": targets,
        "baseline_loss": baseline_loss,
        "policy_gradient_loss": policy_loss,
        "entropy": entropy,
        "loss": policy_loss + baseline_loss - i["entropy_cost"] * entropy,
    }


def _with_array_bootstrap(i):
    bootstrap = ops.cast(i["bootstrap"], i["rewards"].dtype.name)
    return {**i, "bootstrap": bootstrap}


def _a2c_sequence_grad(i):
    i = _with_array_bootstrap(i)

    def loss(logits, values):
        return _a2c_sequence({**i, "logits": logits, "values": values})["loss"]

    grad_logits, grad_values = _gradient(loss, i["logits"], i["values"])
    return {"grad_logits": grad_logits, "grad_values": grad_values}


def _pg_per_step(i):
    def loss(logits):
        log_prob = Categorical(logits).log_prob(i["actions"])
        return losses.policy_gradient(log_prob, i["action_values"])

    return {
        "loss": loss(i["logits"]),
        "grad": _gradient(loss, i["logits"])[0],
    }


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
        return SquashedGaussian(ops.tanh(mu), log_std, i["low"], i["high"])

    mine = policy(i["mu"], i["sigma"])
    zeros = ops.zeros_like(i["mu"])
    standard = SquashedGaussian(zeros, zeros, i["low"], i["high"])
    log_prob = mine.log_prob(i["sample"])
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


ADAPTERS = {
    **value_adapters.ADAPTERS,
    "sac_critic": _sac_critic,
    "sac_actor": _sac_actor,
    "sac_alpha": _sac_alpha,
    "gae": _gae,
    "gae_constant_value": _gae_constant_value,
    "gae_returns_nextvalues": _gae_returns_nextvalues,
    "gae_seed": _gae_seed,
    "gae_ragged": _gae_ragged,
    "gae_terminated_truncated": _gae_terminated_truncated,
    "lambda_returns": _lambda_returns,
    "discounted_returns": _discounted_returns,
    "scan_discounted_sum": _scan_discounted_sum,
    "episodic_returns": _episodic_returns,
    "masked_returns": _masked_returns,
    "nstep_bootstrapped": _nstep_bootstrapped,
    "nstep_seed": _nstep_seed,
    "vtrace": _vtrace,
    "td_error": lambda i: _td_error(i, i["v_t"]),
    "qv_max": lambda i: _td_error(i, ops.max(i["q_t"], axis=-1)),
    "td_lambda": _td_lambda,
    "huber": _huber,
    "expectile": _expectile,
    "policy_gradient": _policy_gradient,
    "entropy_loss": _entropy_loss,
    "categorical_entropy": lambda i: {
        "entropy": Categorical(i["logits"]).entropy()
    },
    "clipped_surrogate_from_logits": _clipped_surrogate_from_logits,
    "clipped_surrogate_from_logp": _clipped_surrogate_from_logp,
    "ppo_gaussian_pg": _ppo_gaussian_pg,
    "ppo_losses_sb3": _ppo_losses_sb3,
    "clipped_value_loss_max": _clipped_value_loss_max,
    "mse": _mse,
    "gaussian_entropy_mean": _gaussian_entropy_mean,
    "a2c_sequence": lambda i: _a2c_sequence(_with_array_bootstrap(i)),
    "a2c_sequence_grad": _a2c_sequence_grad,
    "pg_per_step": _pg_per_step,
    "gaussian_diag": _gaussian_diag,
    "squashed_gaussian_rlax": _squashed_gaussian_rlax,
    "squashed_gaussian_logprob": _squashed_gaussian_logprob,
    "softmax_probs": lambda i: {
        "probs": ops.exp(Categorical(i["logits"] / i["temperature"]).log_probs)
    },
    "categorical_kl": lambda i: {
        "kl": Categorical(i["p_logits"]).kl(Categorical(i["q_logits"]))
    },
    "explained_variance": lambda i: {
        "ev": losses.explained_variance(i["y_pred"], i["y_true"])
    },
}
