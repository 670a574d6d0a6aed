"""What is raised when a process that holds an environment is lost."""


class WorkerError(RuntimeError):
    """A process that holds an environment died, or did not answer in time.

    What an environment raises itself keeps its own type; this is for those
    that can raise nothing any more, and for what cannot be pickled. The
    environments' processes have all been ended by the time it is raised.

    Example:

    >>> try:
    ...     raise WorkerError("environment 2 was killed")
    ... except RuntimeError as error:
    ...     print(error)
    environment 2 was killed
    """
