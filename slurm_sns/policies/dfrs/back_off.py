"""GREEDY's back-off: when a job that found no place is tried again.

Source: Dynamic fractional resource scheduling (IPDPS 2010), section III-A.
"""

MOST_DOUBLINGS = 12


def back_off_s(failures: int) -> int:
    """Seconds until the next attempt of a job after so many failed ones, the last included: 2 s, 4 s, ... 4,096 s."""
    return 1 << min(failures, MOST_DOUBLINGS)
