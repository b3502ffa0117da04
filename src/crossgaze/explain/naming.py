"""Which names of regions are shown to people: those that the region model itself believes in.

Every region has a likeliest noun and a likeliest attribute, however unlikely: a patch of sky is
called "white tree" at 8 %. Below a face such a name looks like the explanation's own mistake, so it
is left out, and the region is "region 7" there.
"""

from __future__ import annotations

SURE = 0.5  # a noun is shown where it is likelier than all others together
FITTING = 0.25  # an attribute needs half of that: of many, several fit the same thing


def sure_names(
    noun: str,
    attribute: str,
    noun_probability: float | None = None,
    attribute_probability: float | None = None,
) -> tuple[str, str]:
    """Return a region's noun and attribute, "" for what its model is not sure of.

    Args:
        noun: what the region model calls it.
        attribute: how.
        noun_probability: of the noun; None where nobody says, as in a store made elsewhere: then
            the name is taken as it is.
        attribute_probability: likewise. An attribute never stands without its noun.

    Example:
        >>> sure_names("dog", "brown", 0.8, 0.3), sure_names("dog", "wet", 0.8, 0.1)
        (('dog', 'brown'), ('dog', ''))
        >>> sure_names("tree", "white", 0.08, 0.9), sure_names("tree", "white")
        (('', ''), ('tree', 'white'))
    """
    if not noun or (noun_probability is not None and not noun_probability >= SURE):
        return "", ""
    unsure = attribute_probability is not None and not attribute_probability >= FITTING
    return noun, "" if unsure else attribute


def spoken(noun: str, attribute: str) -> str:
    """Return both as people say them.

    Example:
        >>> spoken("dog", "brown"), spoken("dog", ""), spoken("", "")
        ('brown dog', 'dog', '')
    """
    return f"{attribute} {noun}".strip()
