"""What an ordinary user cannot do to slurm_sns: read about others' jobs, write its files, block other callers."""

import json
import re
import shlex
from typing import Any

from cluster import PYTHON, Cluster

#: Timeout: a machine that does other work at the same time is slow.
PATIENCE_S = 240
OURS = "/run/sns /var/lib/sns /var/log/sns /etc/slurm /usr/local/share/lua /opt/sns /usr/local/bin/sns"
SOCKET = "/run/sns/scheduler.sock"


def told(cluster: Cluster, command: str, user: str) -> Any:
    return json.loads(cluster.run(f"sns {command} --json", user))


def test_a_user_can_write_nothing_of_ours_and_read_no_database_and_no_log(running_cluster: Cluster) -> None:
    writable = running_cluster.run(f"find {OURS} -writable -not -type l 2> /dev/null || true", "alice").split()
    assert writable == [SOCKET]
    readable = running_cluster.run(f"find {OURS} -type f -readable 2> /dev/null || true", "alice").split()
    secret = [path for path in readable if path.startswith(("/var/lib/sns", "/var/log/sns", "/run/sns/"))]
    assert [path for path in secret if not path.endswith(".pid")] == []
    paths = f"/run/sns /var/lib/sns /etc/slurm/sns /etc/slurm/sns/filter.lua {SOCKET} /var/lib/sns/sns.db*"
    lines = running_cluster.run(f"stat -c '%n %U:%a' {paths}").splitlines()
    owners = dict(line.split() for line in lines)
    assert owners["/run/sns"] == "slurm:755"
    assert owners["/var/lib/sns"] == "slurm:700"
    assert owners[SOCKET] == "slurm:666"
    assert owners["/etc/slurm/sns"] == "root:755"
    assert owners["/etc/slurm/sns/filter.lua"] == "root:644"
    assert {owners[path] for path in owners if "sns.db" in path} == {"slurm:600"}


