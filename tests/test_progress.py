"""A bar where a person watches, with a rate that is right from the first step."""

import re
import sys

import pytest

from crossgaze import progress
from crossgaze.progress import Pace, progress_bar


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_the_pace_is_right_from_the_first_step_and_does_not_count_what_was_there():
    clock = Clock()
    pace = Pace(clock)
    assert (pace.rate, pace.seconds_left) == (None, None)
    pace.step(5000, 5200)  # resumed
    assert (pace.rate, pace.seconds_left) == (None, None)
    clock.now += 4
    pace.step(5032, 5200)
    assert pace.rate == pytest.approx(8)
    assert pace.seconds_left == pytest.approx(168 / 8)
    clock.now += 60  # a long group: until it is reported the pace stands
    assert pace.rate == pytest.approx(8)
    clock.now += 4
    pace.step(5168, 5200)
    assert pace.rate == pytest.approx(168 / 68)
    pace.step(5200, 5200)
    assert pace.seconds_left == 0


def test_nothing_new_has_no_pace():
    clock = Clock()
    pace = Pace(clock)
    pace.step(7, 7)
    clock.now += 1
    pace.step(7, 7)
    assert (pace.rate, pace.seconds_left) == (None, None)


def terminal(monkeypatch):
    """Make stderr a terminal, and return the clock that the pace is told by."""
    # Within the test: pytest exchanges stderr between a test's setting up and its call.
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    clock = Clock()
    monkeypatch.setattr(progress, "Pace", lambda: Pace(clock))
    return clock


def shown(capfd):
    """Return what stands on the terminal, without its colours and cursor moves."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capfd.readouterr().err)


def test_a_bar_with_rate_and_time_left(capfd, monkeypatch):
    clock = terminal(monkeypatch)
    with progress_bar("Working", "things") as step:
        step(1000, 1100)
        clock.now += 2
        step(1020, 1100)
    last = shown(capfd).rstrip().splitlines()[-1]
    assert "Working" in last
    assert "1020/1100" in last
    assert "10.0 things/s" in last
    assert "0:00:08 left" in last


def test_a_bar_of_something_that_is_not_counted_in_units(capfd, monkeypatch):
    clock = terminal(monkeypatch)
    with progress_bar("Working", "") as step:
        step(0, 4)
        clock.now += 2
        step(2, 4)
    last = shown(capfd).rstrip().splitlines()[-1]
    assert "/s" not in last
    assert "0:00:02 left" in last


def test_a_line_a_minute_off_a_terminal(capfd, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress.time, "monotonic", clock)
    with progress_bar("Working", "things") as step:
        step(1000, 9000)
        for _ in range(4):
            clock.now += 20
            step(1000 + int(clock.now - 100) * 2, 9000)
        clock.now += 50
        step(1400, 9000)
    assert capfd.readouterr().err.splitlines() == [
        "Working: 1,120 of 9,000, 2.0 things/s, 1:05:40 left",
        "Working: 1,400 of 9,000, 3.1 things/s, 0:41:10 left",
    ]


def test_silence_off_a_terminal_about_what_is_soon_done(capfd, monkeypatch):
    with progress_bar("Working") as step:
        step(1, 2)
        step(2, 2)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr(sys, "stderr", None)
    with progress_bar("Working") as step:
        step(1, 2)
    assert capfd.readouterr() == ("", "")
