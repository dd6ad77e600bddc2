"""Slurm's MailProg is called as slurmctld calls it, and never keeps the scheduler waiting."""

import subprocess
import time
from pathlib import Path

import pytest

from slurm_sns.scheduler.ports import Mail
from slurm_sns.slurm.mail_program import MOST_LINES, MOST_WAITING, MailProgram, sent


@pytest.fixture
def program(tmp_path: Path):
    """Makes a MailProg of these lines of shell, which writes beside itself.

    Another process writes it. The threads of other tests start programs meanwhile: each would hold a file that is open
    here until its exec, and Linux runs no program that somebody has open for writing ("Text file busy").
    """

    def made(*lines: str) -> str:
        path = tmp_path / "mail.sh"
        text = "\n".join(("#!/bin/sh", f"cd {tmp_path}", *lines, ""))
        subprocess.run(["install", "-m", "755", "/dev/stdin", path], input=text, text=True, check=True)
        return str(path)

    return made


def test_it_gets_the_subject_the_address_and_the_variables_and_nothing_to_read(program, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SNS_SECRET", "x")
    path = program('printf "%s|" "$@" "$SLURM_JOB_ID" "$SNS_SECRET" "$(cat)" > told')
    assert sent(Mail(path, "alice", "$(id) `id` -x 'y'", {"SLURM_JOB_ID": "41"}), 10) == ""
    assert (tmp_path / "told").read_text() == "-s|$(id) `id` -x 'y'|alice|41|||"


@pytest.mark.parametrize(
    ("lines", "why"), [(["exit 3"], "ended with exit status 3"), (["sleep 60 & sleep 60"], "has not ended after 0.2 s")]
)
def test_what_goes_wrong_is_one_line(program, lines: list[str], why: str) -> None:
    path = program(*lines)
    assert sent(Mail(path, "alice", "x"), 0.2 if "sleep" in lines[0] else 10) == f"MailProg {path} {why}"


def test_a_program_that_does_not_exist_is_one_line() -> None:
    assert sent(Mail("/no/mail", "alice", "x"), 1) == "MailProg /no/mail cannot be run: No such file or directory"


def test_a_program_that_hangs_keeps_nobody_waiting_and_few_lines_say_what_is_dropped(program) -> None:
    log: list[str] = []
    mailer = MailProgram(log.append, timeout_s=1.0)
    mail, began_s = Mail(program("sleep 60"), "alice", "x"), time.monotonic()
    for _ in range(10 * MOST_WAITING):
        mailer.send(mail)
    assert time.monotonic() - began_s < 1.0
    assert len(log) <= MOST_LINES
    assert f"{MOST_WAITING} others wait" in log[0]


def test_mails_are_sent_in_the_background(program, tmp_path) -> None:
    log: list[str] = []
    mailer, told, path = MailProgram(log.append), tmp_path / "told", program('echo "$2" >> told')
    told.touch()
    for number in range(3):
        mailer.send(Mail(path, "alice", str(number)))
    deadline_s = time.monotonic() + 10
    while len(told.read_text()) < 6 and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert (told.read_text().split(), log) == (["0", "1", "2"], [])
