"""What benchmarks share: clocks, rounds, random sides of a realistic shape, the JSON they write."""

import json
import os
import platform
import statistics
import time
from pathlib import Path

import torch

from crossgaze import __version__
from crossgaze.models.encoded import Encoded
from crossgaze.threads import cores

RESULTS = Path(__file__).parents[1] / "results"
SHORTEST, LONGEST = 7, 18  # words of a caption, 12 on average, as in the papers' sets


def clock(work):
    """Return wall and CPU seconds of a piece of work."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def rounds(works, count, *, warm=True):
    """Time pieces of work in turn, so that a slow minute of the machine is everybody's."""
    for work in works.values() if warm else ():
        work()
    taken = {name: [] for name in works}
    for _ in range(count):
        for name, work in works.items():
            taken[name].append(clock(work))
    return taken


def medians(taken):
    """Return the median wall and CPU seconds of each piece of work."""
    return {
        name: {
            "wall": round(statistics.median(wall for wall, _ in times), 4),
            "CPU": round(statistics.median(cpu for _, cpu in times), 4),
        }
        for name, times in taken.items()
    }


def ratio(taken, one, other):
    """Return how many times longer `one` took than `other`, median over the rounds."""
    pairs = list(zip(taken[one], taken[other], strict=True))
    return {
        "wall": round(statistics.median(a[0] / b[0] for a, b in pairs), 3),
        "CPU": round(statistics.median(a[1] / b[1] for a, b in pairs), 3),
    }


def random_images(count, regions, size, seed=0):
    """Return unit vectors, (count, regions, size)."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, regions, size, generator=generator)
    return Encoded(None, torch.nn.functional.normalize(x, dim=-1), torch.full((count,), regions))


def random_texts(count, size, seed=1):
    """Return unit vectors of captions with 7 to 18 words, padded."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(SHORTEST, LONGEST + 1, (count,), generator=generator)
    x = torch.randn(count, int(lengths.max()), size, generator=generator)
    return Encoded(None, torch.nn.functional.normalize(x, dim=-1), lengths)


def words_of(texts):
    """Return all real words of captions, one below the other, (words, D)."""
    return texts.fragments[texts.mask]


def machine():
    """Return what it runs on, as far as the system says."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return {
        "processor": next((x.split(": ")[1] for x in lines if x.startswith("model name")), ""),
        "memory, bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def write(name, what, *, folder=RESULTS, **found):
    """Write a result beside what it was measured on."""
    result = {
        "what": what,
        "cores": cores(),
        "machine": platform.machine(),
        "ran_on": machine(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
        "crossgaze": __version__,
        "command": f"python benchmarks/bench_{name.replace('-', '_')}.py",
        **found,
    }
    path = folder / f"bench-{name}.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(f"written to {path}")
