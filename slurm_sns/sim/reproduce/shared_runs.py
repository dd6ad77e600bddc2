"""Runs that several pages share: each result is kept in a folder of all of them."""

from collections.abc import Callable, Iterable
from typing import Any

from slurm_sns.errors import SnsError
from slurm_sns.sim.reproduce.kept import KeptFunction, Piece
from slurm_sns.sim.reproduce.options import Options


def shared_results(
    options: Options, pieces: Iterable[Piece], function: Callable[[Any], Any], folder: str
) -> dict[Piece, Any]:
    """The function's result for each piece of work.

    A page without --resume repeats its own pieces only, and leaves those of the other pages as they are.

    Raises:
        SnsError: the folder cannot be read or written.
    """
    asked = list(pieces)
    keeping = KeptFunction(function, options.folder / folder)
    if not options.resume:
        try:
            for piece in asked:
                keeping.path(piece).unlink(missing_ok=True)
        except OSError as problem:
            raise SnsError(f"{keeping.folder} cannot be written: {problem.strerror}") from None
    found = keeping.results(asked, options.workers, resume=True, report=options.report)
    return dict(zip(asked, found, strict=True))
