"""Random input as hostile or careless people may write it: hints, records, configurations and requests.

Each input is made of words that have a meaning at that place, of bytes that have a meaning for a shell, a terminal, Lua
or YAML, and of arbitrary bytes, so that most cases pass the first check. These are plain functions of `random.Random`
rather than hypothesis' strategies: hypothesis makes some hundred such cases a second, these make tens of thousands.
"""

import json
from random import Random
from typing import Any

from slurm_sns.submit.hints import FLAGS, KEYS, MOST_BYTES, VALUED
from slurm_sns.submit.messages import as_bytes
from slurm_sns.submit.submission import Submission

HOSTILE = (
    *("\x01\x7f", "\x1b[31m", "\x9b2J", "\udcff\udcfe", "é", "\u202e", "\u0660.\u0665", "\x85", "\u2028", "\ufeff"),
    *("%s%n", "%1", "]]--", "'", '"', "\\", "{key}", "$(id)", "`id`", ";", "|", "&", "#", "!", "*", "?", "[", "]"),
    *("a\nb", "\r", "\t", " ", "  ", "x" * 70, "../..", "/etc/passwd", "~", "NULL", "nil", "-1", "0x10", "1e309"),
)
NUMBERS = (
    *("0", "1", "64", "65", "0.9", ".5", "5.", ".", "1.0", "1.1", "0.0", "1.0000000000", "0.000000001", "00.5"),
    *("1e-1", "nan", "inf", "+1", "-0", "1,5", "18446744073709551616", "9" * 40, "0.1234567891", "\u0661"),
    *("2147483645", "2147483646", "604800", "604801", "0600"),
)
NOTED = ("fixed", "g", "b", "r", "n", "at", "t", "tg", "mo", "mg", "w", "bw", "free")  # what a record has beside hints
WORDS = (
    "sns:",
    "sns:2",
    "sns:grant=1:k:41.0",
    "sns:off",
    "off",
    "yes",
    "no",
    "mg",
    "mix-fit",
    "first-fit",
    *NOTED,
    ",",
    "=",
    ":",
    " ",
)


def _bytes(random: Random, most: int = 24) -> str:
    """Any bytes but NUL, which ends Slurm's strings; as text with surrogateescape."""
    data = random.randbytes(random.randint(0, most)).replace(b"\0", b"")
    return data.decode("utf-8", "surrogateescape")


_PIECES = (*WORDS, *KEYS, *NUMBERS, *HOSTILE, *WORDS, *KEYS)


def _piece(random: Random) -> str:
    return _bytes(random) if random.random() < 0.2 else random.choice(_PIECES)


def _text(random: Random, most: int = 7) -> str:
    pieces = "".join(_piece(random) for _ in range(random.randint(0, most)))
    return as_bytes(pieces).decode("utf-8", "surrogateescape")  # bytes of two pieces may be one letter


_VALUES = (*NUMBERS, *NUMBERS, *HOSTILE, "mg", "mix-fit", "first-fit", "yes", "no", "", "a" * 64, "a" * 65)


def _value(random: Random) -> str:
    return random.choice(_VALUES) if random.random() < 0.8 else _text(random, 3)


def _key(random: Random) -> str:
    if random.random() < 0.85:
        return random.choice(KEYS)
    return random.choice(("off", "Alpha", "max_scale", "", *NOTED)) if random.random() < 0.5 else _piece(random)


def _entry(random: Random) -> str:
    return _key(random) + random.choice(("=", "=", "=", "", "==")) + _value(random)


def comment(random: Random) -> str:
    """The text of --comment."""
    if random.random() < 0.2:
        return _text(random)
    entries = ",".join(_entry(random) for _ in range(random.choice((0, 1, 1, 2, 2, 3, 4))))
    if random.random() < 0.02:  # around the limit of the hints' length
        entries = entries.ljust(MOST_BYTES - len("sns:") + random.randint(-3, 3), ",")
    return "sns:" + entries


def submission(random: Random) -> Submission:
    """A job with hints in its comment, in options of the SPANK plugin, or in both."""
    count = random.choice((0, 0, 0, 1, 1, 2))
    return Submission(
        comment=comment(random),
        options=tuple((_key(random), _value(random)) for _ in range(count)),
        admin_comment=random.choice(("", "", "", "", "sns:2", "x", _text(random))),
        begin_time=random.choice((None, None, None, 0, 999, 1000, 1001, 1060, 5000, 10**11, 2**63 - 1)),
        partition=random.choice(("big", "big", "big", "small", "", "x")),
    )


def admin_comment(random: Random) -> str:
    """The text of a job's AdminComment field: mostly a record, or nearly one."""
    if random.random() < 0.1:
        return _text(random)
    noted = [key for key in (*VALUED, *FLAGS, *NOTED) if random.random() < 0.2]
    words = [key if random.random() < 0.3 else f"{key}={_value(random)}" for key in noted]
    if random.random() < 0.1:
        words.insert(random.randint(0, len(words)), _piece(random))
    if random.random() < 0.1:
        random.shuffle(words)
    text = random.choice(("sns:2", "sns:2", "sns:2", "sns:1", "")) + "".join(f" {word}" for word in words)
    return text if random.random() < 0.7 else random.choice((f"{_text(random)};{text}", f"{text};{_text(random)}"))


