"""Profiles as YAML: read strictly, written so that reading gives the same values.

The subset of YAML is the configuration's: no aliases, tags or duplicate keys, and limits on size and depth.
"""

from collections.abc import Iterable
from pathlib import Path
from re import compile as pattern
from typing import Any

import yaml

from slurm_sns.config import yaml_text
from slurm_sns.errors import BadInput
from slurm_sns.policies.profile import Program
from slurm_sns.policies.spread_n_share.profile_reading import ProfileError, data_of, programs_of

SUBJECT = yaml_text.Subject("file of profiles", "needed are programs", "name a file of profiles")
WIDTH = 120


def read_profiles(path: Path, most_ways: int | None = None) -> tuple[Program, ...]:
    """The programs in that file, by name. `most_ways`: no node has more cache ways than that; None: not known.

    Raises:
        BadInput: one line that names file, line, program, field and what is valid.
    """
    data, lines = yaml_text.read(path, SUBJECT)
    try:
        return programs_of(data, most_ways)
    except ProfileError as problem:
        where = problem.where
        while where and where not in lines:
            where = where[:-1]
        raise BadInput(f"{path}, line {lines.get(where, 1)}: {problem}") from None


def profiles_text(programs: Iterable[Program]) -> str:
    """The programs as YAML."""
    text: str = yaml.dump(
        data_of(programs), Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=WIDTH, allow_unicode=True
    )
    return text


class _Dumper(yaml.SafeDumper):
    """SafeDumper for our own strict reader, which does not read scalars as YAML 1.1 does."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  the shape PyYAML asks for
        """Never an alias: the reader refuses them."""
        return True


_PLAIN = pattern(r"(?!(?:true|false|null)\Z)[A-Za-z_][A-Za-z0-9_]*\Z")
#: The reader accepts at most so many digits after the point.
_MOST_DECIMALS = 18


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = None if _PLAIN.match(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _float(dumper: yaml.SafeDumper, value: float) -> yaml.Node:
    text = repr(value)
    if len(text.partition(".")[2].partition("e")[0]) > _MOST_DECIMALS:
        text = f"{value:.17e}"
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e")  # without the point PyYAML writes a tag, which the reader refuses
    return dumper.represent_scalar("tag:yaml.org,2002:float", text)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(float, _float)
