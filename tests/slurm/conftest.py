"""Make `recorded` importable, and put a fake in pyslurm's place."""

import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

sys.path.append(str(Path(__file__).parent))

import recorded


class RPCError(Exception):
    """As pyslurm's: Slurm's words and number."""

    def __init__(self, errno: int, text: str) -> None:
        super().__init__(text)
        self.errno = errno


@pytest.fixture
def pyslurm(mocker) -> SimpleNamespace:
    """A fake pyslurm module, without our own library: `change` remembers what a modify() would send.

    `RPCError` is what it raises, `Job.load` shows a gated job.
    """
    job = MagicMock()
    job.load.return_value = recorded.job()
    fake = SimpleNamespace(
        RPCError=RPCError,
        JobSubmitDescription=lambda **fields: fields,
        Job=job,
        Jobs=MagicMock(),
        Nodes=MagicMock(),
        Reservations=MagicMock(),
        Partitions=MagicMock(),
        slurmctld=MagicMock(),
    )
    for module in ("api", "rpc", "state"):
        mocker.patch(f"slurm_sns.slurm.{module}.pyslurm", return_value=fake)
        mocker.patch(f"slurm_sns.slurm.{module}.has_library", return_value=False)
    return fake
