"""No cycle waits for slurmdbd; what it said last stays in force while it is silent."""

import threading

import pytest

from slurm_sns.errors import Unreachable
from slurm_sns.scheduler.observation import NO_LIMITS, UNKNOWN, TresLimits
from slurm_sns.slurm import accounting
from slurm_sns.slurm.accounting import AccountingDatabase, AccountingValues, account_shares, with_qos

PATIENCE_S = 60
NO_LIMIT = "|" * 5
MEMORY_LIMIT = f"mem=100{NO_LIMIT}"
LIMITED = TresLimits(
    of_users={"alice": frozenset({"mem"})}, of_qos={"normal": frozenset()}, of_partitions={"main": frozenset()}
)
SHARES = "root||1\nroot|root|1\nphysics||3\nphysics|alice|9\nchemistry||parent\n"


class Slurmdbd:
    """Answers as `sacctmgr` does, is away, or hangs until it is let go."""

    def __init__(self) -> None:
        self.priority = 5
        self.is_away = False
        self.enforces = "associations"
        self.hangs = threading.Event()
        self.hangs.set()
        self.asked: list[str] = []

    def __call__(self, *words: str, timeout_s: float) -> str:
        assert timeout_s <= 10
        if words[0] == "scontrol":
            config = f"ClusterName = mini\nAccountingStorageEnforce = {self.enforces}\n"
            return config if words[-1] == "config" else "PartitionName=main QoS=N/A\n"
        self.asked.append(words[3])
        assert self.hangs.wait(PATIENCE_S)
        if self.is_away:
            raise Unreachable("sacctmgr: Connection refused")
        if "grptres" in words[-1]:
            associations = f"mini|root|||{NO_LIMIT}\nmini|root||alice|{MEMORY_LIMIT}\n"
            return associations if words[3] == "associations" else f"normal|{NO_LIMIT}{NO_LIMIT}\n"
        qos = f"normal|0|||cluster\nhigh|{self.priority}|PartitionTimeLimit|normal|cluster\n"
        return SHARES if words[3] == "associations" else qos


class Case:
    def __init__(self, mocker, *, with_shares: bool = True) -> None:
        self.slurmdbd = Slurmdbd()
        self.log: list[str] = []
        self.now = mocker.patch("slurm_sns.slurm.accounting.time.monotonic", return_value=1000.0)
        self.accounting = AccountingDatabase(self.log.append, with_shares=with_shares, ask=self.slurmdbd)

    def later(self, seconds: float) -> None:
        self.now.return_value += seconds

    def after_the_answer(self) -> AccountingValues:
        """What is known once the question that is under way has come to its end."""
        known = self.accounting.numbers()
        for thread in threading.enumerate():
            if thread.name == "accounting":
                thread.join(PATIENCE_S)
        return self.accounting.numbers() or known


@pytest.fixture
def case(mocker) -> Case:
    return Case(mocker)


def test_the_first_look_has_the_numbers_already(case: Case) -> None:
    case.accounting.numbers()
    assert case.after_the_answer() == AccountingValues(
        (("high", 5), ("normal", 0)),
        (("high", frozenset({"PartitionTimeLimit"})),),
        (("chemistry", 1.0), ("physics", 3.0), ("root", 1.0)),
        NO_LIMITS,
        (("high", frozenset({"normal"})),),
    )


def test_until_it_answers_for_the_first_time_nobody_knows_which_qos_may_preempt(case: Case) -> None:
    case.slurmdbd.is_away = True
    assert case.after_the_answer().qos_preempts is None


def test_shares_that_nobody_wants_are_not_asked_for(mocker) -> None:
    case = Case(mocker, with_shares=False)
    assert case.after_the_answer().shares == ()
    assert case.slurmdbd.asked == ["qos"]


def test_it_is_asked_again_after_a_minute(case: Case) -> None:
    case.after_the_answer()
    case.slurmdbd.priority = 7
    case.later(accounting.ASKED_EVERY_S - 1)
    assert dict(case.after_the_answer().qos_priorities)["high"] == 5
    case.later(1)
    assert dict(case.after_the_answer().qos_priorities)["high"] == 7


def test_while_it_is_away_the_last_numbers_stay_in_force_and_it_is_said_once(case: Case) -> None:
    known = case.after_the_answer()
    case.slurmdbd.is_away = True
    for _ in range(5):
        case.later(accounting.ASKED_EVERY_S)
        assert case.after_the_answer() == known
    case.slurmdbd.is_away = False
    case.later(accounting.ASKED_AGAIN_S)
    assert case.after_the_answer() == known
    assert case.log == [
        (
            "slurmdbd does not answer: sacctmgr: Connection refused; "
            "the last known priorities, shares and limits stay in force"
        ),
        "over after 255 s: slurmdbd does not answer: sacctmgr: Connection refused",
    ]


def test_one_that_hangs_holds_nobody_up_and_is_asked_one_question_at_a_time(case: Case) -> None:
    known = case.after_the_answer()
    asked = len(case.slurmdbd.asked)
    case.slurmdbd.hangs.clear()
    try:
        for _ in range(5):
            case.later(accounting.ASKED_EVERY_S)
            assert case.accounting.numbers() == known, "it comes back though nobody has answered"
        assert len(case.slurmdbd.asked) <= asked + 1
    finally:
        case.slurmdbd.hangs.set()


def test_limits_are_asked_for_where_slurm_enforces_them_and_stay_known_while_slurmdbd_is_away(case: Case) -> None:
    case.slurmdbd.enforces = "associations,limits,qos"
    assert case.after_the_answer().tres_limits == LIMITED
    case.slurmdbd.is_away = True
    case.later(accounting.ASKED_EVERY_S)
    assert case.after_the_answer().tres_limits == LIMITED


def test_limits_are_unknown_until_slurmdbd_answers_for_the_first_time(case: Case) -> None:
    case.slurmdbd.enforces = "limits"
    case.slurmdbd.is_away = True
    assert case.after_the_answer().tres_limits == UNKNOWN


def test_without_a_slurmdbd_nothing_is_limited_where_slurm_enforces_nothing(case: Case) -> None:
    case.slurmdbd.is_away = True
    assert case.after_the_answer().tres_limits == NO_LIMITS


@pytest.mark.parametrize("text", ["", "\n", "physics\n", "physics|alice|9\n", "a|b|c|d\n"])
def test_lines_that_are_no_account_of_its_own_have_no_share(text: str) -> None:
    assert account_shares(text) == ()


def test_what_a_qos_frees_of_is_read_from_sacctmgr() -> None:
    known = with_qos(AccountingValues(), "normal|0|||\nlong|1|DenyOnLimit,PartitionTimeLimit||cluster\n")
    assert known.qos_freedoms == (("long", frozenset({"DenyOnLimit", "PartitionTimeLimit"})),)


def test_the_priorities_of_qos_are_read_from_sacctmgr() -> None:
    known = with_qos(AccountingValues(), "normal|0|||\nhigh|100|DenyOnLimit||\n\nodd|name|7|||\nbroken||||\n")
    assert known.qos_priorities == (("high", 100), ("normal", 0), ("odd|name", 7))


def test_whom_a_qos_may_preempt_is_read_from_sacctmgr() -> None:
    text = "normal|0|||cluster\nurgent|9||low,normal|requeue\ncrowd|1|||WITHIN,REQUEUE\nbroken|\n"
    known = with_qos(AccountingValues(), text)
    assert known.qos_preempts == (("crowd", frozenset({"crowd"})), ("urgent", frozenset({"low", "normal"})))
