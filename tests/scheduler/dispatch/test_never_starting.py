"""Owners are told once, and never flooded, of jobs that can never start as they are."""

from dataclasses import replace

import pytest
from fake_slurm import FakeSlurm, Site
from hypothesis import given
from hypothesis import strategies as st
from live import BOB, ENFORCE, job

from slurm_sns.errors import Refused
from slurm_sns.scheduler.dispatch.never_starting import MOST_ADDRESSES, MOST_USERS, PAUSE_S, address, mail
from slurm_sns.scheduler.gate.job_status import NEVER_SATISFIED
from slurm_sns.scheduler.observation import ObservedPartition

TOO_LARGE = {"memory_per_cpu_mb": 200_000}
WHY = "can never start as it is: 1 tasks of 1 CPUs fit on no nodes of partition main: 2 nodes, the largest with 4 cores"
SHORT = ObservedPartition("main", walltime_s=60)


@pytest.fixture
def site() -> Site:
    of = Site(FakeSlurm({"c1": 4, "c2": 4}))
    of.slurm.shown = {"mail_program": "/bin/mail"}
    of.slurm.starts_nothing = True
    return of


def test_a_job_that_has_grown_too_large_is_said_once_and_mailed_once(site: Site) -> None:
    site.slurm.submit(1, mail_to="alice", name="big", **TOO_LARGE)
    site.scheduler(ENFORCE).repeat(5, 60.0)
    (line,) = site.log
    assert line.startswith(f"job 1 of alice {WHY}")
    (sent,) = site.mails
    assert (sent.program, sent.to) == ("/bin/mail", "alice")
    assert sent.subject.startswith(f"Slurm Job_id=1 Name=big C{WHY[1:]}")
    assert {
        "SLURM_JOB_ID": "1",
        "SLURM_JOB_NAME": "big",
        "SLURM_JOB_STATE": "PENDING",
    }.items() <= sent.variables.items()
    assert site.slurm.jobs[1].record.is_slurms, "and left to Slurm, as before"


def test_what_was_told_and_left_to_slurm_is_not_told_again_after_a_restart(site: Site) -> None:
    site.slurm.submit(1, mail_to="alice", **TOO_LARGE)
    for _ in range(3):
        site.scheduler(ENFORCE).repeat(2, 60.0)
    assert (len(site.log), len(site.mails)) == (1, 1)


def test_a_job_that_its_partition_does_not_allow_is_told_again_only_if_the_reason_changes(site: Site) -> None:
    site.slurm.shown |= {"partitions": (SHORT,)}
    site.slurm.submit(1, mail_to="alice")
    scheduler = site.scheduler(ENFORCE)
    scheduler.repeat(3, 60.0)
    site.slurm.shown |= {"partitions": (replace(SHORT, walltime_s=120),)}
    scheduler.repeat(3, 60.0)
    whys = [f"partition main allows {minutes} minutes, the job asks for 60" for minutes in (1, 2)]
    assert site.log == [f"job 1 of alice can never start as it is: {why}" for why in whys]
    assert [each.subject.endswith(why) for each, why in zip(site.mails, whys, strict=True)] == [True, True]


def test_ten_thousand_jobs_of_one_user_are_one_line_and_one_mail_and_do_not_hide_another_users(site: Site) -> None:
    site.slurm.submit(*[1] * 10_000, mail_to="alice", **TOO_LARGE)
    site.slurm.submit(1, mail_to="bob", user="bob", user_id=BOB, **TOO_LARGE)
    scheduler = site.scheduler(ENFORCE)
    scheduler.cycle()
    assert [line[:14] for line in site.log] == ["job 1 of alice", "job 10001 of b"]
    assert site.log[0].endswith("nor can 9999 more jobs of alice")
    assert [(each.to, "9999 more" in each.subject) for each in site.mails] == [("alice", True), ("bob", False)]


def test_jobs_that_come_one_after_the_other_are_told_together_after_a_pause(site: Site) -> None:
    scheduler = site.scheduler(ENFORCE)
    for _ in range(4):
        site.slurm.submit(1, mail_to="alice", **TOO_LARGE)
        scheduler.repeat(1, 1.0)
    assert len(site.mails) == 1
    site.slurm.sleep(PAUSE_S)
    scheduler.cycle()
    assert [line.rpartition(";")[2] for line in site.log[1:]] == [" nor can 2 more jobs of alice"]
    assert len(site.mails) == 2


