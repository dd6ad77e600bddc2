"""The same cases on the model in memory and on the mounted file system."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))  # resctrl_emulator, as PYTHONPATH has it for `python -m`

from resctrl_emulator import mount
from resctrl_emulator.clients import Client, ModelClient, MountedClient


@pytest.fixture(scope="session")
def mounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    """A mounted tree of each machine type that is asked for; all are unmounted at the end."""
    with ExitStack() as stack:
        found: dict[str, Path] = {}

        def of(machine: str) -> Path:
            if machine not in found:
                directory = tmp_path_factory.mktemp("resctrl") / machine
                found[machine] = stack.enter_context(mount.mounted(directory, machine, "--clock", "emulated"))
            return found[machine]

        yield of


@pytest.fixture(params=["model", "mounted"])
def on(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Client]]:
    """`on("xeon")` is a fresh tree of that machine type, as a client sees it."""
    with ExitStack() as stack:

        def model(machine: str) -> Client:
            return ModelClient(machine)

        def mounted(machine: str) -> Client:
            client = MountedClient(request.getfixturevalue("mounts")(machine))
            stack.callback(client.close)
            client.reset()
            return client

        if request.param == "model":
            yield model
        else:
            reason = mount.why_not()
            if reason:
                pytest.skip(reason)
            yield mounted
