"""Grants as signed text in the `Extra` field of a job: what a run may have on its nodes.

A token is `1:KEY:JOB.RESTARTS:NODES:WAYS.GBPS:SHARE:FLAGS:MAC`, one word of at most 199 characters whatever the number
of nodes: 1 is the version of the form, KEY the name of the key, JOB the job's id or an array's task (`41_7`), NODES the
SHA-256 of the nodes' names, FLAGS `a` where the run has its nodes alone and `s` where it is sampled (`-`: neither). MAC
is the HMAC-SHA256 (RFC 2104) of all before it. Digest and MAC are written in base64url (RFC 4648, 5) without padding.

It is no secret: everybody may read it. A copy of it is worth nothing: it holds for one run of one job on its nodes.
Where a task is placed straight from its array's record it is signed before Slurm gives the task a job id. Which job the
task has become the scheduler tells the agents (values.ActiveRuns); until then the run has nothing of its grant.

In `Extra`, where prolog and epilog can read it, a grant is one segment `sns:grant=TOKEN`. The text of an owner's own
stays as it is: the segment is appended to it, after a semicolon. A segment stands at the start of the text or after a
semicolon, and ends at the next semicolon. If the text has several, the last one counts. Whoever edits the field can
only take his own job's grant away.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence

from slurm_sns import task_ids
from slurm_sns.errors import SnsError
from slurm_sns.wire.keys import Key, Keys
from slurm_sns.wire.values import Grant, RunId

#: The version of the token's form.
VERSION = 1
#: Nothing else that is signed with these keys begins like this.
_DOMAIN = b"slurm_sns grant\0"

_DIGEST = r"[A-Za-z0-9_-]{43}"  # 32 bytes in base64url
_FORM = re.compile(
    rf"(?P<signed>{VERSION}:(?P<key>[a-z0-9-]{{1,16}}):(?P<job>[0-9]{{1,10}}(?:_[0-9]{{1,10}})?)\.(?P<restarts>[0-9]{{1,10}})"
    rf":(?P<nodes>{_DIGEST}):(?P<ways>[0-9]{{1,4}})\.(?P<gbps>[0-9]{{1,6}})"
    rf":(?P<share>[0-9](?:\.[0-9]{{1,20}})?(?:e-[0-9]{{1,3}})?):(?P<flags>a?s?|-)):(?P<mac>{_DIGEST})\Z"
)

#: Slurm refuses a longer text (_test_strlen in its job_mgr.c).
MOST_BYTES = 1024

_BEGIN = "sns:grant="
_SEPARATOR = ";"
_SEGMENT = re.compile(rf"(?:\A|;){_BEGIN}([^;]*)(?=;|\Z)")

#: The longest token.
LONGEST = 199
_TOKEN = re.compile(r"[0-9]{1,3}:[A-Za-z0-9._:-]+\Z")


class BadGrant(SnsError):
    """A token that grants nothing here. The text says why, in one line of plain characters."""


def is_token(text: str) -> bool:
    """Whether the text has the form of a grant's token, of any version, genuine or not."""
    return len(text) <= LONGEST and _TOKEN.match(text) is not None


def token(grant: Grant, keys: Keys) -> str:
    """The grant, signed with the first of the keys. `cpu_share` must be above 0 and at most 1.

    Raises:
        BadGrant: a number of the grant is out of range, or a node's name has a line break.
    """
    flags = "a" * grant.has_nodes_alone + "s" * grant.samples
    signed = (
        f"{VERSION}:{keys.signing.name}:{job_text(grant.run.job_id)}.{grant.run.restarts}:{_digest(grant.nodes)}"
        f":{grant.ways}.{grant.bandwidth_gbps}:{float(grant.cpu_share)!r}:{flags or '-'}"
    )
    text = f"{signed}:{_mac(signed, keys.signing)}"
    if not 0 < grant.cpu_share <= 1 or _FORM.match(text) is None or len(text) > LONGEST:
        raise BadGrant(
            f"job {job_text(grant.run.job_id)}: a grant of {grant.ways} ways, {grant.bandwidth_gbps} GB/s, share "
            f"{grant.cpu_share}; valid: at most 9999 ways and 999999 GB/s, a share above 0 and at most 1"
        )
    return text


