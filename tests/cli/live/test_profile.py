"""`sns profile` as SlurmUser runs it, on the store, and as anybody else does, who asks the running scheduler."""

import getpass
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
import yaml
from json_output import read_of

from slurm_sns.cli import main
from slurm_sns.config.profiles_yaml import read_profiles
from slurm_sns.package_files import shared_path
from slurm_sns.policies.base import Request
from slurm_sns.policies.spread_n_share.evidence import Estimate, Evidence, KnownEvidence
from slurm_sns.policies.spread_n_share.exploration import ExplorationStep
from slurm_sns.scheduler.answers.profiles import KnownPrograms, Summaries, profile
from slurm_sns.scheduler.learning.values import FailedRuns, LearningChanges, Learnt, RunToLearn
from slurm_sns.sockets.unix_socket import ControlSocket
from slurm_sns.store.database import open_store
from slurm_sns.store.learning import StoredEvidence
from slurm_sns.store.profiles import StoredProfiles
from slurm_sns.wire.values import RunId

SHIPPED = str(shared_path("conf/profiles/spread-n-share.yaml"))


@pytest.fixture
def config(tmp_path):
    """A configuration whose SlurmUser we are, with nodes of the paper's kind."""

    def write(ways=20, user=None):
        path = tmp_path / "sns.yaml"
        path.write_text(
            f"partitions: [batch]\n"
            f"nodes: [{{names: 'n[1-8]', partitions: [batch], cores: 28, memory_mb: 128000, llc_ways: {ways}}}]\n"
            f"slurm: {{user: {user or getpass.getuser()}}}\n"
            f"paths: {{state_dir: {tmp_path / 'state'}, run_dir: {tmp_path / 'run'}}}\n"
        )
        return str(path)

    return write


@pytest.fixture
def sns(capsys, monkeypatch):
    """Run `sns profile ...`: exit status, what it printed, its errors."""

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["sns", "profile", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        if "--json" in arguments and printed.out:
            read_of(("profile", *arguments), printed.out)
        return ended.value.code, printed.out, printed.err

    return run


def test_a_file_is_imported_listed_shown_and_exported_again(sns, config, tmp_path):
    at = ("--config", config())
    assert sns("list", *at, "--json")[:2] == (0, "[]\n")
    assert sns("import", SHIPPED, *at) == (0, f"{SHIPPED}: 12 programs added, 0 replaced\n", "")

    listed = json.loads(sns("list", *at, "--json")[1])
    assert [each["program"] for each in listed] == sorted(each["program"] for each in listed)
    mg = next(each for each in listed if each["program"] == "mg")
    assert mg["classes"] == [{"processes": 16, "class": "scaling", "ideal_scale": 8, "bottleneck": "bandwidth"}]

    status, text, _ = sns("export", *at)
    out = tmp_path / "out.yaml"
    out.write_text(text)
    assert status == 0
    assert read_profiles(out) == read_profiles(shared_path("conf/profiles/spread-n-share.yaml"))
    assert sns("export", "mg", "cg", "--out", out, *at)[0] == 0
    assert [program.name for program in read_profiles(out)] == ["cg", "mg"]
    assert sns("import", out, *at)[1] == f"{out}: 0 programs added, 2 replaced\n"
    assert json.loads(sns("import", out, *at, "--json")[1]) == {"added": [], "replaced": ["cg", "mg"]}


def test_what_would_be_asked_for_depends_on_alpha(sns):
    def ways(alpha):
        shown = json.loads(sns("show", "cg", "--alpha", alpha, "--file", SHIPPED, "--json")[1])
        return [run["demand"]["ways"] for run in shown["runs"]]

    assert ways(0.9) == [10, 5, 3, 2]
    assert ways(0.6) == [3, 2, 2, 2]


def test_words_for_people(sns):
    status, text, _ = sns("show", "mg", "--file", SHIPPED)

    assert status == 0
    assert "16 processes: scaling, best at scale 8, short of bandwidth" in text
    assert "97.86" in text
    assert "112.00" in text
    heading, first = (re.split(r"\s{2,}", line.strip()) for line in text.splitlines()[2:4])
    assert dict(zip(heading, first, strict=True))["time is"] == "measured"
    assert "scaling" in sns("list", "--file", SHIPPED)[1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("scale: 2", "scale: 1"), "program 'bfs': runs[1]: a second run of 16 processes at scale 1; valid: one run"),
        (("ways: [2, 3", "ways: [3, 2"), "ways[1]: 2 after 3; valid: ways that increase strictly"),
        (("time_s: 452.94", "time_s: .nan"), "program 'bfs': runs[0].time_s: '.nan'; valid: a number above 0"),
    ],
)
def test_a_bad_file_changes_nothing_in_the_store(sns, config, tmp_path, change, words):
    at = ("--config", config())
    sns("import", SHIPPED, *at)
    stored = sns("export", *at)[1]
    programs = yaml.safe_load(shared_path("conf/profiles/spread-n-share.yaml").read_text())["programs"]
    text = yaml.safe_dump({"bfs": programs["bfs"]}, default_flow_style=None, sort_keys=False)
    good, broken = text.replace("bfs:", "aa:"), text.replace(*change, 1)
    bad = tmp_path / "bad.yaml"
    bad.write_text("programs:\n" + "".join(f"  {line}\n" for line in (good + broken).splitlines()))

    status, out, error = sns("import", bad, *at)

    assert (status, out) == (2, "")
    assert error.startswith(f"sns: error: {bad}, line ")
    assert words in error
    assert error.count("\n") == 1
    assert sns("export", *at)[1] == stored


