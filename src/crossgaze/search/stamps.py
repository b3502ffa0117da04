"""Making sure that an index meets the models and the region model that it was made with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crossgaze.devices import find_device
from crossgaze.errors import InputError
from crossgaze.models import finding
from crossgaze.models.ensemble import Ensemble
from crossgaze.models.matcher import Matcher
from crossgaze.search.head import Head
from crossgaze.search.models import Stamp, load_model, share_berts
from crossgaze.vision.settings import ExtractConfig
from crossgaze.vision.sources.base import RegionSource
from crossgaze.vision.sources.making import make_source

Model = str | Path | Matcher | Ensemble


def load_stamped(folder: Path, role: str, stamp: Stamp, given: Model | None) -> Matcher | Ensemble:
    """Load one of an index's models and make sure that it is the one.

    Args:
        folder: the index.
        role: "embedder" or "reranker".
        stamp: the model that it was made with.
        given: the model, or where it now lies; None for where it lay.
    """
    if given is None and not stamp.source:
        raise InputError(f"{folder}: was made with a {role} that had no folder, give it again")
    try:
        model, found = load_model(_where(stamp.source) if given is None else given)
    except InputError as error:
        raise InputError(
            f"{folder}: its {role} cannot be loaded ({error}); put the model back, or name where "
            f"it is now with --{role}"
        ) from None
    if found.digest != stamp.digest:
        raise InputError(
            f"{folder}: was made with the {role} {stamp.family} {stamp.digest} ({stamp.source}), "
            f"{found.source or 'the given one'} is {found.family} {found.digest}; take the first, "
            "or index the photographs again into a new folder"
        )
    return model


def load_pair(
    folder: Path, head: Head, embedder: Model | None, reranker: Model | None
) -> tuple[Matcher | Ensemble, Matcher | Ensemble | None]:
    """Load both models of an index, as `load_stamped` does; None where it has no re-ranker."""
    first = load_stamped(folder, "embedder", head.embedder, embedder)
    if head.reranker is None:
        if reranker is not None:
            raise InputError(f"{folder}: was made without a reranker; index again to have one")
        share_loaded([embedder], first)
        return first, None
    second = load_stamped(folder, "reranker", head.reranker, reranker)
    share_loaded((embedder, reranker), first, second)
    return first, second


def share_loaded(given: Sequence[Model | None], *models: Matcher | Ensemble) -> None:
    """Let models share a frozen BERT if all were loaded here; a given one is its owner's.

    Args:
        given: what the models were asked for by.
        models: the models.
    """
    if not any(isinstance(one, Matcher | Ensemble) for one in given):
        share_berts(models)


def _where(source: str) -> str | Path:
    """Return a model that ships by its folder: one of the user's with its name is another."""
    return finding.ZOO / source if source in finding.zoo_models() else source


def open_source(extract: ExtractConfig) -> RegionSource:
    """Load what makes regions."""
    return make_source(extract, find_device(extract.device))


def made_by(source: RegionSource) -> dict[str, Any]:
    """Return what decides a source's regions, as JSON reads it back."""
    return dict(json.loads(json.dumps(dict(source.made_by))))


def require_same_source(folder: Path, head: Head, source: RegionSource) -> None:
    """Refuse regions that are made otherwise than the index's were."""
    now = made_by(source)
    for what in sorted({*now, *head.made_by}):
        if now.get(what) != head.made_by.get(what):
            raise InputError(
                f"{folder}: its regions were made with {what} = {head.made_by.get(what)!r}, now it "
                f"is {now.get(what)!r}; index the photographs again into a new folder"
            )
