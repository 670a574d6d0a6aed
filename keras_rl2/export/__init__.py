"""Exported policies: writing them, their manifests, and running them.

Running a file needs neither Keras nor TensorFlow, except for a SavedModel: it
happens where a policy is deployed, not where it was trained. Modules are
imported on demand, since the command line needs the names of formats only.
"""
