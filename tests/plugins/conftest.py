"""The parts of the SPANK plugin that need no Slurm headers, compiled as the Makefile does it."""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from slurm_sns.package_files import shared_path


def built(folder: Path, *extra: str) -> ctypes.CDLL:
    """The library; `extra` are a test's own files and options for the compiler."""
    for source in (shared_path("plugins/spank") / "Makefile", *shared_path("plugins/spank").glob("*.[ch]")):
        shutil.copy(source, folder)
    words = ["make", "-C", folder, "parts.so", f"EXTRA={' '.join(extra)}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "parts.so"))


@pytest.fixture(scope="session")
def parts(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return built(tmp_path_factory.mktemp("spank"))


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ctypes.CDLL]:
    """Builds it with a test's own C text and options."""

    def build(text: str, *options: str) -> ctypes.CDLL:
        folder = tmp_path_factory.mktemp("spank")
        (folder / "double.inc").write_text(text)
        return built(folder, "-x c double.inc", *options)

    return build
