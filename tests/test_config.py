"""sns.yaml: what is read, and that every mistake is one line that says what would be valid."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_sns.config import grammar
from slurm_sns.config.configuration import Config, NodeEntry, load
from slurm_sns.config.settings import Section, SnsYaml
from slurm_sns.errors import BadInput
from slurm_sns.package_files import shared_path
from slurm_sns.policies.matching.parameters import MatchingParameters
from slurm_sns.policies.placement.heuristics import HEURISTICS
from slurm_sns.policies.registry import live_policies
from slurm_sns.submit.table import NodeShape

SMALLEST = """\
partitions: [main]
nodes:
  - {names: "c[1-4]", partitions: [main], cores: 28, memory_mb: 128000}
"""
TWO_PARTITIONS = """\
partitions: [main, old]
nodes:
  - {names: "c[1-4]", partitions: [main], cores: 28, memory_mb: 128000}
  - {names: "d[1-4]", partitions: [old], cores: 28, memory_mb: 128000}
"""
AGENTS = "agents: {controller: head}\n"
MINI_CLUSTER = Path(__file__).parents[1] / "containers" / "sns.yaml"


@pytest.fixture
def write(tmp_path: Path):
    def write(text: str | bytes) -> Path:
        path = tmp_path / "sns.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def refusal(path: Path) -> str:
    with pytest.raises(BadInput) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


class TestLoad:
    def test_partitions_and_nodes_are_enough(self, write) -> None:
        config = load(write(SMALLEST))
        assert config.mode == "observe"
        assert config.nodes[0].node_names == ("c1", "c2", "c3", "c4")
        assert config.parameters(MatchingParameters) == MatchingParameters()

    def test_an_empty_section_keeps_its_defaults(self, write) -> None:
        assert load(write(SMALLEST + "matching: {}\n")) == load(write(SMALLEST))

    def test_a_whole_number_serves_where_a_number_with_a_fraction_may_stand(self, write) -> None:
        assert load(write(SMALLEST + "scheduler: {interval_s: 2}\n")).scheduler.interval_s == 2.0

    def test_it_cannot_be_changed(self, write) -> None:
        config = load(write(SMALLEST))
        with pytest.raises(ValueError, match="frozen"):
            config.mode = "enforce"  # type: ignore[misc]

    def test_words_that_older_yaml_reads_as_booleans_are_text(self, write) -> None:
        text = SMALLEST.replace("main", "on")
        assert load(write(text)).partitions == ("on",)

    def test_the_mini_cluster_is_configured(self) -> None:
        config = load(MINI_CLUSTER)
        assert config.mode == "enforce"
        assert config.matching.shares == {"physics": 1.0, "chemistry": 1.0}
        assert config.filter_table().partitions == {
            "main": (NodeShape(28, 28, 128_000, 4),),
            "small": (NodeShape(4, 4, 32_768, 2),),
        }

    def test_the_mini_cluster_is_the_one_of_its_slurm_conf(self) -> None:
        slurm_conf = (MINI_CLUSTER.parent / "etc" / "slurm.conf").read_text()
        config = load(MINI_CLUSTER)
        lines = re.findall(r"^NodeName=(\S+) (.*)$", slurm_conf, re.MULTILINE)
        for nodes in config.nodes:
            for node in nodes.node_names:
                (line,) = [words for names, words in lines if node in grammar.node_names(names)]
                assert f"CPUs={nodes.cores * nodes.threads_per_core} " in line
                assert f"RealMemory={nodes.memory_mb}" in line
                assert all(f"{name}:{count}" in line for name, count in nodes.gres.items())
        assert f"DefMemPerCPU={config.slurm.memory_per_cpu_mb}\n" in slurm_conf
        assert re.search(rf"^PartitionName={config.default_partition} .*Default=YES", slurm_conf, re.MULTILINE)

    def test_the_filter_counts_nodes_of_the_same_shape_together(self, write) -> None:
        text = SMALLEST + '  - {names: "d[1-2]", partitions: [main], cores: 28, memory_mb: 128000}\n'
        assert load(write(text)).filter_table().partitions == {"main": (NodeShape(28, 28, 128_000, 6),)}

    def test_the_filter_knows_cpus_from_cores(self, write) -> None:
        text = SMALLEST.replace("cores: 28", "cores: 28, threads_per_core: 2")
        assert load(write(text)).filter_table().partitions == {"main": (NodeShape(28, 56, 128_000, 4),)}

    def test_places_follow_from_the_directories(self, write) -> None:
        config = load(write(SMALLEST + "paths: {state_dir: /srv/sns, run_dir: /run/place}\n"))
        assert config.paths.heartbeat == Path("/run/place/heartbeat")
        assert config.paths.socket == Path("/run/place/scheduler.sock")
        assert config.paths.kill_switch == Path("/srv/sns/disabled")
        assert config.database_url == "sqlite:////srv/sns/sns.db"

    def test_a_database_url_of_the_site_is_taken_as_it_is(self, write) -> None:
        config = load(write(SMALLEST + "store: {url: 'mysql+pymysql://sns:secret@db/sns'}\n"))
        assert config.database_url == "mysql+pymysql://sns:secret@db/sns"
        assert "secret" not in repr(config)

    def test_shares_may_come_from_slurm(self, write) -> None:
        assert load(write(SMALLEST + "matching: {shares: slurm}\n")).matching.shares == "slurm"

    def test_a_partition_may_share_its_cores(self, write) -> None:
        config = load(write(TWO_PARTITIONS + AGENTS + "sharing: {partitions: [old], signal: none}\n"))
        assert config.sharing.partitions == ("old",)
        assert config.sharing.most_to_a_core == 2
        assert config.sharing.signal == "none"

    def test_every_heuristic_may_compete(self, write) -> None:
        config = load(write(SMALLEST + f"matching: {{portfolio: [{', '.join(HEURISTICS)}]}}\n"))
        assert config.matching.portfolio == tuple(HEURISTICS)


#: What is added to (or, with `replace`, put in place of) the smallest configuration -> what the message must hold.
MISTAKES = {
    "unknown setting": ("mod: enforce\n", "line 4: mod is unknown; did you mean mode? valid: mode, policy, partitions"),
    "unknown setting in a section": (
        "scheduler: {intervall_s: 2}\n",
        "scheduler.intervall_s is unknown; did you mean interval_s? valid: interval_s, heartbeat_timeout_s",
    ),
    "unknown setting unlike any other": ("zzz: 1\n", "zzz is unknown; valid: mode, policy"),
    "text for a number": (
        "scheduler: {interval_s: soon}\n",
        'interval_s: "soon" is not valid; valid: a number from 0.1',
    ),
    "truth for a number": ("store: {keep_days: true}\n", "keep_days: true is not valid; valid: a whole number from 1"),
    "fraction for a whole number": ("store: {keep_days: 1.5}\n", "store.keep_days: 1.5 is not valid"),
    "number in quotes": ("store: {keep_days: '30'}\n", 'store.keep_days: "30" is not valid'),
    "number with a leading zero": ("store: {keep_days: 030}\n", 'store.keep_days: "030" is not valid'),
    "too small": (
        "scheduler: {interval_s: 0}\n",
        "scheduler.interval_s: 0 is not valid; valid: a number from 0.1 to 3600",
    ),
    "too large": ("matching: {queue_depth: 9000000}\n", "queue_depth: 9000000 is not valid; valid: a whole number"),
    "infinite": ("scheduler: {interval_s: .inf}\n", 'scheduler.interval_s: ".inf" is not valid'),
    "beyond any float": ("scheduler: {interval_s: 1e99}\n", "scheduler.interval_s: 1e+99 is not valid"),
    "unknown mode": ("mode: enforced\n", 'mode: "enforced" is not valid; valid: one of observe, advise, enforce'),
    "unknown policy": ("policy: min-jobs\n", 'policy: "min-jobs" is not valid; valid: one of max-jobs'),
    "policy of simulations": (
        "policy: easy\n",
        'policy: "easy" is not valid; valid: one of max-jobs, ce, cs, sns, combined (easy is for sns simulate only)',
    ),
    "setting of a policy of simulations": ("matching: {placement: ce}\n", "matching.placement is unknown; valid: "),
    "section of a policy of simulations": ("easy: {extra_nodes_only: true}\n", "easy is unknown; valid: mode, policy"),
    "unknown heuristic": (
        "matching: {portfolio: [mix-fit, worst-fit]}\n",
        'matching.portfolio[1]: "worst-fit" is not valid; valid: one of first-fit, best-fit-cores',
    ),
    "unknown default heuristic": ("matching: {default_heuristic: best}\n", "matching.default_heuristic"),
    "heuristic twice": ("matching: {portfolio: [mix-fit, mix-fit]}\n", "'mix-fit' is given 2 times; valid: each once"),
    "a rule for ties that remembers": (
        "matching: {ties: record}\n",
        'matching.ties: "record" is not valid; valid: one of list, own',
    ),
    "no order of alternatives": (
        "spread_n_share: {alternatives_order: fast}\n",
        'alternatives_order: "fast" is not valid; valid: one of paper, adaptive',
    ),
    "no heuristic": ("matching: {portfolio: []}\n", "matching.portfolio: [] is not valid; valid: a list, each one of"),
    "one name where a list is due": (
        "matching: {portfolio: mix-fit}\n",
        'portfolio: "mix-fit" is not valid; valid: a list',
    ),
    "section that is a list": ("paths: [a]\n", "paths: ["),
    "section that is nothing": ("paths:\n", "paths: null is not valid; valid: settings named state_dir"),
    "share of nothing": ("matching: {shares: {physics: 0}}\n", "matching.shares: "),
    "share that is text": ("matching: {shares: {physics: much}}\n", "or accounts with a share above 0"),
    "shares from elsewhere": ("matching: {shares: ldap}\n", 'matching.shares: "ldap" is not valid; valid: slurm, or'),
    "relative path": ("paths: {state_dir: sns}\n", 'paths.state_dir: "sns" is not valid; valid: an absolute path'),
    "path that climbs": ("paths: {run_dir: /run/../etc}\n", "paths.run_dir"),
    "path with a blank": ("paths: {sns_command: /bin/sh -c}\n", "paths.sns_command"),
    "path that is a number": ("paths: {state_dir: 7}\n", "paths.state_dir: 7 is not valid"),
    "path with a unit specifier": ("paths: {run_dir: /run/%n}\n", "paths.run_dir"),
    "option with a line break": (
        'slurm: {scheduler_parameters: ["defer\\nPrologSlurmctld=/tmp/x"]}\n',
        "line 4: not valid YAML for a configuration: a text holds a line break or a control character",
    ),
    "option with a comma": ("slurm: {gres_types: ['gpu,shard']}\n", "slurm.gres_types[0]"),
    "option with a comment": ("slurm: {priority_flags: ['A#B']}\n", "slurm.priority_flags[0]"),
    "option with a quote": ("""slurm: {job_submit_plugins: ['x"y']}\n""", "slurm.job_submit_plugins[0]"),
    "gate shorter than two first leases": (
        "scheduler: {gate_lease_s: 179, heartbeat_timeout_s: 45}\n",
        "scheduler.gate_lease_s: 179 is too short; valid: at least 180",
    ),
    "plugin with arguments": ("slurm: {spank_plugin: sns.so a=b}\n", "slurm.spank_plugin"),
    "user that is root's shell": ("slurm: {user: 'root;id'}\n", "slurm.user"),
    "database of another kind": ("store: {url: 'oracle://x'}\n", "store.url: is not valid; valid: a database URL"),
    "heartbeat within the interval": (
        "scheduler: {interval_s: 20, heartbeat_timeout_s: 30}\n",
        "scheduler.heartbeat_timeout_s: 30 is too short; valid: twice interval_s (20) or more",
    ),
    "back-off that shrinks": ("scheduler: {backoff_s: 60, backoff_max_s: 30}\n", "backoff_max_s: 30 is too short"),
    "setting twice": (
        "mode: observe\nmode: enforce\n",
        "line 5: not valid YAML for a configuration: key 'mode' is given",
    ),
    "setting twice in a section": ("store: {keep_days: 1, keep_days: 2}\n", "key 'keep_days' is given twice"),
    "tab": ("store:\n\tkeep_days: 3\n", "line 5: not valid YAML"),
    "unclosed bracket": ("matching: {portfolio: [mix-fit\n", "not valid YAML"),
    "alias": ("store: &a {}\npaths: *a\n", "line 4: not valid YAML for a configuration: anchors and aliases are not"),
    "billion laughs": ("a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "anchors and aliases are not allowed"),
    "merge": ("store: {<<: {keep_days: 3}}\n", "store.<< is unknown; valid: url, keep_days"),
    "python object": ("store: !!python/object/apply:os.system [id]\n", "tags are not allowed"),
    "tag": ("mode: !!str observe\n", "tags are not allowed"),
    "deep nesting": (f"store: {'[' * 5000}\n", "nested deeper than 8"),
    "key that is a number": ("matching: {shares: {1: 2}}\n", "a key is not text; quote it if it is meant"),
    "key that is a list": ("? [a]\n: 1\n", "a key is not text"),
    "second document": ("---\nmode: observe\n", "not valid YAML"),
    "lone surrogate": ('mode: "\\ud800"\n', "line break or a control character"),
    "zero byte": ("mode: \0\n", "line 4: a control character"),
}

#: Whole files.
WRONG_FILES = {
    "empty": ("", "is empty; needed are at least partitions and nodes"),
    "only a comment": ("# nothing\n", "is empty"),
    "a list": ("- main\n", "line 1: not settings; valid: mode"),
    "a text": ("main\n", "not settings"),
    "binary": (b"\x7fELF\x02\x01\xff\xfe", "is not UTF-8 text (byte 6)"),
    "huge": ("#" * (1024 * 1024 + 1), "is larger than 1048576 bytes"),
    "without nodes": ("partitions: [main]\n", "line 1: nodes is missing; valid: a list, each settings named names"),
    "node without memory": (
        "partitions: [main]\nnodes:\n- {names: c1, partitions: [main], cores: 4}\n",
        "line 3: nodes[0].memory_mb is missing; valid: a whole number from 1 to",
    ),
    "misspelt and so missing": (
        "partitions: [main]\nnode: []\n",
        "line 2: node is unknown; did you mean nodes? valid: mode, policy, partitions, default_partition, nodes,",
    ),
    "no partition": (
        SMALLEST.replace("[main]\nnodes", "[]\nnodes"),
        "partitions: [] is not valid; valid: a list, each",
    ),
    "partition twice": (SMALLEST.replace("[main]\nnodes", "[main, main]\nnodes"), "'main' is given 2 times"),
    "partition without nodes": (SMALLEST.replace("[main]\nnodes", "[main, new]\nnodes"), "'new' has no nodes"),
    "node of an unmanaged partition": (
        SMALLEST.replace("[main], cores", "[main, gpu], cores"),
        "nodes[0].partitions: partition 'gpu' is not managed; valid: main",
    ),
    "pool of an unmanaged partition": (
        SMALLEST + "rescheduling: {pools: [[main, old]]}\n",
        "rescheduling.pools[0]: partition 'old' is not managed; valid: main",
    ),
    "pool of one partition": (
        SMALLEST + "rescheduling: {pools: [[main]]}\n",
        'rescheduling.pools[0]: ["main"] is not valid; valid: a list, each',
    ),
    "restarts by a word of another setting": (
        SMALLEST + "rescheduling: {restart: enforce}\n",
        'rescheduling.restart: "enforce" is not valid; valid: one of off, propose, on',
    ),
    "sharing partition that is not managed": (
        SMALLEST + "sharing: {partitions: [shared]}\n",
        "line 4: sharing.partitions[0]: partition 'shared' is not managed; valid: main",
    ),
    "sharing partition twice": (SMALLEST + "sharing: {partitions: [main, main]}\n", "'main' is given 2 times"),
    "sharing without agents": (
        SMALLEST + "sharing: {partitions: [main]}\n",
        "sharing.partitions: [main] without agents, which share the cores; valid: [], or also agents.controller",
    ),
    "sharing partition that is like another one": (
        TWO_PARTITIONS + "sharing: {partitions: [main]}\nrescheduling: {pools: [[main, old]]}\n",
        "sharing.partitions[0]: 'main' is also in rescheduling.pools; valid: a partition in one of the two",
    ),
    "sharing partition whose nodes are in another one": (
        TWO_PARTITIONS.replace("[old], cores", "[main, old], cores") + "sharing: {partitions: [main]}\n" + AGENTS,
        "line 4: nodes[1].partitions: [main, old], and d[1-4] share cores by sharing.partitions; valid: one partition",
    ),
    "sharing by a signal that scancel does not know": (
        SMALLEST + "sharing: {signal: SIGUSR1}\n",
        'sharing.signal: "SIGUSR1" is not valid; valid: one of HUP, INT,',
    ),
    "sharing by a signal that ends the job": (SMALLEST + "sharing: {signal: KILL}\n", "sharing.signal"),
    "too many jobs to a core": (
        SMALLEST + "sharing: {most_to_a_core: 17}\n",
        "sharing.most_to_a_core: 17 is not valid; valid: a whole number from 1 to 16",
    ),
    "limits that shrink": (
        SMALLEST + "sharing: {most_extension: 0.5}\n",
        "sharing.most_extension: 0.5 is not valid; valid: a number from 1 to 100",
    ),
    "closids that leave none for jobs": (
        SMALLEST.replace("cores", "llc_ways: 11, closids: 2, cores"),
        "nodes[0].closids: 2 leaves none for jobs: the root group and the group of the jobs without ways have 2;",
    ),
    "gpus that are no list of GPUs": (
        SMALLEST.replace("cores", "gpus: 'nvidia:2', cores"),
        'nodes[0].gpus: "nvidia:2" is not valid; valid: GPUs as in Gres= of slurm.conf, such as gpu:4 or gpu:a100:2',
    ),
    "closids without ways": (
        SMALLEST.replace("cores", "closids: 16, cores"),
        "nodes[0].closids: 16 without llc_ways: only jobs with cache ways are counted; valid: 0, or also llc_ways",
    ),
    "node in two entries": (
        SMALLEST + "  - {names: c3, partitions: [main], cores: 4, memory_mb: 4000}\n",
        "line 4: nodes[1].names: node c3 is also in nodes[0]; valid: each node in one entry",
    ),
    "alpha of nothing": (
        SMALLEST + "spread_n_share: {alpha: 0}\n",
        "spread_n_share.alpha: 0 is not valid; valid: a number above 0 up to 1",
    ),
    "alpha that is text": (
        SMALLEST + "spread_n_share: {alpha: 0.9x}\n",
        'spread_n_share.alpha: "0.9x" is not valid; valid: a number above 0',
    ),
    "no cores": (SMALLEST.replace("28", "0"), "nodes[0].cores: 0 is not valid; valid: a whole number from 1 to 65535"),
    "half a core": (SMALLEST.replace("28", "0.5"), "nodes[0].cores: 0.5 is not valid; valid: a whole number"),
    "too many nodes": (SMALLEST.replace("[1-4]", "[0-999999]"), "of at most 65536 nodes"),
    "range of ranges": (SMALLEST.replace("[1-4]", "[0-9999]r[0-9999]"), "of at most 65536 nodes"),
    "range that runs backwards": (SMALLEST.replace("[1-4]", "[4-1]"), "nodes[0].names"),
    "range that is not closed": (SMALLEST.replace("[1-4]", "[1-4"), "nodes[0].names"),
    "node group": (
        SMALLEST.replace("c[1-4]", "@all"),
        'nodes[0].names: "@all" is not valid; valid: a node list such as',
    ),
    "no node": (SMALLEST.replace("c[1-4]", ""), "nodes[0].names"),
    "node list with an operator": (SMALLEST.replace("c[1-4]", "c[1-4]!c2"), "(no groups, no operators)"),
    "node list with an option": (SMALLEST.replace("c[1-4]", "c1 State=DOWN"), "nodes[0].names"),
}


def test_the_schema_names_the_policies_of_a_cluster_only() -> None:
    policies = SnsYaml.model_json_schema()["properties"]["policy"]["enum"]

    assert policies == list(live_policies())
    assert "max-jobs" in policies
    assert not {"fcfs", "easy"} & set(policies)


class TestMistakes:
    @pytest.mark.parametrize(("text", "part"), MISTAKES.values(), ids=MISTAKES.keys())
    def test_a_wrong_setting_is_one_line_that_says_what_is_valid(self, write, text: str, part: str) -> None:
        assert part in refusal(write(SMALLEST + text))

    @pytest.mark.parametrize(("text", "part"), WRONG_FILES.values(), ids=WRONG_FILES.keys())
    def test_a_wrong_file_is_one_line_that_says_what_is_valid(self, write, text: str | bytes, part: str) -> None:
        assert part in refusal(write(text))

    def test_a_file_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        assert "cannot be read: No such file or directory" in refusal(tmp_path / "none.yaml")

    def test_a_directory_is_no_configuration(self, tmp_path: Path) -> None:
        assert "cannot be read: Is a directory" in refusal(tmp_path)

    def test_a_password_is_not_repeated(self, write) -> None:
        assert "secret" not in refusal(write(SMALLEST + "store: {url: 'oracle://sns:secret@db'}\n"))

    def test_further_mistakes_are_counted(self, write) -> None:
        assert refusal(write(SMALLEST + "store: {keep_days: a, keep_snapshots: b}\n")).endswith(" (and 1 more)")

    def test_a_long_value_is_shortened(self, write) -> None:
        assert len(refusal(write(SMALLEST + f"mode: {'x' * 5000}\n"))) < 400


def settings_in(model: type[Section], content: dict[str, Any], where: str = "") -> list[tuple[str, bool, Any, Any]]:
    """Each setting: dotted name, whether conf/sns.yaml has it, its value there, the model's default."""
    found = []
    for name, field in model.model_fields.items():
        present, value = name in content, content.get(name)
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            found += settings_in(kind, value or {}, f"{where}{name}.")
        elif not field.is_required():
            found.append((where + name, present, value, field.get_default(call_default_factory=True)))
    return found


