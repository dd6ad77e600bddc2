"""`sns web` on the live cluster in Debian's chromium: what a person would click, by mouse and by keyboard alone."""

import re
from collections.abc import Callable, Iterator

import pytest
from chromium import BrowserPage, Chromium

from cluster import Cluster

CONFIG = "/tmp/sns-page.yaml"
HOSTILE = "</script><img src=x onerror=document.title=1>\u202egnp"
PATIENCE_S = 120
FOCUSED = "document.activeElement.innerText || document.activeElement.id"

Open = Callable[..., BrowserPage]


@pytest.fixture(scope="module")
def address(shared_cluster: Cluster) -> Iterator[str]:
    """Where the page is: on the controller, to whom this machine's address is that of the reverse proxy."""
    inspect = "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{.Gateway}}{{end}}"
    host, proxy = shared_cluster.engine("inspect", "-f", inspect, f"{shared_cluster.project}-ctl").split()
    web = f"web: {{address: 0.0.0.0, hosts: ['{host}'], user_header: X-Remote-User, trusted_addresses: ['{proxy}']}}"
    shared_cluster.run(f'cat /etc/slurm/sns.yaml > {CONFIG}; echo "{web}" >> {CONFIG}; chmod 644 {CONFIG}')
    shared_cluster.daemon("restart", "web", config=CONFIG)
    yield f"http://{host}:6831/"
    shared_cluster.daemon("stop", "web")


@pytest.fixture(scope="module")
def jobs(shared_cluster: Cluster) -> Iterator[dict[str, int]]:
    """A job of alice's that runs, one with a hostile name that waits behind it, an array, and one of bob's."""
    running = shared_cluster.submit("-p main -n 112 --mem-per-cpu=100", "sleep 600")
    shared_cluster.wait_for("it runs", lambda: shared_cluster.job(running).state == "RUNNING", PATIENCE_S)
    waiting = shared_cluster.submit(f"-p main -n 28 --mem-per-cpu=100 -J '{HOSTILE}'", "true")
    array = shared_cluster.submit("-p main -n 28 --mem-per-cpu=100 --array=1-5", "true")
    other = shared_cluster.submit("-p main -n 28 --mem-per-cpu=100 -J secret", "true", user="bob")
    shared_cluster.wait_for_cycles(2)
    yield {"running": running, "waiting": waiting, "array": array, "other": other}
    shared_cluster.run("scancel -u alice; scancel -u bob")


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as chromium:
        yield chromium


@pytest.fixture
def opened(browser: Chromium, address: str) -> Iterator[Open]:
    """Opens the page for a user whom the proxy names; at the end nothing was wrong with it in the browser's eyes."""
    from contextlib import ExitStack

    pages: list[BrowserPage] = []
    with ExitStack() as open_pages:

        def open_page(
            user: str | None = "alice", width: int = 1400, height: int = 900, *, dark: bool = False
        ) -> BrowserPage:
            headers = {"X-Remote-User": user} if user else {}
            page = open_pages.enter_context(browser.page(width, height, dark=dark, headers=headers))
            page.goto(address)
            page.wait_for("document.getElementById('counts').textContent")
            pages.append(page)
            return page

        yield open_page
        assert [each.complaints for each in pages] == [[] for _ in pages]


def test_a_user_clicks_a_job_and_reads_why_it_waits(
    opened: Open, jobs: dict[str, int], shared_cluster: Cluster
) -> None:
    page = opened()
    page.wait_for(f"document.querySelector(\"tr[data-job='{jobs['waiting']}']\")")
    shown = page.text("#rows")
    assert str(jobs["running"]) in shown
    assert f"{jobs['array']}_[1-5]" in shown
    assert "bob" not in shown
    assert "secret" not in page.text("body")
    assert re.fullmatch(r"3 waiting, 1 running.*, 0 can never start", page.text("#counts"))
    page.click(f"tr[data-job='{jobs['waiting']}'] button")
    page.wait_for("document.querySelector('#told table')")
    told = page.text("#explanation")
    said = shared_cluster.explain(jobs["waiting"], user="alice")
    assert said["job"]["reason"] in told
    assert said["cycle"]["considered"][0]["name"] in told
    # The name is there, as a text: no element was made of it, and nothing turns around.
    assert "</script><img src=x onerror=document.title=1>\ufffdgnp" in told
    assert page.evaluate("document.images.length") == 0
    assert page.evaluate("document.title") == "slurm_sns: queue and nodes"
    page.click("#close")
    assert not page.evaluate("document.getElementById('explanation').open")


def test_a_click_on_a_rectangle_of_a_node_explains_its_job(opened: Open, jobs: dict[str, int]) -> None:
    page = opened()
    page.click(f"#nodes rect[data-job='{jobs['running']}']")
    page.wait_for("document.querySelector('#told h3')")
    assert page.text("#explained") == f"Job {jobs['running']}"


def test_anybody_sees_nodes_and_counts_and_no_job(opened: Open, jobs: dict[str, int]) -> None:
    page = opened(None)
    assert page.evaluate("document.querySelectorAll('#rows tr').length") == 0
    assert "Jobs are shown to users whom a proxy has named" in page.text("#empty")
    assert page.evaluate("document.querySelectorAll('#nodes figure').length") == 6
    assert jobs
    assert not any(word in page.text("body") for word in ("alice", "bob", "secret", "physics", "wrap"))
    assert page.evaluate("document.querySelectorAll('[data-job]').length") == 0


def test_the_keyboard_alone_is_enough(opened: Open, jobs: dict[str, int]) -> None:
    page = opened()
    page.wait_for("document.querySelectorAll('#rows tr').length === 3")
    seen = []
    for _ in range(4):
        page.press("Tab")
        seen.append(page.evaluate(FOCUSED))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    labels = page.evaluate("[...document.querySelectorAll('#rows button')].map((each) => each.innerText)")
    assert (seen[1], seen[3]) == ("filter", labels[0])
    page.press("ArrowDown")
    assert page.evaluate(FOCUSED) == labels[1]
    page.press("Enter")
    page.wait_for("document.querySelector('#told h3')")
    assert page.text("#explained") == f"Job {labels[1]}"
    page.press("Escape")
    page.wait_for("!document.getElementById('explanation').open")
    assert page.evaluate(FOCUSED) == labels[1]
    page.press("Tab", 2, shift=True)
    assert page.evaluate(FOCUSED) == "filter"
    page.type(f"{jobs['array']}_")  # a number alone may stand in other cells, too
    page.wait_for("document.querySelectorAll('#rows tr').length === 1")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1400, 360])
def test_axe_finds_nothing_serious_and_a_phone_is_wide_enough(
    opened: Open, jobs: dict[str, int], width: int, dark: bool
) -> None:
    page = opened("alice", width, 740 if width < 600 else 900, dark=dark)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.accessibility_findings() == []
    page.click(f"tr[data-job='{jobs['waiting']}'] button")
    page.wait_for("document.querySelector('#told table')")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.accessibility_findings() == []


def test_a_scheduler_that_is_gone_is_told_in_words_and_back_again(opened: Open, shared_cluster: Cluster) -> None:
    page = opened()
    shared_cluster.daemon("kill")
    try:
        page.wait_for("/^Since .*no scheduler answers/.test(document.getElementById('status').textContent)")
        assert "systemctl status sns-scheduler" in page.text("#status")
        page.complaints.clear()  # that it was told so is no defect of the page
    finally:
        shared_cluster.daemon("start")
    shared_cluster.wait_for_scheduler()
    page.wait_for("document.getElementById('status').textContent === ''", 30)
    page.complaints.clear()
