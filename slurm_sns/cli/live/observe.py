"""`sns observe`: what slurm_sns would start now on a cluster where it is not installed, and what Slurm then does.

It reads Slurm by `scontrol show` and `sacctmgr show` and plans with the scheduler's own code. No executor, no store and
no socket exists in this process, so nothing can be sent.
"""

import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from slurm_sns.cli.installations import CONTROLLER, needs
from slurm_sns.cli.looks_file import LOOKS
from slurm_sns.cli.options import AsJson
from slurm_sns.errors import BadInput, SnsError

if TYPE_CHECKING:
    from collections import Counter

    from slurm_sns.config.configuration import Config
    from slurm_sns.scheduler.advice import Adviser
    from slurm_sns.scheduler.observation import Observation
    from slurm_sns.slurm.site import Site

#: Slurm is read at most this often: five commands, of which that for the jobs costs slurmctld as much as `squeue`.
LEAST_INTERVAL_S = 30
#: A pause is at least so many times as long as Slurm took to answer: it works for us a twentieth of its time at most.
PAUSE_FACTOR = 20
#: After a failure the pauses double up to this.
LONGEST_PAUSE_S = 600.0
#: What else is in the directory.
CONFIGURATION, COMPILED = "sns.yaml", "compiled"
DEFAULT_DIRECTORY = Path("sns-observed")


class LookedAt(Protocol):
    """Sees the cluster, and says how that went."""

    read_s: float
    left_out: "Counter[str]"
    hidden: tuple[str, ...]

    def observe(self) -> "Observation":
        """One bulk read."""
        ...

    def site(self, seen: "Observation") -> "Site":
        """The site as `sns draft` takes it."""
        ...


