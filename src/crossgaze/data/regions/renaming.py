"""Ids of region features that are bare numbers, as the names that a data set gives its images."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from crossgaze.errors import InputError

Rename = Callable[[str], str]
_NUMBER = re.compile(r"(\d+)(?:\.\w+)?$", re.ASCII)  # at the end, before the file's ending


def renamed_by_number(images: Iterable[str]) -> Rename:
    """Return a function from a bare number to the image whose name ends in it.

    Bottom-up attention's files say 391895 where captions say COCO_val2014_000000391895.jpg. What is
    no number, or one that no image has, stays as it is.

    Args:
        images: names of a data set's images.

    Example:
        >>> name = renamed_by_number(["COCO_val2014_000000391895.jpg", "b.jpg"])
        >>> name("391895"), name("7"), name("b.jpg")
        ('COCO_val2014_000000391895.jpg', '7', 'b.jpg')
    """
    by_number: dict[int, str] = {}
    for image in images:
        found = _NUMBER.search(image)
        if found is None:
            continue
        number = int(found[1])
        if by_number.setdefault(number, image) != image:
            raise InputError(
                f"names: {image} and {by_number[number]} end in the same number, wanted images "
                "that numbers tell apart"
            )
    if not by_number:
        raise InputError("names: no image's name ends in a number")

    def rename(name: str) -> str:
        plain = name.isascii() and name.isdecimal() and len(name) <= 18
        return by_number.get(int(name), name) if plain else name

    return rename
