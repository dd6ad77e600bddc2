"""What the submit filter in a running slurmctld makes of options that Slurm shows it only by their traces."""

from collections.abc import Iterator

import pytest

from cluster import Cluster

#: Submits four tasks with a hint through Slurm's library, as a site's own tool may: a name, a comment, variables.
BY_LIBRARY = r"""
#include <slurm/slurm.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char *argv[])
{
	job_desc_msg_t job;
	submit_response_msg_t *answer = NULL;

	slurm_init(NULL);
	slurm_init_job_desc_msg(&job);
	job.script = "#!/bin/sh\ntrue\n";
	job.work_dir = "/tmp";
	job.num_tasks = job.min_cpus = 4;
	job.begin_time = time(NULL) + 600;
	job.user_id = getuid();
	job.group_id = getgid();
	job.name = argv[1];
	job.comment = argv[2];
	job.environment = argv + 3;
	job.env_size = argc - 3;
	if (slurm_submit_batch_job(&job, &answer) != 0) {
		slurm_perror("submit");
		return 1;
	}
	return 0;
}
"""
LATER = "--begin=now+600"
HINT = "sns:program=mg"
MARKED = "sns:1 program=mg"


@pytest.fixture(scope="module")
def by_library(running_cluster: Cluster) -> Iterator[str]:
    """The program on the controller, in a place where any user can run it."""
    path = "/tmp/by-library"
    running_cluster.write(f"{path}.c", BY_LIBRARY)
    running_cluster.run(f"gcc -o {path} {path}.c -lslurm && chmod 755 {path}")
    yield path
    running_cluster.run(f"rm -f {path} {path}.c")


def mark(cluster: Cluster, number: str | int) -> str:
    """What the filter wrote into the job's Extra."""
    return cluster.run(f"scontrol show job {number} | sed -n 's/^ *Extra=//p'").strip()


def mark_of(cluster: Cluster, options: str) -> str:
    """The mark of a job that alice submits with these options of sbatch, to begin later."""
    return mark(cluster, cluster.submit(f"{LATER} {options}", "true"))


@pytest.mark.parametrize("clusters", ["mini", "mini,other", "all"])
def test_a_job_that_names_clusters_is_slurms(cluster: Cluster, clusters: str) -> None:
    submit = f"sbatch -o /dev/null {LATER} -n1 --parsable --wrap true 2> /dev/null"
    for command in (submit.replace("-n1", f"-n1 -M {clusters}"), f"SLURM_CLUSTERS={clusters} {submit}"):
        number, _, named = cluster.run(command, "alice").strip().partition(";")
        assert named == "mini"
        assert mark(cluster, number) == ""


def test_a_job_that_names_no_cluster_is_managed(cluster: Cluster) -> None:
    assert mark_of(cluster, "-n1") == "sns:1"


@pytest.mark.parametrize("memory", ["--mem=0", "--mem-per-cpu=0"])
def test_the_whole_memory_of_unlike_nodes_is_slurms_to_give(cluster: Cluster, memory: str) -> None:
    assert mark_of(cluster, f"-n1 -p main,small {memory}") == ""
    assert mark_of(cluster, f"-n1 -p main {memory}") == "sns:1"
    assert mark_of(cluster, "-n1 -p main,small") == "sns:1"


@pytest.mark.parametrize("export", ["ALL", "NONE", "NIL", "HOME,A=1"])
def test_a_job_of_sbatch_is_spread_whatever_it_exports_unless_it_has_a_distribution(
    cluster: Cluster, export: str
) -> None:
    options = f"-n4 --comment {HINT} --export={export}"
    assert mark_of(cluster, options) == MARKED
    assert mark_of(cluster, f"{options} -m cyclic") == f"{MARKED} fixed"


def test_a_job_of_sbatch_with_an_environment_from_a_file_is_spread(cluster: Cluster) -> None:
    cluster.run("printf 'A=1\\0' > /tmp/variables", "alice")
    assert mark_of(cluster, f"-n4 --comment {HINT} --export-file=/tmp/variables") == MARKED


def test_a_job_that_came_by_slurms_library_is_not_spread_unless_it_bears_the_sign_of_sbatch(
    cluster: Cluster, by_library: str
) -> None:
    cluster.run(f"{by_library} plain {HINT} PATH=/bin; {by_library} signed {HINT} PATH=/bin SLURM_UMASK=0022", "alice")
    plain, signed = (cluster.run(f"squeue -h -n {name} -o %i").strip() for name in ("plain", "signed"))
    assert mark(cluster, plain) == f"{MARKED} fixed"
    assert mark(cluster, signed) == MARKED


def test_the_script_of_a_job_does_not_hand_down_the_sign_of_sbatch(cluster: Cluster) -> None:
    number = cluster.submit("-n1 --comment sns:off", "env > /tmp/inherited")
    cluster.wait_for_end([number])
    inherited = cluster.run("cat /tmp/inherited", node=cluster.fields(number)["NodeList"])
    assert "SLURM_SUBMIT_HOST=" in inherited
    assert "SLURM_UMASK" not in inherited


def test_hints_of_a_hundred_kilobytes_are_refused_in_one_line(cluster: Cluster) -> None:
    commas = "$(head -c 100000 /dev/zero | tr '\\0' ,)"
    answer = cluster.try_run(f'sbatch -o /dev/null -n1 --comment "sns:{commas}" --wrap true', "alice")
    assert answer.returncode != 0
    assert "hints have at most 512 bytes; valid are alpha, program" in " ".join(answer.stderr.split())
    assert not cluster.run("squeue -h -u alice").strip()
