"""The submit filter in a running slurmctld, with options that Slurm shows it only indirectly."""

import pytest

from cluster import Cluster

pytestmark = pytest.mark.releases

#: For each argument, submits a job of four tasks with a hint through slurmrestd, as the user who runs this script. The
#: argument is JSON with more fields of the job.
BY_REST = r"""
import glob, http.client, json, os, socket, subprocess, sys, time

path = f"/tmp/rest-{os.getpid()}"
os.environ["SLURMRESTD_SECURITY"] = "disable_unshare_sysv,disable_unshare_files"
parsers = glob.glob("/usr/lib/*/slurm-wlm/data_parser_v0_0_*.so")
version = min(43, max(int(name[:-3].rpartition("_")[2]) for name in parsers))  # 24.11 has up to 42, 26.05 has 43
daemon = subprocess.Popen(["slurmrestd", "-a", "rest_auth/local", "-s", "openapi/slurmctld", f"unix:{path}"],
                          stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
try:
    for more in sys.argv[1:]:
        peer = socket.socket(socket.AF_UNIX)
        until = time.monotonic() + 30
        while peer.connect_ex(path) and time.monotonic() < until:
            time.sleep(0.1)
        job = {"script": "#!/bin/sh\ntrue\n", "tasks": 4, "comment": "sns:program=mg", "environment": ["PATH=/bin"],
               "current_working_directory": "/tmp", "begin_time": {"set": True, "number": int(time.time()) + 600}}
        connection = http.client.HTTPConnection("slurmctld")
        connection.sock = peer
        connection.request("POST", f"/slurm/v0.0.{version}/job/submit", json.dumps({"job": job | json.loads(more)}),
                           {"Content-Type": "application/json"})
        print(json.loads(connection.getresponse().read())["job_id"])
finally:
    daemon.kill()
    os.unlink(path)
"""
LATER = "--begin=now+600"
HINT = "sns:program=mg"
NOTED = "sns:2 program=mg"


def noted(cluster: Cluster, options: str) -> str:
    """The hints that the filter noted in a job that alice submits with these options of sbatch, to begin later."""
    return cluster.job(cluster.submit(f"{LATER} {options}", "true")).noted


@pytest.mark.parametrize("clusters", ["mini", "mini,other", "all"])
def test_a_job_that_names_clusters_passes_through(cluster: Cluster, clusters: str) -> None:
    submit = f"sbatch -o /dev/null {LATER} -n1 --parsable --wrap true 2> /dev/null"
    for command in (submit.replace("-n1", f"-n1 -M {clusters}"), f"SLURM_CLUSTERS={clusters} {submit}"):
        number, _, named = cluster.run(command, "alice").strip().partition(";")
        assert named == "mini"
        assert cluster.job(int(number)).noted == ""


def test_a_job_that_names_no_cluster_is_managed(cluster: Cluster) -> None:
    assert noted(cluster, "-n1") == "sns:2"


@pytest.mark.parametrize("memory", ["--mem=0", "--mem-per-cpu=0"])
def test_a_job_with_the_whole_memory_of_unlike_nodes_is_left_to_slurm(cluster: Cluster, memory: str) -> None:
    assert noted(cluster, f"-n1 -p main,small {memory}") == ""
    assert noted(cluster, f"-n1 -p main {memory}") == "sns:2"
    assert noted(cluster, "-n1 -p main,small") == "sns:2"


@pytest.mark.parametrize("export", ["ALL", "NONE", "NIL", "HOME,A=1"])
def test_a_job_of_sbatch_is_spread_whatever_it_exports_unless_it_has_a_distribution(
    cluster: Cluster, export: str
) -> None:
    options = f"-n4 --comment {HINT} --export={export}"
    assert noted(cluster, options) == NOTED
    assert noted(cluster, f"{options} -m cyclic") == f"{NOTED} fixed"


def test_a_job_of_sbatch_with_an_environment_from_a_file_is_spread(cluster: Cluster) -> None:
    cluster.run("printf 'A=1\\0' > /tmp/variables", "alice")
    assert noted(cluster, f"-n4 --comment {HINT} --export-file=/tmp/variables") == NOTED


def test_a_distribution_that_comes_by_slurmrestd_is_seen(cluster: Cluster) -> None:
    cluster.write("/tmp/by_rest.py", BY_REST)
    more = """'{}' '{"distribution": "cyclic"}' '{"distribution_plane_size": 2}'"""
    numbers = cluster.run(f"/opt/sns/bin/python3 /tmp/by_rest.py {more}", "alice").split()
    assert [cluster.job(int(number)).noted for number in numbers] == [NOTED, f"{NOTED} fixed", f"{NOTED} fixed"]


def test_hints_of_a_hundred_kilobytes_are_refused_in_one_line(cluster: Cluster) -> None:
    commas = "$(head -c 100000 /dev/zero | tr '\\0' ,)"
    answer = cluster.try_run(f'sbatch -o /dev/null -n1 --comment "sns:{commas}" --wrap true', "alice")
    assert answer.returncode != 0
    assert "hints have at most 512 bytes; valid are alpha, program" in " ".join(answer.stderr.split())
    assert not cluster.run("squeue -h -u alice").strip()


#: Lua that logs how many jobs Slurm lists for the script.
COUNTS = 'local listed = 0; for _ in pairs(slurm.jobs) do listed = listed + 1 end; slurm.log_info("listed: %d", listed)'
#: The line of the shipped script that spares slurmctld this list, and what it is without being a comment.
SPARED, SPARES = "-- pcall(filter.without_jobs, slurm)", "pcall(filter.without_jobs, slurm)"


def listed(cluster: Cluster, change: str) -> int:
    """How many jobs Slurm lists for a script with this change (of sed), after it has taken a gated job."""
    cluster.run(f"sleep 1.1; sed -i '{change}' /etc/slurm/job_submit.lua")  # slurmctld looks at its time, in seconds
    assert noted(cluster, "-n1") == "sns:2"
    cluster.run("sleep 1.1")  # it lists the jobs once in a second
    assert noted(cluster, "-n1") == "sns:2"
    return int(cluster.run("sed -n 's/.*listed: //p' /var/log/slurm/slurmctld.log").split()[-1])


def test_slurm_lists_no_jobs_for_a_script_that_wants_none_and_they_are_gated_all_the_same(cluster: Cluster) -> None:
    script = "/etc/slurm/job_submit.lua"
    cluster.run(f"cp -p {script} /root/kept.lua; grep -q -e '{SPARED}' {script}")
    try:
        assert listed(cluster, f"/A site.s own rules go here/a {COUNTS}") > 0
        assert listed(cluster, f"s/{SPARED}/{SPARES}/") == 0
    finally:
        cluster.run(f"sleep 1.1; mv /root/kept.lua {script}; touch {script}")
