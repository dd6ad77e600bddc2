"""Loads numba and numpy without what takes a command's time and serves none of our compiled functions."""

import gc
import os
import sys

#: Objects, of which numba's import and set-up make fewer. Three collections in them took 0.04 s.
COLLECT_AFTER = 500_000


def load_numba() -> None:
    """Load numba without scipy's linear algebra, numpy without threads for its own, and both without collections.

    numba loads scipy's, which takes 0.1 s, to learn whether it is there, and goes without if it is not. OpenBLAS starts
    a thread for each core when numpy is loaded, and they spin for a while.
    """
    gc.set_threshold(COLLECT_AFTER)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    looked_for = "scipy.linalg.cython_blas"
    if looked_for in sys.modules:
        return
    sys.modules[looked_for] = None  # type: ignore[assignment]  # Python's own mark of a module that is not to be found
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        del sys.modules[looked_for]
