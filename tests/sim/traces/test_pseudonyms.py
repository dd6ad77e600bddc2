"""A dump that is given away: the same trace, and none of the names."""

import sys

import numpy as np
import pytest

from slurm_sns.cli import main
from slurm_sns.errors import BadInput
from slurm_sns.sim.traces.cluster_nodes import read_cluster, site_nodes_in
from slurm_sns.sim.traces.files import TraceFile
from slurm_sns.sim.traces.pseudonyms import Pseudonyms
from slurm_sns.sim.traces.read_trace import read_records

SECRETS = "alice bob physics chem secretpart bigpart node1 node2 thesis matlab visit hello 4242 maint home garbage"
CONF = """\
NodeName=node[1-2] CPUs=8 CoresPerSocket=4 Sockets=1 ThreadsPerCore=2 RealMemory=16000 Feature=ib Weight=3
NodeName=big1 CPUs=8 RealMemory=64000 Gres=gpu:1
PartitionName=secretpart Nodes=node[1-2]
PartitionName=bigpart Nodes=ALL
"""
#: `~` stands for a blank, `-` for nothing.
DUMP = """\
JobID JobIDRaw User UID Account Partition State Submit Start ElapsedRaw Timelimit NNodes AllocCPUS ReqMem \
ReqTRES AllocTRES NodeList Constraints Reservation JobName WorkDir Comment SubmitLine
1 1 alice 4242 physics secretpart COMPLETED 2026-11-27T20:00:00 2026-11-27T20:00:00 60 1:00 2 8 8G \
cpu=8,mem=8G,license/matlab=1 cpu=8,mem=8G,node=2 node[1-2] ib maint thesis /home/alice hello sbatch
2_1 3 bob 4242 chem bigpart CANCELLED~by~4242 2026-11-27T20:00:09 2026-11-27T20:00:00 5 UNLIMITED 1 2 4Gn \
- - big1 - - visit /home/bob - srun
4 4 bob 4242 chem gone COMPLETED 2026-11-27T20:00:09 Unknown 5 UNLIMITED 1 2 4Gn - - big1 - - visit - - -
5 5 bob 4242 chem bigpart alice 2026-11-27T20:00:09 bob 5 UNLIMITED 1 2 4Gn - - node[1 {;} - visit - - -
garbage
alice alice
"""


def cell(word: str) -> str:
    return "" if word == "-" else word.replace("~", " ")


TEXT = "".join("\t".join(map(cell, line.split())) + "\n" for line in DUMP.splitlines())


@pytest.fixture
def given_away(write, tmp_path, monkeypatch, capsys):
    """The directory that `sns pseudonyms` has written, what it said, and the files that it was made from."""
    dump, conf, out = write("dump.psv", TEXT), write("slurm.conf", CONF), tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["sns", "pseudonyms", dump, "--nodes", conf, "--out", str(out)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    return out, capsys.readouterr().out, (dump, conf)


def test_no_name_is_left_and_what_was_left_out_is_told(given_away):
    out, said, _ = given_away
    text = (out / "accounting.psv").read_text() + (out / "nodes.txt").read_text()
    assert [secret for secret in SECRETS.split() if secret in text] == []
    assert "4 lines, 2 left out; 2 users, 2 accounts, 3 partitions" in said
    assert "n[1-2]\tib" in text, "nodes keep their order, and features their names"


def test_it_is_the_same_trace(given_away):
    out, _, (dump, conf) = given_away
    arrays, partitions = read_cluster(conf)
    renamed, renamed_partitions = read_cluster(str(out / "nodes.txt"))
    true = read_records(dump, arrays, partitions=partitions)
    made = read_records(str(out / "accounting.psv"), renamed, partitions=renamed_partitions)
    for column in ("identity", "submit", "run", "kind", "limit"):
        assert np.array_equal(getattr(true, column), getattr(made, column)), column
    assert (true.kinds, len(true.projects)) == (made.kinds, len(made.projects))
    assert [arrays.allows(each) is None or arrays.allows(each).tolist() for each in true.allowed_nodes] == [
        renamed.allows(each) is None or renamed.allows(each).tolist() for each in made.allowed_nodes
    ]
    assert (arrays.capacity == renamed.capacity).all()
    assert (arrays.regions.weight == renamed.regions.weight).all()
    before, after = (site_nodes_in(TraceFile.of(str(each))) for each in (conf, out / "nodes.txt"))
    assert [(node.cpus_per_core, node.has_gres, node.gpus) for node in before] == [
        (node.cpus_per_core, node.has_gres, node.gpus) for node in after
    ]


def test_what_it_was_made_from_is_never_overwritten(write, tmp_path, monkeypatch, capsys):
    dump = write("accounting.psv", TEXT)
    monkeypatch.setattr(sys, "argv", ["sns", "pseudonyms", dump, "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, capsys.readouterr().err.count("would be overwritten")) == (2, 1)
    assert (tmp_path / "accounting.psv").read_text() == TEXT


def test_times_with_a_blank_stay():
    text = b"  \nJobID|Submit|User\n1|2026-11-27 20:00:00|alice smith\n"
    assert list(Pseudonyms().dump(TraceFile("x", text)))[-1] == "1|2026-11-27 20:00:00|u1\n"


def test_what_is_no_dump_is_refused():
    with pytest.raises(BadInput, match="no dump of sacct"):
        list(Pseudonyms().dump(TraceFile("x", b"; SWF\n1 2 3\n")))
