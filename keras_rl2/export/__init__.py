"""Exported policies: what a file says of itself, and how it is run.

Needs neither Keras nor TensorFlow, but for a SavedModel: what is here runs
where a policy is used, not where it was trained. Nothing is imported before it
is needed, since the command line asks for the names of formats.
"""
