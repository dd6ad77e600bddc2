"""What is limited for whom, from the words of scontrol and sacctmgr."""

import pytest

from slurm_sns.errors import SnsError
from slurm_sns.scheduler.observation import NO_LIMITS, TresLimits
from slurm_sns.slurm.accounting import tres_limits

CONFIG = """Configuration data as of 2026-11-22T03:50:13
AccountingStorageEnforce = associations,limits,qos
ClusterName             = mini
"""
PARTITIONS = "PartitionName=main QoS=N/A State=UP\nPartitionName=long QoS=capped TRES=cpu=8,mem=64G\n"
QOS = "normal|||||||||||\ncapped|||||||mem=50G||node=2||\n"
#: Cluster, account, parent, user, and the six limits of an association.
ASSOCIATIONS = """mini|root||||||||
mini|science|root||cpu=400,mem=1T|||||
mini|physics|science|||gres/llc=100||||
mini|physics||alice||||||node=60
mini|chemistry|root|||||||
mini|chemistry||alice||||billing=9||
mini|chemistry||bob||||||
other|chemistry||bob|mem=1|||||
other|root||carol||||||
"""


def limits(*, config=CONFIG, partitions=PARTITIONS, qos=QOS, associations=ASSOCIATIONS) -> TresLimits:
    def ask(*words: str, timeout_s: float) -> str:
        assert timeout_s == 10
        known = {"config": config, "partition": partitions, "qos": qos, "associations": associations}
        return next(text for word, text in known.items() if word in words)

    return tres_limits(ask, 10)


def test_a_user_has_the_limits_of_all_his_accounts_and_of_theirs_up_to_the_root() -> None:
    assert limits().of_users == {
        "alice": {"cpu", "mem", "gres/llc", "node", "billing"},
        "bob": frozenset(),
    }


def test_every_kind_of_limit_of_a_qos_counts_also_for_its_partitions() -> None:
    assert limits().of_qos == {"normal": frozenset(), "capped": {"mem", "node"}}
    assert limits().of_partitions == {"main": frozenset(), "long": {"mem", "node"}}


def test_where_billing_is_limited_so_is_what_it_is_computed_from() -> None:
    weights = "PartitionName=main QoS=N/A TRESBillingWeights=CPU=1.0,Mem=0.25G,GRES/llc=2\n"
    assert limits(partitions=weights, associations="mini|root||||||||\nmini|root||bob|billing=5|||||\n").of_users == {
        "bob": {"billing", "cpu", "mem", "gres/llc"}
    }
    assert limits(partitions=weights).of_users["bob"] == frozenset()


@pytest.mark.parametrize("enforce", ["none", "associations", "associations,qos"])
def test_where_slurm_enforces_no_limits_there_are_none_and_slurmdbd_is_not_asked(enforce: str) -> None:
    asked = CONFIG.replace("associations,limits,qos", enforce)
    assert limits(config=asked, qos="gibberish", associations="gibberish") == NO_LIMITS


@pytest.mark.parametrize("enforce", ["safe", "all", "LIMITS"])
def test_every_word_that_makes_slurm_enforce_limits_is_known(enforce: str) -> None:
    assert limits(config=CONFIG.replace("associations,limits,qos", enforce)).are_enforced


@pytest.mark.parametrize(
    "associations",
    ["mini|physics||dave||||||\n", "mini|a|b|||||||\nmini|b|a|||||||\nmini|a||dave||||||\n"],
    ids=["the account is not shown", "accounts in a circle"],
)
def test_a_user_whose_accounts_cannot_be_followed_to_the_root_is_not_known(associations: str) -> None:
    assert "dave" not in limits(associations=f"mini|root||||||||\nmini|root||dave||||||\n{associations}").of_users


@pytest.mark.parametrize(
    "wrong",
    [
        {"config": ""},
        {"config": "ClusterName = mini\n"},
        {"config": "AccountingStorageEnforce = limits\n"},
        {"qos": "normal|\n"},
        {"qos": "normal|mem|||||||||||\n"},
        {"qos": "normal|50G=mem||||||||||\n"},
        {"associations": "mini|root|||\n"},
        {"associations": "mini|root|||\x1b[2J=1|||||\n"},
        {"partitions": "QoS=normal State=UP\n"},
    ],
    ids=repr,
)
def test_an_answer_of_another_form_is_an_error(wrong: dict[str, str]) -> None:
    with pytest.raises(SnsError):
        limits(**wrong)
