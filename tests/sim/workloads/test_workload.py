"""The generated NetBatch pools have the properties that the paper prints."""

import gzip

import numpy as np
import pytest

from slurm_sns.errors import BadInput
from slurm_sns.sim.traces.read_trace import read_records
from slurm_sns.sim.workloads.netbatch import generate
from slurm_sns.sim.workloads.netbatch_pools import POOLS
from slurm_sns.sim.workloads.write import swf_lines, write_nodes, write_pieces
from sns_reproductions.netbatch_sweeps import records_of

#: Thesis, table 2.1: jobs, users, machines, cores.
TABLE = {
    "A": (13_368_191, 1_104, 1_633, 16_588),
    "B": (13_085_800, 1_615, 3_115, 33_300),
    "C": (13_313_793, 1_146, 1_499, 18_816),
    "D": (9_054_066, 862, 2_692, 40_372),
}
BUCKET = 1000


def columns(name, *, scale=1.0, days=1.0, seed=1):
    parts = list(generate(POOLS[name], scale=scale, seed=seed, days=days))
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def bucket_means(column):
    return column[: len(column) // BUCKET * BUCKET].reshape(-1, BUCKET).mean(axis=1)


@pytest.mark.parametrize("name", POOLS)
def test_a_pool_has_the_published_size(name):
    pool = POOLS[name]
    nodes = pool.nodes(1.0)
    assert (pool.jobs_at(1.0, 30), pool.users, len(nodes.names), nodes.total.cores) == TABLE[name]


@pytest.mark.parametrize("scale", [0.001, 0.05, 0.3])
@pytest.mark.parametrize("name", POOLS)
def test_a_scaled_pool_keeps_the_proportions_of_jobs_machines_and_cores(name, scale):
    jobs, _, machines, cores = TABLE[name]
    nodes = POOLS[name].nodes(scale)
    assert POOLS[name].jobs_at(scale, 30) == round(jobs * scale)
    assert len(nodes.names) == round(machines * scale)
    assert nodes.total.cores == pytest.approx(cores * scale, abs=4)


@pytest.mark.parametrize("name", POOLS)
def test_jobs_are_mostly_serial_and_small_but_some_need_16_and_32_gb_and_more(name):
    submit_s, run_s, cores, memory_gb, user = columns(name)
    assert len(submit_s) == POOLS[name].jobs_at(1.0, 1.0)
    assert (cores == 1).mean() > 0.85
    assert (memory_gb <= 8).mean() > 0.75
    assert all((memory_gb == size).any() for size in (16, 32, 48))
    assert (np.diff(submit_s) >= 0).all()
    assert run_s.min() >= 1
    assert user.min() >= 1
    assert user.max() <= TABLE[name][1]


@pytest.mark.long
def test_only_pool_a_has_buckets_above_two_cores_rarely_and_it_has_several_above_20_gb():
    # The paper speaks of a month; bursts are too rare for a single day to have each kind.
    seen = {name: columns(name, days=10.0) for name in POOLS}
    cores = {name: bucket_means(of[2]) for name, of in seen.items()}
    assert cores["A"].max() > 2
    assert (cores["A"] > 2).mean() < 0.01
    assert max(cores[name].max() for name in "BCD") < 2
    assert (bucket_means(seen["A"][3]) > 20).sum() > 1


def test_pool_b_has_the_largest_share_of_4_gb_jobs():
    share = {name: (columns(name)[3] == 4).mean() for name in POOLS}
    assert max(share, key=share.get) == "B"


@pytest.mark.parametrize("name", POOLS)
def test_the_scarcer_resource_is_asked_for_as_much_as_the_pool_says(name):
    submit_s, run_s, cores, memory_gb, _ = columns(name, scale=0.3, days=10)
    capacity = POOLS[name].nodes(0.3).total
    span_s = submit_s[-1] - submit_s[0]
    by_cores = (cores * run_s).sum() / span_s / capacity.cores
    by_memory = (memory_gb * run_s).sum() / span_s / (capacity.memory_mb / 1024)
    assert max(by_cores, by_memory) == pytest.approx(POOLS[name].binding_load, rel=0.1)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path):
    def written(file, seed):
        pieces = swf_lines(generate(POOLS["A"], scale=0.01, seed=seed, days=2), ["a note"])
        write_pieces(tmp_path / file, pieces)
        return (tmp_path / file).read_bytes()

    assert written("one.swf.gz", 7) == written("two.swf.gz", 7)
    assert written("one.swf.gz", 7) != written("two.swf.gz", 8)
    assert gzip.decompress(written("one.swf.gz", 7)) == written("one.swf", 7)


def test_the_file_is_read_back_as_what_was_generated(tmp_path):
    pool = POOLS["B"].nodes(0.01)
    made = list(generate(POOLS["B"], scale=0.01, seed=3, days=1))
    write_pieces(tmp_path / "b.swf.gz", swf_lines(made, []))
    write_nodes(tmp_path / "b.csv", pool)
    read = read_records(str(tmp_path / "b.swf.gz"), pool)
    direct = records_of(made, pool, 1.0)
    assert read.submit_s.tolist() == direct.submit_s.tolist()
    assert read.run_s.tolist() == direct.run_s.tolist()
    assert [read.kinds[kind] for kind in read.kind] == [direct.kinds[kind] for kind in direct.kind]
    assert read.dropped == {}


def test_a_scale_out_of_bounds_is_refused():
    with pytest.raises(BadInput, match=r"--scale is 0.0; valid: 0.001 to 10"):
        POOLS["A"].nodes(0.0)
