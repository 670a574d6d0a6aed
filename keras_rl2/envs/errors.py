"""Errors of environments."""


class MismatchError(ValueError):
    """An environment returned a value that contradicts its spaces or the API.

    The error is raised by a first reset or a first step.

    Example:

    >>> try:
    ...     raise MismatchError("Expected an observation of shape (4,).")
    ... except ValueError as error:
    ...     print(error)
    Expected an observation of shape (4,).
    """


class WorkerError(RuntimeError):
    """A process that holds an environment died, or did not answer in time.

    An error that an environment raises itself keeps its own type. This one is
    raised for environments that can raise nothing any more, and for errors
    that cannot be pickled. All processes of the environments have been ended
    by the time it is raised.

    Example:

    >>> try:
    ...     raise WorkerError("environment 2 was killed")
    ... except RuntimeError as error:
    ...     print(error)
    environment 2 was killed
    """
