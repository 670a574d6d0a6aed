"""Returns and advantages from rewards and values.

Pure functions of arrays, time-major: `T` is time, `B` the environments. The
steps of a single environment may be given as `[T]`, all arrays alike, and what
is returned is `[T]` then: wherever `[T, B]` is written below, `[T]` will do.

For step `t` they are given the reward, the discount `gamma * (1 - terminated)`,
`V(s_t)` where it is needed, and as `next_values[t]` the value of the *true*
next observation, which is the final observation where an episode ended, never
the one that the reset returned. So a termination zeroes the discount and with
it both the bootstrap and the trace; a truncation keeps the bootstrap and only
cuts the trace.

`weighted_importance_sampling` alone compares columns with each other: `B` are
whole episodes there, of which one will not do.

No gradient is stopped here: compute targets outside the tape, or wrap them in
`keras.ops.stop_gradient`.
"""

from keras_rl2.returns.importance_sampling import weighted_importance_sampling
from keras_rl2.returns.multistep import discounted_returns
from keras_rl2.returns.multistep import generalized_advantage_estimation
from keras_rl2.returns.multistep import lambda_returns
from keras_rl2.returns.multistep import n_step_returns
from keras_rl2.returns.multistep import vtrace

__all__ = [
    "discounted_returns",
    "generalized_advantage_estimation",
    "lambda_returns",
    "n_step_returns",
    "vtrace",
    "weighted_importance_sampling",
]
