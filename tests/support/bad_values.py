"""Values that cannot be meant, by what an argument asks for."""

NAN, INF = float("nan"), float("inf")

COUNT = (0, -1, 2.5, "8", True, NAN)
"""At least 1."""
COUNT_OR_NONE = COUNT
NOT_NEGATIVE = (-1, 2.5, "8", True)
"""An integer of at least 0."""
SEED = (-1, 0.5, "0", True)
FLAG = ("yes", "False", 2, NAN)
FRACTION = (-0.1, 1.1, NAN, "0.5", True)
"""From 0 to 1."""
NUMBER = (NAN, INF, "1", True, [1.0])
WEIGHT = (-1.0, *NUMBER)
"""A finite number of at least 0."""
SCALE = (0.0, *WEIGHT)
"""A finite number over 0."""
MAPPING = ("x", 3, [1])
WRAPPERS = ("x", 3, [3], len)
TIMEOUT = (0, -1, NAN, "1", True)
SIZES = ("64", 64, (0,), (-1,), (1.5,), ("64",), (True,))
CHOICE = ("x", 3, True)
NAME = (3, True)
PATH = (None, 3, True)
SPACE = ("Box", 3)
