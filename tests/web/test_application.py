"""What the page's server tells whom, and in which headers."""

import asyncio
import re
from importlib.resources import files
from typing import Any

import pytest
from asking import ELSEWHERE, PROXY, Asking, Scheduler
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import HOSTILE, overview
from pydantic import TypeAdapter

from slurm_sns.config.settings import WebSection
from slurm_sns.web.application import MOST_LINES, SECURITY_HEADERS
from slurm_sns.web.kept_overview import ASKED_AGAIN_S, FIRST_ROWS, MOST_VIEWERS, Explanations, PageClock
from slurm_sns.web.page_types import NoAnswer, PageOverview, QueuePart
from slurm_sns.web.viewers import Viewer

STATIC = files("slurm_sns.web") / "static"


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler()


@pytest.fixture
def asking(scheduler: Scheduler) -> Asking:
    return Asking(scheduler.application())


class TestWhoSeesWhat:
    def test_anybody_sees_nodes_and_counts_and_no_job(self, asking: Asking) -> None:
        told = asking.json("/api/overview")
        assert (told["viewer"], told["is_admin"], told["explains"]) == (None, False, False)
        assert told["jobs"] == {"offset": 0, "matching": 0, "total": 0, "rows": []}
        assert told["counts"]["waiting"] == 40
        assert {share["label"] for node in told["nodes"] for share in node["jobs"]} == {""}

    def test_users_see_their_own_jobs_and_the_rest_without_names(self, asking: Asking) -> None:
        told = asking.json("/api/overview", "alice")
        assert {row["user"] for row in told["jobs"]["rows"]} == {"alice"}
        own = {row["label"] for row in told["jobs"]["rows"]}
        assert {share["label"] for node in told["nodes"] for share in node["jobs"]} <= {"", *own}

    def test_new_trouble_is_told_though_no_cycle_has_ended(self, scheduler: Scheduler) -> None:
        asking = Asking(scheduler.application())
        assert asking.json("/api/overview", "alice")["trouble"] == ""
        scheduler.overview = {**scheduler.overview, "trouble": "slurmctld does not answer"}
        scheduler.now_s += 5
        assert asking.json("/api/overview", "alice")["trouble"] == "slurmctld does not answer"

    def test_admins_of_the_configuration_see_all(self, asking: Asking) -> None:
        told = asking.json("/api/overview", "bob")
        assert {row["user"] for row in told["jobs"]["rows"]} == {"alice", "bob", "carol"}
        assert told["is_admin"]

    @given(st.randoms(use_true_random=False), st.sampled_from([None, "alice", "root", "o.hara"]))
    @settings(max_examples=40, deadline=None)
    def test_no_answer_holds_a_word_of_others(self, draws: Any, user: str | None) -> None:
        """Each label, name, account and user of others is a word that stands nowhere else."""
        whole = overview(jobs=12, nodes=4)
        numbers = draws.sample(range(10**6, 10**7), len(whole["jobs"]))
        labels = {}
        for number, row in zip(numbers, whole["jobs"], strict=True):
            row["user"] = draws.choice(["alice", "root", "o.hara", "mallory", "trudy"])
            labels[row["label"]] = new = str(number)
            others = draws.choice(
                [f"behind job {draws.choice(numbers)}", f"job {number} and job {draws.choice(numbers)}"]
            )
            row |= {"job_id": number, "label": new, "name": f"name-{number}", "account": f"account-{row['user']}"}
            row |= {"reason": others}
        for node in whole["nodes"]:
            for share in node["jobs"]:
                share["label"] = labels.get(share["label"], "")
            node["kept_for"] = [str(draws.choice(numbers))] if draws.random() < 0.5 else []
            if draws.random() < 0.5:
                node["unavailable"] = f"busy with job {draws.choice(numbers)}"
        asking = Asking(Scheduler(whole).application())
        named = [] if user is None else [user]
        text = "".join(asking.get(path, *named).text for path in ("/api/overview", "/api/jobs", "/api/jobs?q=job"))
        for row in whole["jobs"]:
            if row["user"] != user:
                words = {row["label"], row["name"], row["account"]} | {row["user"]}
                assert not [word for word in words if word in text]

    def test_a_proxy_that_names_no_user_gets_no_page_of_anybody(self, asking: Asking) -> None:
        answer = asking.get("/api/overview", "mallory")
        assert answer.status_code == 403
        assert "'mallory'" in answer.json()["error"]

    def test_a_header_from_elsewhere_shows_what_anybody_sees_and_fills_no_log(self, scheduler: Scheduler) -> None:
        asking = Asking(scheduler.application(), ELSEWHERE)
        for _ in range(3 * MOST_LINES):
            assert asking.json("/api/overview", "alice")["viewer"] is None
        assert len(scheduler.log) == MOST_LINES

    def test_what_the_browser_says_of_other_addresses_is_not_read(self, scheduler: Scheduler) -> None:
        asking = Asking(scheduler.application(), ELSEWHERE)
        headers = {"X_Forwarded_For": PROXY, "Forwarded": f"for={PROXY}", "X_Real_IP": PROXY}
        assert asking.get("/api/overview", "alice", **headers).json()["viewer"] is None


