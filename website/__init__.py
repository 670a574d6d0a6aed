"""The documentation site: what Sphinx is given, and how it is set."""
