"""An empty database gets its tables, an older one an upgrade, an unknown one is left alone; the file is its owner's."""

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture
from sqlalchemy import Column, Engine, LargeBinary, MetaData, Table, Text, create_engine, inspect, select

from slurm_sns.config.profiles_yaml import read_profiles
from slurm_sns.errors import Unreachable
from slurm_sns.model import Alternative, Node, Plan, Resources, Snapshot, Start
from slurm_sns.package_files import shared_path
from slurm_sns.scheduler.gate.failed_placements import Try
from slurm_sns.store.database import open_store
from slurm_sns.store.decisions import StoredDecisions, pack
from slurm_sns.store.history import StoredHistory
from slurm_sns.store.profiles import StoredProfiles
from slurm_sns.store.schema import VERSION, metadata, profiled_programs, schema_version
from slurm_sns.store.upgrades import LONG, UPGRADES

TRY = Try(7, 99)


def run(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(script)


def content(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return list(database.iterdump())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sns.db"


def opened(path: Path) -> StoredHistory:
    return StoredHistory(open_store(f"sqlite:///{path}"))


def version_of(engine: Engine) -> list[int]:
    with engine.connect() as connection:
        return list(connection.execute(select(schema_version.c.version)).scalars())


def test_an_empty_database_gets_all_tables_and_their_version(empty_url: str) -> None:
    engine = open_store(empty_url)
    assert set(inspect(engine).get_table_names()) == set(metadata.tables)
    assert version_of(engine) == [VERSION]


def test_a_database_with_its_tables_is_only_read(path: Path) -> None:
    opened(path).save([TRY], [])
    before = content(path)
    assert opened(path).load() == {7: TRY}
    assert content(path) == before


def test_what_a_database_has_beyond_the_tables_stays(path: Path) -> None:
    run(path, "CREATE TABLE notes (text TEXT);")
    opened(path).save([TRY], [])
    assert "notes" in inspect(open_store(f"sqlite:///{path}")).get_table_names()


def test_tables_that_were_not_completed_are_completed(empty_url: str) -> None:
    # As on MariaDB, where DDL has no transaction, after a process was killed.
    with create_engine(empty_url).begin() as connection:
        for table in (schema_version, profiled_programs):
            table.create(connection)
    StoredHistory(open_store(empty_url)).save([TRY], [])
    assert StoredHistory(open_store(empty_url)).load() == {7: TRY}


def tables_of_version_3() -> MetaData:
    """Today's, but: no table of snapshots, texts of one kind, and the database's own character set."""
    old = MetaData()
    for table in metadata.sorted_tables:
        columns = (
            Column(
                each.name,
                Text() if each.name in {"note", "matched", *LONG} else each.type,
                primary_key=each.primary_key,
                autoincrement=each.autoincrement,
                index=each.index,
                nullable=each.nullable,
                server_default=each.server_default and each.server_default.arg,
            )
            for each in table.columns
        )
        if table.name != "snapshots":
            Table(table.name, old, *columns)
    old.tables["cycles"].append_column(Column("snapshot", LargeBinary(2**24), nullable=True))
    return old


SNAPSHOT = Snapshot((Node("c1", Resources(4, 100), Resources(2, 50)),), ())


@pytest.fixture
def url_of_version_3(empty_url: str) -> str:
    """A database of version 3 with two cycles; the older one's snapshot is no longer kept."""
    tables = tables_of_version_3()
    with create_engine(empty_url).begin() as connection:
        tables.create_all(connection)
        for cycle, data in ((1, None), (2, pack(SNAPSHOT))):
            row = {"at_s": float(cycle), "chosen": "mix-fit", "matched": "{}", "snapshot": data}
            connection.execute(tables.tables["cycles"].insert(), row)
            of_job = {"cycle_id": cycle, "job_id": 7, "user_id": 2001, "at_s": float(cycle), "action": "note"}
            text = {"nodes": "", "reason": "freed", "scale": 1, "exclusive": False, "demand": "{}"}
            connection.execute(tables.tables["decisions"].insert(), {**of_job, **text})
        connection.execute(tables.tables["schema_version"].insert(), {"version": 3})
    return empty_url


@pytest.mark.parametrize("was_killed", [False, True])
def test_a_database_of_an_older_version_is_upgraded_with_what_it_holds(url_of_version_3: str, was_killed: bool) -> None:
    if was_killed:  # on MariaDB, after the step and before its version was written
        with create_engine(url_of_version_3).begin() as connection:
            UPGRADES[3](connection)
    engine = open_store(url_of_version_3)
    assert version_of(engine) == [VERSION]
    decisions = StoredDecisions(engine, keep_days=30, keep_snapshots=5)
    assert [each.reason for each in decisions.of_job(7)] == ["freed", "freed"]
    assert [decisions.snapshot_of(cycle) for cycle in (1, 2)] == [None, SNAPSHOT]
    names = tuple(f"node{number:05}" for number in range(10_000))
    start = Start(8, names, Alternative(10_000, Resources(1, 1)), "by mix-fit \N{SLIGHTLY SMILING FACE}")
    decisions.record(3.0, SNAPSHOT, Plan((start,)), {}, owners={}, explanations={}, tasks={})
    (found,) = decisions.of_job(8)
    assert (found.nodes, found.reason) == (start.nodes, start.reason)


def test_an_upgraded_database_tells_programs_apart_as_a_new_one_does(url_of_version_3: str) -> None:
    profiles = StoredProfiles(open_store(url_of_version_3))
    programs = [replace(read_profiles(shared_path("conf/profiles/spread-n-share.yaml"))[0], name=name) for name in "mM"]
    profiles.replace(programs)
    assert profiles.load() == {program.name: program for program in programs}


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("CREATE TABLE alembic_version (version_num TEXT); CREATE TABLE decisions (id INTEGER);", "counted"),
        ("CREATE TABLE job_records (job_id INTEGER);", "made before versions were counted"),
        ("CREATE TABLE schema_version (version INTEGER); INSERT INTO schema_version VALUES (99);", "of version 99"),
        ("CREATE TABLE schema_version (version INTEGER); INSERT INTO schema_version VALUES (0);", "of version 0"),
    ],
)
def test_a_database_of_another_version_is_refused_and_left_alone(path: Path, script: str, found: str) -> None:
    run(path, script)
    before = content(path)
    with pytest.raises(Unreachable) as problem:
        opened(path)
    assert f"the store at sqlite:///{path} is " in str(problem.value)
    assert f"{found}; this slurm_sns has version {VERSION}: install the slurm_sns that made it, or stop" in str(
        problem.value
    )
    assert content(path) == before


