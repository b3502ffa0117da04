"""Tiles: images or sentences with equally many fragments, so that nothing in them is padding.

Padding costs twice: it is computed, and it is masked. Sentences of one length lie in memory as one
dense block, over which every step of a kernel is a long contiguous loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from crossgaze.models.encoded import Encoded


@dataclass(frozen=True)
class Tile:
    """Images or sentences with equally many fragments.

    Args:
        rows: (I,) int64, where they stand among all.
        side: the I of them; `fragments`, if any, are (I, count, D) without padding.
    """

    rows: Tensor
    side: Encoded

    @property
    def count(self) -> int:
        """Fragments of each; 1 where a model keeps one vector only."""
        return 1 if self.side.fragments is None else self.side.fragments.shape[1]


def make_tiles(
    batches: Encoded | Iterable[Encoded], fragments: int, *, items_first: bool = True
) -> Iterator[Tile]:
    """Cut a side into tiles of at most so many fragments, or of one image or sentence.

    Args:
        batches: a side, or the parts of one in order. Parts are taken one by one and not kept, so
            that a side larger than memory in its padded form can be packed.
        fragments: how many a tile may hold; a single image or sentence may have more.
        items_first: how fragments lie in memory, (items, count, D) or (count, items, D); they are
            (items, count, D) to look at either way. What suits a kernel saves it a copy.
    """
    batches = [batches] if isinstance(batches, Encoded) else batches
    waiting: dict[int, list[Tile]] = {}
    start = 0
    for batch in batches:
        for tile in _by_count(batch, start, fragments, items_first):
            items = max(fragments // tile.count, 1)
            if len(tile.rows) == items:
                yield tile
                continue
            rest = waiting.setdefault(tile.count, [])
            if sum(len(other.rows) for other in rest) + len(tile.rows) > items:
                yield _join(rest)
                rest.clear()
            rest.append(tile)
        start += len(batch)
    for rest in waiting.values():
        yield _join(rest)


def _by_count(side: Encoded, start: int, fragments: int, items_first: bool) -> Iterator[Tile]:
    """Cut one side, whose first row is number `start` among all."""
    if not len(side):
        return
    if side.fragments is None:
        groups = {1: torch.arange(len(side), device=side.counts.device)}
    else:
        counts = sorted(set(side.counts.tolist()))
        groups = {count: (side.counts == count).nonzero().flatten() for count in counts}
    for count, rows in groups.items():
        for chosen in torch.split(rows, max(fragments // count, 1)):
            yield Tile(chosen + start, _pick(side, chosen, count, items_first))


def _pick(side: Encoded, rows: Tensor, count: int, items_first: bool) -> Encoded:
    """Return some rows of a side, cut to their real fragments."""
    first, last = int(rows[0]), int(rows[-1])
    # Rows that follow each other are a view of what is there, the others a copy.
    together = last - first + 1 == len(rows)

    def pick(part: Tensor) -> Tensor:
        return part[first : last + 1] if together else part.index_select(0, rows)

    def cut(part: Tensor) -> Tensor:
        if items_first or not part.is_contiguous():
            return pick(part[:, :count])
        # Fragment by fragment, in the order in which they shall lie.
        places = torch.arange(count, device=rows.device)[:, None] + rows * part.shape[1]
        found = part.flatten(0, 1).index_select(0, places.flatten())  # (count items, D)
        return found.view(count, len(rows), -1).transpose(0, 1)

    return replace(
        side,
        vectors=None if side.vectors is None else pick(side.vectors),
        fragments=None if side.fragments is None else cut(side.fragments),
        counts=pick(side.counts),
        features=None,  # only attention maps read them
    )


def _join(tiles: list[Tile]) -> Tile:
    """Make one tile of several with the same count."""
    if len(tiles) == 1:
        return tiles[0]

    def join(parts: list[Tensor | None]) -> Tensor | None:
        there = [part for part in parts if part is not None]
        return torch.cat(there) if there else None

    sides = [tile.side for tile in tiles]
    return Tile(
        torch.cat([tile.rows for tile in tiles]),
        Encoded(
            vectors=join([side.vectors for side in sides]),
            fragments=join([side.fragments for side in sides]),
            counts=torch.cat([side.counts for side in sides]),
        ),
    )