class TestExplanations:
    def test_the_scheduler_is_asked_for_what_the_user_would_get(self, asking: Asking, scheduler: Scheduler) -> None:
        own = next(row for row in scheduler.overview["jobs"] if row["user"] == "alice")
        assert asking.json(f"/api/explain?job={own['job_id']}", "alice")["label"] == own["label"]
        assert scheduler.asked == [{"command": "explain", "job_id": own["job_id"], "as_user": "alice"}]
        asking.get("/api/explain?job=41_7", "bob")
        assert scheduler.asked[1] == {"command": "explain", "job_id": 41, "task": 7}

    def test_a_job_of_others_is_none(self, asking: Asking, scheduler: Scheduler) -> None:
        other = next(row for row in scheduler.overview["jobs"] if row["user"] == "carol")
        assert asking.get(f"/api/explain?job={other['job_id']}", "alice").status_code == 404

    @pytest.mark.parametrize("named", [(), ("root",), ("slurm",), ("alice", "alice")])
    def test_for_others_nobody_is_asked(self, asking: Asking, scheduler: Scheduler, named: tuple[str, ...]) -> None:
        assert asking.get("/api/explain?job=5000", *named).status_code == 403
        assert not scheduler.asked

    @pytest.mark.parametrize("job", ["", "0", "abc", "41_", "41_7_8", "41;42", "9" * 11, "-1", "41%00"])
    def test_what_is_no_job_is_refused(self, asking: Asking, scheduler: Scheduler, job: str) -> None:
        assert asking.get(f"/api/explain?job={job}", "alice").status_code == 400
        assert not scheduler.asked

    def test_one_is_asked_for_at_a_time_with_a_pause_and_each_viewer_waits_for_one(self) -> None:
        moments = [0.0]
        under_way: list[int] = []

        def ask(_: Any) -> str:
            under_way.append(1)
            assert len(under_way) == 1
            moments[0] += 0.02
            under_way.pop()
            return "told"

        async def all_ask() -> list[Any]:
            explanations = Explanations(ask, PageClock(lambda: 0.0, lambda: moments[0]))
            names = ["alice", "alice", *(f"user{number}" for number in range(20))]
            each = (explanations.of(Viewer(name, may_ask=True), {"job_id": 1}) for name in names)
            return await asyncio.gather(*each, return_exceptions=True)

        told = asyncio.run(all_ask())
        assert told[0] == "told"
        assert str(told[1]) == "another explanation is asked for; try again in a moment"
        assert told.count("told") == 16


