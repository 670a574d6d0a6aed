"""Returns and advantages from rewards and values.

Pure functions of arrays, time-major: `T` is time, `B` the environments. For the
steps of a single environment, all arrays may have the shape `[T]`, and so has
the result then: `[T, B]` below includes `[T]`.

For step `t`, their arguments are the reward, the discount
`gamma * (1 - terminated)`, `V(s_t)` where it is needed, and as `next_values[t]`
the value of the *true* next observation, which is the final observation where
an episode ended, never the one that the reset returned. So a termination zeroes
the discount and with it both the bootstrap and the trace; a truncation keeps
the bootstrap and only cuts the trace.

`weighted_importance_sampling` alone compares columns with each other: there,
`B` are whole episodes, and a single one is not enough.

No gradient is stopped here: compute targets outside the tape, or wrap them in
`keras.ops.stop_gradient`.
"""

from keras_rl2.returns.multistep import discounted_returns
from keras_rl2.returns.multistep import generalized_advantage_estimation
from keras_rl2.returns.multistep import lambda_returns
from keras_rl2.returns.multistep import n_step_returns
from keras_rl2.returns.multistep import vtrace
from keras_rl2.returns.multistep import weighted_importance_sampling

__all__ = [
    "discounted_returns",
    "generalized_advantage_estimation",
    "lambda_returns",
    "n_step_returns",
    "vtrace",
    "weighted_importance_sampling",
]
