"""An empty database gets its tables, one of another version is left alone, and the file is its owner's alone."""

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture
from sqlalchemy import inspect

from slurm_sns.errors import Unreachable
from slurm_sns.scheduler.gate.failed_placements import Try
from slurm_sns.store.database import open_store
from slurm_sns.store.history import StoredHistory
from slurm_sns.store.schema import VERSION, metadata

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


def test_an_empty_database_gets_all_tables_and_their_version(path: Path) -> None:
    assert set(inspect(open_store(f"sqlite:///{path}")).get_table_names()) == set(metadata.tables)
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT version FROM schema_version").fetchall() == [(VERSION,)]


def test_a_database_with_its_tables_is_only_read(path: Path) -> None:
    opened(path).save([TRY], [])
    before = content(path)
    assert opened(path).load() == {7: TRY}
    assert content(path) == before


def test_what_a_database_has_beyond_the_tables_stays(path: Path) -> None:
    run(path, "CREATE TABLE notes (text TEXT);")
    opened(path).save([TRY], [])
    assert "notes" in inspect(open_store(f"sqlite:///{path}")).get_table_names()


def test_tables_that_were_not_completed_are_completed(path: Path) -> None:
    # As on MariaDB, where DDL has no transaction, after a process was killed.
    run(path, "CREATE TABLE schema_version (version INTEGER NOT NULL);")
    run(path, "CREATE TABLE profiled_programs (program VARCHAR(64) PRIMARY KEY, source TEXT, max_scale INTEGER);")
    opened(path).save([TRY], [])
    assert opened(path).load() == {7: TRY}


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


def test_an_empty_file_that_cannot_be_written_is_no_answer(path: Path) -> None:
    path.touch()
    with pytest.raises(Unreachable, match="must belong to SlurmUser and be writable"):
        open_store(f"sqlite:///file:{path}?mode=ro&uri=true")


def test_several_processes_may_open_a_new_database_at_once(path: Path) -> None:
    program = f"from slurm_sns.store.database import open_store; open_store('sqlite:///{path}').dispose()"
    command = [sys.executable, "-W", "error", "-c", program]
    opening = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [each.communicate()[1] for each in opening] == [""] * 3
    assert [each.returncode for each in opening] == [0] * 3
    assert opened(path).load() == {}


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