class TestTheSchedulersCost:
    def test_one_overview_serves_all_viewers_until_there_is_a_newer_one(
        self, asking: Asking, scheduler: Scheduler
    ) -> None:
        for named in ((), ("alice",), ("bob",), ("o.hara",)) * 3:
            asking.get("/api/overview", *named)
            asking.get("/api/jobs?q=md", *named)
        assert len(scheduler.asked) == 1
        scheduler.now_s += 1.1
        asking.get("/api/overview")
        assert len(scheduler.asked) == 2

    def test_nobody_looks_and_nobody_is_asked(self, asking: Asking, scheduler: Scheduler) -> None:
        asking.get("/static/page.js")
        asking.get("/nothing")
        assert not scheduler.asked

    def test_a_scheduler_that_is_silent_is_told_since_when_and_nothing_old_is_shown(
        self, asking: Asking, scheduler: Scheduler
    ) -> None:
        asking.json("/api/overview")
        scheduler.problem = "no scheduler answers at /run/sns/scheduler.sock"
        scheduler.now_s = silent_s = scheduler.now_s + 60
        for _ in range(5):
            answer = asking.get("/api/overview")
            assert answer.status_code == 503
            assert answer.json() == {
                "error": scheduler.problem,
                "since_s": silent_s,
                "remedy": "On the controller: systemctl status sns-scheduler. "
                "Until it runs, Slurm itself starts the jobs.",
            }
        assert len(scheduler.asked) == 2
        scheduler.now_s += ASKED_AGAIN_S
        asking.get("/api/overview")
        assert len(scheduler.asked) == 3
        scheduler.problem = ""
        scheduler.now_s += ASKED_AGAIN_S
        assert asking.json("/api/overview")["mode"] == "enforce"

    def test_a_clock_that_is_stepped_does_not_keep_an_old_overview(self, asking: Asking, scheduler: Scheduler) -> None:
        scheduler.overview["next_s"] += 10**6
        asking.get("/api/overview")
        scheduler.now_s += 61
        asking.get("/api/overview")
        assert len(scheduler.asked) == 2

    def test_what_is_kept_for_viewers_is_bounded(self, scheduler: Scheduler) -> None:
        from slurm_sns.web.kept_overview import KeptOverview

        kept = KeptOverview(scheduler.ask, PageClock(lambda: 0.0, lambda: 0.0))

        async def look() -> None:
            for number in range(3 * MOST_VIEWERS):
                await kept.sight(Viewer(f"user{number}"))

        asyncio.run(look())
        assert len(kept._sights) == MOST_VIEWERS


class TestTheQueue:
    def test_ten_thousand_jobs_come_in_parts(self) -> None:
        asking = Asking(Scheduler(overview(jobs=10_000)).application())
        first = asking.json("/api/overview", "bob")["jobs"]
        assert len(first["rows"]) == FIRST_ROWS
        assert first["total"] == first["matching"] > 9000
        next_rows = asking.json("/api/jobs?offset=200&limit=50", "bob")["rows"]
        assert len(next_rows) == 50
        assert next_rows[0]["position"] > first["rows"][-1]["position"]

    def test_a_filter_has_words_of_any_column(self, asking: Asking) -> None:
        found = asking.json("/api/jobs?q=CAROL%20biology%20running", "bob")["rows"]
        assert found
        assert all(row["user"] == "carol" and row["state"] == "running" for row in found)
        assert asking.json("/api/jobs?q=nothing-such", "bob")["matching"] == 0

    def test_tasks_of_an_array_that_wait_alike_are_one_row(self, asking: Asking) -> None:
        assert "4900_[1-3]" in {row["label"] for row in asking.json("/api/jobs", "alice")["rows"]}

    @pytest.mark.parametrize("query", ["offset=-1", "limit=1001", "limit=x", "offset=99999999999", f"q={'a' * 201}"])
    def test_what_cannot_be_is_refused_with_what_is_valid(self, asking: Asking, query: str) -> None:
        answer = asking.get(f"/api/jobs?{query}", "bob")
        assert answer.status_code == 400
        assert "valid" in TypeAdapter(NoAnswer).validate_json(answer.text)["error"]

    def test_hostile_names_are_told_as_they_are_and_are_json(self) -> None:
        asking = Asking(Scheduler(overview(hostile=True)).application())
        answer = asking.get("/api/jobs", "alice")
        assert answer.headers["content-type"] == "application/json"
        assert {row["name"] for row in answer.json()["rows"]} >= set(HOSTILE)
        assert answer.content.isascii()

    def test_answers_have_the_documented_fields(self, asking: Asking) -> None:
        for path, kind in (("/api/overview", PageOverview), ("/api/jobs", QueuePart)):
            TypeAdapter(kind).validate_python(asking.json(path, "bob"))
            assert set(asking.json(path)) == set(kind.__annotations__)


PATHS = ("/", "/static/page.js", "/static/nothing", "/nothing", "/api/overview", "/api/jobs?limit=x", "/api/overview/")


