"""How functions are compiled: once a machine, kept on disk.

Numba knows what it keeps by the file of the function alone. `sns` and the tests keep it in a directory for each state
of the code (module cli.compiled_code); who imports this otherwise deletes `*.nbi` and `*.nbc` after a change.

Compiled modules hold arrays in named tuples and functions over them, nothing else. Arithmetic is numpy's (a division by
zero gives inf, no exception), so that loops can be vectorised; floating point is as written, never reordered.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., object])

#: Numpy's arithmetic; nothing is allocated in compiled code, so references need not be counted.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}


def compiled(function: Function) -> Function:
    """Compile the function into its callers: passing dozens of arrays at each call would take most of the time."""
    return _kept(function, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def entry_point(function: Function) -> Function:
    """Compile the function once, to be called; when it is first called with arguments of these types."""
    return _kept(function)


def _kept(function: Function, **more: Any) -> Function:
    try:
        made: Function = njit(function, **OPTIONS, **more, cache=True)
    except RuntimeError:  # no directory to keep it in is writable (NUMBA_CACHE_DIR names one): compile in each process
        made = njit(function, **OPTIONS, **more)
    return made
