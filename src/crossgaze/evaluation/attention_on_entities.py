"""A model's attention on the phrases of Flickr30k Entities: pairs, tokens and boxes together.

What is measured stands in `crossgaze.evaluation.attention_quality`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from crossgaze.data.captions.captioned import CaptionedImages
from crossgaze.data.entities.alignment import EntityAlignment, align
from crossgaze.data.entities.annotations import EntityImage
from crossgaze.data.entities.word_links import fold, link_words
from crossgaze.errors import InputError
from crossgaze.evaluation.attention_quality import (
    MEASURES,
    AttentionConfig,
    AttentionQuality,
    phrase_quality,
)
from crossgaze.evaluation.sources import RegionSource
from crossgaze.models.matcher import Matcher
from crossgaze.models.text import RecurrentText

CAPTIONS = 64  # pairs whose attention is computed together


class NoMapError(InputError):
    """The model has no attention of words over regions."""


def measure_attention(
    model: Matcher,
    regions: RegionSource,
    captioned: CaptionedImages,
    entities: Mapping[str, EntityImage],
    config: AttentionConfig | None = None,
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> AttentionQuality:
    """Measure a model's attention on captions whose phrases have boxes.

    Args:
        model: one that has the map, such as SCAN t-i or BFAN.
        regions: of the captioned images, with boxes and image sizes.
        captioned: images and captions.
        entities: Flickr30k Entities, see `crossgaze.data.entities.archive.Entities.open`.
        config: what counts as attended and relevant.
        on_progress: called with (captions done, captions in all).
    """
    config = config or AttentionConfig()
    if regions.boxes is None or regions.sizes is None:
        raise InputError(f"{regions.name}: has no boxes, wanted regions whose place is known")
    aligned = align(captioned, entities)
    found: list[dict[str, float]] = []
    owners: list[int] = []
    work = list(_work(captioned, aligned, entities, regions.sizes))
    if not work:
        raise InputError(f"{captioned.name}: no caption has a phrase with a box in the entities")
    for start in range(0, len(work), CAPTIONS):
        part = work[start : start + CAPTIONS]
        weights, counts, drops = _weights(model, regions, captioned, part, config)
        for row, (image, caption, phrases) in enumerate(part):
            k = int(counts[row])
            threshold = config.limit(k, drops=drops)
            spans = token_spans(model, captioned.captions[caption], aligned.captions[caption].words)
            places = np.asarray(regions.boxes[regions.rows[image]], np.float64)[:k]
            for first, last, boxes in phrases:
                tokens = sorted({t for span in spans[first:last] for t in range(*span)})
                if not tokens:
                    continue
                mine = weights[row, tokens, :k].astype(np.float64)
                found.append(phrase_quality(mine, places, boxes, threshold, config))
                owners.append(image)
        if on_progress:
            on_progress(start + len(part), len(work))
    values = {name: np.array([row[name] for row in found]) for name in MEASURES}
    notes = tuple(str(entry) for entry in aligned.left_out)
    return AttentionQuality(values, np.array(owners, np.int64), len(captioned), notes)


Work = tuple[int, int, list[tuple[int, int, npt.NDArray[Any]]]]


def _work(
    captioned: CaptionedImages,
    aligned: EntityAlignment,
    entities: Mapping[str, EntityImage],
    sizes: npt.NDArray[np.int32],
) -> Iterator[Work]:
    """Give image, caption and phrases (first and last word, boxes) of what can be measured."""
    images: dict[str, EntityImage] = {}
    for caption, (image, found) in enumerate(
        zip(captioned.image_of.tolist(), aligned.captions, strict=True)
    ):
        if found.image is None:
            continue
        known = images.get(found.image)
        if known is None:
            images = {found.image: (known := entities[found.image])}  # captions come by image
        width, height = (float(side) for side in sizes[image])
        placed = [(p.first, p.last, known.boxes_of(p, (width, height))) for p in found.phrases]
        phrases = [phrase for phrase in placed if len(phrase[2])]
        if phrases:
            yield image, caption, phrases


def _weights(
    model: Matcher,
    regions: RegionSource,
    captioned: CaptionedImages,
    part: Sequence[Work],
    config: AttentionConfig,
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64], bool]:
    """Return the attention of some pairs, (P, words, regions), and their numbers of regions.

    And whether the model itself sets weights to 0.
    """
    images = sorted({image for image, _, _ in part})
    place = {image: row for row, image in enumerate(images)}
    with torch.no_grad():
        seen = model.encode_images(*regions.read(images))
        seen = seen[[place[image] for image, _, _ in part]]
        said = model.encode_texts([captioned.captions[caption] for _, caption, _ in part])
        found = model.attention(seen, said)
    if found.weights is None or config.map not in found.names:
        names = ", ".join(found.names) or "none"
        raise NoMapError(
            f"{model.family}: has no map {config.map!r} of words over regions (its maps: {names})"
        )
    weights = found.weights[:, found.names.index(config.map)].numpy(force=True)
    return weights, seen.counts.numpy(force=True), found.dense is not None


def token_spans(model: Matcher, text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Return for each word of a caption the model's tokens [first, last) that stand for it.

    Args:
        model: whose tokens; a BERT cuts words into pieces.
        text: the caption.
        words: its words, as `caption_words` gives them.
    """
    if isinstance(model.text, RecurrentText):  # <start>, the same words, <end>
        return [(place, place + 1) for place in range(1, len(words) + 1)]
    # [CLS] and [SEP] stand for no word; ## marks a piece that goes on.
    pieces = ["", *(fold(token) for token in model.text.tokens(text)[1:-1]), ""]
    links, _ = link_words([fold(word) for word in words], pieces)
    return [(0, 0) if link is None else link for link in links]
