"""Random constraints on the features of the mini cluster's nodes (containers/etc/slurm.conf)."""

import random

FEATURES = ("ib", "opa", "avx2", "avx512", "big", "ssd")


def constraint(draw: random.Random) -> str:
    """One to four parts, joined by `&` and `|`: names, or two or three names in parentheses."""
    parts = [_part(draw) for _ in range(draw.randint(1, 4))]
    return "".join(part + draw.choice("&|") for part in parts[:-1]) + parts[-1]


def _part(draw: random.Random) -> str:
    if draw.random() < 0.6:
        return draw.choice(FEATURES)
    names = [draw.choice(FEATURES) for _ in range(draw.randint(2, 3))]
    return "(" + "".join(name + draw.choice("&|") for name in names[:-1]) + names[-1] + ")"
