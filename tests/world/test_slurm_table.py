"""The table of Slurm's rules on the model alone. tests/cluster/test_model_of_slurm.py runs it on a real Slurm, too."""

import pytest

from world.slurm_table import CASES
from world.table_on_model import run


@pytest.mark.parametrize("name", CASES)
def test_no_step_waits_in_vain_and_what_is_seen_does_not_depend_on_when_slurm_passes(name: str) -> None:
    rows = run(CASES[name], seed=0)
    assert not [line for line, seen in rows if "waited" in seen]
    assert run(CASES[name], seed=1) == rows
