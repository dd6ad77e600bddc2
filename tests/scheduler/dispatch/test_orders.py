"""Each order is answered once, in order, and no order is sent once slurmctld is unreachable."""

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.errors import Refused, Unreachable
from slurm_sns.scheduler.gate.orders import RequeueOrder, one_by_one, reached

FATES = st.lists(st.sampled_from(["done", "refused", "lost"]), max_size=12)


def sending(fates: list[str], sent: list[int]):
    """The answers to orders, of which order n meets the n-th fate; `sent` gets the numbers of the orders sent."""

    def carry_out(order) -> None:
        sent.append(order.job_id)
        if fates[order.job_id] == "refused":
            raise Refused(f"no {order.job_id}")
        if fates[order.job_id] == "lost":
            raise Unreachable(f"nobody {order.job_id}")

    return one_by_one([RequeueOrder(number) for number in range(len(fates))], carry_out)


@given(FATES)
def test_every_order_is_answered_once_and_in_order(fates: list[str]) -> None:
    sent: list[int] = []
    answers = list(sending(fates, sent))
    first_lost = fates.index("lost") if "lost" in fates else len(fates)
    assert [answer.order.job_id for answer in answers] == list(range(len(fates)))
    assert sent == list(range(min(first_lost + 1, len(fates))))
    for number, answer in enumerate(answers):
        is_done = answer.refused is None and answer.unreachable is None
        assert is_done is (number < first_lost and fates[number] == "done")
        assert (answer.refused is not None) is (number < first_lost and fates[number] == "refused")
        assert (answer.unreachable is not None) is (number >= first_lost)


@given(FATES, st.integers(0, 12))
def test_an_order_is_sent_when_its_answer_is_asked_for(fates: list[str], asked: int) -> None:
    sent: list[int] = []
    answers = list(islice(sending(fates, sent), asked))
    assert len(sent) <= len(answers)


def test_reached_raises_an_error_when_slurmctld_is_lost() -> None:
    answers = reached(sending(["done", "refused", "lost", "done"], []))
    assert [not (answer.refused or answer.unreachable) for answer in islice(answers, 2)] == [True, False]
    with pytest.raises(Unreachable, match="nobody 2"):
        next(answers)
