"""A daemon that is told to stop does so, wherever the signal finds it."""

import subprocess
import sys

#: The signal comes at one line after the other of a sleep, in our code and in the library's.
EVERYWHERE = """
import os, signal, sys
from slurm_sns.cli.live.process import StopSignal

def stopped_at(wanted):
    stop, lines = StopSignal(), 0

    def trace(frame, event, _argument):
        nonlocal lines
        if event == "line":
            lines += 1
            if lines == wanted:
                os.kill(os.getpid(), signal.SIGTERM)
        return trace

    sys.settrace(trace)
    stop.sleep(0.01)
    sys.settrace(None)
    if lines < wanted:
        return False
    assert stop.is_set()
    stop.sleep(3600)  # at once
    return True

wanted = 1
while stopped_at(wanted):
    wanted += 1
print(wanted - 1)
"""

#: The signal comes to another thread than the one that sleeps.
ANOTHER_THREAD = """
import signal, threading, time
from slurm_sns.cli.live.process import StopSignal

def send():
    time.sleep(0.2)
    signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

stop = StopSignal()
assert not stop.is_set()
threading.Thread(target=send).start()
stop.sleep(3600)
assert stop.is_set() and stop.hands_over()
print("stopped")
"""


def run(program: str) -> str:
    """What it prints; a test that hangs fails."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_stop_is_met_wherever_it_comes():
    assert int(run(EVERYWHERE)) > 0


def test_a_stop_that_another_thread_gets_wakes_the_sleeping_one():
    assert run(ANOTHER_THREAD) == "stopped\n"
