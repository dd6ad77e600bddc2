"""`sns exporter`: the scheduler's metrics for Prometheus."""

from pathlib import Path
from typing import Annotated

import typer

from slurm_sns.cli.installations import EXPORTER, needs
from slurm_sns.cli.live import scheduler_socket
from slurm_sns.cli.options import DEFAULT_CONFIG, Config

#: No exporter has it in the list of Prometheus' ports that these pages know; the agents' channel has 6830.
DEFAULT_PORT = 9831
#: Below Prometheus' own limit for a scrape, 10 s: it must get slurm_sns_up 0, not nothing.
ANSWER_WITHIN_S = 5.0


def exporter(
    *,
    address: Annotated[
        str, typer.Option(help="The address of this machine to listen at; 0.0.0.0 or :: for all.", show_default=True)
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The TCP port.")] = DEFAULT_PORT,
    once: Annotated[
        bool, typer.Option("--once", help="Print the metrics and end, for node_exporter's textfile collector.")
    ] = False,
    socket: Annotated[
        Path | None,
        typer.Option(help="The scheduler's Unix socket; default: that of the configuration.", show_default=False),
    ] = None,
    config: Config = DEFAULT_CONFIG,
) -> None:
    """Serve the scheduler's metrics to Prometheus at http://ADDRESS:PORT/metrics until stopped. Runs as any user.

    While the scheduler does not answer, slurm_sns_up is 0 and there is no other metric.
    """
    needs("sns exporter", EXPORTER)
    import signal
    import sys
    import threading

    from slurm_sns.exporter.exposition import SchedulerCollector, text
    from slurm_sns.exporter.http_server import server
    from slurm_sns.log import printable
    from slurm_sns.sockets.unix_socket import ask

    path = socket or scheduler_socket.path(config)

    def log(line: str) -> None:
        print(printable(line), file=sys.stderr, flush=True)

    collector = SchedulerCollector(lambda: ask(path, {"command": "metrics"}, within_s=ANSWER_WITHIN_S), log)
    if once:
        print(text(collector), end="")
        return
    with server(address, port, collector) as serving:
        # shutdown() waits for the loop of serve_forever, so another thread calls it.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: threading.Thread(target=serving.shutdown).start())
        log(f"exporter: listening at {address} port {port}, asking {path}")
        serving.serve_forever()
    log("exporter: stopped")
