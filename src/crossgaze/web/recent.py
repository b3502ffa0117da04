"""What was used last is kept, within a bound."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """A cache that forgets what has not been asked for longest. Safe for several threads.

    Args:
        most: weight of all that is kept.
        weigh: weight of one value; 1 if not given.

    Example:
        >>> kept = Recent[str, int](2)
        >>> for name in "abc":
        ...     kept.put(name, 1)
        >>> kept.get("a"), kept.get("c"), kept.weight
        (None, 1, 2)
    """

    def __init__(self, most: int, weigh: Callable[[V], int] = lambda _: 1) -> None:
        self.most, self._weigh = most, weigh
        self.weight = 0
        self._kept: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        """Return a value that is still here."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key]

    def put(self, key: K, value: V) -> None:
        """Keep a value; one that is larger than the whole bound is not kept."""
        weight = self._weigh(value)
        with self._lock:
            if key in self._kept:
                self.weight -= self._weigh(self._kept.pop(key))
            if weight > self.most:
                return
            self._kept[key] = value
            self.weight += weight
            while self.weight > self.most:
                _, old = self._kept.popitem(last=False)
                self.weight -= self._weigh(old)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self.weight = 0
