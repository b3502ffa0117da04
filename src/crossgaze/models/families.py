"""The families of models by name; a family's module is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from crossgaze.errors import InputError, nearest
from crossgaze.models.base import Model

# family -> (module, model class, configuration class), of those that match
FAMILIES = {
    "vse++": ("vse", "Vse", "VseConfig"),
    "sum-max": ("summax", "SumMax", "SumMaxConfig"),
    "scan": ("scan", "Scan", "ScanConfig"),
    "bfan": ("bfan", "Bfan", "BfanConfig"),
    "vsrn": ("vsrn", "Vsrn", "VsrnConfig"),
    "m-dan": ("dan", "Dan", "DanConfig"),
    "mmca": ("mmca", "Mmca", "MmcaConfig"),
}
# the same, of those that answer questions
ANSWERERS = {"r-dan": ("rdan", "RDan", "RDanConfig")}


def family(name: str) -> tuple[type[Model], type[Any]]:
    """Return a family's model class and its configuration class.

    Example:
        >>> family("scan")[0].__name__
        'Scan'
    """
    known = FAMILIES | ANSWERERS
    if name not in known:
        raise InputError(
            f"family: unknown name {name!r}{nearest(str(name), known)}, "
            f"wanted one of {', '.join(known)}"
        )
    module, model, config = known[name]
    found = import_module(f"crossgaze.models.{module}")
    return getattr(found, model), getattr(found, config)
