"""Traces of plain numbers are read by pandas as the reader of any text reads them, or left to it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_sns.errors import BadInput
from slurm_sns.sim.traces import files, read_trace, swf
from slurm_sns.sim.traces.columns import CsvReader, NotPlain
from slurm_sns.sim.traces.nodes_csv import read_nodes

NUMBERS = st.sampled_from(["0", "1", "2", "7", "4", "10", "-1", "+3", "1.5", "0.1", "2.0", ".5", "3."])
ODD = st.sampled_from(["1e2", "nan", "x", "", "1_0", "1234567890123456", "1.2.3", "-", " 4"]) | st.sampled_from(
    ["inf", "1e", "True", '"1"', "NA", "1;2", "0x1"]
)


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    path = tmp_path_factory.mktemp("nodes") / "nodes.csv"
    path.write_text("name,cores,mem_gb\nA,4,16\nB,4,16\nC,2,8\n")
    return read_nodes(str(path))


def outcome(read, pool, text: str, plainly: bool):
    """What reading gives: the records' columns, or the error's words."""
    source = files.TraceFile("trace", text.encode())
    with pytest.MonkeyPatch.context() as patch:
        if plainly:
            for reader in (CsvReader, swf.SwfReader):
                patch.setattr(reader, "_plain", refuse)
        try:
            records = read(source, pool)
        except BadInput as problem:
            return str(problem)
    columns = [column.tolist() for column in (records.identity, records.submit_s, records.run_s)]
    kinds = [records.kinds[kind] for kind in records.kind]
    return columns, kinds, records.dropped, records.unsorted


def refuse(*_):
    raise NotPlain


@pytest.mark.long
@settings(max_examples=300)
@given(
    st.lists(
        st.lists(NUMBERS | NUMBERS | NUMBERS | ODD, min_size=5, max_size=5) | st.lists(NUMBERS, min_size=4, max_size=6),
        max_size=6,
    ),
    st.sampled_from(["\n", "\r\n"]),
)
def test_csv_is_read_alike_by_both_readers(pool, rows, end):
    cells = [",".join([str(at), *row[1:]]) for at, row in enumerate(rows)]
    text = end.join(["job_id,submit_s,run_s,cores,mem_gb", *cells]) + end

    assert outcome(read_trace.read_jobs, pool, text, False) == outcome(read_trace.read_jobs, pool, text, True)


@pytest.mark.long
@settings(max_examples=300)
@given(
    st.lists(
        st.lists(NUMBERS, min_size=18, max_size=18) | st.sampled_from([["; x"], [""], [" "], ["1"], ["1"] * 19]),
        max_size=6,
    ),
    st.sampled_from([" ", "  ", "\t"]),
    st.none() | ODD,
)
def test_swf_is_read_alike_by_both_readers(pool, rows, blank, odd):
    if odd is not None and rows and len(rows[0]) > 3:
        rows[0][3] = odd
    lines = [blank.join([str(at), *row[1:]] if len(row) > 1 else row) for at, row in enumerate(rows)]
    text = "; header\n" + "\n".join(lines)

    assert outcome(swf.read_swf, pool, text, False) == outcome(swf.read_swf, pool, text, True)


def test_parts_of_a_file_cut_no_line(monkeypatch):
    monkeypatch.setattr(files, "PART_BYTES", 7)
    text = b"\n".join(b"%d,%d" % (at, at * at) for at in range(200))

    parts = list(files.TraceFile("t", text).parts())

    assert b"".join(parts) == text + b"\n"
    assert all(part.endswith(b"\n") for part in parts)


def test_a_file_in_many_parts_is_read_alike(pool, monkeypatch):
    text = "job_id,submit_s,run_s,cores,mem_gb\n" + "".join(f"{at},{at // 3},60,1,{at % 20}\n" for at in range(500))
    whole = outcome(read_trace.read_jobs, pool, text, False)
    monkeypatch.setattr(files, "PART_BYTES", 50)

    assert outcome(read_trace.read_jobs, pool, text, False) == whole