def verified(text: str, keys: Keys, run: RunId, node: str, nodes: Sequence[str]) -> Grant:
    """The grant of a token, for this run on this node. `nodes` are all nodes of the run, as Slurm names them.

    The run of the grant of an array's task has our id of the task: it is this run's if the run's job is that task.

    Raises:
        BadGrant: it is no token, or not signed with one of the keys, or it is for something else.
    """
    if not is_token(text):
        raise BadGrant("the grant is not a token")
    form = _FORM.match(text)
    if form is None:
        version = int(text.partition(":")[0])
        other = f"the grant is of version {version}; valid: {VERSION}"
        raise BadGrant(other if version != VERSION else "the grant is not a token")
    key = keys.named(form["key"])
    if key is None:
        raise BadGrant(f"the grant is signed with the key {form['key']}; known: {', '.join(keys.names)}")
    if not hmac.compare_digest(_mac(form["signed"], key), form["mac"]):
        raise BadGrant(f"the grant does not verify with the key {key.name}")
    granted = RunId(_job_id(form["job"]), int(form["restarts"]))
    _check_run(granted, run)
    if not hmac.compare_digest(_digest(nodes), form["nodes"]):
        raise BadGrant("the grant is of other nodes than the job has")
    if node not in nodes:
        raise BadGrant(f"the grant is of other nodes than {node}")
    return Grant(
        granted,
        tuple(nodes),
        ways=int(form["ways"]),
        bandwidth_gbps=int(form["gbps"]),
        cpu_share=float(form["share"]),
        has_nodes_alone="a" in form["flags"],
        samples="s" in form["flags"],
    )


def job_text(job_id: int) -> str:
    """The job in a token: its id, or its array and task."""
    task = task_ids.task_of(job_id)
    return str(job_id) if task is None else f"{task[0]}_{task[1]}"


def _job_id(text: str) -> int:
    job_id, is_task, task = text.partition("_")
    return task_ids.task_id(int(job_id), int(task)) if is_task else int(job_id)


def _check_run(granted: RunId, run: RunId) -> None:
    if granted.job_id != run.job_id and task_ids.task_of(granted.job_id) is None:
        raise BadGrant(f"the grant is of another job: {granted.job_id}, not {run.job_id}")
    if granted.restarts != run.restarts:
        raise BadGrant(f"the grant is of another restart of the job: {granted.restarts}, not {run.restarts}")


def _digest(nodes: Iterable[str]) -> str:
    names = sorted(set(nodes))
    text = "\n".join(names)
    if text.count("\n") >= max(len(names), 1):  # two lists could have the same text
        raise BadGrant("a node's name contains a line break")
    return _base64(hashlib.sha256(text.encode(errors="surrogatepass")).digest())


def _mac(signed: str, key: Key) -> str:
    return _base64(hmac.digest(key.secret, _DOMAIN + signed.encode(), "sha256"))


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def grant_in(extra: str) -> str | None:
    """The token of the grant in a job's `Extra`; None if there is none. Raises nothing, whatever the text."""
    tokens = [token for token in _SEGMENT.findall(extra) if is_token(token)] if _BEGIN in extra else []
    return tokens[-1] if tokens else None


def with_grant(extra: str, token: str) -> str | None:
    """The text of `Extra` with this grant instead of any other; None if it is longer than Slurm takes."""
    owners = _owners_text(extra)
    text = f"{owners}{_SEPARATOR}{_BEGIN}{token}" if owners else f"{_BEGIN}{token}"
    length = len(text.encode(errors="replace"))  # half of a surrogate pair stands for one byte
    return text if length <= MOST_BYTES else None


def without_grant(extra: str) -> str | None:
    """The text of `Extra` without a grant; None if there is none in it."""
    owners = _owners_text(extra)
    return None if owners == extra else owners


def _owners_text(extra: str) -> str:
    return _SEGMENT.sub("", extra) if _BEGIN in extra else extra
