"""The queue between the agent's thread and all others."""

from types import SimpleNamespace
from typing import Any

import pytest

from slurm_sns.errors import BadInput, Unreachable
from slurm_sns.node.agent import inbox
from slurm_sns.node.agent.inbox import Asked, Inbox
from slurm_sns.wire.values import Acknowledged

PROLOG: dict[str, Any] = {"event": "prolog", "job": "1"}


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def box(said: list[str]) -> Inbox:
    return Inbox(SimpleNamespace(now=lambda: 0.0, steady=lambda: 7.0), said.append)


def test_all_that_waits_comes_in_its_order_with_the_time_at_which_it_came(box: Inbox) -> None:
    message = Acknowledged(((1, 0, "c1"),))
    box.take(PROLOG)
    box.receive(message)
    asked, told = box.waiting(0.0)
    assert isinstance(asked, Asked)
    assert (asked.request, asked.at_s, told) == (PROLOG, 7.0, message)


def test_nothing_comes_when_nothing_waits(box: Inbox) -> None:
    assert list(box.waiting(0.0)) == list(box.waiting(0.01)) == []


def test_what_comes_while_the_first_is_dealt_with_is_dealt_with_too(box: Inbox) -> None:
    box.take(PROLOG)
    dealt_with = []
    for event in box.waiting(0.0):
        dealt_with.append(event)
        if len(dealt_with) < 3:
            box.take(PROLOG)
    assert len(dealt_with) == 3


def test_a_request_that_is_none_does_not_wait(box: Inbox) -> None:
    with pytest.raises(BadInput, match="event 'epilogue'"):
        box.take({"event": "epilogue"})
    assert list(box.waiting(0.0)) == []


def test_a_caller_gets_the_answer_of_the_agents_thread(box: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = box.take(PROLOG)
    next(iter(box.waiting(0.0))).answer.set_result("yes")
    monkeypatch.setattr(box, "take", lambda _request: taken)
    assert box.answer(PROLOG, 0) == "yes"


def test_a_caller_does_not_wait_longer_than_a_prolog_may_and_the_event_stays(
    box: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "ANSWER_TIMEOUT_S", 0.01)
    with pytest.raises(Unreachable, match="goes on with the request later"):
        box.answer(PROLOG, 0)
    assert len(list(box.waiting(0.0))) == 1


def test_of_too_many_the_last_is_refused_and_a_message_is_lost_with_a_line(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "MOST_WAITING", 2)
    box = Inbox(SimpleNamespace(now=lambda: 0.0, steady=lambda: 7.0), said.append)
    box.take(PROLOG)
    box.take({"event": "show"})
    with pytest.raises(Unreachable, match="2 requests wait"):
        box.take(PROLOG)
    box.receive(Acknowledged(()))
    assert said == ["a message of the controller is lost: too many wait"]
    assert len(list(box.waiting(0.0))) == 2
