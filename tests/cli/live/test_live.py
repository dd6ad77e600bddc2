"""The live commands at their edges: exit status and one line on standard error."""

import fcntl
import json
import os
from pathlib import Path

import pytest
from fake_slurm import FakeSlurm
from live import FOREIGN, HELD

from slurm_sns.cli.live import parts, process
from slurm_sns.errors import BadInput, SnsError
from slurm_sns.sharing.rules import SharingRules

OTHER_USER = "nobody"


def complaint(answer: tuple[int, str, str], status: int) -> str:
    """The one line of an error."""
    code, output, errors = answer
    assert (code, output) == (status, "")
    assert errors.startswith("sns: error: ")
    assert errors.count("\n") == 1
    return errors.removeprefix("sns: error: ").rstrip("\n")


@pytest.mark.parametrize("words", ["status", "queue", "explain 7", "release 7", "queue --json", "wait 7"])
def test_without_a_scheduler_it_says_what_that_means(sns, config: Path, words: str) -> None:
    line = complaint(sns(*words.split(), "--config", config), 1)
    assert line.startswith(f"no scheduler answers at {config.parent / 'scheduler.sock'}: ")
    assert line.endswith("while it does not run, jobs pass through to Slurm")


@pytest.mark.parametrize("number", ["x", "0", "1.5", "", "41_", "_7", "41_7_8", "41_x", "41_[7]", "\u0664", "1" * 11])
def test_a_job_is_named_by_its_number_or_its_array_and_task(sns, config: Path, number: str) -> None:
    for command in ("explain", "release", "wait"):
        assert "JOBID" in complaint(sns(command, number, "--config", config), 2)


@pytest.mark.parametrize(
    ("job", "asked"), [("41", {"job_id": 41}), ("41_7", {"job_id": 41, "task": 7}), ("41_0", {"job_id": 41, "task": 0})]
)
def test_a_task_of_an_array_is_asked_for_by_both_numbers(sns, config: Path, scheduler, job: str, asked) -> None:
    scheduler["explain"] = lambda request: request
    _, output, _ = sns("explain", job, "--json", "--config", config)
    assert json.loads(output) == {"command": "explain", **asked}


def test_a_job_is_released_through_the_scheduler(sns, config: Path, scheduler) -> None:
    scheduler["release"] = lambda request: {"label": "41_7", "jobs": 1} if request["task"] == 7 else None
    said = "job 41_7 is left to Slurm within a few seconds\n"
    assert sns("release", "41_7", "--config", config) == (0, said, "")
    scheduler["release"] = BadInput("job 41: no job of yours that waits for slurm_sns")
    assert complaint(sns("release", "41", "--config", config), 2).startswith("job 41: no job of yours")


def test_a_negative_job_id_is_bad_use(sns, config: Path) -> None:
    complaint(sns("explain", "--config", config, "--", "-1"), 2)


ASK_ALONE = ["status", "queue", "explain 7"]
ASK = [*ASK_ALONE, "wait 7"]
LIVE = [*ASK, "scheduler", "watchdog", "check", "release --all", "disable", "enable"]


@pytest.mark.parametrize("command", LIVE)
def test_a_missing_configuration_is_bad_input(sns, tmp_path: Path, command: str) -> None:
    line = complaint(sns(*command.split(), "--config", tmp_path / "none.yaml"), 2)
    assert str(tmp_path / "none.yaml") in line


@pytest.mark.parametrize("command", [command for command in LIVE if command not in ASK_ALONE])
def test_a_wrong_configuration_is_bad_input(sns, write_config, command: str) -> None:
    assert "mood" in complaint(sns(*command.split(), "--config", write_config(mood="good")), 2)


@pytest.mark.parametrize("command", ASK_ALONE)
def test_who_only_asks_needs_to_know_where_and_no_other_setting(sns, write_config, command: str) -> None:
    assert "no scheduler answers" in complaint(sns(*command.split(), "--config", write_config(mood="good")), 1)
    line = complaint(sns(*command.split(), "--config", write_config(paths={"run_dir": "run"})), 2)
    assert "paths.run_dir" in line


