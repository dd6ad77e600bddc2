"""The databases of the store's tests: SQLite, MariaDB and PostgreSQL.

The two servers are Debian's. They run as an ordinary user in a temporary directory, listen on sockets there only, and
start when the first test of the process needs them.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, event, inspect, make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool, Pool

from slurm_sns.store import retention
from slurm_sns.store.database import open_store
from slurm_sns.store.schema import metadata, schema_version

KINDS = ("sqlite", "mariadb", "postgresql")
#: Neither server runs as root: then it runs as nobody.
ORDINARY = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
#: What a server may take to answer on a busy machine.
PATIENCE_S = 120


def program(name: str) -> str:
    """Where Debian keeps it: daemons and PostgreSQL's programs are not on every user's PATH."""
    of_versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    path = os.pathsep.join((os.environ["PATH"], "/usr/sbin", *map(str, reversed(of_versions))))
    found = shutil.which(name, path=path)
    if found is None:
        pytest.fail(f"{name} is not installed; `make test-tools` installs it")
    return found


@contextmanager
def directory() -> Iterator[Path]:
    """A directory with a short name, because a socket's path may have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="sns-db-") as made:
        if ORDINARY:
            os.chown(made, ORDINARY["user"], ORDINARY["group"])
        yield Path(made)


@contextmanager
def running(command: list[str], socket: Path, url: str) -> Iterator[str]:
    """The URL of a server, which answers and is killed afterwards: nobody needs its files."""
    with tempfile.TemporaryFile("w+") as log, subprocess.Popen(command, stdout=log, stderr=log, **ORDINARY) as server:
        try:
            until_s = time.monotonic() + PATIENCE_S
            while not (socket.exists() and answers(url)):
                if server.poll() is not None or time.monotonic() > until_s:
                    log.seek(0)
                    pytest.fail(f"{command[0]} does not answer:\n{log.read()}")
                time.sleep(0.05)
            yield url
        finally:
            server.kill()


def answers(url: str) -> bool:
    try:
        create_engine(url, poolclass=NullPool).connect().close()
    except (SQLAlchemyError, OSError):
        return False
    return True


@contextmanager
def mariadb() -> Iterator[str]:
    """MariaDB as it is without a configuration: its character set is an old one, latin1.

    Without tables of privileges and statistics it begins in an empty directory.
    """
    with directory() as place:
        socket = place / "socket"
        server = [program("mariadbd"), "--no-defaults", f"--datadir={place}", f"--socket={socket}", "--skip-networking"]
        server += ["--skip-grant-tables", "--innodb-stats-persistent=0", f"--tmpdir={place}"]
        server += ["--innodb-log-file-size=8M", "--innodb-flush-log-at-trx-commit=0"]
        with running(server, socket, f"mariadb+pymysql://root@localhost/?unix_socket={socket}") as url:
            yield url


@contextmanager
def postgresql() -> Iterator[str]:
    """PostgreSQL that writes nothing to the disk on purpose."""
    with directory() as place:
        data = place / "data"
        make = [
            program("initdb"),
            "-D",
            str(data),
            "-U",
            "sns",
            "--auth=trust",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C",
        ]
        subprocess.run(make, check=True, capture_output=True, cwd=place, **ORDINARY)
        server = [program("postgres"), "-D", str(data), "-k", str(place), "-c", "listen_addresses=", "-F"]
        socket = place / ".s.PGSQL.5432"
        with running(server, socket, f"postgresql+pg8000://sns@/postgres?unix_sock={socket}") as url:
            yield url


#: How the database `sns` is made anew.
ANEW = ("DROP DATABASE IF EXISTS sns", "CREATE DATABASE sns")


class Servers:
    """The servers of a process by kind, each with a database `sns`."""

    def __init__(self, started: ExitStack) -> None:
        self._started, self._urls = started, dict[str, str]()

    def empty(self, kind: str) -> str:
        """The URL of the database without tables."""
        with self._engine(self._admin(kind)) as engine, engine.connect() as connection:
            for statement in ANEW:
                connection.exec_driver_sql(statement)
        return self._url(kind)

    def ready(self, kind: str) -> str:
        """The URL of the database with its tables, which are empty: quicker than new ones."""
        self._admin(kind)
        with suppress(SQLAlchemyError), self._engine(self._url(kind)) as engine, engine.begin() as connection:
            if set(inspect(connection).get_table_names()) == set(metadata.tables):
                for table in metadata.sorted_tables:
                    if table is not schema_version:
                        connection.execute(table.delete())
                return self._url(kind)
        url = self.empty(kind)
        open_store(url).dispose()
        return url

    def _admin(self, kind: str) -> str:
        if kind not in self._urls:
            start = {"mariadb": mariadb, "postgresql": postgresql}[kind]
            self._urls[kind] = self._started.enter_context(start())
        return self._urls[kind]

    def _url(self, kind: str) -> str:
        return make_url(self._urls[kind]).set(database="sns").render_as_string(hide_password=False)

    @contextmanager
    def _engine(self, url: str) -> Iterator[Engine]:
        engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        yield engine
        engine.dispose()


@pytest.fixture(autouse=True)
def time_to_delete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each write the time to delete all that is old: a busy machine would decide otherwise."""
    monkeypatch.setattr(retention, "BUDGET_S", 600)


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    with ExitStack() as started:
        yield Servers(started)


@pytest.fixture
def file_url(tmp_path: Path) -> str:
    """For what is SQLite's alone."""
    return f"sqlite:///{tmp_path / 'sns.db'}"


@pytest.fixture
def closing_connections() -> Iterator[None]:
    """Close the connections of all engines after the test: a database that is in use cannot be made anew."""
    made: list[object] = []

    def keep(raw: object, _record: object) -> None:
        made.append(raw)

    event.listen(Pool, "connect", keep)
    yield
    event.remove(Pool, "connect", keep)
    for raw in made:
        with suppress(Exception):  # SQLite's is another thread's, or it is closed already
            raw.close()


def _url(request: pytest.FixtureRequest, made: Callable[[Servers, str], str]) -> str:
    if request.param == "sqlite":
        return str(request.getfixturevalue("file_url"))
    request.getfixturevalue("closing_connections")
    return made(request.getfixturevalue("servers"), request.param)


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest) -> str:
    """A database of each kind that holds nothing, but perhaps its tables."""
    return _url(request, Servers.ready)


@pytest.fixture(params=KINDS)
def empty_url(request: pytest.FixtureRequest) -> str:
    """A database of each kind without tables."""
    return _url(request, Servers.empty)