def test_the_daemons_have_slurmusers_rights_and_no_others(running_cluster: Cluster) -> None:
    for name in ("scheduler", "watchdog"):
        status = running_cluster.run(f"cat /proc/$(cat /run/sns/{name}.pid)/status")
        said = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        (uid,) = set(said["Uid"].split())
        assert uid == running_cluster.run("id -u slurm").strip()
        assert set(said["Gid"].split()) == {running_cluster.run("id -g slurm").strip()}
        assert {int(said[f"Cap{each}"], 16) for each in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {0}
        assert (said["NoNewPrivs"], said["Umask"]) == ("1", "0077")


def test_a_directory_that_another_user_made_first_is_not_used(running_cluster: Cluster) -> None:
    """A state directory under /tmp that another user made first: that user could change the database and the code."""
    running_cluster.run(
        "rm -rf planted && mkdir -m 0777 planted && ln -sfn ~/planted /tmp/sns-planted && chmod o+x ~", "alice"
    )
    try:
        config = "sed '$a paths: {state_dir: /tmp/sns-planted, run_dir: /tmp/sns-planted}' /etc/slurm/sns.yaml"
        running_cluster.run(f"{config} > /tmp/sns-planted.yaml")
        for command in ("scheduler", "watchdog"):
            answer = running_cluster.try_run(f"sns {command} --config /tmp/sns-planted.yaml", "slurm")
            assert answer.returncode == 1, answer.stderr
            assert "nobody else may write there" in answer.stderr
            assert answer.stderr.count("\n") == 1
        assert running_cluster.run("ls -A planted", "alice") == ""
    finally:
        running_cluster.run("rm -rf planted /tmp/sns-planted; chmod 0700 ~", "alice")


def test_a_user_learns_nothing_of_anothers_jobs(cluster: Cluster) -> None:
    filler = cluster.submit("-n90", "sleep 3000")
    first = cluster.submit("-p small -n4 -J secret", "sleep 3000", "bob")
    for each in (filler, first):
        cluster.wait_for(f"job {each} runs", lambda each=each: cluster.job(each).state == "RUNNING", PATIENCE_S)
    second = cluster.submit("-n112 -J secret", "sleep 1", "bob")
    # Bob's account uses less, so bob's job comes before alice's, and finds no place.
    mine = cluster.submit("-n4", "sleep 1")

    def waits_for_bob() -> bool:
        return any(f"job {second}" in row["reason"] for row in told(cluster, "queue", "root") if row["job_id"] == mine)

    cluster.wait_for("capacity is withheld for bob's second job", waits_for_bob, PATIENCE_S)
    answers = {command: told(cluster, command, "alice") for command in ("status", "queue", f"explain {mine}")}
    for command, answer in answers.items():
        found = re.findall(rf"\bjob (?:{first}|{second})\b|bob|chemistry|secret", json.dumps(answer))
        assert not found, (command, answer)
    assert [row["job_id"] for row in answers["queue"]] == [mine, filler]
    assert "another user's job" in answers["queue"][0]["reason"]
    assert answers["status"]["projects"].keys() == {"physics"}
    for number in (first, second, 99_999_999):
        answer = cluster.try_run(f"sns explain {number}", "alice")
        assert (answer.returncode, answer.stdout) == (2, "")
        assert "no job of yours" in answer.stderr
    assert {row["job_id"] for row in told(cluster, "queue", "bob")} == {first, second}
    for admin in ("root", "slurm"):
        assert {row["job_id"] for row in told(cluster, "queue", admin)} == {first, second, mine, filler}
        assert told(cluster, "status", admin)["projects"].keys() >= {"physics", "chemistry"}
        assert told(cluster, f"explain {second}", admin)["job"]["user"] == "bob"


#: Callers that say nothing and connect again and again, slow ones, garbage, and callers that read no answer.
ATTACK = """
import os, socket, threading, time
path, end = "/run/sns/scheduler.sock", time.monotonic() + 12
def once(data, pause):
    try:
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(5)
            caller.connect(path)
            for byte in data or b"":
                caller.sendall(bytes([byte]))
                time.sleep(pause)
            if data is None:
                time.sleep(1)
    except OSError:
        pass
def attack(data, pause):
    while time.monotonic() < end:
        once(data, pause)
kinds = [(None, 0), (b"{" * 200, 0.05), (os.urandom(100), 0), (b'{"command": "queue"}\\n', 0), (b"", 0)]
threads = [threading.Thread(target=attack, args=kind) for kind in kinds * 8]
[each.start() for each in threads]
print("begun", flush=True)
[each.join() for each in threads]
"""


def test_a_user_who_attacks_the_socket_holds_nobody_up(cluster: Cluster) -> None:
    began = told(cluster, "status", "root")["cycles"]
    cluster.write("/tmp/sns-attack.py", ATTACK)
    cluster.run(f"setsid {PYTHON} /tmp/sns-attack.py > /tmp/sns-attack.out 2>&1 < /dev/null & echo", "bob")
    cluster.wait_for("the attack begins", lambda: "begun" in cluster.run("cat /tmp/sns-attack.out"), PATIENCE_S)
    try:
        for user in ("alice", "root", "slurm", "alice", "root"):
            assert told(cluster, "status", user)["mode"] == "enforce"
        number = cluster.submit("-n4", "true")
        cluster.wait_for_end([number], PATIENCE_S)
        assert cluster.starts([number]), "it was placed all the while"
        assert cluster.explain(number, "alice")["decisions"][-1]["action"] == "start"
        cluster.wait_for("the cycles go on", lambda: told(cluster, "status", "root")["cycles"] > began + 3, PATIENCE_S)
    finally:
        cluster.run("pkill -u bob -f '[s]ns-attack' || true; rm -f /tmp/sns-attack.*")
    assert told(cluster, "status", "bob")["mode"] == "enforce", "bob's places come back"
    assert "Traceback" not in cluster.run("cat /var/log/sns/scheduler.log")


HOSTILE = ("$'\\e[31mred\\e[0m'", "$'a\\nb'", "'[bold]x[/]'", "'$(id)'", "$'\\u202eevil'", "'%s%n'", '"it\'s; --"')


def on_a_terminal(cluster: Cluster, width: int) -> str:
    """What root sees of `sns queue --watch` on a terminal of that width, ended by Ctrl-C after some pages."""
    program = (
        "import fcntl, os, pty, struct, termios\n"
        "shown, ended = b'', False\n"
        "def read(fd):\n"
        "    global shown, ended\n"
        f"    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 40, {width}, 0, 0))\n"
        "    data = os.read(fd, 65536)\n"
        "    shown += data\n"
        "    if shown.count(b'Ctrl-C ends') > 2 and not ended:\n"
        "        ended = True\n"
        "        os.write(fd, b'\\x03')\n"
        "    return data\n"
        "pty.spawn(['sns', 'queue', '--watch', '0.5'], read)\n"
    )
    return cluster.run(f"env -u COLUMNS TERM=xterm {PYTHON} -c {shlex.quote(program)} < /dev/null")


def test_on_a_terminal_hostile_names_are_text(cluster: Cluster) -> None:
    numbers = cluster.submit_all([(f"-n1 --begin=now+600 -J {name}", "true") for name in HOSTILE])
    cluster.wait_for("all are seen", lambda: len(told(cluster, "queue", "root")) == len(numbers), PATIENCE_S)
    for width in (60, 160):
        shown = on_a_terminal(cluster, width)
        assert "\x1b[31mred" not in shown
        assert "\u202e" not in shown
        page = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown[shown.rindex("\x1b[?1049l") :])
        for number in numbers:
            assert re.search(rf"\b{number}\b", page)
        assert ("[bold]x[/]" in page) == (width == 160), "the names' column has no room on a narrow terminal"
