"""How functions are compiled: once per machine, and then cached on disk.

Numba compiles a cached function again only after a change of the file that holds it, not after a change of a compiled
function that it calls. `sns` and the tests therefore use one cache directory for each state of the code (module
cli.compiled_code). Any other program that imports this package must delete `*.nbi` and `*.nbc` after a change.

Compiled modules hold arrays in named tuples and functions over them, nothing else. Arithmetic is numpy's (a division by
zero gives inf, no exception), so that loops can be vectorised; floating-point operations are never reordered.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

from slurm_sns.policies.placement.copy_propagation import PropagatingCompiler

Function = TypeVar("Function", bound=Callable[..., object])

#: Numpy's arithmetic; nothing is allocated in compiled code, so references need not be counted.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "pipeline_class": PropagatingCompiler}


def compiled(function: Function) -> Function:
    """Compile the function into its callers: passing dozens of arrays at each call would take most of the time."""
    return _cached(function, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def inlined(function: Function) -> Function:
    """Write the function's code into its callers, before these are compiled.

    For functions that lead to much code and have a caller or two: one compiled by itself is optimised, with all that it
    calls, again at each level. Types are inferred again in each caller, so this would be slower for the others.
    """
    return _cached(function, inline="always", no_cpython_wrapper=True, no_cfunc_wrapper=True)


def subroutine(function: Function) -> Function:
    """Compile a function that compiled code calls, once for all of its callers.

    It has no wrapper for Python: that would take most of the time of its compilation.
    """
    return _cached(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def entry_point(function: Function) -> Function:
    """Compile a function that Python calls, at its first call with arguments of these types."""
    return _cached(function)


def _cached(function: Function, **more: Any) -> Function:
    try:
        made: Function = njit(function, **OPTIONS, **more, cache=True)
    except RuntimeError:  # no cache directory is writable (NUMBA_CACHE_DIR names one): compile in each process
        made = njit(function, **OPTIONS, **more)
    return made
