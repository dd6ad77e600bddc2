"""Durations as people read them."""


def duration(seconds: float) -> str:
    """`3 s`, `12 min`, `5.2 h`, `3.1 d`."""
    if seconds < 120:
        return f"{max(0, seconds):.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86400:.1f} d"