def test_more_ways_than_any_node_has_are_refused(sns, config):
    status, _, error = sns("import", SHIPPED, "--config", config(ways=11))

    assert status == 2
    assert "program 'bfs': runs[0].ways[7]: 20; valid: at most 11, the most ways that any node has" in error
    assert sns("import", SHIPPED, "--config", config(ways=0))[0] == 0  # ways are not managed: nothing to hold it to


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("show", "nope", "--file", SHIPPED), "program 'nope' has no profile; there are: bfs, bw, cg"),
        (("show", "mg", "--alpha", "0", "--file", SHIPPED), "--alpha is 0.0; valid: above 0, at most 1"),
        (("show", "mg", "--alpha", "nan", "--file", SHIPPED), "--alpha is nan"),
        (
            ("plot", "mg", "--out", "mg.pdf", "--file", SHIPPED),
            "--out is mg.pdf; valid: a name that ends in .png or",
        ),
        (("list", "--file", "/nonexistent.yaml"), "/nonexistent.yaml cannot be read: No such file"),
        (("list", "--config", "/nonexistent.yaml"), "/nonexistent.yaml cannot be read"),
    ],
)
def test_bad_use_is_one_line_and_exit_2(sns, arguments, words):
    status, out, error = sns(*arguments)

    assert (status, out) == (2, "")
    assert words in error
    assert error.count("\n") == 1


def test_nothing_to_export_is_said(sns, config):
    assert sns("export", "--config", config())[::2] == (
        2,
        "sns: error: the store holds no profile; import a file first\n",
    )


