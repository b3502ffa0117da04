"""SIGKILL at random moments, cheap enough for fifty of them in a row."""

import multiprocessing
import os
import random
import signal
import time
from multiprocessing import forkserver
from pathlib import Path

import crossgaze
import killing_work

# Each process is a fork of one that has imported torch; and that one has no threads, which a fork
# of pytest's own process might lose while they hold a lock.
_CONTEXT = multiprocessing.get_context("forkserver")
# Beside the work itself this is what takes long to import and starts no threads: what training
# steps and draws with, and most of what LanceDB imports. LanceDB has threads and is never here.
_CONTEXT.set_forkserver_preload(
    ["killing_work", "torch._dynamo", "matplotlib.pyplot", "lance_namespace"]
)


def _start_server():
    """Start the server of forks where it finds what it shall import; pytest's path is its own."""
    ours = [Path(__file__).parent, Path(crossgaze.__file__).parents[1]]
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([*map(str, ours), *([before] if before else [])])
    try:
        forkserver.ensure_running()
    finally:
        del os.environ["PYTHONPATH"]
        if before is not None:
            os.environ["PYTHONPATH"] = before


def start(work, *args):
    """Start a process; return it and the end of its pipe, once it has begun."""
    _start_server()
    told, tell = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=killing_work.begun, args=(work, tell, *args), daemon=True)
    process.start()
    tell.close()
    assert told.recv() == "begun"
    return process, told


def lines_of(told):
    """Return what a process told until it ended; of a line that a kill cut off, nothing."""
    lines = []
    try:
        while True:
            lines.append(told.recv())
    except (EOFError, OSError):
        return lines


def calm(work, *args):
    """Let the work come to its end; return its seconds."""
    process, _ = start(work, *args)
    began = time.monotonic()
    process.join()
    assert process.exitcode == 0
    return time.monotonic() - began


def kill(work, *args, after):
    """Kill the work some seconds after it began; return whether it was still going."""
    process, told = start(work, *args)
    time.sleep(after)
    process.kill()
    process.join()
    told.close()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode == -signal.SIGKILL


def kill_often(kills, work, *args, seconds, check, again, seed=0):
    """Kill the work so many times, at moments drawn evenly from all of it, each time going on.

    Args:
        kills: that met a process still at work; one that had ended does not count.
        work: of `killing_work`.
        args: of the work.
        seconds: how long it takes when nobody kills it.
        check: called after every kill.
        again: called when the work came to its end, to start from nothing.
        seed: of the moments.
    """
    rng, done = random.Random(seed), 0
    for _ in range(40 * kills):
        if kill(work, *args, after=rng.random() * seconds):
            done += 1
            check()
            if done == kills:
                return
        else:
            again()
    raise AssertionError(f"only {done} of {kills} kills met a process at work")
