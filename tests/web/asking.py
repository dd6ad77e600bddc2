"""The page's application without a network: a scheduler made up, and requests from any address."""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
import made_up

from slurm_sns.config.settings import WebSection
from slurm_sns.errors import BadInput, Unreachable
from slurm_sns.web.application import application
from slurm_sns.web.kept_overview import PageClock

USERS = {"root": 0, "slurm": 64030, "alice": 1001, "bob": 1002, "o.hara": 1003}
PROXY, ELSEWHERE = "192.0.2.7", "192.0.2.8"
BEHIND_A_PROXY = WebSection(user_header="X-Remote-User", trusted_addresses=("192.0.2.7", "fd00::/8"), admins=("bob",))


class Scheduler:
    """Answers as the scheduler does to an admin, counts what it is asked, and has a clock that a test moves."""

    def __init__(self, overview: Mapping[str, Any] | None = None) -> None:
        self.overview = dict(made_up.overview() if overview is None else overview)
        self.asked: list[dict[str, Any]] = []
        self.problem = ""
        self.now_s = self.overview["at_s"]
        self.log: list[str] = []

    def ask(self, request: dict[str, Any]) -> Any:
        self.asked.append(request)
        if self.problem:
            raise Unreachable(self.problem)
        if request["command"] == "overview":
            return self.overview
        rows = [row for row in self.overview["jobs"] if row["user"] == request.get("as_user", row["user"])]
        found = next((row for row in rows if row["job_id"] == request["job_id"]), None)
        if found is None:
            raise BadInput(f"job {request['job_id']}: no job of yours that Slurm or slurm_sns knows")
        return made_up.explanation(found)

    def application(self, settings: WebSection = BEHIND_A_PROXY) -> Any:
        clock = PageClock(lambda: self.now_s, lambda: self.now_s)
        return application(
            self.ask, settings, user_id_of=USERS.get, admin_ids={0, 64030}, log=self.log.append, clock=clock
        )


class Asking:
    """Asks an application, as a browser at that address does."""

    def __init__(self, app: Any, address: str = PROXY, host: str = "localhost:6831") -> None:
        self._app, self._address, self._host = app, address, host

    def get(self, path: str, *named: str, method: str = "GET", **headers: str) -> httpx.Response:
        """The answer to a request in which the proxy names these users."""
        sent = [("X-Remote-User", each) for each in named]
        sent += [(name.replace("_", "-"), value) for name, value in headers.items()]

        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(self._app, client=(self._address, 4711))
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{self._host}") as client:
                return await client.request(method, path, headers=sent)

        return asyncio.run(asked())

    def json(self, path: str, *named: str) -> Any:
        """The JSON of an answer that must be one."""
        answer = self.get(path, *named)
        assert answer.status_code == 200, answer.text
        return answer.json()