def test_one_user_cannot_have_mail_sent_to_many_addresses_at_once(site: Site) -> None:
    for number in range(20):
        site.slurm.submit(1, mail_to=f"u{number}@x.org", **TOO_LARGE)
    site.scheduler(ENFORCE).repeat(3, 1.0)
    assert len(site.mails) == MOST_ADDRESSES


def test_a_cycle_tells_a_limited_number_of_users_and_the_next_one_goes_on(site: Site) -> None:
    for number in range(MOST_USERS + 2):
        site.slurm.submit(1, user=f"u{number}", user_id=3000 + number, **TOO_LARGE)
    scheduler = site.scheduler(ENFORCE)
    scheduler.cycle()
    assert len(site.log) == MOST_USERS
    scheduler.cycle()
    assert len(site.log) == MOST_USERS + 2


def test_no_mail_is_sent_for_a_job_that_asked_for_none_nor_where_slurm_has_no_mail_program(site: Site) -> None:
    site.slurm.submit(1, **TOO_LARGE)
    site.scheduler(ENFORCE).cycle()
    site.slurm.shown = {}
    site.slurm.submit(1, mail_to="bob", user_id=BOB, **TOO_LARGE)
    site.scheduler(ENFORCE).cycle()
    assert (len(site.log), site.mails) == (2, [])


def test_of_a_dependency_that_can_never_be_fulfilled_slurm_itself_sends_the_mail(site: Site) -> None:
    site.slurm.submit(1, mail_to="alice", waits_for_others=True, reason=NEVER_SATISFIED)
    site.scheduler(ENFORCE).cycle()
    assert (len(site.log), site.mails) == (1, [])


@pytest.mark.parametrize("mode", ["advise", "observe"])
def test_where_nothing_is_placed_nobody_is_told(site: Site, mode: str) -> None:
    site.slurm.submit(1, mail_to="alice", **TOO_LARGE)
    site.scheduler(replace(ENFORCE, mode=mode)).repeat(2, 60.0)
    assert (site.mails, [line for line in site.log if "never" in line]) == ([], [])


def test_while_the_kill_switch_is_on_nobody_is_told(site: Site) -> None:
    site.switch.on = True
    site.slurm.shown |= {"partitions": (SHORT,)}
    site.slurm.submit(1, mail_to="alice")
    site.scheduler(ENFORCE).repeat(2, 60.0)
    assert (site.mails, [line for line in site.log if "never" in line]) == ([], [])


def test_explain_has_the_reason_also_where_slurm_refuses_to_take_the_job(site: Site) -> None:
    def refuses(_order) -> None:
        raise Refused("Requested partition configuration not available now")

    site.slurm.free = refuses
    site.slurm.submit(1, **TOO_LARGE)
    site.scheduler(ENFORCE).repeat(3, 60.0)
    ((_, _, notes, _),) = site.decisions.cycles
    assert notes[1].startswith(WHY)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, "Slurm Job_id=7 "),
        ({"array_id": 5, "array_tasks": "1-9"}, "Slurm Array Summary Job_id=5_* (7) "),
        ({"array_id": 5, "array_task": 2}, "Slurm Array Task Job_id=5_2 (7) "),
    ],
)
def test_the_subject_names_a_job_as_slurms_own_mails_do(fields, named: str) -> None:
    assert mail("/bin/mail", "alice", job(7, name="x", **fields), "why").subject.startswith(f"{named}Name=x ")


@pytest.mark.parametrize("to", ["alice", "a.b+c@x-y.org", "alice,bob@x.org"])
def test_a_plain_address_is_mailed(to: str) -> None:
    assert address(to) == to


@pytest.mark.parametrize(
    "to",
    [
        "",
        "-f",
        "-f|id",
        "a b",
        "alice,-x",
        "|id",
        "/etc/passwd",
        "a@-x",
        "a,,b",
        "a\n",
        "?",
        "é@x.org",
        "a" * 300,
        "a;b",
    ],
)
def test_what_a_mail_program_might_take_for_something_else_is_no_address(to: str) -> None:
    assert address(to) == ""


@given(st.text(), st.text())
def test_nothing_that_a_user_can_write_begins_a_line_or_an_option(name: str, to: str) -> None:
    made = mail("/bin/mail", "alice", job(1, name=name, account=name), "why")
    assert made.subject.startswith("Slurm Job_id=1 Name=")
    assert made.subject.endswith("Can never start as it is: why")
    assert all(text.isprintable() for text in (made.subject, *made.variables.values()))
    assert not address(to).startswith("-")
