"""Helpers shared by the tests: probe environments, small networks, cases."""
