"""The profiles of programs in the database: one row for each program, one for each of its runs (processes, scale)."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Engine, bindparam, delete, insert, select

from slurm_sns.policies.profile import Program
from slurm_sns.policies.spread_n_share.profile_reading import data_of, programs_of
from slurm_sns.store.database import replace_rows, transaction
from slurm_sns.store.schema import profiled_programs, profiled_runs

WHAT_FAILS = "the profiles in the store cannot be read or written"
CURVES = ("ways", "ipc", "bandwidth_gbps", "provenance")


class StoredProfiles:
    """Keeps profiles in the tables `profiled_programs` and `profiled_runs`."""

    def __init__(self, engine: Engine) -> None:
        """Use an engine of `open_store`."""
        self._engine = engine

    def load(self) -> dict[str, Program]:
        """All programs by name."""
        with transaction(self._engine, WHAT_FAILS) as connection:
            heads = connection.execute(select(profiled_programs)).mappings().all()
            rows = connection.execute(select(profiled_runs)).mappings().all()
        content: dict[str, Any] = {head["program"]: _head(dict(head)) for head in heads}
        for row in rows:
            if row["program"] in content:
                content[row["program"]]["runs"].append(_run(dict(row)))
        if not content:
            return {}
        return {program.name: program for program in programs_of({"programs": content})}

    def replace(self, programs: Iterable[Program]) -> None:
        """Add these programs, or replace those of the same names, in one transaction: all of them or none."""
        content = data_of(programs)["programs"]
        heads = [
            {"program": name, "source": program["source"], "max_scale": program.get("max_scale")}
            for name, program in content.items()
        ]
        runs = [
            {
                "program": name,
                **{column: run[column] for column in ("processes", "scale", "time_s")},
                "curves": json.dumps({column: run[column] for column in CURVES}),
            }
            for name, program in content.items()
            for run in program["runs"]
        ]
        if not heads:
            return
        of_a_program = profiled_runs.c.program == bindparam("name")
        with transaction(self._engine, WHAT_FAILS) as connection:
            connection.execute(delete(profiled_runs).where(of_a_program), [{"name": name} for name in content])
            replace_rows(connection, profiled_programs, heads)
            connection.execute(insert(profiled_runs), runs)


def _head(row: Mapping[str, Any]) -> dict[str, Any]:
    limit = {} if row["max_scale"] is None else {"max_scale": row["max_scale"]}
    return {"source": row["source"], **limit, "runs": []}


def _run(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**{column: row[column] for column in ("processes", "scale", "time_s")}, **json.loads(row["curves"])}
