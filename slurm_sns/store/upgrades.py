"""How the tables of an older version become those of the next one.

On MariaDB, where DDL has no transaction, a process may be killed in the middle of a step: so each step looks at what is
there, and may run again.
"""

from collections.abc import Callable, Mapping

from sqlalchemy import Connection, inspect, text

from slurm_sns.store.schema import metadata, snapshots

MARIADB = {"mysql", "mariadb"}


def _snapshots_of_their_own(connection: Connection) -> None:
    """From version 3: snapshots leave the table `cycles`, and MariaDB tells `mg` from `MG` and takes long texts."""
    columns = {each["name"] for each in inspect(connection).get_columns("cycles")}
    snapshots.create(connection, checkfirst=True)
    if "snapshot" in columns:
        is_new = "snapshot IS NOT NULL AND id NOT IN (SELECT cycle_id FROM snapshots)"
        connection.execute(
            text(f"INSERT INTO snapshots (cycle_id, data) SELECT id, snapshot FROM cycles WHERE {is_new}")  # noqa: S608
        )
        if connection.dialect.name == "sqlite":  # it would write the whole table anew: an empty column costs less
            connection.execute(text("UPDATE cycles SET snapshot = NULL WHERE id IN (SELECT cycle_id FROM snapshots)"))
        else:
            connection.execute(text("ALTER TABLE cycles DROP COLUMN snapshot"))
    if connection.dialect.name in MARIADB:
        for table in metadata.sorted_tables:
            name = table.name
            connection.execute(text(f"ALTER TABLE {name} CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"))
        for name, column in (("tries", "note"), ("cycles", "matched"), *(("decisions", each) for each in LONG)):
            null = "NULL" if column == "considered" else "NOT NULL"
            connection.execute(text(f"ALTER TABLE {name} MODIFY {column} LONGTEXT {null}"))


#: The columns of `decisions` that may be longer than MariaDB's TEXT: a job on ten thousand nodes names all of them.
LONG = ("nodes", "reason", "demand", "considered")

#: The version that a step begins with -> the step.
UPGRADES: Mapping[int, Callable[[Connection], None]] = {3: _snapshots_of_their_own}
