"""The families of models by name; a family's module is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from crossgaze.errors import InputError, nearest
from crossgaze.models.matcher import Matcher

# family -> (module, model class, configuration class)
FAMILIES = {
    "vse++": ("vse", "Vse", "VseConfig"),
    "sum-max": ("summax", "SumMax", "SumMaxConfig"),
    "scan": ("scan", "Scan", "ScanConfig"),
    "bfan": ("bfan", "Bfan", "BfanConfig"),
    "vsrn": ("vsrn", "Vsrn", "VsrnConfig"),
    "m-dan": ("dan", "Dan", "DanConfig"),
    "mmca": ("mmca", "Mmca", "MmcaConfig"),
}


def family(name: str) -> tuple[type[Matcher], type[Any]]:
    """Return a family's model class and its configuration class.

    Example:
        >>> family("scan")[0].__name__
        'Scan'
    """
    if name not in FAMILIES:
        raise InputError(
            f"family: unknown name {name!r}{nearest(str(name), FAMILIES)}, "
            f"wanted one of {', '.join(FAMILIES)}"
        )
    module, model, config = FAMILIES[name]
    found = import_module(f"crossgaze.models.{module}")
    return getattr(found, model), getattr(found, config)
