"""The database's file is its owner's alone."""

import os
from pathlib import Path

from slurm_sns.store.schema import open_store


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
