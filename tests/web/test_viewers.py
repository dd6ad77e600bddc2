"""Who looks at the page: only a configured proxy is believed, and what it says must be a user."""

import pytest
from asking import BEHIND_A_PROXY, ELSEWHERE, PROXY, USERS
from hypothesis import given
from hypothesis import strategies as st

from slurm_sns.config.settings import WebSection
from slurm_sns.errors import BadInput
from slurm_sns.web.viewers import ANONYMOUS, KNOWN_S, Viewer, Viewers


class Found(Viewers):
    """Viewers of a made-up system; `looked_up` are the names that it was asked for."""

    def __init__(self, settings: WebSection = BEHIND_A_PROXY) -> None:
        self.log: list[str] = []
        self.looked_up: list[str] = []
        self.now_s = 0.0
        super().__init__(settings, self._look_up, {0, 64030}, self.log.append, lambda: self.now_s)

    def _look_up(self, name: str) -> int | None:
        self.looked_up.append(name)
        return USERS.get(name)


@pytest.mark.parametrize("address", [PROXY, f"::ffff:{PROXY}", "fd00::1"])
def test_a_trusted_proxy_names_the_user(address: str) -> None:
    assert Found().of(address, ["alice"]) == Viewer("alice", is_admin=False, may_ask=True)


def test_a_name_with_a_dot_is_one() -> None:
    assert Found().of(PROXY, ["o.hara"]).name == "o.hara"


@pytest.mark.parametrize("address", [ELSEWHERE, "127.0.0.1", "::1", "", "no address", "::ffff:192.0.2.8"])
@given(name=st.sampled_from(sorted(USERS)) | st.text())
def test_a_header_from_elsewhere_counts_for_nothing_and_is_logged(address: str, name: str) -> None:
    found = Found()
    assert found.of(address, [name]) == ANONYMOUS
    assert len(found.log) == 1
    assert not found.looked_up


@given(st.lists(st.sampled_from(sorted(USERS)), min_size=2, max_size=4))
def test_two_headers_name_nobody_and_are_logged(names: list[str]) -> None:
    found = Found()
    assert found.of(PROXY, names) == ANONYMOUS
    assert len(found.log) == 1


def test_a_proxy_that_names_nobody_brings_anybody() -> None:
    assert Found().of(PROXY, []) == Found().of(PROXY, [""]) == Found().of(PROXY, ["  "]) == ANONYMOUS


@pytest.mark.parametrize(
    "name", ["mallory", "(null)", "alice,bob", "alice bob", "../alice", "a" * 33, "al\x00ice", "7:8"]
)
def test_a_proxy_that_names_no_user_is_told_so(name: str) -> None:
    with pytest.raises(BadInput, match=r"X-Remote-User is .*: valid is one name"):
        Found().of(PROXY, [name])


@pytest.mark.parametrize("name", ["root", "slurm"])
def test_root_and_slurm_user_are_no_admins_by_a_header_and_may_not_ask_the_scheduler(name: str) -> None:
    assert Found().of(PROXY, [name]) == Viewer(name, is_admin=False, may_ask=False)


def test_admins_are_those_whom_the_configuration_names() -> None:
    assert Found().of(PROXY, ["bob"]) == Viewer("bob", is_admin=True, may_ask=True)
    settings = BEHIND_A_PROXY.model_copy(update={"admins": ("root",)})
    assert Found(settings).of(PROXY, ["root"]) == Viewer("root", is_admin=True, may_ask=True)


@pytest.mark.parametrize("settings", [WebSection(), BEHIND_A_PROXY.model_copy(update={"trusted_addresses": ()})])
def test_without_its_settings_no_header_is_read(settings: WebSection) -> None:
    assert Found(settings).header is None
    assert Found(settings).of(PROXY, ["alice"]) == ANONYMOUS


def test_a_name_is_looked_up_once_a_minute() -> None:
    found = Found()
    for now_s in (0.0, KNOWN_S - 1, KNOWN_S, KNOWN_S + 1):
        found.now_s = now_s
        found.of(PROXY, ["alice"])
    assert found.looked_up == ["alice", "alice"]