def test_making_the_tables_fails_or_is_complete(path: Path) -> None:
    run(path, "CREATE TABLE notes (text TEXT); CREATE INDEX ix_decisions_job_id ON notes (text);")
    before = content(path)
    with pytest.raises(Unreachable, match="cannot be opened"):
        opened(path)
    assert content(path) == before


def test_a_copy_that_is_made_between_writes_is_a_working_database(path: Path, tmp_path: Path) -> None:
    """As docs/admins/database.md says."""
    history = opened(path)
    history.save([TRY], [])
    copy = tmp_path / "copy.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"VACUUM INTO '{copy}'")
        history.save([Try(8, 99)], [])
    assert opened(copy).load() == {7: TRY}
    opened(copy).save([Try(9, 99)], [])
    assert set(opened(copy).load()) == {7, 9}
    assert copy.stat().st_mode & 0o077 == 0
    with closing(sqlite3.connect(copy)) as database:
        assert database.execute("PRAGMA auto_vacuum").fetchall() == [(2,)], "its file can become smaller, too"


def test_an_empty_file_that_cannot_be_written_is_no_answer(path: Path) -> None:
    path.touch()
    with pytest.raises(Unreachable, match="must belong to SlurmUser and be writable"):
        open_store(f"sqlite:///file:{path}?mode=ro&uri=true")


def test_several_processes_may_open_a_new_database_at_once(empty_url: str) -> None:
    program = f"from slurm_sns.store.database import open_store; open_store('{empty_url}').dispose()"
    command = [sys.executable, "-W", "error", "-c", program]
    opening = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [each.communicate()[1] for each in opening] == [""] * 3
    assert [each.returncode for each in opening] == [0] * 3
    assert StoredHistory(open_store(empty_url)).load() == {}


def test_a_lock_that_sqlite_does_not_wait_for_is_waited_for(path: Path, mocker: MockerFixture) -> None:
    free_at, connect = time.monotonic() + 0.3, sqlite3.connect

    def connected(*arguments: Any, **options: Any) -> sqlite3.Connection:
        if time.monotonic() < free_at:
            raise sqlite3.OperationalError("database is locked")
        return connect(*arguments, **options)

    mocker.patch("sqlite3.dbapi2.connect", connected)
    assert opened(path).load() == {}


def test_nobody_but_its_owner_reads_the_database(tmp_path: Path) -> None:
    before = os.umask(0o000)
    try:
        with open_store(f"sqlite:///{tmp_path}/sns.db").connect() as connection:
            connection.exec_driver_sql("PRAGMA user_version=1")
            modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes.pop("sns.db") == 0o600
    assert set(modes.values()) <= {0o600}


def test_a_database_that_others_could_read_is_made_private_and_stays_as_writable_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "sns.db"
    open_store(f"sqlite:///{path}").dispose()
    for mode, private in ((0o644, 0o600), (0o666, 0o600), (0o700, 0o700)):
        path.chmod(mode)
        open_store(f"sqlite:///{path}").dispose()
        assert path.stat().st_mode & 0o777 == private
