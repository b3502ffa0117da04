"""See why: where a model looked when it compared a photograph with a sentence.

`explain` gives the weights, `save` draws them as HTML, SVG or a picture; see `docs/explain.md`.
Names are imported when they are first used, so that what only draws does not load torch.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossgaze.explain.explaining import explain
    from crossgaze.explain.explanation import Explanation
    from crossgaze.explain.saving import save
    from crossgaze.explain.sheet import draw_sheet

__all__ = ["Explanation", "draw_sheet", "explain", "save"]

_HOMES = {
    "Explanation": "explanation",
    "draw_sheet": "sheet",
    "explain": "explaining",
    "save": "saving",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 (a module's attribute is anything)
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'crossgaze.explain' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"crossgaze.explain.{_HOMES[name]}"), name)
