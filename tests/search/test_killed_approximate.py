"""An approximate index whose process is killed while it grows, or while it is made anew."""

import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from engine_parts import MORE, SMALL, WIDTH, entry, ranked, vectors
from reliability_parts import record

pytest.importorskip("lancedb", reason="needs crossgaze[search]")
CHILD = Path(__file__).parent / "approximating_child.py"
BEGUN = 600  # entries that there are before anybody is killed


def all_rows(count):
    """What the database should hold: the first entries, and then what the child adds."""
    rows = [vectors(BEGUN), *(vectors(MORE, seed=first) for first in range(BEGUN + 1, count, MORE))]
    every = np.concatenate(rows)
    return {n + 1: (entry(n + 1), every[n]) for n in range(count)}


def kill_at_work(folder, seconds):
    """Start a child and kill it some seconds after its first words; return how many it told of."""
    words = [sys.executable, str(CHILD), str(folder)]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = [child.stdout.readline()]
    time.sleep(seconds)
    assert child.poll() is None  # it never ends by itself
    child.kill()
    rest, errors = child.communicate()
    assert errors == ""
    lines += rest.splitlines()
    return max(int(line.split()[1]) for line in lines if line.startswith("held"))


@pytest.mark.parametrize("kills", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_killed_while_its_index_grows_and_is_made_anew(request, tmp_path, monkeypatch, kills):
    from crossgaze.search import lance

    for name, value in SMALL.items():
        monkeypatch.setattr(lance, name, value)
    folder, rng, query = tmp_path / "db", random.Random(0), vectors(1, seed=9)[0]
    engine = lance.LanceEngine(folder, "photos", WIDTH, create=True, exact=500)
    engine.add([entry(n + 1) for n in range(BEGUN)], vectors(BEGUN))
    engine.tidy()
    for _ in range(kills):
        told = kill_at_work(folder, 1.5 * rng.random())
        engine = lance.LanceEngine(folder, "photos", WIDTH, exact=500)
        count = len(engine)
        assert count in (told, told + MORE)  # whole batches, and all that were acknowledged
        there = all_rows(count)
        assert sorted(one.uid for part in engine.every() for one in part) == sorted(there)
        for tidied in (False, True):
            if tidied:
                engine.tidy("unchanged")  # as the next run does, though nothing has changed
                index = engine._vector_index()
                assert index.num_segments <= SMALL["SEGMENTS"]
                assert index.num_unindexed_rows < SMALL["UNINDEXED"]
            uids, _ = engine.search(query, 100, None)
            assert len(set(uids.tolist()) & set(ranked(there, query, 100)[0])) >= 95
        engine.close()
    record(request, kills=kills)
