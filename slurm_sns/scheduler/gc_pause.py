"""Python's collector of circular garbage, kept out of a cycle.

A cycle makes hundreds of thousands of values that refer to each other in no circle. The collector would walk all of
them again and again as their number grows, for a fifth of the cycle's time, and find nothing.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No collection inside; what is due then comes afterwards."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
