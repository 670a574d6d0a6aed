"""Policy heads: between a network's output and an environment's actions.

A head belongs to an action space. It defines the width of the network's output,
makes the distribution from it, draws the noise for sampling, or random actions,
and converts the policy's own action to the environment's.

`B` is the batch, `P` the width of the network's output, `A` the number of
action dimensions, `K` that of independent choices.
"""

from keras_rl2.policy_heads.box_head import BoxHead
from keras_rl2.policy_heads.composite_head import CompositeHead
from keras_rl2.policy_heads.discrete_head import DiscreteHead
from keras_rl2.policy_heads.for_space import policy_head
from keras_rl2.policy_heads.multi_binary_head import MultiBinaryHead
from keras_rl2.policy_heads.multi_discrete_head import MultiDiscreteHead
from keras_rl2.policy_heads.policy_head import PolicyHead

__all__ = [
    "BoxHead",
    "CompositeHead",
    "DiscreteHead",
    "MultiBinaryHead",
    "MultiDiscreteHead",
    "PolicyHead",
    "policy_head",
]
