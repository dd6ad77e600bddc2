"""What prolog and epilog say is checked: a wrong event is refused in one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.errors import BadInput
from slurm_sns.node.agent.inbox import JobEvent, job_event
from slurm_sns.wire.values import RunId


def test_texts_of_the_environment_become_an_event() -> None:
    said = {"event": "prolog", "job": "41", "restarts": "2", "nodes": "c[1-4]", "extra": "x", "later": [1]}
    assert job_event(said) == JobEvent("prolog", RunId(41, 2), "c[1-4]", "x")
    assert job_event({"event": "epilog", "job": 41}) == JobEvent("epilog", RunId(41, 0))


@pytest.mark.parametrize("job", [None, "", "0", "-1", "1.5", "x", "1" * 40, "٣", True, [], {}, 1e3, " 1"])
def test_a_job_that_is_no_number_is_refused(job: object) -> None:
    with pytest.raises(BadInput, match="valid: a whole number") as refused:
        job_event({"event": "prolog", "job": job})
    assert len(str(refused.value)) < 200


FIELDS = st.sampled_from(["event", "job", "restarts", "nodes", "extra", "v"])
VALUES = st.none() | st.text() | st.integers() | st.lists(st.integers()) | st.sampled_from(["prolog", "epilog", "7"])


@given(st.dictionaries(FIELDS, VALUES))
def test_whatever_is_said_is_an_event_or_refused_in_one_line(said) -> None:
    why = ""
    try:
        assert job_event(said).run.job_id >= 1
    except BadInput as problem:
        why = str(problem)
    assert "\n" not in why
