"""The GPUs that a job asks for, as Slurm writes it, and how many of them are on a node."""

import pytest

from slurm_sns import gpus
from slurm_sns.errors import BadInput, Infeasible
from slurm_sns.gpus import GpuRequest, GresTexts
from slurm_sns.model import gpus_of

READ = {
    "gres/gpu:2": {"": 2},
    "gres:gpu:2": {"": 2},
    "gpu": {"": 1},
    "gpu=4": {"": 4},
    "gres/gpu:a100": {"a100": 1},
    "gres/gpu:a100:2,gres/gpu:b=1": {"a100": 2, "b": 1},
    "gres/gpu:a100_1g.5gb:3": {"a100_1g.5gb": 3},
    "gpu:1g.5gb:2": {"1g.5gb": 2},
    "gpu:4,": {"": 4},
    "gpu:999999999": {"": 999999999},
}


@pytest.mark.parametrize(("text", "by_type"), READ.items())
def test_a_list_of_gpus_is_read_by_type(text: str, by_type: dict[str, int]) -> None:
    assert gpus.asked(GresTexts(per_node=text)) == GpuRequest(gpus.NODE, tuple(sorted(by_type.items())))


NOT_PLACED = (
    *("gpu:0", "gpu:01", "gpu:1k", "gpu:2:3", "gpu:-1", "gpu:1000000000", "gpu:", "gpu:a:", "gpu:a:b:1", "gpu:a b:1"),
    *("shard:1", "mps:50", "fpga", "llc:4", "gpux:1", "GPU:1", "gpu:1,fpga:1", "license/x:1", "gpu:a(S:0):1"),
    *("gpu:1,gpu:a:1", "gpu:a:1,gpu:1", "gpu:a:1,gpu:a:1", "gpu:1,gpu:1", "gpu:\u0661", "gpu:a:1\n", "gpu:é:1"),
    ",".join(f"gpu:a{number}:1" for number in range(9)),
    "gpu:" + "a" * 65 + ":1",
    "gpu:a:1," * 200,
)


@pytest.mark.parametrize("text", NOT_PLACED, ids=ascii)
@pytest.mark.parametrize("field", ["per_node", "per_task", "per_job"])
def test_all_else_is_slurms_to_read(text: str, field: str) -> None:
    with pytest.raises(BadInput):
        gpus.asked(GresTexts(**{field: text}))


def test_what_goes_with_each_gpu_is_read() -> None:
    texts = GresTexts(per_task="cpu=2,gres/gpu:a=1", cpus="gres/gpu:4", memory="gres/gpu:4096")
    assert gpus.asked(texts) == GpuRequest(gpus.TASK, (("a", 1),), 4, 4096)


@pytest.mark.parametrize(
    "texts",
    [
        GresTexts(per_node="gpu:1", per_job="gpu:1"),
        GresTexts(per_node="gpu:1", per_socket="gpu:1"),
        GresTexts(per_node="gpu:1", has_flags=True),
        GresTexts(per_node="gpu:1", cpus="gpu:a:1"),
        GresTexts(per_node="gpu:1", memory="gpu:1G"),
        GresTexts(cpus="gpu:1"),
    ],
    ids=str,
)
def test_gpus_asked_for_in_several_ways_are_slurms(texts: GresTexts) -> None:
    with pytest.raises(BadInput):
        gpus.asked(texts)


@pytest.mark.parametrize("texts", [GresTexts(), GresTexts(per_task="cpu:2"), GresTexts(has_flags=True)], ids=str)
def test_a_job_without_gres_asks_for_no_gpus(texts: GresTexts) -> None:
    assert gpus.asked(texts) is None


def test_the_gpus_of_a_node_follow_from_its_tasks() -> None:
    by_task = GpuRequest(gpus.TASK, (("a", 1), ("b", 2)))
    assert by_task.on_a_node(tasks=3, nodes=2) == (("gpu", 9), ("gpu:a", 3), ("gpu:b", 6))
    assert GpuRequest(gpus.NODE, (("", 2),)).on_a_node(tasks=3, nodes=2) == (("gpu", 2),)
    assert [GpuRequest(by, (("a", 1), ("b", 2))).in_all(5, 2) for by in (gpus.NODE, gpus.TASK, gpus.JOB)] == [6, 15, 3]
    assert GpuRequest(gpus.JOB, (("a", 4),)).on_a_node(tasks=3, nodes=1) == (("gpu", 4), ("gpu:a", 4))
    with pytest.raises(Infeasible, match="--gpus"):
        GpuRequest(gpus.JOB, (("a", 4),)).on_a_node(tasks=3, nodes=2)


def test_an_owners_gres_are_told_from_ours() -> None:
    ours = frozenset({"llc", "membw"})
    assert gpus.without("gres/gpu:a:2,gres:llc:4,gres/membw:10", ours) == "gres/gpu:a:2"
    assert gpus.without("gres:llc:4", ours) == gpus.without("", ours) == ""


@pytest.mark.parametrize("text", ["", "gpu:4", "gpu:a100:2", "gpu:a:2,gpu:b:1"])
def test_the_gpus_of_a_node_are_written_as_slurm_conf_has_them(text: str) -> None:
    assert gpus.written(gpus.listed(text)) == text


def test_a_nodes_gpus_are_counted_by_type_and_in_all() -> None:
    seen = gpus.of_node({"gpu:a": 2, "gpu:b": 0, "gpu": 1, "llc": 20, "gpux": 3})
    assert seen == (("gpu", 3), ("gpu:a", 2))
    assert (gpus.by_type(seen), gpus.total(seen)) == ({"a": 2, "": 1}, 3)
    assert gpus.of_tres({"gpu": 3, "gpu:a": 2, "llc": 4}) == seen


def test_a_node_has_no_more_gpus_than_scores_can_tell_whatever_is_written_for_it() -> None:
    assert gpus.of_node({"gpu:a": 40_000_000, "gpu": 1}) == gpus_of({"a": gpus.MOST_OF_A_NODE, "": 1})
    with pytest.raises(BadInput, match="more than 4096 GPUs of a type"):
        gpus.listed("gpu:a:4097")
