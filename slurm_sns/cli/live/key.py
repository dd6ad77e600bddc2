"""`sns key`: the file with the keys that scheduler and agents share."""

import os
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from slurm_sns.cli.options import DEFAULT_CONFIG, AsJson, Config

_HELP = """The keys with which scheduler and agents sign: made, replaced, checked.

The same file must be on the controller, readable by SlurmUser alone, and on all nodes, readable by root alone. It is
read again when it changes: nothing is restarted.

To replace a key without a pause: (1) `sns key new --add`, and copy the file to all nodes: the new key verifies
everywhere. (2) `sns key new --promote`, and copy it again: the new key signs. (3) When no job that was placed before
step 2 waits to start, delete the old key's line, and copy the file once more.
"""

app = typer.Typer(no_args_is_help=True, help=_HELP)

File = Annotated[
    Path | None,
    typer.Argument(metavar="[FILE]", help="The key file. Default: agents.key_file of sns.yaml.", show_default=False),
]


@app.command()
def new(
    file: File = None,
    add: Annotated[bool, typer.Option("--add", help="Append a key, which verifies and does not sign yet.")] = False,
    promote: Annotated[bool, typer.Option("--promote", help="Move the last key to the first line: it signs.")] = False,
    config: Config = DEFAULT_CONFIG,
) -> None:
    """Make a key file with one new key; --add and --promote change one. The file is replaced at one moment.

    It has the mode 0600. One that root makes with the sns.yaml of the controller at hand belongs to slurm.user.
    """
    from slurm_sns.errors import BadInput
    from slurm_sns.sockets import key_file
    from slurm_sns.wire import keys

    path, owner = _file_and_owner(file, config)
    if add and promote:
        raise BadInput("--add and --promote are two steps; valid: one of them, the other when all nodes have the file")
    if not add and not promote:
        line = keys.key_line(_fresh_name(()), secrets.token_bytes(keys.SECRET_BYTES))
        key_file.write(path, line, owner, replaces=False)
        print(f"{path} made; copy it to all nodes, where it must belong to root")
        return
    text, found = key_file.read_text(path, owner)
    known = keys.Keys.parse(text)
    if add:
        line = keys.key_line(_fresh_name(known.names), secrets.token_bytes(keys.SECRET_BYTES))
        text, done = keys.added(text, line), f"{line.split()[0]} added"
    else:
        text, done = keys.promoted(text), f"{known.names[-1]} signs"
    key_file.write(path.resolve(), text, found.st_uid, replaces=True)
    print(f"{path}: {done}; copy it to all nodes before the next step")


@app.command()
def check(file: File = None, config: Config = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Check the key file: its text, its mode, its owner. Print the keys' IDs and fingerprints, and no secret.

    Files with equal fingerprints in the same order are equal, so the answers of all nodes can be compared.
    """
    import json

    from slurm_sns.cli.json_types import KeyFileJson, KeyLine
    from slurm_sns.sockets.key_file import read_keys

    path, owner = _file_and_owner(file, config)
    found, _ = read_keys(path, owner)
    belongs_to = path.stat().st_uid
    listed: list[KeyLine] = [
        {"id": key.name, "fingerprint": key.fingerprint, "signs": key == found.signing} for key in found.keys
    ]
    if as_json:
        told: KeyFileJson = {"file": str(path), "owner": belongs_to, "keys": listed}
        print(json.dumps(told, indent=2))
        return
    print(f"{path}: of user id {belongs_to}, closed to others")
    for each in listed:
        print(f"{each['id']:16}  {each['fingerprint']}  {'signs' if each['signs'] else 'verifies'}")


def _file_and_owner(file: Path | None, config: Path) -> tuple[Path, int]:
    """The key file, and the user besides root to whom it may belong: SlurmUser if sns.yaml names one of this machine.

    Without sns.yaml, as on a node, that is the user of this process.
    """
    from slurm_sns.cli.live.process import user_id
    from slurm_sns.config import configuration

    if file is not None and not config.exists():
        return file, os.geteuid()
    settings = configuration.load(config)
    owner = user_id(settings.slurm.user)
    return file or settings.agents.key_file, os.geteuid() if owner is None else owner


def _fresh_name(known: tuple[str, ...]) -> str:
    """The day, so that one sees how old a key is, and a number where that day has one already."""
    day = datetime.now(tz=UTC).strftime("%Y%m%d")
    names = (day, *(f"{day}-{number}" for number in range(2, len(known) + 2)))
    return next(name for name in names if name not in known)