# --- configurations: a small valid one in which some values, keys and bytes are replaced

CONFIGURATION = """\
mode: enforce
partitions: [main]
nodes: [{names: "c[1-4]", partitions: [main], cores: 4, memory_mb: 4000}]
"""
_SECTIONS = (
    "mode: observe\n",
    "policy: combined\n",
    "default_partition: main\n",
    "matching: {portfolio: [mix-fit], queue_depth: 9, shares: {physics: 2}}\n",
    "matching: {shares: slurm, age_limit_s: 60}\n",
    "spread_n_share: {alpha: 0.9, scales: [1, 2], program: '{name}'}\n",
    "scheduler: {interval_s: 1.0, heartbeat_timeout_s: 10}\n",
    "slurm: {user: slurm, gres_types: [gpu], scheduler_parameters: [bf_interval=10]}\n",
    "paths: {state_dir: /var/lib/sns, run_dir: /run/sns}\n",
    "store: {url: 'sqlite:////tmp/x', keep_days: 3}\n",
    "log_level: debug\n",
)
_YAML = (
    *(
        "&a ",
        "*a",
        "!!python/object/apply:os.system [id]",
        "!!binary ",
        "<<: *a",
        "---",
        "...",
        "? ",
        "- ",
        ": ",
        "%YAML",
    ),
    *(
        "{",
        "}",
        "[",
        "]",
        ",",
        "|\n",
        ">\n",
        "#",
        "'",
        '"',
        "\n",
        "  ",
        "\t",
        "null",
        "~",
        "true",
        "1e9",
        "c[1-99999999]",
    ),
    *(
        "0x1F",
        "0o17",
        "1_000",
        "2026-01-01",
        "[" * 9,
        "{a: " * 9,
        "names",
        "@group",
        "c[9-1]",
        "c[1-2][1-9]",
        "a,b",
        "/x",
    ),
)

_YAML_PIECES = (*_YAML, *_YAML, *HOSTILE, *NUMBERS)


def configuration(random: Random) -> bytes:
    """The bytes of an sns.yaml, which may be invalid."""
    text = CONFIGURATION + (random.choice(_SECTIONS) if random.random() < 0.7 else "")
    for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
        begin = random.randint(0, len(text))
        piece = _bytes(random, 8) if random.random() < 0.15 else random.choice(_YAML_PIECES)
        text = text[:begin] + piece + text[begin + random.choice((0, 0, 1, 2, 5, 20)) :]
    return text.encode("utf-8", "surrogateescape")


# --- requests: the bytes that a caller of the scheduler's socket sends


def _scalar(random: Random) -> Any:
    kind = random.randrange(6)
    if kind == 0:
        return random.choice((None, True, False, 0, -1, 1.5, float("nan"), float("inf"), 2**63, -(2**70), ""))
    return random.randint(-5, 5) if kind < 3 else _text(random, 3)


def _json(random: Random, depth: int = 3) -> Any:
    if depth == 0 or random.random() < 0.6:
        return _scalar(random)
    if random.random() < 0.5:
        return [_json(random, depth - 1) for _ in range(random.randint(0, 3))]
    return {_text(random, 2): _json(random, depth - 1) for _ in range(random.randint(0, 3))}


def _request(random: Random) -> Any:
    if random.random() < 0.1:
        return _json(random)
    commands = ("status", "queue", "explain", "explain", "profile", "release", "try", "measured")
    command = random.choice(commands) if random.random() < 0.8 else _json(random)
    request = {"command": command}
    if random.random() < 0.6:
        request["job_id"] = random.choice((1, 2, 3, 4, 5, 6)) if random.random() < 0.6 else _json(random)
    if random.random() < 0.3:
        request["job_ids"] = [1, 2, 3, 9] if random.random() < 0.4 else _json(random)
    if random.random() < 0.2:
        request["program"] = random.choice(("mg", "cg", "nope")) if random.random() < 0.6 else _json(random)
    if random.random() < 0.2:
        request["task"] = random.choice((0, 2, 9)) if random.random() < 0.6 else _json(random)
    if random.random() < 0.3:
        names = random.sample(("ntasks", "mem", "time", "partition", "exclude", "constraint", "nodes", "nope"), 2)
        told = {name: random.choice(("4", "4G", "1:00", "main", "c[1", "", "-1")) for name in names}
        request["options"] = told if random.random() < 0.8 else _json(random)
    if random.random() < 0.2:
        request[random.choice(("user_id", "user", "uid", "admin", ""))] = _json(random)
    return request


def request_line(random: Random) -> bytes:
    """What a caller sends: mostly a line of JSON, often damaged, sometimes arbitrary bytes."""
    if random.random() < 0.05:
        return random.randbytes(random.randint(0, 60))
    line = json.dumps(_request(random)).encode() + b"\n"
    if random.random() < 0.7:
        return line
    at = random.randrange(len(line))
    return line[:at] + random.randbytes(random.randint(0, 6)) + line[at + random.choice((0, 1, 4)) :]