class TestTheDocumentedFile:
    content = yaml.safe_load(shared_path("conf/sns.yaml").read_text(encoding="utf-8"))

    def test_it_can_be_used_as_it_is(self) -> None:
        assert load(shared_path("conf/sns.yaml")).mode == "observe"

    @pytest.mark.parametrize(
        ("present", "value", "default"),
        [pytest.param(*rest, id=name) for name, *rest in settings_in(SnsYaml, content)],
    )
    def test_it_names_every_setting_with_its_default(self, present: bool, value: Any, default: Any) -> None:
        assert present
        assert value == (
            list(default) if isinstance(default, tuple) else str(default) if isinstance(default, Path) else default
        )

    def test_it_names_every_setting_of_a_node(self) -> None:
        entry = self.content["nodes"][0]
        assert set(entry) == set(NodeEntry.model_fields)
        defaults = {name: field.default for name, field in NodeEntry.model_fields.items() if not field.is_required()}
        assert {name: entry[name] for name in defaults} == defaults

    def test_each_setting_is_explained(self) -> None:
        lines = shared_path("conf/sns.yaml").read_text(encoding="utf-8").splitlines()
        settings = [index for index, line in enumerate(lines) if re.match(r" *(- )?[a-z_]+: \S", line)]
        bare = [lines[i] for i in settings if "#" not in lines[i] and not lines[i - 1].lstrip().startswith("#")]
        assert len(settings) > 30
        assert not bare


