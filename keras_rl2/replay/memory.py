"""Refusing what the machine cannot hold, before anything is allocated."""

import os


def available_memory() -> int | None:
    """Returns the bytes that can be had without swapping.

    Where the system does not say, it is the bytes that are free, or those
    that there are at all.

    Returns:
        int, or `None` where the system tells nothing of it.
    """
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    for name in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):
        try:
            return os.sysconf(name) * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, ValueError, OSError):
            continue
    return None


def check_memory(needed: int, purpose: str) -> None:
    """Refuses what does not fit into the memory that is available.

    Args:
        needed: int. Bytes.
        purpose: str. What they are for, as in "a buffer of 10 transitions".

    Raises:
        MemoryError: If they are not there; the text names both figures.
    """
    available = available_memory()
    if available is not None and needed > available:
        raise MemoryError(
            f"Expected {purpose} to fit into the memory that is available, "
            f"{available / 2**30:.2f} GiB. Received: one that needs "
            f"{needed / 2**30:.2f} GiB"
        )
