"""How the report writes times, differences and parts: short, with a unit that suits their size."""

from slurm_sns.sim.site_report.bootstrap import RatioInterval

#: A unit is used from twice its length on, so that numbers have two digits.
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))
#: Names of partitions are cut here.
LONGEST_NAME = 40


def span(seconds: float) -> str:
    """A wait: `45 s`, `38 min`, `5.2 h`, `3.1 d`."""
    length_s, unit = _unit(seconds)
    return f"{_number(seconds / length_s)} {unit}"


def difference(seconds: float, interval: RatioInterval | None) -> str:
    """A difference with its interval in one unit: `-12 min [-20, -4.1]`; without one, `-12 min`."""
    length_s, unit = _unit(max(abs(each) for each in (seconds, *(interval or ()))))
    text = f"{_number(seconds / length_s, sign=True)} {unit}"
    if interval is None:
        return text
    return f"{text} [{_number(interval.low / length_s, sign=True)}, {_number(interval.high / length_s, sign=True)}]"


def part(fraction: float) -> str:
    """A part as a percentage: `12 %`, `0.4 %`."""
    return f"{_number(100 * fraction)} %"


def count(number: int, one: str, many: str = "") -> str:
    """`1 week`, `3 weeks`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def listed(names: list[str]) -> str:
    """`a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def name(text: str) -> str:
    """The name of a partition, or what stands for none."""
    return (text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 3]}...") or "(none)"


def _unit(seconds: float) -> tuple[int, str]:
    return next((each for each in _UNITS if abs(seconds) >= 2 * each[0]), (1, "s"))


def _number(value: float, *, sign: bool = False) -> str:
    digits = 0 if abs(value) >= 10 or value == round(value) else 1
    text = f"{value:{'+' if sign else ''},.{digits}f}"
    return "0" if text in ("+0", "-0", "+0.0", "-0.0", "0.0") else text
