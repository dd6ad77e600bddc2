"""What is learnt, as JSON: the contents of the tables learnt_programs and runs_to_learn_from.

Reports have the form in which agents send them (scheduler.agents.messages). A form that a newer version of slurm_sns
wrote, and anything else that cannot be read, raises ValueError.
"""

import json
from collections.abc import Mapping
from typing import Any

from slurm_sns.model import Resources
from slurm_sns.policies.placement.request import NodeType, Request
from slurm_sns.policies.sns.estimate import Estimate
from slurm_sns.policies.sns.evidence import Evidence, KnownEvidence, Scales
from slurm_sns.policies.sns.exploration import ExplorationStep
from slurm_sns.policies.sns.learning import Key
from slurm_sns.scheduler.learning.values import Failures, Learnt, RunOutcome, RunToLearn
from slurm_sns.wire.messages import BadMessage, decode, encode
from slurm_sns.wire.values import Report, RunId

FORMAT = 1


def learnt_text(learnt: Learnt) -> str:
    """The content of a row of learnt_programs."""
    known = learnt.known
    return json.dumps(
        {
            "format": FORMAT,
            "current": _scales_data(known.current),
            "renewal": None if known.renewal is None else _scales_data(known.renewal),
            "strange": known.strange,
            "is_explored": known.is_explored,
            "failures": {scale: list(each) for scale, each in learnt.failures.items()},
            "renewed_s": learnt.renewed_s,
            "renewed_by": learnt.renewed_by,
            "users": list(learnt.users),
        },
        separators=(",", ":"),
    )


def learnt_of(key: Key, used_s: float, text: str) -> Learnt:
    """The row of learnt_programs."""
    data = _object(text)
    try:
        renewal = data["renewal"]
        known = KnownEvidence(
            *key,
            current=_scales(data["current"]),
            renewal=None if renewal is None else _scales(renewal),
            strange=int(data["strange"]),
            is_explored=bool(data["is_explored"]),
        )
        return Learnt(
            known,
            float(used_s),
            {int(scale): Failures(int(runs), float(last_s)) for scale, (runs, last_s) in data["failures"].items()},
            float(data["renewed_s"]),
            int(data["renewed_by"]),
            tuple(map(int, data["users"])),
        )
    except (KeyError, TypeError, AttributeError) as problem:
        raise ValueError(f"{type(problem).__name__}: {problem}") from None


def run_text(run: RunToLearn) -> str:
    """The content of a row of runs_to_learn_from."""
    asked = run.request
    return json.dumps(
        {
            "format": FORMAT,
            "key": list(run.key),
            "scale": run.scale,
            "nodes": list(run.nodes),
            "request": {name: getattr(asked, name) for name in Request.__dataclass_fields__},
            "types": [[*each.capacity, each.number] for each in run.types],
            "ways": run.ways,
            "step": None if run.step is None else list(run.step),
            "user_id": run.user_id,
            "placed_s": run.placed_s,
            "outcome": run.outcome.value,
            "ended_s": run.ended_s,
            "was_suspended": run.was_suspended,
        },
        separators=(",", ":"),
    )


def run_of(run: RunId, text: str) -> RunToLearn:
    """The row of runs_to_learn_from."""
    data = _object(text)
    try:
        step = data["step"]
        program, processes = data["key"]
        return RunToLearn(
            run,
            (str(program), int(processes)),
            int(data["scale"]),
            tuple(map(str, data["nodes"])),
            Request(**data["request"]),
            tuple(NodeType(Resources(*amounts), number) for *amounts, number in data["types"]),
            int(data["ways"]),
            None if step is None else ExplorationStep(int(step[0]), bool(step[1])),
            int(data["user_id"]),
            float(data["placed_s"]),
            RunOutcome(data["outcome"]),
            float(data["ended_s"]),
            bool(data["was_suspended"]),
        )
    except (KeyError, TypeError, AttributeError, IndexError) as problem:
        raise ValueError(f"{type(problem).__name__}: {problem}") from None


def report_text(report: Report) -> str:
    """The content of a row of run_reports."""
    return encode(report).decode()


def report_of(text: str) -> Report:
    """The row of run_reports."""
    try:
        found = decode(text.encode())
    except BadMessage as problem:
        raise ValueError(str(problem)) from None
    if not isinstance(found, Report):
        raise ValueError(f"a {type(found).__name__}, not a report")  # noqa: TRY004  callers expect the one error
    return found


def _object(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(f"not in the form {FORMAT}")
    return data


def _scales_data(scales: Scales) -> dict[int, Any]:
    return {
        scale: {
            "time_s": _estimate_data(each.time_s),
            "ipc": {ways: _estimate_data(found) for ways, found in each.ipc.items()},
            "bandwidth_gbps": {ways: _estimate_data(found) for ways, found in each.bandwidth_gbps.items()},
        }
        for scale, each in scales.items()
    }


def _scales(data: Mapping[str, Any]) -> Scales:
    return {
        int(scale): Evidence(
            _estimate(each["time_s"]),
            {int(ways): _estimate(found) for ways, found in each["ipc"].items()},
            {int(ways): _estimate(found) for ways, found in each["bandwidth_gbps"].items()},
        )
        for scale, each in data.items()
    }


def _estimate_data(estimate: Estimate) -> list[float]:
    return [estimate.count, estimate.mean, estimate.squares]


def _estimate(data: Any) -> Estimate:
    count, mean, squares = data
    return Estimate(int(count), float(mean), float(squares))