WHOLE = yaml.safe_load(MINI_CLUSTER.read_text())
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["main", "c[1-4]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """The mini cluster's configuration with up to three places replaced, removed or added."""
    content = yaml.safe_load(MINI_CLUSTER.read_text())
    names = sorted({*SnsYaml.model_fields, *WHOLE["nodes"][0], "shares", "url", "user", "interval_s"})
    for _ in range(draw(st.integers(1, 3))):
        place = content
        while isinstance(place, dict | list) and place and draw(st.booleans()):
            key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if not isinstance(place[key], dict | list):
                break
            place = place[key]
        if isinstance(place, dict):
            key = draw(st.sampled_from(sorted({*place, *names})) | st.text(max_size=5))
            place[key] = draw(ANYTHING)
        elif place and draw(st.booleans()):
            place.pop()
        else:
            place.append(draw(ANYTHING))
    return content


def outcome(path: Path) -> Config | str:
    try:
        return load(path)
    except BadInput as problem:
        return str(problem)


class TestAnyInput:
    @pytest.mark.long
    @given(content=mutated())
    @settings(
        max_examples=200,
        suppress_health_check=[*settings.default.suppress_health_check, HealthCheck.function_scoped_fixture],
    )
    def test_a_changed_configuration_is_a_config_or_one_line(self, write, content: Any) -> None:
        result = outcome(write(yaml.safe_dump(content, allow_unicode=True)))
        assert isinstance(result, Config) or result.isprintable()

    @given(data=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
    @settings(
        max_examples=200,
        suppress_health_check=[*settings.default.suppress_health_check, HealthCheck.function_scoped_fixture],
    )
    def test_any_bytes_are_a_config_or_one_line(self, write, data: bytes) -> None:
        result = outcome(write(data))
        assert isinstance(result, Config) or result.isprintable()