@pytest.mark.parametrize("command", ["scheduler", "watchdog"])
def test_the_daemons_run_as_slurmuser_only(sns, write_config, command: str) -> None:
    config = write_config(slurm={"user": OTHER_USER})
    line = complaint(sns(command, "--config", config), 2)
    assert line == f"this runs as nobody, not as user id {os.geteuid()}: sudo -u nobody"


@pytest.mark.parametrize("command", ["scheduler", "watchdog"])
def test_a_slurmuser_that_does_not_exist_is_bad_input(sns, write_config, command: str) -> None:
    config = write_config(slurm={"user": "no-such-user"})
    assert "'no-such-user': no such user" in complaint(sns(command, "--config", config), 2)


@pytest.mark.parametrize("command", ["scheduler", "watchdog"])
def test_only_one_of_each_daemon_runs(sns, config: Path, command: str) -> None:
    lock = config.parent / f"{command}.lock"
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert complaint(sns(command, "--config", config), 1) == f"another one runs already: {lock} is locked"


@pytest.mark.parametrize("command", ["release --all", "disable", "enable"])
def test_an_admins_command_is_refused_to_others(sns, write_config, mocker, command: str) -> None:
    mocker.patch("os.geteuid", return_value=4711)
    config = write_config(slurm={"user": OTHER_USER})
    assert complaint(sns(*command.split(), "--config", config), 2) == "only root and nobody may do this"


@pytest.mark.parametrize("words", [[], ["41", "--all"]])
def test_release_wants_to_be_told_which_job_or_that_all_are_meant(sns, config: Path, words: list[str]) -> None:
    assert "a job's number, as 41" in complaint(sns("release", *words, "--config", config), 2)


def test_release_of_all_frees_every_job_that_has_our_record(sns, config: Path, mocker) -> None:
    slurm = FakeSlurm({"c1": 4})
    slurm.submit(1, 1, **HELD)
    slurm.submit(1, **FOREIGN)
    mocker.patch("slurm_sns.slurm.state.JobsAlone", return_value=slurm)
    mocker.patch("slurm_sns.slurm.executor.SlurmExecutor", return_value=slurm)
    mocker.patch("time.time", slurm.now)
    lines = ["job 1: left to Slurm: sns release", "job 2: left to Slurm: sns release", "2 jobs left to Slurm"]
    assert sns("release", "--all", "--config", config) == (0, "\n".join(lines) + "\n", "")
    assert slurm.status(1) == ((), False, "sns-release")
    assert sns("release", "--all", "--config", config)[1] == "0 jobs left to Slurm\n"


def test_disable_and_enable_may_be_repeated(sns, config: Path) -> None:
    switch = config.parent / "state" / "disabled"
    said = [sns(command, "--config", config) for command in ("disable", "disable")]
    assert [(code, output) for code, output, _ in said] == [
        (0, "slurm_sns is now disabled: jobs pass through to Slurm\n"),
        (0, "slurm_sns is already disabled: jobs pass through to Slurm\n"),
    ]
    assert switch.exists()
    assert sns("enable", "--config", config)[1] == "slurm_sns is now enabled\n"
    assert sns("enable", "--config", config)[1] == "slurm_sns is already enabled\n"
    assert not switch.exists()


def test_disable_that_cannot_do_its_work_does_not_claim_it(sns, config: Path) -> None:
    (config.parent / "state").rmdir()
    assert "cannot be changed: No such file or directory" in complaint(sns("disable", "--config", config), 1)


def test_sns_alone_prints_its_help(sns) -> None:
    code, output, errors = sns()
    assert "Usage: sns" in output + errors
    assert "scheduler" in output + errors
    assert code == 2


def test_an_unknown_command_is_bad_use(sns) -> None:
    assert "frobnicate" in complaint(sns("frobnicate"), 2)


# --- with a scheduler that answers


def test_json_is_the_answer_itself(sns, config: Path, scheduler) -> None:
    scheduler["queue"] = [{"job_id": 7, "name": "\x1b[31m"}]
    code, output, errors = sns("queue", "--json", "--config", config)
    assert (code, json.loads(output), errors) == (0, scheduler["queue"], "")
    assert "\x1b" not in output


