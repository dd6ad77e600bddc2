"""The page of a made-up cluster on a real port of this machine, for screenshots and measurements."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import made_up

from slurm_sns.config.settings import WebSection
from slurm_sns.web.application import application
from slurm_sns.web.bounded_server import listening, server

#: As the proxy of these pages names them; bob is an admin.
USERS = {"alice": 1001, "bob": 1002}
SETTINGS = WebSection(user_header="X-Remote-User", trusted_addresses=("127.0.0.1",), admins=("bob",))


@contextmanager
def served(ask: Callable[[dict[str, Any]], Any]) -> Iterator[str]:
    """The page's address, while the context lasts."""
    app = application(ask, SETTINGS, user_id_of=USERS.get, admin_ids={0}, log=print)
    with listening("127.0.0.1", 0) as listener:
        serving = server(app)
        thread = threading.Thread(target=serving.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        serving.should_exit = True
        thread.join()


def scheduler_of(jobs: int, nodes: int) -> Callable[[dict[str, Any]], Any]:
    """A scheduler whose cycle has just ended."""
    whole = made_up.overview(jobs, nodes, time.time() - 1)

    def ask(request: dict[str, Any]) -> Any:
        if request["command"] == "overview":
            return whole
        found = next(row for row in whole["jobs"] if row["job_id"] == request["job_id"])
        return made_up.explanation(found)

    return ask
