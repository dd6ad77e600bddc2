"""Loads numba without the libraries that it only looks for."""

import sys


def load_numba() -> None:
    """Load numba without scipy's linear algebra, which takes 0.1 s and which no compiled function of ours uses.

    numba loads it to learn whether it is there, and goes without if it is not.
    """
    looked_for = "scipy.linalg.cython_blas"
    if looked_for in sys.modules:
        return
    sys.modules[looked_for] = None  # type: ignore[assignment]  # Python's own mark of a module that is not to be found
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        del sys.modules[looked_for]
