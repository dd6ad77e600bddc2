"""What the agent tells the controller: the state of its node, and a report of each run that has ended.

A report waits in the spool until the controller has acknowledged it. Without a controller it is a line in the log.
"""

from collections.abc import Callable, Collection
from math import inf

from slurm_sns.node.agent.ports import AgentPorts, Channel
from slurm_sns.node.agent.run_meters import Sums, points
from slurm_sns.node.agent.runs_here import RunHere
from slurm_sns.wire.values import NodeState, ReportKey, RunReport


class ControllerLink:
    """Tells the controller what has changed, once it has been connected with it."""

    def __init__(self, node: str, ports: AgentPorts) -> None:
        self._node, self._ports = node, ports
        self._channel: Channel | None = None
        self._may_have_changed = True
        self._told: tuple[object, ...] = ()
        #: The reports that were given to the channel and are not acknowledged.
        self.sent: set[ReportKey] = set()

    def connect(self, channel: Channel) -> None:
        """Use this channel from now on."""
        self._channel = channel

    @property
    def is_connected(self) -> bool:
        """Whether the controller can be reached now."""
        return self._channel is not None and self._channel.is_connected

    @property
    def silent_s(self) -> float:
        """For how many seconds nothing has been heard of the controller; infinite if nothing ever was."""
        return inf if self._channel is None else self._channel.silent_s

    def note_change(self) -> None:
        """Something may have changed that the controller is told: the next `tell` looks at it."""
        self._may_have_changed = True

    def add(self, run: RunHere, ran_s: float, sums: Sums, *, is_whole: bool) -> None:
        """Keep the report of a run that has ended after so many seconds here, until the controller has it."""
        report = RunReport(
            run.run,
            self._node,
            self._ports.clock.now(),
            ran_s,
            was_alone=run.was_alone,
            was_sampled=run.was_sampled,
            is_whole=is_whole,
            points=points(sums),
        )
        if self._channel is None:
            self._ports.log(_line(report))
        else:
            self._ports.spool.add(report)

    def forget(self, keys: Collection[ReportKey]) -> None:
        """The controller has stored these reports."""
        self._ports.spool.forget(keys)
        self.sent.difference_update(keys)

    def tell(self, state: Callable[[], NodeState]) -> None:
        """Send the state, if it has changed, and the reports that have not been handed over yet."""
        if self._channel is None or not self._may_have_changed:
            return
        self._may_have_changed = not self._channel.is_connected
        now = state()
        if (now.facts, now.jobs, now.trouble) != self._told:
            self._told = (now.facts, now.jobs, now.trouble)
            self._channel.tell(now)
        for report in self._ports.spool.reports():
            if report.key not in self.sent:
                if not self._channel.report(report):
                    self._may_have_changed = True  # try again
                    break
                self.sent.add(report.key)


def _line(report: RunReport) -> str:
    """A report as one line."""
    measured = ", ".join(
        f"{each.ways} ways: IPC {_figure(each.ipc)}, {_figure(each.bandwidth_gbps)} GB/s" for each in report.points
    )
    return f"job {report.run.job_id} ran {report.ran_s:.1f} s here; {measured or 'nothing was measured'}"


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