def observe(
    *,
    policy: Annotated[
        str | None, typer.Option(help="The policy that plans; default: that of --config, else what `sns draft` takes.")
    ] = None,
    partition: Annotated[
        list[str] | None, typer.Option(help="A partition that counts as managed (repeatable); default: all.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="An sns.yaml; default: one made of what Slurm shows.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The only directory that is written.")] = DEFAULT_DIRECTORY,
    interval: Annotated[
        float, typer.Option(min=LEAST_INTERVAL_S, help="Seconds from look to look; longer if Slurm answers slowly.")
    ] = LEAST_INTERVAL_S,
    count: Annotated[int, typer.Option(min=0, help="Stop after so many looks; 0: at Ctrl-C.")] = 0,
    once: Annotated[bool, typer.Option("--once", help="One look; the same as --count 1.")] = False,
    as_json: AsJson = False,
) -> None:
    """What slurm_sns would start now, and what Slurm then does: for any user, and nothing of Slurm is changed.

    It needs no installation by the admins: Slurm is read by its own commands. With --json it prints a line for each
    look, the same that it appends to looks.jsonl in its directory.
    """
    needs("sns observe", CONTROLLER)
    for command in ("scontrol", "sacctmgr"):
        if shutil.which(command) is None:
            raise SnsError(f"{command} is not in PATH: run this on a login node of a cluster with Slurm")
    from slurm_sns.cli.compiled_code import keep_out_of_the_users_cache
    from slurm_sns.cli.live.observe_report import complain, end
    from slurm_sns.cli.termination import terminated_as_interrupted
    from slurm_sns.slurm.scontrol_state import ScontrolState

    make_directory(out)
    keep_out_of_the_users_cache(out / COMPILED)
    chosen = ObserveRequest(out, config, policy, tuple(partition or ()))
    observer = Observer(ScontrolState(complain), chosen, interval, as_json=as_json)
    with suppress(KeyboardInterrupt), terminated_as_interrupted():
        observer.run(1 if once else count)
    if not as_json:
        end(observer.summary, out)


def make_directory(out: Path) -> None:
    """Make the directory if it is not there.

    Raises:
        BadInput: it cannot be made or written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise BadInput(f"{out}: cannot be made ({problem.strerror}); name another directory with --out") from None
    if not os.access(out, os.W_OK | os.X_OK):
        raise BadInput(f"{out}: cannot be written; name another directory with --out")


@dataclass(frozen=True, slots=True)
class ObserveRequest:
    """What the user chose: the directory, an sns.yaml, a policy, partitions."""

    out: Path
    config: Path | None = None
    policy: str | None = None
    partitions: tuple[str, ...] = ()

    def configuration(self, state: LookedAt, seen: "Observation") -> "Config":
        """The configuration: the user's, or one that is made of what Slurm shows and written to the directory.

        Raises:
            BadInput: there is no such partition or policy, or the site cannot be described by an sns.yaml.
        """
        from slurm_sns.config.configuration import load
        from slurm_sns.policies.registry import live_policies

        path = self.config or _drafted(self.out / CONFIGURATION, state.site(seen), self.partitions)
        found = load(path)
        if self.policy is not None and self.policy not in live_policies():
            raise BadInput(f"--policy {self.policy!r}: valid are {', '.join(live_policies())}")
        shown = [each.name for each in seen.partitions]
        for name in self.partitions:
            if name not in shown:
                raise BadInput(f"--partition {name!r}: Slurm has {', '.join(shown)}")
        chosen = {"policy": self.policy or found.policy, "partitions": self.partitions or found.partitions}
        changed: Config = found.model_copy(update=chosen)
        return changed


def _drafted(path: Path, site: "Site", partitions: tuple[str, ...]) -> Path:
    """Write the draft of an sns.yaml for these partitions, or for all that have nodes with cores and memory."""
    from slurm_sns.slurm.draft import draft

    nodes = tuple(node for node in site.nodes if node.capacity.cores > 0 and node.capacity.memory_mb > 0)
    with_nodes = frozenset[str]().union(*(node.partitions for node in nodes))
    managed = partitions or tuple(name for name in site.partitions if name in with_nodes)
    if not managed:
        raise BadInput("Slurm shows no partition with nodes that have cores and memory")
    try:
        path.write_text(draft(replace(site, nodes=nodes), {}, managed), encoding="utf-8")
    except OSError as problem:
        raise BadInput(f"{path}: cannot be written ({problem.strerror})") from None
    return path


class Observer:
    """Looks again and again. `now` gives Unix seconds, `sleep` waits."""

    def __init__(
        self,
        state: LookedAt,
        choice: ObserveRequest,
        interval_s: float,
        *,
        as_json: bool = False,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        from slurm_sns.scheduler.advice import AdviceSummary

        self._state, self._choice, self._interval_s, self._as_json = state, choice, interval_s, as_json
        self._now, self._sleep = now, sleep
        self._adviser: Adviser | None = None
        self._policy = ""
        self._began_s: float | None = None
        self.summary = AdviceSummary()

    def run(self, count: int) -> None:
        """Look so many times, or for ever (0). A look that Slurm does not answer is tried again later.

        Raises:
            BadInput: what the user chose does not fit the cluster.
            SnsError: the only look of all failed.
        """
        from slurm_sns.cli.live.observe_report import complain

        left, retry_s = count, self._interval_s
        while True:
            try:
                seen = self._state.observe()
            except SnsError as problem:
                if count == 1:
                    raise
                complain(f"{problem}; trying again in {retry_s:.0f} s")
                self._sleep(retry_s)
                retry_s = min(LONGEST_PAUSE_S, 2 * retry_s)
                continue
            began_s, retry_s = self._now(), self._interval_s
            self._look(seen, began_s)
            left -= 1
            if left == 0:
                return
            pause_s = max(self._interval_s, PAUSE_FACTOR * self._state.read_s)
            self._sleep(max(0.0, pause_s - max(0.0, self._now() - began_s)))

    def _look(self, seen: "Observation", at_s: float) -> None:
        from slurm_sns.cli.live import observe_report

        if self._adviser is None:
            self._adviser = self._made(seen)
        began_s = time.monotonic()
        look = self._adviser.look(seen, at_s)
        plan_s = time.monotonic() - began_s
        self.summary.add(look)
        line = observe_report.line_of(look, self.summary)
        if self._began_s is None:
            self._began_s = at_s
        line |= {
            "began_s": self._began_s,
            "read_s": self._state.read_s,
            "plan_s": plan_s,
            "policy": self._policy,
            "partitions": sorted(self._adviser.settings.partitions),
            "left_out": dict(self._state.left_out),
            "hidden": list(self._state.hidden),
        }
        _append(self._choice.out / LOOKS, json.dumps(line))
        if self._as_json:
            print(json.dumps(line), flush=True)
        else:
            observe_report.show_look(line)

    def _made(self, seen: "Observation") -> "Adviser":
        """What plans, with all code compiled that it runs."""
        from slurm_sns.cli.live import parts
        from slurm_sns.cli.live.observe_report import complain
        from slurm_sns.scheduler.advice import Adviser

        configured = self._choice.configuration(self._state, seen)
        self._policy = configured.policy
        policy = configured.the_policy()
        took_s = parts.warm_up(policy)
        if took_s > 2:
            complain(f"compiled in {took_s:.0f} s; this is kept for the next time")
        return Adviser(policy, parts.settings(configured))


def _append(path: Path, line: str) -> None:
    """Append a line.

    Raises:
        SnsError: it cannot be written.
    """
    try:
        with path.open("ab", buffering=0) as file:  # in one call: Ctrl-C leaves no half of a line
            file.write(f"{line}\n".encode())
    except OSError as problem:
        raise SnsError(f"{path}: cannot be written ({problem.strerror})") from None
