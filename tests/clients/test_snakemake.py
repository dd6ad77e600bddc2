import pytest
from clients.installed import Clients

RUN = (
    "snakemake --executor slurm --jobs 8 --latency-wait 20 --slurm-init-seconds-before-status-checks 3 "
    "--seconds-between-status-checks 3 --default-resources slurm_partition=main mem_mb_per_cpu=500 runtime=5"
)


@pytest.mark.parametrize("options", ["", "--slurm-status-command squeue", "--slurm-array-jobs all"])
def test_snakemake_runs_all_steps(clients: Clients, options: str) -> None:
    clients.run("rm -rf snakemake")
    with clients.timed(f"snakemake {options or '(status by sacct)'}: 11 jobs: chains, retry, 2 nodes"):
        done = clients.try_run(f"{RUN} {options}")
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "(100%) done" in said, said
    assert clients.run("cat snakemake/sum.txt snakemake/retried.txt").split() == ["14", "2"]
    assert len(clients.run("cat snakemake/parallel.txt").split()) == 2
    assert clients.passed_through() == []


def test_snakemake_reports_a_job_that_fails(clients: Clients) -> None:
    with clients.timed("snakemake: a job that fails"):
        done = clients.try_run(f"{RUN} -- snakemake/failing.txt")
    assert done.returncode == 1
    assert "Error in rule failing" in done.stdout + done.stderr
    assert clients.passed_through() == []
