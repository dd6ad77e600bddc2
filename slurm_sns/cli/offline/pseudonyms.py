"""`sns pseudonyms`: a dump of accounting, with its nodes, that may be given away."""

from pathlib import Path
from typing import Annotated

import typer

from slurm_sns.cli.installations import SIMULATE, needs
from slurm_sns.coverage.sacct import COMMAND, NODES
from slurm_sns.errors import BadInput

#: What is written into the directory.
_WRITTEN = ("accounting.psv", "nodes.txt")


def pseudonyms(
    dump: Annotated[
        str, typer.Argument(metavar="DUMP", help=f"What `{COMMAND}` prints; also .gz, - for standard input.")
    ],
    nodes: Annotated[
        Path | None, typer.Option(help=f"The nodes: a slurm.conf, or what `{NODES}` prints, or sinfo.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The directory for accounting.psv and, with --nodes, nodes.txt.")] = Path(
        "given-away"
    ),
) -> None:
    """Write DUMP for others: users, accounts, partitions, nodes get other names, texts of users are emptied.

    Numbers, times, states and the names of features stay as they are. `sns simulate` reads the same trace.
    """
    needs("sns pseudonyms", SIMULATE)
    from slurm_sns.sim.traces.cluster_nodes import site_nodes_in
    from slurm_sns.sim.traces.files import TraceFile
    from slurm_sns.sim.traces.pseudonyms import Pseudonyms
    from slurm_sns.whole_files import require_directory, write_files

    require_directory(out)
    for mine in (Path(dump), nodes or Path(dump)):
        if mine.exists() and any((out / name).exists() and (out / name).samefile(mine) for name in _WRITTEN):
            raise BadInput(f"{out}: {mine} would be overwritten; valid for --out: another directory")
    given = Pseudonyms()
    texts = {}
    if nodes is not None:
        listed = site_nodes_in(TraceFile.of(str(nodes)))
        if listed is None:
            raise BadInput(f"{nodes}: no slurm.conf, and not what scontrol or sinfo prints; try: {NODES}")
        texts["nodes.txt"] = given.nodes(listed)
    write_files(out, texts | {"accounting.psv": given.dump(TraceFile.of(dump))})
    counts = ", ".join(f"{given.count(column):,} {column.lower()}s" for column in ("User", "Account", "Partition"))
    print(f"{out}: {given.lines:,} lines, {given.left_out:,} left out; {counts}")
