r"""The grammars of the texts in a configuration.

The texts end up in Slurm's configuration files, in a plugstack line, in systemd units and in a Lua table. So each must
match a grammar without spaces, quotes, line breaks and the other files' special characters (`%`, `$`, `#`, `\`).
Each grammar has words that say in an error message what is valid.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from slurm_sns import gpus
from slurm_sns.errors import SnsError
from slurm_sns.node_lists import unfolded

MAX_NODES = 65_536  # Slurm's own limit, MAX_SLURM_NODES
MAX_SHARE = 1_000_000_000  # shares may be on any scale; beyond this their ratios lose digits


def invalid(words: str) -> PydanticCustomError:
    """The error that says what is valid."""
    return PydanticCustomError("grammar", "{words}", {"words": words})


def _text(pattern: str, words: str, longest: int = 256) -> Callable[[str], str]:
    def check(text: str) -> str:
        if len(text) > longest or not re.fullmatch(pattern, text):  # compiled at first use: most commands need few
            raise invalid(words)
        return text

    return check


_PARTITION = "a name of letters, digits and . _ -"
_OPTION = "an option such as bf_interval=30: letters, digits and . _ : / + = -"
_TRES = "a resource such as gres/gpu: letters, digits and . _ : / -"
_WORD = "a word of letters, digits and _ -"
_USER = "a user's name: small letters, digits and _ -"
_HOST = "a host's name or address: letters, digits and . : -"
_HEADER = "a header's name such as X-Remote-User: letters, digits and -"
_NETWORK = "an address or a network, such as 192.0.2.7 or 192.0.2.0/24 or ::1"
_PLUGIN = "a file name or an absolute path, such as sns.so"
_URL = "a database URL of sqlite, mysql, mariadb or postgresql, such as sqlite:////var/lib/sns/sns.db"
_PATH = "an absolute path of letters, digits and . _ - / (no ..)"
_NODES = f"a node list such as c[1-4] or n1,n2 of at most {MAX_NODES} nodes (no groups, no operators)"

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_NODE_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]|\[[0-9]{1,6}(?:-[0-9]{1,6})?(?:,[0-9]{1,6}(?:-[0-9]{1,6})?)*\])*"
_ABSOLUTE = r"/(?!.*(?:^|/)\.\.(?:/|$))[A-Za-z0-9._/-]*"


def _words(words: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "description": words})


Name = Annotated[str, AfterValidator(_text(_NAME, _PARTITION)), _words(_PARTITION)]
Option = Annotated[str, AfterValidator(_text(r"[A-Za-z][A-Za-z0-9._:/+=-]*", _OPTION)), _words(_OPTION)]
Tres = Annotated[str, AfterValidator(_text(r"[A-Za-z][A-Za-z0-9._:/-]*", _TRES)), _words(_TRES)]
Word = Annotated[str, AfterValidator(_text(r"[A-Za-z][A-Za-z0-9_-]*", _WORD, 64)), _words(_WORD)]
User = Annotated[str, AfterValidator(_text(r"[a-z_][a-z0-9_-]*", _USER, 32)), _words(_USER)]
HostName = Annotated[str, AfterValidator(_text(r"[A-Za-z0-9][A-Za-z0-9.:-]*", _HOST, 253)), _words(_HOST)]
HeaderName = Annotated[str, AfterValidator(_text(r"[A-Za-z][A-Za-z0-9-]*", _HEADER, 64)), _words(_HEADER)]
PluginFile = Annotated[str, AfterValidator(_text(rf"(?:{_ABSOLUTE}|[A-Za-z0-9_-]+)\.so", _PLUGIN)), _words(_PLUGIN)]
# A URL may hold a password: `writeOnly` keeps its value out of error messages.
DatabaseUrl = Annotated[
    str,
    AfterValidator(_text(r"(?:sqlite|mysql|mariadb|postgresql)(?:\+[a-z0-9_]+)?://[!-~]*", _URL, 1024)),
    WithJsonSchema({"type": "string", "description": _URL, "writeOnly": True}),
]


def _absolute(path: Path) -> Path:
    _text(_ABSOLUTE, _PATH)(str(path))
    return path


AbsolutePath = Annotated[Path, AfterValidator(_absolute), _words(_PATH)]


def absolute_path(text: str) -> Path:
    """The text as a path that may stand in a generated file; ValueError says what is valid."""
    try:
        return _absolute(Path(text))
    except PydanticCustomError:
        raise ValueError(_PATH) from None


def node_names(text: str) -> tuple[str, ...]:
    """The names that a node list stands for, in order.

    Raises:
        ValueError: the text is not such a node list; the message says what is valid.
    """
    parts = re.split(r",(?![^\[]*\])", text[:4097])
    if len(text) > 4096 or not all(re.fullmatch(_NODE_NAME, part) for part in parts):
        raise ValueError(_NODES)
    try:
        names = unfolded(text)
    except SnsError:
        raise ValueError(_NODES) from None
    if len(names) > MAX_NODES:
        raise ValueError(_NODES)
    return names


def _node_list(text: str) -> str:
    try:
        node_names(text)
    except ValueError as problem:
        raise invalid(str(problem)) from None
    return text


NodeList = Annotated[str, AfterValidator(_node_list), _words(_NODES)]


def _network(text: str) -> str:
    """Check an address or a network."""
    try:
        ip_network(text)
    except ValueError:
        raise invalid(_NETWORK) from None
    return text


Network = Annotated[str, AfterValidator(_network), _words(_NETWORK)]

_GPUS = (
    f"GPUs as in Gres= of slurm.conf, such as gpu:4 or gpu:a100:2,gpu:h100:2, at most {gpus.MOST_OF_A_NODE} of a type"
)


def _gpu_list(text: str) -> str:
    """Check the GPUs of a node."""
    try:
        gpus.listed(text)
    except SnsError:
        raise invalid(_GPUS) from None
    return text


GpuList = Annotated[str, AfterValidator(_gpu_list), _words(_GPUS)]


def _one_of(names: Iterable[str]) -> AfterValidator:
    words = "one of " + ", ".join(names)
    return AfterValidator(_text("|".join(re.escape(name) for name in names), words))


_PROGRAM_FIELDS = ("{user}", "{name}", "{processes}")


def _program_template(text: str) -> str:
    """Check the template of a program's key: fields that are filled in, and the characters of a program's name."""
    left = re.sub("|".join(map(re.escape, _PROGRAM_FIELDS)), "", text)
    if not 1 <= len(text) <= 64 or re.fullmatch(r"[A-Za-z0-9._+-]*", left) is None:
        raise invalid(f"1 to 64 of the characters A-Z a-z 0-9 . _ + - and {', '.join(_PROGRAM_FIELDS)}")
    return text


ProgramTemplate = Annotated[str, AfterValidator(_program_template)]


def one_of(names: Iterable[str]) -> Any:
    """The type of a text that is one of these."""
    listed = tuple(names)
    return Annotated[str, _one_of(listed), WithJsonSchema({"enum": list(listed)})]


_SHARES = "slurm, or accounts with a share above 0, such as {physics: 2, chemistry: 1}"


def _shares(value: Any) -> Mapping[str, float] | Literal["slurm"]:
    if value == "slurm":
        return "slurm"
    if not isinstance(value, Mapping) or not all(_is_share(*item) for item in value.items()):
        raise invalid(_SHARES)
    return {account: float(share) for account, share in value.items()}


def _is_share(account: object, share: object) -> bool:
    if not isinstance(account, str) or not re.fullmatch(_NAME, account):
        return False
    return isinstance(share, int | float) and not isinstance(share, bool) and 0 < share <= MAX_SHARE


Shares = Annotated[Mapping[str, float] | Literal["slurm"], PlainValidator(_shares), _words(_SHARES)]
