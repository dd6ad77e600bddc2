"""The kernel's lists of numbers as text: `0-3,8` (cpuset.cpus, a PMU's cpumask, the bits of a PMU's format)."""


def numbers_of(text: str) -> tuple[int, ...]:
    """The numbers of the list, ascending; none for an empty text.

    Raises:
        ValueError: the text is no such list.
    """
    numbers: set[int] = set()
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            numbers.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(numbers))
