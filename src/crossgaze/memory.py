"""How much memory there is, asked before much of it is taken."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from crossgaze.errors import InputError

KEPT = 0.9  # of what is free; the rest is for everything else
_MEMINFO = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")  # where a container's own limit stands


def free_bytes() -> int | None:
    """Return how many bytes a process could take without anybody swapping; None if unknown.

    Linux tells, of the machine and of the container; other systems do not tell so simply.
    """
    found: list[int] = []
    with suppress(OSError, ValueError, StopIteration):
        lines = _MEMINFO.read_text("ascii").splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        found.append(int(line.split()[1]) * 1024)
    with suppress(OSError, ValueError):  # "max" where there is no limit
        most = int((_GROUP / "memory.max").read_text("ascii"))
        used = int((_GROUP / "memory.current").read_text("ascii"))
        found.append(max(most - used, 0))
    return min(found) if found else None


def require_room(name: str, count: int, each: int, unit: str, instead: str) -> None:
    """Refuse what would not fit into memory, with the number that would.

    Args:
        name: the setting that asks for it.
        count: how many are wanted.
        each: bytes of one.
        unit: what they are.
        instead: what else to do.
    """
    free = free_bytes()
    if free is None or count * each <= free * KEPT:
        return
    raise InputError(
        f"{name}: {count:,} {unit} need {count * each:,} bytes of memory, {free:,} are free: "
        f"{int(free * KEPT) // each:,} would fit; {instead}"
    )
