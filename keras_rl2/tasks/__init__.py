"""The task of an agent: its spaces, and how networks see them."""
