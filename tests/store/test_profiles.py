"""Profiles in files and in the database."""

import sqlite3
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import delete
from sqlalchemy.exc import OperationalError

from slurm_sns.config.profiles_yaml import profiles_text, read_profiles
from slurm_sns.errors import BadInput, Unreachable
from slurm_sns.package_files import shared_path
from slurm_sns.policies.profile import Program, Provenance, Provenances, Run
from slurm_sns.store.database import open_store
from slurm_sns.store.profiles import StoredProfiles
from slurm_sns.store.schema import profiled_programs

SHIPPED = shared_path("conf/profiles/spread-n-share.yaml")

RUN = """
      - {processes: 16, scale: 1, time_s: 97.86, ways: [2, 20], ipc: [0.8, 1.0], bandwidth_gbps: [112, 112],
         provenance: {time_s: measured, ipc: assumed, bandwidth_gbps: printed}}
"""
MG = "programs:\n  mg:\n    runs:" + RUN


@pytest.fixture
def write(tmp_path):
    def write(text: str | bytes):
        path = tmp_path / "profiles.yaml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


@pytest.fixture
def engine(url):
    engine = open_store(url)
    yield engine
    engine.dispose()


def words(problem) -> str:
    text = str(problem.value)
    assert "\n" not in text
    return text


def test_the_shipped_file_is_read_and_written_without_loss(write):
    programs = read_profiles(SHIPPED, most_ways=20)

    assert read_profiles(write(profiles_text(programs))) == programs


numbers = st.floats(1e-12, 900, allow_nan=False)


@st.composite
def programs(draw):
    points = draw(st.integers(2, 5))
    run = Run(
        draw(st.integers(1, 1000)),
        1,
        draw(numbers),
        tuple(sorted(draw(st.sets(st.integers(1, 64), min_size=points, max_size=points)))),
        tuple(draw(numbers) for _ in range(points)),
        tuple(draw(st.just(0.0) | numbers) for _ in range(points)),
        Provenances(*[draw(st.sampled_from(Provenance)) for _ in range(3)]),
    )
    name = draw(
        st.text("abcXYZ0189._+-", min_size=1, max_size=8) | st.sampled_from(["true", "null", "1e5", "off", "0x1"])
    )
    source = draw(st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), max_size=20))
    return Program(name, (run,), source if source.isprintable() else "", draw(st.none() | st.integers(1, 64)))


@pytest.mark.long
@settings(max_examples=150)
@given(programs())
def test_every_program_is_read_as_it_was_written(tmp_path_factory, program):
    path = tmp_path_factory.mktemp("p") / "profiles.yaml"
    path.write_text(profiles_text([program]))

    assert read_profiles(path) == (program,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is empty; needed are programs"),
        ("programs: {mg: {runs: [", "line 1: not valid YAML for a file of profiles"),
        (MG + MG.partition("\n")[2], "line 6: not valid YAML for a file of profiles: key 'mg' is given twice"),
        (
            MG.replace("ipc: [0.8, 1.0]", "ipc: [0.8, .nan]"),
            "line 4: program 'mg': runs[0].ipc[1]: '.nan'; valid: a number",
        ),
        (MG.replace("ipc: [0.8, 1.0]", "ipc: [0.8, -.inf]"), "runs[0].ipc[1]: '-.inf'; valid: a number above 0"),
        (
            MG.replace("[2, 20]", "[20, 2]"),
            "line 4: program 'mg': runs[0].ways[1]: 2 after 20; valid: ways that increase",
        ),
        (MG.replace("time_s: 97.86", "time_s: 1e99"), "program 'mg': runs[0].time_s: 1e+99; valid: a number above 0"),
        ("a: &x [1]\nb: *x\n", "anchors and aliases are not allowed"),
        ("a: !!python/object:os.system {}\n", "tags are not allowed"),
        ("a: " + "[" * 20 + "]" * 20, "nested deeper than 8"),
        (b"\xff\xfe\x00", "is not UTF-8 text"),
    ],
)
def test_a_bad_file_is_one_line(write, text, expected):
    with pytest.raises(BadInput) as problem:
        read_profiles(write(text))
    assert expected in words(problem)
    assert "profiles.yaml" in words(problem)


def test_a_yaml_bomb_is_refused_at_once(write):
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for name, before in zip("bcdefgh", "abcdefg", strict=True):
        bomb += f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n"

    with pytest.raises(BadInput, match="anchors and aliases are not allowed"):
        read_profiles(write(bomb))


def test_a_hundred_megabytes_are_refused_unread(tmp_path):
    path = tmp_path / "huge.yaml"
    with path.open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    tracemalloc.start()
    try:
        with pytest.raises(BadInput, match="is larger than 1048576 bytes; a file of profiles is smaller"):
            read_profiles(path)
        most_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most_bytes < 10 * 1024 * 1024


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(
        BadInput, match=r"none\.yaml cannot be read: No such file or directory; name a file of profiles"
    ):
        read_profiles(tmp_path / "none.yaml")


def test_what_is_stored_is_loaded_by_name_after_a_restart(engine, url):
    programs = read_profiles(SHIPPED)
    StoredProfiles(engine).replace(reversed(programs))

    again = open_store(url)
    loaded = StoredProfiles(again).load()

    assert list(loaded) == sorted(loaded)
    assert tuple(loaded.values()) == programs
    again.dispose()


def test_an_empty_store_has_no_profiles(engine):
    assert StoredProfiles(engine).load() == {}
    StoredProfiles(engine).replace([])
    assert StoredProfiles(engine).load() == {}


def test_a_program_is_replaced_whole_and_others_stay(engine):
    stored = StoredProfiles(engine)
    programs = {program.name: program for program in read_profiles(SHIPPED)}
    stored.replace(programs.values())
    shorter = Program("bw", programs["bw"].runs[:1], "measured here")

    stored.replace([shorter])

    assert stored.load() == {**programs, "bw": shorter}


def test_a_failure_in_the_middle_leaves_the_store_as_it_was(file_url, tmp_path):
    stored = StoredProfiles(open_store(file_url))
    programs = read_profiles(SHIPPED)
    stored.replace(programs[:3])
    before = stored.load()
    connection = sqlite3.connect(tmp_path / "sns.db")
    connection.execute(
        "CREATE TRIGGER full BEFORE INSERT ON profiled_runs WHEN NEW.program = 'wc'"
        " BEGIN SELECT RAISE(ABORT, 'disk full'); END"
    )
    connection.commit()
    connection.close()

    with pytest.raises(Unreachable, match="disk full"):
        stored.replace(programs)

    assert stored.load() == before


def test_a_store_that_is_gone_is_said_to_be(engine, mocker):
    stored = StoredProfiles(engine)
    mocker.patch.object(engine, "connect", side_effect=OperationalError("select", {}, Exception("gone")))

    with pytest.raises(Unreachable, match="profiles in the store cannot be read or written"):
        stored.load()


def test_runs_of_a_program_that_is_not_there_are_no_program(engine):
    stored = StoredProfiles(engine)
    stored.replace(read_profiles(SHIPPED)[:1])
    with engine.begin() as connection:
        connection.execute(delete(profiled_programs))

    assert stored.load() == {}
