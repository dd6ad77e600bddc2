"""`sns agent`: the process on each node that gives jobs their cache ways and bandwidth, and measures them."""

import os
import resource
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from slurm_sns.cli.options import DEFAULT_CONFIG, AsJson, Config, Node
from slurm_sns.errors import BadInput

if TYPE_CHECKING:
    from slurm_sns.cli.live.agent_parts import Hardware
    from slurm_sns.config import configuration
    from slurm_sns.node.agent.shown_types import AgentJson

#: The agent's socket takes a request of prolog with a list of 4,096 nodes.
LONGEST_REQUEST_BYTES = 64 * 1024


def agent(
    config: Config = DEFAULT_CONFIG,
    node: Node = None,
    *,
    observe: Annotated[
        bool, typer.Option("--observe", help="Only measure: nothing of resctrl is written, no job gets ways.")
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="Do what is due now, say what is here, and end.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Ask the running agent what is on the node.")] = False,
    clean_up: Annotated[
        bool, typer.Option("--clean-up", help="Remove all groups of ours from resctrl, after the agent was stopped.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Give the jobs of this node their cache ways and bandwidth, and measure them. Runs as root on each node.

    When it is stopped the jobs keep what they have, except limits of CPU time below what they asked for. --clean-up
    gives their cache ways back.
    """
    from slurm_sns.cli.live.agent_parts import hardware
    from slurm_sns.cli.live.node_view import print_shown
    from slurm_sns.config import configuration
    from slurm_sns.sockets.unix_socket import ask

    settings = configuration.load(config)
    if os.geteuid() != 0:
        raise BadInput(f"this runs as root, not as user id {os.geteuid()}")
    if show:
        print_shown(ask(settings.agents.socket, {"event": "show"}, "agent"), as_json)
        return
    if clean_up:
        remove_groups(settings)
        return
    if settings.agents.controller is None and not observe:
        raise BadInput("agents.controller is null: there are no agents; valid: the scheduler's host, or --observe")
    name = node or os.uname().nodename.partition(".")[0]
    shown = serve(settings, name, hardware(), observes=observe, once=once)
    if shown is not None:
        print_shown(shown, as_json)


def serve(
    settings: "configuration.Config", node: str, found: "Hardware", *, observes: bool = False, once: bool = False
) -> "AgentJson | None":
    """Be the agent of this node until stopped; with `once` for one round, of which the result says what is here."""
    from slurm_sns.cli.live import agent_parts, process
    from slurm_sns.sockets.service_manager import SignOfLife, notify
    from slurm_sns.sockets.unix_socket import Access, ControlSocket

    root = frozenset({0})
    process.make_directories(settings, of_agent=True)
    unlock = process.only_one(settings.agents.run_dir / "agent.lock")
    process.start_logging(settings.log_level)
    # Two counters for each thread or CPU of each job: more than the soft limit that a service has.
    with suppress(OSError, ValueError):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    stop = process.StopSignal()
    agent, channel = agent_parts.agent(settings, node, found, observes=observes)
    process.log.info("agent: node %s, %s", node, "observe" if observes else "partition")
    agent.start()
    shown = None
    with ExitStack() as stack:
        if once:
            agent.step()
            shown = agent.shown()
            agent.stop()
        else:
            access = Access(0o600, root, LONGEST_REQUEST_BYTES)
            stack.enter_context(ControlSocket(settings.agents.socket, agent.inbox.answer, root, access))
            if channel is not None:
                stack.enter_context(channel)
            process.log.info("agent: ready")
            notify(READY="1")
            agent.run(process.until(stop, SignOfLife(lambda: agent.status)))
    process.log.info("agent: stopped")
    unlock()
    return shown


def remove_groups(settings: "configuration.Config") -> None:
    """Remove our groups from resctrl: all threads fall back to the root group, which may use the whole cache."""
    from slurm_sns.cli.live import process
    from slurm_sns.cli.live.node_missing import require
    from slurm_sns.node.resctrl.groups import Groups

    process.make_directories(settings, of_agent=True)
    unlock = process.only_one(settings.agents.run_dir / "agent.lock")
    require(settings.agents.resctrl)
    removed = Groups(settings.agents.resctrl).remove_all()
    print(f"{len(removed)} group{'s' if len(removed) != 1 else ''} removed")
    unlock()
