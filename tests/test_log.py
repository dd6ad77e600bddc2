"""A flood of events is a bounded number of lines, and none is left out unsaid."""

from slurm_sns.log import PERIOD_S, LimitedLog


def test_a_minute_has_so_many_lines_and_the_next_says_how_many_were_left_out() -> None:
    lines: list[str] = []
    now_s = [0.0]
    log = LimitedLog(lines.append, 2, lambda: now_s[0])
    for number in range(5):
        log(f"event {number}")
    assert lines == ["event 0", "event 1"]
    now_s[0] = PERIOD_S
    log("event 5")
    assert lines[2:] == ["3 more such lines were left out", "event 5"]
    now_s[0] = 3 * PERIOD_S
    log.tick()
    assert len(lines) == 4