class TestHeaders:
    @pytest.mark.parametrize("path", PATHS)
    @pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS", "DELETE", "TRACE"])
    def test_every_answer_has_the_security_headers_and_only_get_and_head_are_answered(
        self, asking: Asking, path: str, method: str
    ) -> None:
        answer = asking.get(path, method=method)
        assert {name: answer.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS
        if method not in ("GET", "HEAD"):
            assert answer.status_code in (404, 405)

    def test_the_policy_allows_own_files_alone(self) -> None:
        policy = SECURITY_HEADERS["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert "*" not in policy

    @pytest.mark.parametrize("host", ["evil.example", "evil.example:6831", "localhost.evil.example", "192.0.2.9", ""])
    def test_a_browser_that_was_led_here_by_a_foreign_name_gets_nothing(self, asking: Asking, host: str) -> None:
        answer = asking.get("/api/overview", Host=host)
        assert answer.status_code == 421
        assert "counts" not in answer.text

    @pytest.mark.parametrize(
        "host", ["localhost", "127.0.0.1:6831", "[::1]:6831", "SNS.example.org", "sns.example.org:8"]
    )
    def test_own_names_are_answered(self, scheduler: Scheduler, host: str) -> None:
        app = scheduler.application(WebSection(hosts=("sns.example.org",)))
        assert Asking(app).get("/api/overview", Host=host).status_code == 200

    @pytest.mark.parametrize("path", ["/", "/static/page.js", "/api/overview", "/api/jobs"])
    def test_what_the_browser_has_is_not_sent_again(self, asking: Asking, path: str) -> None:
        first = asking.get(path, "bob")
        again = asking.get(path, "bob", If_None_Match=f'W/"x", {first.headers["etag"]}')
        assert (again.status_code, again.content) == (304, b"")
        assert {name: again.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS
        assert asking.get(path, "bob", If_None_Match='"other"').status_code == 200

    def test_data_is_kept_nowhere_and_no_viewer_has_the_tag_of_another(self, asking: Asking) -> None:
        answers = [asking.get("/api/overview", *named) for named in ((), ("alice",), ("bob",))]
        assert {each.headers["cache-control"] for each in answers} == {"no-store"}
        assert len({each.headers["etag"] for each in answers}) == 3

    def test_it_is_compressed_for_those_who_can_read_that(self, asking: Asking) -> None:
        packed = asking.get("/api/overview", "bob", Accept_Encoding="gzip")
        assert packed.headers["content-encoding"] == "gzip"
        assert packed.json() == asking.get("/api/overview", "bob", Accept_Encoding="identity").json()

    def test_a_defect_costs_one_answer_and_is_logged(self, scheduler: Scheduler, asking: Asking) -> None:
        scheduler.overview = {"at_s": 1.0}
        answer = asking.get("/api/overview")
        assert (answer.status_code, answer.json()["error"]) == (500, "a defect, which is in the log of sns web")
        assert {name: answer.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS
        assert scheduler.log[0].startswith("Traceback")


class TestTheFiles:
    def test_the_page_has_no_script_and_no_style_of_its_own(self) -> None:
        text = (STATIC / "page.html").read_text(encoding="utf-8")
        assert not re.search(r"<style|style=|<script(?![^>]* src=)|\son[a-z]+=|javascript:|https?://", text)

    def test_the_script_sets_texts_as_texts(self) -> None:
        text = (STATIC / "page.js").read_text(encoding="utf-8")
        assert "textContent" in text
        forbidden = (
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|createContextualFragment"
        )
        assert not re.search(forbidden + r"|\.style\b|setAttribute\(\"style|DOMParser|srcdoc", text)
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)

    def test_every_file_that_the_page_names_is_served(self, asking: Asking) -> None:
        text = (STATIC / "page.html").read_text(encoding="utf-8")
        named = re.findall(r'(?:src|href)="(static/[^"]+)"', text)
        assert len(named) == 4
        assert all(asking.get(f"/{each}").status_code == 200 for each in named)

    def test_no_other_file_is_served(self, asking: Asking) -> None:
        for path in ("/static/uPlot.LICENSE", "/static/../application.py", "/static/%2e%2e/viewers.py", "/static/"):
            assert asking.get(path).status_code == 404

    def test_uplot_has_its_licence_beside_it(self) -> None:
        assert "(v1.6.32)" in (STATIC / "uPlot.iife.min.js").read_text(encoding="utf-8")[:100]
        assert "The MIT License" in (STATIC / "uPlot.LICENSE").read_text(encoding="utf-8")
