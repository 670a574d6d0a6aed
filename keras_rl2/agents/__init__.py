"""Agents: each is a `keras.Model`, trained by `fit`."""

from keras_rl2.agents.actor_critic import ActorCritic
from keras_rl2.agents.agent import Agent
from keras_rl2.agents.on_policy_agent import OnPolicyAgent
from keras_rl2.agents.ppo import PPO

__all__ = ["PPO", "ActorCritic", "Agent", "OnPolicyAgent"]
