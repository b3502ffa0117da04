"""The families of models by name, those that ship and those of your own.

A family's module is imported when it is asked for. One of your own is a file that nobody installs:
`register` makes its model known to Python, and `CROSSGAZE_MODELS` names such files to the command
line, which runs them when it meets a family that does not ship. A saved model never says which
code to run.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from dataclasses import is_dataclass
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from crossgaze.errors import InputError, nearest, require_file
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
VARIABLE = "CROSSGAZE_MODELS"

AModel = TypeVar("AModel", bound=Model)
_own: dict[str, tuple[type[Model], type[Any]]] = {}


def family(name: str) -> tuple[type[Model], type[Any]]:
    """Return a family's model class and its configuration class.

    Example:
        >>> family("scan")[0].__name__
        'Scan'
    """
    ships = FAMILIES | ANSWERERS
    if name in ships:
        module, model, config = ships[name]
        found = import_module(f"crossgaze.models.{module}")
        return getattr(found, model), getattr(found, config)
    own = _own_families()
    if name not in own:
        known = [*ships, *own]
        raise InputError(
            f"family: unknown name {name!r}{nearest(str(name), known)}, "
            f"wanted one of {', '.join(known)}, or one of your own by {VARIABLE}"
        )
    return own[name]


def answers(name: str) -> bool:
    """Whether a family answers questions; one that nobody knows does not."""
    if name in FAMILIES or name in ANSWERERS:
        return name in ANSWERERS
    from crossgaze.models.answerer import Answerer

    own = _own_families()
    return name in own and issubclass(own[name][0], Answerer)


def register(model: type[AModel]) -> type[AModel]:
    """Make a model of your own a family: a decorator of its class.

    The class says its name by `family` and its configuration, a frozen dataclass, by the annotation
    `config: MyConfig`. A name that ships is refused; a later one of your own replaces an earlier.

    Example:
        ```python
        @register
        class Mine(FragmentMatcher):
            family = "mine"
            config: MyConfig
        ```
    """
    name = model.__dict__.get("family")
    if not isinstance(name, str) or not name:
        raise InputError(f"{model.__name__}: got family {name!r}, wanted a name as a text")
    if name in FAMILIES or name in ANSWERERS or name == "ensemble":
        raise InputError(f"{model.__name__}: the family {name!r} ships, wanted a name of your own")
    config = get_type_hints(model).get("config")
    if not (isinstance(config, type) and is_dataclass(config)):
        raise InputError(f"{model.__name__}: wanted `config: A_DATACLASS`, its configuration")
    _own[name] = (model, config)
    return model


def _own_families() -> Mapping[str, tuple[type[Model], type[Any]]]:
    """Return the families that were registered, after running the files of `CROSSGAZE_MODELS`."""
    for path in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        _run_once(require_file(path, f"a model's Python file ({VARIABLE} names it)").resolve())
    return _own


def _run_once(path: Path) -> None:
    # A name that no other module has, and that two files of the same name do not share.
    name = f"crossgaze_own_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path}: is not a Python file ({VARIABLE} names it)")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and annotations are looked up there
    try:
        spec.loader.exec_module(module)
        if not any(model.__module__ == name for model, _ in _own.values()):
            raise InputError(f"{path}: registers no model, wanted @register before its class")
    except BaseException:
        del sys.modules[name]
        raise
