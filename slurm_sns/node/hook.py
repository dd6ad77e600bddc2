"""Tells the agent of this node that a job begins or has ended: what Slurm's prolog and epilog run as root.

    python -I -S hook.py prolog|epilog [SOCKET]

Nothing of slurm_sns, so that it works while the package is replaced; and of the standard library only what is built
into the interpreter, because each job waits for it: json, signal and socket take twice as long as Python's own start.
It sends one line of JSON with texts of Slurm's environment and waits for the answer, at most 5 s in all. The exit code
is always 0 and nothing is printed to the job, because a prolog that fails drains the node; trouble is one line on
standard error, for slurmd's log.
"""

import _signal as signal  # type: ignore[import-not-found]
import _socket as socket
import os
import sys
import time

SOCKET = "/run/sns-agent/agent.sock"
#: The version of what is sent.
VERSION = 1
#: In all, from the first line of `main` on.
PATIENCE_S = 5.0
#: Then for the line on standard error, where nobody may read.
LAST_WORD_S = 0.5
#: The agent takes a longer line from nobody. A list of 4,096 nodes has at most 30 KB.
LONGEST_BYTES = 64 * 1024
#: What is sent, and where Slurm has it; what is not set is not sent.
VARIABLES = {
    "job": "SLURM_JOB_ID",
    "uid": "SLURM_JOB_UID",
    "restarts": "SLURM_JOB_RESTART_COUNT",
    "node": "SLURMD_NODENAME",
    "nodes": "SLURM_JOB_NODELIST",
    "extra": "SLURM_JOB_EXTRA",
}
#: More of a number is not sent: it is none.
LONGEST_NUMBER = 32
NUMBERS = ("job", "uid", "restarts")
#: What ends the hook early.
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM, signal.SIGPIPE)
#: How the answer of an agent that has done what it was told begins.
DONE = b'{"answer": '
#: In this order fields are left out of a line that would be too long: without them the job has no grant.
LEFT_OUT = ("extra", "nodes", "node")


class _Trouble(Exception):
    """One line for slurmd's log."""


def text_in_json(text: str) -> str:
    """The text as JSON, in ASCII."""
    return '"' + "".join(each if " " <= each <= "~" and each not in '"\\' else _escaped(each) for each in text) + '"'


def _escaped(character: str) -> str:
    """One escape, or the two of a surrogate pair."""
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    above = code - 0x10000
    return f"\\u{0xD800 + (above >> 10):04x}\\u{0xDC00 + (above & 0x3FF):04x}"


def request(event: str, environment: dict[bytes, bytes]) -> bytes:
    """The line to send. Whatever the environment holds, it is one line of valid JSON, of at most `LONGEST_BYTES`."""
    fields = {"v": f'"v":{VERSION}', "event": f'"event":{text_in_json(event)}'}
    for name, variable in VARIABLES.items():
        if variable.encode() in environment:
            found = environment[variable.encode()].decode("utf-8", "replace")
            if len(found) <= LONGEST_BYTES or name in NUMBERS:
                fields[name] = f'"{name}":{text_in_json(found[:LONGEST_NUMBER] if name in NUMBERS else found)}'
    for name in LEFT_OUT:
        if sum(len(field) + 1 for field in fields.values()) + len("{}") <= LONGEST_BYTES:
            break
        fields.pop(name, None)
    return f"{{{','.join(fields.values())}}}\n".encode("ascii")


def tell(path: str, line: bytes, deadline_s: float) -> None:
    """Send the line and wait for the answer. Raises _Trouble if there is none, or if the agent refuses."""
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)  # the process ends when all is said
        connection.settimeout(_left_s(deadline_s))
        connection.connect(path)
        connection.sendall(line)
        answer = b""
        while not answer.endswith(b"\n") and len(answer) < LONGEST_BYTES:
            connection.settimeout(_left_s(deadline_s))
            part = connection.recv(LONGEST_BYTES)
            if not part:
                break
            answer += part
    except TimeoutError:
        raise _Trouble(f"the agent at {path} has not answered within {PATIENCE_S:g} s") from None
    except OSError as problem:
        raise _Trouble(f"no agent answers at {path}: {problem.strerror or problem}") from None
    if answer.startswith(DONE) and answer.endswith(b"}\n"):
        return
    import json  # noqa: PLC0415 -- only where there is trouble

    try:
        reply = json.loads(answer)
    except ValueError:
        raise _Trouble(f"the agent at {path} has closed the connection without an answer") from None
    if not isinstance(reply, dict) or "error" in reply:
        raise _Trouble(f"the agent refuses: {reply.get('error') if isinstance(reply, dict) else reply}")


def _left_s(deadline_s: float) -> float:
    left_s = deadline_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def _end(text: str) -> None:
    """End with 0, whatever happens: one line at most, and a signal while it is written ends the process at once."""
    try:
        for number in SIGNALS:
            signal.signal(number, lambda _number, _frame: os._exit(0))
        signal.setitimer(signal.ITIMER_REAL, LAST_WORD_S)
        if text:
            printable = "".join(each if each.isprintable() else "?" for each in text)[:500]
            os.write(2, f"sns: {printable}\n".encode("utf-8", "replace"))
    finally:
        os._exit(0)


def _stopped(number: int, _frame: object) -> None:
    _end(f"the hook was stopped by signal {number}")


def main(arguments: list[str]) -> None:
    """Tell the agent; ends the process with 0."""
    text = ""
    try:
        for number in SIGNALS:
            signal.signal(number, _stopped)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_S + LAST_WORD_S)  # whatever hangs, such as a file system
        deadline_s = time.monotonic() + PATIENCE_S
        if not arguments or arguments[0] not in ("prolog", "epilog"):
            raise _Trouble("hook.py: valid: prolog or epilog, and the path of the agent's socket")  # noqa: TRY301 -- all trouble ends below
        path = arguments[1] if len(arguments) > 1 else SOCKET
        tell(path, request(arguments[0], dict(os.environb)), deadline_s)
    except _Trouble as problem:
        text = str(problem)
    except BaseException as problem:  # noqa: BLE001 -- a prolog must never fail
        text = f"hook.py: {problem!r}"
    finally:
        _end(text)


if __name__ == "__main__":
    main(sys.argv[1:])
