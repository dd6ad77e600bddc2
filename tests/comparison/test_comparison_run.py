"""What the comparison with Slurm alone reads of Slurm."""

from comparison_profile import Part
from comparison_run import parts_of

#: Slurm 26.05.5, shortened: 40 tasks, split 28 and 12.
UNEVEN = (
    "JobId=1 JobName=wrap JobState=COMPLETED NumNodes=2 NumCPUs=40 JOB_GRES=(null) "
    "Nodes=c1 CPU_IDs=0-27 Mem=126000 GRES= Nodes=c[2-3] CPU_IDs=0-1,14-17 Mem=27000 GRES= MinCPUsNode=1"
)


def test_the_part_of_each_node_is_read_where_slurm_split_a_job_unevenly() -> None:
    assert parts_of(UNEVEN) == (1, {"c1": Part(28, 126000), "c2": Part(6, 27000), "c3": Part(6, 27000)})


def test_a_job_that_has_not_run_holds_nothing() -> None:
    assert parts_of("JobId=2 JobName=wrap JobState=PENDING NumNodes=1-500000 NumCPUs=40") == (2, {})
