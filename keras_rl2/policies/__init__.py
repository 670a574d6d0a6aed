"""Policies: how an agent acts, in TensorFlow, and in its interpreter."""
