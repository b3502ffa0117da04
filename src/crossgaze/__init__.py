"""crossgaze: match images and sentences by looking closely at words and regions.

Importing the package costs next to nothing: what needs torch or NumPy is imported when it is first
used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossgaze.asking.ask import ask
    from crossgaze.models.checkpoints import import_checkpoint
    from crossgaze.models.pretrained import load
    from crossgaze.search.index import Index

__version__ = "0.1.0"
__all__ = ["Index", "ask", "import_checkpoint", "load"]

_HOMES = {
    "Index": "crossgaze.search.index",
    "ask": "crossgaze.asking.ask",
    "import_checkpoint": "crossgaze.models.checkpoints",
    "load": "crossgaze.models.pretrained",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 (a module's attribute is anything)
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'crossgaze' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
