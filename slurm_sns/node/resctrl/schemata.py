"""The lines of a schemata file, read and written; pure.

A line is `RESOURCE:domain=value;domain=value`. Cache masks are hexadecimal, bandwidth is decimal, domains are decimal
cache ids (gaps occur). The kernel pads names and values when it shows them. It changes only the domains that a write
names, and it parses all lines before it applies any: a wrong line changes nothing. A write without a final newline is
refused without a word. Source: the kernel's Documentation/filesystems/resctrl.rst.
"""

from collections.abc import Mapping

from slurm_sns.errors import SnsError

CACHES = ("L3", "L3CODE", "L3DATA", "L2", "L2CODE", "L2DATA")
BANDWIDTHS = ("MB", "SMBA")

# Resource -> domain -> mask or bandwidth.
Schemata = dict[str, dict[int, int]]


def parse(text: str) -> Schemata:
    """What a schemata file shows. Resources that we do not know are left out; SnsError on a line of another form."""
    found: Schemata = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, colon, values = line.partition(":")
        if not colon:
            raise SnsError(f"a line of schemata is {line!r}; valid: RESOURCE:domain=value;domain=value")
        resource = name.strip()
        if resource in CACHES or resource in BANDWIDTHS:
            found[resource] = dict(_pair(resource, pair) for pair in values.split(";"))
    return found


def _pair(resource: str, pair: str) -> tuple[int, int]:
    domain, _, value = pair.partition("=")
    base = 16 if resource in CACHES else 10
    try:
        return int(domain), int(value, base)
    except ValueError:
        kind = "hexadecimal mask" if resource in CACHES else "number"
        raise SnsError(f"schemata has {pair!r} for {resource}; valid: domain=value with a {kind}") from None


def lines(schemata: Mapping[str, Mapping[int, int]]) -> str:
    """The text to write: one line for each resource that has domains, in the given order, each with its newline."""
    return "".join(_line(resource, values) for resource, values in schemata.items() if values)


def _line(resource: str, values: Mapping[int, int]) -> str:
    form = "x" if resource in CACHES else "d"
    return f"{resource}:" + ";".join(f"{domain}={value:{form}}" for domain, value in sorted(values.items())) + "\n"