def test_an_empty_queue(sns, config: Path, scheduler) -> None:
    scheduler["queue"] = []
    assert sns("queue", "--config", config) == (0, "no jobs\n", "")


def test_a_job_that_is_not_the_callers_is_bad_input(sns, config: Path, scheduler) -> None:
    scheduler["explain"] = BadInput("job 7: no job of yours\nthat Slurm or slurm_sns knows")
    assert complaint(sns("explain", 7, "--config", config), 2).startswith("job 7: no job of yours that")


def test_a_failure_of_the_scheduler_is_a_failure_at_work(sns, config: Path, scheduler) -> None:
    scheduler["status"] = SnsError("the scheduler has not finished its first cycle")
    complaint(sns("status", "--config", config), 1)


# --- the process and its parts


def test_directories_are_made_where_systemd_has_not(write_config, tmp_path: Path) -> None:
    from slurm_sns.config import configuration

    settings = configuration.load(write_config())
    (tmp_path / "state").rmdir()
    process.make_directories(settings)
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


def test_a_directory_that_cannot_be_made_is_an_error_of_one_line(write_config, tmp_path: Path) -> None:
    from slurm_sns.config import configuration

    (tmp_path / "file").touch()
    paths = {"state_dir": str(tmp_path / "file" / "state"), "run_dir": str(tmp_path)}
    with pytest.raises(SnsError, match="cannot be made: Not a directory"):
        process.make_directories(configuration.load(write_config(paths=paths)))


def test_a_lock_is_free_again_after_its_owner_let_it_go(tmp_path: Path) -> None:
    process.only_one(tmp_path / "lock")()
    unlock = process.only_one(tmp_path / "lock")
    with pytest.raises(SnsError, match="is locked"):
        process.only_one(tmp_path / "lock")
    unlock()


def test_a_lock_that_cannot_be_opened_is_an_error_of_one_line(tmp_path: Path) -> None:
    with pytest.raises(SnsError, match="cannot be opened: No such file or directory"):
        process.only_one(tmp_path / "none" / "lock")


def test_a_log_line_is_one_line_of_printable_text(capsys) -> None:
    process.start_logging("info")
    try:
        process.log.info("job 7: %s", "evil\n2026-01-01 forged \x1b[31m line")
        assert capsys.readouterr().err.endswith("job 7: evil?2026-01-01 forged ?[31m line\n")
    finally:
        process.log.handlers.clear()


def test_the_loop_is_told_what_the_configuration_says(write_config) -> None:
    from slurm_sns.config import configuration

    told = parts.settings(configuration.load(write_config(mode="advise", matching={"shares": {"physics": 2}})))
    assert (told.mode, told.partitions, told.shares) == ("advise", {"main"}, {"physics": 2})
    of_slurm = parts.settings(configuration.load(write_config(matching={"shares": "slurm", "queue_depth": 70})))
    assert (of_slurm.shares, of_slurm.queue_depth) == (None, 70)
    assert told.closids == {}
    few = {"names": "a[1-2]", "partitions": ["main"], "cores": 4, "memory_mb": 4000, "llc_ways": 11, "closids": 8}
    plain = {**few, "names": "b1", "llc_ways": 11, "closids": 0}
    counted = parts.settings(configuration.load(write_config(partitions=["main"], nodes=[few, plain])))
    assert counted.closids == {"a1": 8, "a2": 8}


def test_the_loop_knows_the_partitions_that_share_cores(write_config) -> None:
    from slurm_sns.config import configuration

    assert parts.settings(configuration.load(write_config())).sharing is None
    caps = {"partitions": ["main"], "cpu": "caps", "pause": "restartable", "signal": "none"}
    told = parts.settings(configuration.load(write_config(sharing=caps, agents={"controller": "head"}))).sharing
    assert told == SharingRules(frozenset({"main"}), 2, True, True, 600, 5, "", 60, 0.1, 4.0)
    weights = {"partitions": ["main"], "most_extension": 1, "signal": "USR1"}
    told = parts.settings(configuration.load(write_config(sharing=weights, agents={"controller": "head"}))).sharing
    assert told == SharingRules(frozenset({"main"}), 2, False, False, 600, 5, "USR1", 60, 0.1, 1.0)
