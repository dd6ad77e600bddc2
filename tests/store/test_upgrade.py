"""Any earlier database is brought to the newest revision and keeps what it has; a later one is left alone."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, inspect

from slurm_sns.errors import Unreachable
from slurm_sns.model import Alternative, Job, Node, Project, Resources, Snapshot
from slurm_sns.policies.profile import Program, Provenance, Provenances, Run
from slurm_sns.scheduler.remembered import PolicyHistory, Try
from slurm_sns.store.decisions import StoredDecisions
from slurm_sns.store.history import StoredHistory
from slurm_sns.store.migrations import NEWEST, REVISIONS
from slurm_sns.store.profiles import StoredProfiles
from slurm_sns.store.schema import metadata, open_store

#: What sqlite3's iterdump wrote of a database of the first release (it had no alembic_version).
FIRST_RELEASE = (Path(__file__).parents[1] / "data" / "store" / "first_release.sql").read_text(encoding="utf-8")
REMEMBERED = PolicyHistory("dfrs", 1, '[{"passed": [7]}]')


def run(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(script)


def content(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return list(database.iterdump())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sns.db"


@pytest.fixture
def first_release(path: Path) -> Path:
    run(path, FIRST_RELEASE)
    return path


def opened(path: Path) -> Engine:
    return open_store(f"sqlite:///{path}")


def test_a_database_of_the_first_release_gets_tables_for_tries_and_for_what_policies_remember(
    first_release: Path,
) -> None:
    history = StoredHistory(opened(first_release))
    assert (history.load(), history.load_memory("dfrs")) == ({}, None)
    tried = Try(7, 1_790_000_000, 2, 1_790_000_012.5, 1_790_000_099.25, "Slurm said: 'no'; ünï", "AssocGrpCpuLimit")
    history.save([tried], [], REMEMBERED)
    again = StoredHistory(opened(first_release))
    assert (again.load(), again.load_memory("dfrs")) == ({7: tried}, REMEMBERED)


def test_a_database_of_the_first_release_keeps_its_decisions_and_snapshots(first_release: Path) -> None:
    decisions = StoredDecisions(opened(first_release), keep_days=30, keep_snapshots=10)
    start, note = decisions.of_job(7)
    assert (start.user_id, start.at_s, start.action, start.nodes) == (2001, 1_790_000_012.5, "start", ("c1", "c2"))
    assert (start.chosen, start.matched) == ("mix-fit", {"mix-fit": 2, "best-fit-cores": 1})
    assert (start.scale, start.exclusive, start.demand["memory_mb"]) == (2, False, 4000)
    assert start.considered is not None
    assert (start.considered["note"], start.considered["considered"][1]["dropped"]) == ("ünusual", "no room")
    assert (note.action, note.times, note.at_s) == ("note", 2, 1_790_000_030.0)
    assert [each.reason for each in decisions.of_job(9)] == ["runs otherwise than planned"]
    assert decisions.job_of_task(6, 3) == 7
    room = Resources(16, 64_000, 20, 110)
    ways = (
        Alternative(2, Resources(8, 4000, 4, 30), 8, 2, 1.25),
        Alternative(1, Resources(16, 8000), None, 1, 1.5, exclusive=True),
    )
    waiting = (
        Job(
            7,
            1_790_000_000,
            ways,
            (0, 0, -3, 7),
            "physics",
            "best-fit-cores",
            frozenset({"c1", "c2"}),
            over_aged=True,
            withholds=False,
        ),
        Job(8, 1_790_000_001, (Alternative(1, Resources(1, 1024)),)),
    )
    assert decisions.snapshot_of(start.cycle_id) == Snapshot(
        (Node("c1", room, room), Node("c2", room, Resources(4, 1000, 2, 10))),
        waiting,
        {"physics": Project(2.5, Resources(3, 4, 5, 6))},
        {"c9": "down"},
    )


def test_a_database_of_the_first_release_keeps_its_profiles(first_release: Path) -> None:
    measured = Provenances(Provenance.MEASURED, Provenance.ASSUMED, Provenance.PRINTED)
    curves = ((2, 20), (0.8, 1.0), (112.0, 112.5), measured)
    assert StoredProfiles(opened(first_release)).load() == {
        "ep": Program("ep", (Run(28, 1, 97.86, *curves),)),
        "mg": Program("mg", (Run(16, 1, 97.86, *curves), Run(16, 2, 55.5, *curves)), "a paper's table 1", 4),
    }


#: The tables that the second and the fourth revision make, and alembic's own.
LEARNING = (
    "CREATE TABLE policy_memory (policy VARCHAR(64) NOT NULL PRIMARY KEY, version INTEGER NOT NULL,"
    "text TEXT NOT NULL); CREATE TABLE learnt_programs (program VARCHAR(64) NOT NULL, processes BIGINT NOT NULL,"
    "used_s FLOAT NOT NULL, content TEXT NOT NULL, PRIMARY KEY (program, processes));"
    "CREATE TABLE runs_to_learn_from (job_id BIGINT NOT NULL, restarts INTEGER NOT NULL,"
    "content TEXT NOT NULL, PRIMARY KEY (job_id, restarts)); CREATE TABLE run_reports (job_id BIGINT NOT NULL,"
    "restarts INTEGER NOT NULL, node VARCHAR(255) NOT NULL, content TEXT NOT NULL,"
    "PRIMARY KEY (job_id, restarts, node));"
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);"
)
LACKING = {
    "first release": "",
    "columns": "ALTER TABLE job_records DROP COLUMN tasks; ALTER TABLE job_records DROP COLUMN memory_per_cpu_mb;"
    "ALTER TABLE decisions DROP COLUMN considered; ALTER TABLE decisions DROP COLUMN times;",
    "a table": "DROP TABLE array_tasks;",
    "an index": "DROP INDEX ix_decisions_job_id;",
    "a version": "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);",
    "cut off in the third": "ALTER TABLE job_records ADD COLUMN given_memory_mb BIGINT DEFAULT '0' NOT NULL;"
    "CREATE TABLE policy_memory (policy VARCHAR(64) NOT NULL PRIMARY KEY, version INTEGER NOT NULL,"
    "text TEXT NOT NULL); CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);"
    "INSERT INTO alembic_version VALUES ('0002');",
    "cut off in the fourth": "ALTER TABLE job_records ADD COLUMN given_memory_mb BIGINT DEFAULT '0' NOT NULL;"
    "CREATE TABLE policy_memory (policy VARCHAR(64) NOT NULL PRIMARY KEY, version INTEGER NOT NULL,"
    "text TEXT NOT NULL); CREATE TABLE runs_to_learn_from (job_id BIGINT NOT NULL, restarts INTEGER NOT NULL,"
    "content TEXT NOT NULL, PRIMARY KEY (job_id, restarts));"
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);"
    "INSERT INTO alembic_version VALUES ('0003');",
    "cut off in the fifth": "ALTER TABLE job_records ADD COLUMN given_memory_mb BIGINT DEFAULT '0' NOT NULL;"
    "ALTER TABLE job_records ADD COLUMN given_ways BIGINT;"
    f"{LEARNING}"
    "INSERT INTO alembic_version VALUES ('0004');",
    "cut off in the sixth": "ALTER TABLE job_records ADD COLUMN given_memory_mb BIGINT DEFAULT '0' NOT NULL;"
    "ALTER TABLE job_records ADD COLUMN given_ways BIGINT;"
    "ALTER TABLE job_records ADD COLUMN given_bandwidth_gbps BIGINT;"
    "ALTER TABLE job_records ADD COLUMN is_noted BOOLEAN DEFAULT 0 NOT NULL;"
    f"{LEARNING}"
    "INSERT INTO alembic_version VALUES ('0005');",
    "cut off in the seventh": "ALTER TABLE job_records ADD COLUMN given_memory_mb BIGINT DEFAULT '0' NOT NULL;"
    "ALTER TABLE job_records ADD COLUMN given_ways BIGINT;"
    "ALTER TABLE job_records ADD COLUMN given_bandwidth_gbps BIGINT;"
    "ALTER TABLE job_records ADD COLUMN is_noted BOOLEAN DEFAULT 0 NOT NULL;"
    "ALTER TABLE job_records ADD COLUMN taken_back TEXT;"
    f"{LEARNING}"
    "INSERT INTO alembic_version VALUES ('0006');",
    "cut off in the eighth": "DROP TABLE job_records; CREATE TABLE tries (job_id BIGINT NOT NULL PRIMARY KEY,"
    "submit_s BIGINT NOT NULL, failures INTEGER NOT NULL, tried_s FLOAT NOT NULL, retry_s FLOAT NOT NULL,"
    "note TEXT NOT NULL, limited_by VARCHAR(64) NOT NULL);"
    f"{LEARNING}"
    "INSERT INTO alembic_version VALUES ('0007');",
    "cut off": "CREATE TABLE policy_memory (policy VARCHAR(64) NOT NULL PRIMARY KEY, version INTEGER NOT NULL,"
    "text TEXT NOT NULL); CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);"
    "INSERT INTO alembic_version VALUES ('0001');",
}


def differences(engine: Engine) -> list[object]:
    """What alembic would change."""
    with engine.connect() as connection:
        return list(compare_metadata(MigrationContext.configure(connection), metadata))


def tables(engine: Engine) -> dict[str, object]:
    """The tables as the database sees them, in no order: alembic compares neither defaults nor primary keys."""
    look = inspect(engine)
    return {
        name: (
            {each["name"]: str(each) for each in look.get_columns(name)},
            sorted(look.get_pk_constraint(name)["constrained_columns"]),
            sorted(str(each) for each in look.get_indexes(name)),
        )
        for name in look.get_table_names()
        if name != "alembic_version"
    }


@pytest.mark.parametrize("lacking", LACKING)
def test_an_older_database_and_a_new_one_end_with_the_same_tables(first_release: Path, lacking: str) -> None:
    run(first_release, LACKING[lacking])
    engine, new = opened(first_release), opened(first_release.with_name("new.db"))
    assert differences(engine) == differences(new) == []
    assert tables(engine) == tables(new)
    assert len(StoredDecisions(engine, 30, 10).of_job(7)) == 2


def test_the_tables_are_those_of_the_schema(path: Path) -> None:
    declared = create_engine(f"sqlite:///{path.with_name('declared.db')}")
    metadata.create_all(declared)
    assert tables(opened(path)) == tables(declared)
    assert set(tables(declared)) == set(metadata.tables)


def test_what_an_older_database_has_beyond_the_tables_stays(first_release: Path) -> None:
    run(first_release, "ALTER TABLE decisions ADD COLUMN colour TEXT; CREATE TABLE notes (text TEXT);")
    assert {"notes", "policy_memory"} <= set(inspect(opened(first_release)).get_table_names())
    assert len(StoredDecisions(opened(first_release), 30, 10).of_job(7)) == 2


def test_an_upgrade_that_fails_changes_nothing(first_release: Path) -> None:
    # A column that cannot be added: there are rows, and it has no default.
    run(first_release, "ALTER TABLE decisions DROP COLUMN times; ALTER TABLE decisions DROP COLUMN demand;")
    before = content(first_release)
    with pytest.raises(Unreachable, match=r"cannot be opened: .*NOT NULL"):
        opened(first_release)
    assert content(first_release) == before


@pytest.mark.parametrize("revision", ["0009", "9999", "f00baa", ""])
def test_a_database_of_a_revision_that_we_do_not_know_is_refused_and_left_alone(path: Path, revision: str) -> None:
    opened(path).dispose()
    run(path, f"UPDATE alembic_version SET version_num='{revision}'; ALTER TABLE decisions RENAME TO verdicts;")
    before = content(path)
    with pytest.raises(Unreachable) as problem:
        opened(path)
    assert str(problem.value) == (
        f"the store at sqlite:///{path} is of revision '{revision}', made by another version of slurm_sns; this one "
        f"knows revisions up to '{NEWEST}': install the version that made it, or put a copy of the database from "
        "before its upgrade in its place"
    )
    assert content(path) == before


def test_a_read_only_file_of_an_older_version_is_no_answer(first_release: Path) -> None:
    with pytest.raises(Unreachable, match="must belong to SlurmUser and be writable"):
        open_store(f"sqlite:///file:{first_release}?mode=ro&uri=true")


def script(path: Path, *lines: str) -> list[str]:
    """A program that opens the store, in a process of its own."""
    opening = [
        "import sys",
        "from slurm_sns.store.schema import open_store",
        f"open_store('sqlite:///{path}').dispose()",
    ]
    return [sys.executable, "-W", "error", "-c", "\n".join([*opening, *lines])]


def test_alembic_is_loaded_for_an_upgrade_only(path: Path) -> None:
    show = script(path, "print('alembic' in sys.modules)")
    first, second = (subprocess.run(show, check=True, capture_output=True, text=True) for _ in range(2))
    assert (first.stdout, second.stdout) == ("True\n", "False\n")
    assert first.stderr == second.stderr == "", "an upgrade says nothing"


@pytest.mark.parametrize("script_before", ["", FIRST_RELEASE], ids=["new", "first release"])
def test_several_processes_may_open_a_database_at_once(path: Path, script_before: str) -> None:
    for attempt in range(2):
        database = path.with_name(f"{attempt}.db")
        if script_before:
            run(database, script_before)
        opening = [subprocess.Popen(script(database), stderr=subprocess.PIPE, text=True) for _ in range(3)]
        assert [each.communicate()[1] for each in opening] == [""] * 3
        assert [each.returncode for each in opening] == [0] * 3
        assert differences(opened(database)) == []


def test_the_list_of_revisions_names_all_of_them() -> None:
    config = Config()
    config.set_main_option("script_location", "slurm_sns.store:migrations")
    scripts = ScriptDirectory.from_config(config).walk_revisions()
    assert tuple(each.revision for each in scripts)[::-1] == REVISIONS
