"""`sns web`: the page of the queue and the nodes."""

from typing import Annotated

import typer

from slurm_sns.cli.installations import WEB, needs
from slurm_sns.cli.options import DEFAULT_CONFIG, Config

#: A scheduler that hangs must not keep a viewer waiting for longer.
ANSWER_WITHIN_S = 15.0


def web(
    *,
    address: Annotated[
        str | None, typer.Option(help="The address to listen at; default: web.address.", show_default=False)
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="The TCP port; default: web.port.", show_default=False)
    ] = None,
    config: Config = DEFAULT_CONFIG,
) -> None:
    """Serve the queue, the nodes and the last day as a page at http://ADDRESS:PORT/ until stopped. Runs as SlurmUser.

    It changes nothing. Everybody sees nodes and counts. Jobs are shown to users whom a reverse proxy names, to each
    their own: web.user_header and web.trusted_addresses of the configuration.
    """
    needs("sns web", WEB)
    import sys
    from datetime import datetime

    from slurm_sns.cli.live import process
    from slurm_sns.config import configuration
    from slurm_sns.log import printable
    from slurm_sns.sockets.unix_socket import ask
    from slurm_sns.web.application import application
    from slurm_sns.web.bounded_server import listening, server

    settings = configuration.load(config)
    process.require_slurm_user(settings)  # the scheduler shows all jobs to nobody but an admin
    path, told = settings.paths.socket, settings.web

    def log(line: str) -> None:
        print(f"{datetime.now().astimezone():%F %T} {printable(line)}", file=sys.stderr, flush=True)

    app = application(
        lambda request: ask(path, request, within_s=ANSWER_WITHIN_S),
        told,
        user_id_of=process.user_id_of_exactly,
        admin_ids=process.admins(settings),
        log=log,
    )
    where = address or told.address, port or told.port
    with listening(*where) as listener:
        log(f"web: listening at {where[0]} port {where[1]}, asking {path}")
        server(app).run(sockets=[listener])
    log("web: stopped")
