"""What is raised when an environment does not keep what it declares."""


class MismatchError(ValueError):
    """An environment gave something else than its spaces and the API say.

    It is raised by a first reset or a first step. Beginning anew would not
    help, so `on_env_error="restart"` does not apply.

    Example:

    >>> issubclass(MismatchError, ValueError)
    True
    """