@pytest.mark.long
def test_curves_are_drawn_and_the_same_bytes_again(sns, tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("bw.png", "bw.svg"):
        out = tmp_path / name
        assert sns("plot", "bw", "--out", out, "--file", SHIPPED)[0] == 0
        first = out.read_bytes()
        sns("plot", "bw", "--out", out, "--file", SHIPPED)
        assert out.read_bytes() == first
    assert (tmp_path / "bw.png").read_bytes().startswith(b"\x89PNG")
    text = "".join(ET.parse(tmp_path / "bw.svg").getroot().itertext())
    assert "28 processes, scale 4" in text
    assert "w = 4, b = 105" in text
    assert sns("plot", "bw", "--alpha", "0.5", "--out", tmp_path / "low.svg", "--file", SHIPPED)[0] == 0
    assert "w = 2, b = 112" in (tmp_path / "low.svg").read_text()


@pytest.mark.long
def test_a_figure_that_cannot_be_written_is_one_line(sns, tmp_path):
    status, _, error = sns("plot", "mg", "--out", tmp_path / "none" / "mg.png", "--file", SHIPPED)

    assert status == 1
    assert error == f"sns: error: {tmp_path}/none/mg.png cannot be written: No such file or directory\n"


# --- as another user than SlurmUser

PROGRAMS = {each.name: each for each in read_profiles(shared_path("conf/profiles/spread-n-share.yaml"))}
OTHER_USER = "nobody"


@pytest.fixture
def scheduler(tmp_path):
    """Starts a scheduler that has loaded these programs."""

    def answer(request, _user):
        name = request.get("program")
        known = KnownPrograms(programs)
        return Summaries((1.0,)).of(known) if name is None else profile(known, name)

    programs = dict(PROGRAMS)
    (tmp_path / "run").mkdir()
    with ControlSocket(tmp_path / "run" / "scheduler.sock", answer):
        yield programs


@pytest.fixture
def asked(sns, config, scheduler):  # noqa: ARG001 - it answers
    """`sns profile ...` as a user who has to ask the scheduler."""
    path = config(user=OTHER_USER)
    return lambda *words: sns(*words, "--config", path)


@pytest.mark.parametrize("words", [("list",), ("show", "mg"), ("show", "gan", "--alpha", "0.6")])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_the_answer_of_the_scheduler_is_shown_like_a_file(sns, asked, words, form):
    status, text, error = asked(*words, *form)
    assert (status, error) == (0, "")
    assert text == sns(*words, *form, "--file", SHIPPED)[1]


def test_slurmuser_reads_the_store_whether_a_scheduler_runs_or_not(sns, config, scheduler):
    scheduler.clear()
    at = ("--config", config())
    sns("import", SHIPPED, *at)
    assert sns("show", "mg", "--json", *at)[1] == sns("show", "mg", "--json", "--file", SHIPPED)[1]


@pytest.mark.long
def test_a_user_exports_programs_by_name_or_all(asked, tmp_path):
    out = tmp_path / "out.yaml"
    assert asked("export", "mg", "cg", "--out", out)[0] == 0
    assert read_profiles(out) == (PROGRAMS["cg"], PROGRAMS["mg"])
    out.write_text(asked("export")[1])
    assert read_profiles(out) == tuple(PROGRAMS.values())


def test_a_user_is_told_what_to_do_about_a_program_without_profile(asked, sns, config):
    told = "sns: error: program 'nope' has no profile; sns profile list shows the programs that have one\n"
    assert asked("show", "nope") == (2, "", told)
    assert sns("show", "nope", "--config", config()) == (2, "", told), "and so is SlurmUser"


@pytest.mark.parametrize("name", ["a b", "\x1b[31m", "\udcff", "x" * 65, "x" * 5000])
def test_what_cannot_name_a_program_is_refused(asked, name):
    status, out, error = asked("show", name)
    assert (status, out) == (2, "")
    assert "valid: 1 to 64 letters, digits and . _ + -" in error
    assert error.removesuffix("\n").isprintable()


def test_nobody_but_slurmuser_imports(asked):
    status, out, error = asked("import", SHIPPED)
    assert (status, out) == (2, "")
    assert error.startswith("sns: error: this runs as nobody, not as user id ")


def test_without_a_scheduler_the_admin_is_told_who_can_do_without(sns, config, mocker):
    hint = "; nobody reads the store without it: sudo -u nobody\n"
    for user, is_told in ((0, True), (4711, False)):
        mocker.patch("os.geteuid", return_value=user)
        status, out, error = sns("list", "--config", config(user=OTHER_USER))
        assert (status, out) == (1, "")
        assert error.startswith("sns: error: no scheduler answers at ")
        assert error.endswith(hint) == is_told


@pytest.mark.long
def test_a_user_curves_are_drawn_from_the_answer(asked, sns, tmp_path):
    pytest.importorskip("matplotlib")
    for name, source in (("asked.svg", asked), ("file.svg", lambda *words: sns(*words, "--file", SHIPPED))):
        assert source("plot", "mg", "--out", tmp_path / name)[0] == 0
    assert (tmp_path / "asked.svg").read_bytes() == (tmp_path / "file.svg").read_bytes()


def test_a_source_is_printed_without_control_characters(asked, scheduler):
    scheduler["mg"] = replace(PROGRAMS["mg"], source="by \x1b[31mhand [bold]")
    assert asked("show", "mg")[1].startswith("mg: by ?[31mhand [bold]\n")


def test_what_is_learnt_is_listed_and_shown_with_how_sure_it_is_and_nothing_imported_is_lost(sns, config, tmp_path):
    at = ("--config", config())
    assert sns("import", SHIPPED, *at)[0] == 0
    ipc, gbps = {2: Estimate(1, 0.5), 20: Estimate(2, 1.0)}, {2: Estimate(1, 9.0), 20: Estimate(2, 3.0)}
    evidence = {1: Evidence(Estimate(3, 101.5, 2.0), ipc, gbps)}
    measured = Learnt(KnownEvidence("ep", 16, evidence, {}, 2, is_explored=True), users=(2001,))
    unknown = Learnt(KnownEvidence("new", 8), failures={1: FailedRuns(2, 5.0)})
    exploring = RunToLearn(
        RunId(7), ("new", 8), 1, ("n1",), Request(8), (), step=ExplorationStep(1, samples=True), user_id=2001
    )
    stored = StoredEvidence(open_store(f"sqlite:///{tmp_path / 'state' / 'sns.db'}"))
    stored.save(LearningChanges({("ep", 16): measured, ("new", 8): unknown}, runs=(exploring,)))

    status, text, _ = sns("show", "ep", *at)
    assert status == 0
    assert "ep, 16 processes: jobs run by what is measured here" in text
    assert "it is measured again; the profile of before serves meanwhile" in text
    assert "the last 2 runs differ from the profile" in text
    assert "101.5 +- 1 (3)" in text
    assert "0.5 (1)" in text
    listed = " ".join(sns("list", *at)[1].split())  # a narrow terminal breaks the last column
    assert "measured, is measured again" in listed
    assert "explores scale 1 now" in listed
    status, text, _ = sns("show", "new", *at)
    assert (status, text.splitlines()) == (
        0,
        [
            "new, 8 processes: no profile yet",
            "  job 7 explores scale 1 now: its ways are changed while it runs",
            "  the last 2 exploring runs at scale 1 gave no measurement",
        ],
    )
    shown = json.loads(sns("show", "ep", *at, "--json")[1])
    assert (shown["runs"][0]["time_s"], shown["learnt"]["16"]["strange_runs"]) == (101.5, 2)
    assert len(yaml.safe_load(sns("export", *at)[1])["programs"]) == 12
    status, _, error = sns("export", "new", *at)
    assert (status, error.strip()) == (
        2,
        "sns: error: program 'new' has no profile yet: it is being explored; sns profile show new",
    )
    assert StoredProfiles(open_store(f"sqlite:///{tmp_path / 'state' / 'sns.db'}")).load()["ep"].runs[0].time_s != 101.5
