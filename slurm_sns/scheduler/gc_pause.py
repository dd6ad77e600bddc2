"""Pauses Python's cyclic garbage collector while the scheduler runs a cycle.

A cycle makes hundreds of thousands of values without reference cycles. The collector would walk all of them again and
again as their number grows, take a fifth of the cycle's time, and find nothing.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Collect nothing inside the block; a collection that becomes due runs afterwards."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
