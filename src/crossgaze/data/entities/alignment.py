"""Carry the phrases of Flickr30k Entities over to captions that come from another file.

Flickr8k and Flickr30K hold the same sentences in another order, and Entities mended their spelling
(grey/gray, blonde/blond), joined or split words (go kart/go-cart) and set punctuation apart. So,
within an image, captions and sentences are paired in two steps:

1. exact: the same letters and digits once case, accents, spaces and punctuation are folded away;
2. nearest: those left over, by the assignment with the largest total similarity, where a pair
   under `THRESHOLD` is no pair.

A phrase then follows the words: sentence words are linked to caption words, in order, and the
phrase becomes the caption words from its first link to its last.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from operator import itemgetter
from pathlib import PurePosixPath
from typing import Literal

from crossgaze.data.captions.captioned import CaptionedImages
from crossgaze.data.entities.annotations import EntityImage, EntitySentence, Phrase
from crossgaze.data.entities.word_links import fold, link_words
from crossgaze.data.left_out import LeftOut
from crossgaze.errors import InputError

# Of the 571 Flickr8k captions that differ from their sentence, 568 have a similarity of 0.63 or
# more (564 of 0.85 or more); the other three were cut short ("A basketball") and have 0.15 or
# less. Other sentences of the same image seldom reach 0.6: 9 % of the pairs.
THRESHOLD = 0.6


How = Literal["exact", "nearest", "none"]


def _assign(similar: Sequence[Sequence[float]], threshold: float) -> tuple[int | None, ...]:
    """Return a column or None for each row, each column once, with the largest sum.

    Only entries of at least `threshold` count as pairs. The search keeps the best way to use up
    each set of columns, at most 256 sets: exact for up to 8 columns, and bounded for any number.
    """
    best: dict[frozenset[int], tuple[float, tuple[int | None, ...]]] = {frozenset(): (0.0, ())}
    for row in similar:
        longer: dict[frozenset[int], tuple[float, tuple[int | None, ...]]] = {}
        for used, (total, picks) in best.items():
            open_columns = [c for c, s in enumerate(row) if s >= threshold and c not in used]
            for column in (None, *open_columns):
                taken = used if column is None else used | {column}
                sum_now = total if column is None else total + row[column]
                if taken not in longer or sum_now > longer[taken][0]:
                    longer[taken] = (sum_now, (*picks, column))
        best = dict(nlargest(256, longer.items(), key=lambda item: item[1][0]))
    return max(best.values(), key=itemgetter(0))[1]


@dataclass(frozen=True, slots=True)
class AlignedCaption:
    """What became of one caption.

    Args:
        image: id of the annotated image, None where the image has no annotation.
        sentence: number of the paired sentence in that image, None where there is none.
        how: "exact", "nearest" or "none".
        similarity: of the pair, see `link_words`; of the best refused pair where `how` is "none".
        words: the caption's own words, as `split` cuts them.
        phrases: the sentence's phrases with `first`, `last` and `text` in terms of `words`; they
            are in order, none is empty and no two overlap.
        lost: phrases none of whose words has a link, as they stand in the sentence.
    """

    image: str | None
    sentence: int | None
    how: How
    similarity: float
    words: tuple[str, ...]
    phrases: tuple[Phrase, ...] = ()
    lost: tuple[Phrase, ...] = ()


@dataclass(frozen=True, eq=False)
class EntityAlignment:
    """The outcome for a set: `captions[j]` tells of caption j, `images[i]` is image i's id or None.

    Args:
        name: of the captioned set.
        images: (N,) ids of the annotated images, None for an image without annotation.
        captions: (M,) in the order of the captioned set.
        left_out: images without annotation, unaligned captions and lost phrases.
    """

    name: str
    images: tuple[str | None, ...]
    captions: tuple[AlignedCaption, ...]
    left_out: tuple[LeftOut, ...] = ()

    def describe(self) -> dict[str, object]:
        """Return counts for a table or JSON; captions are those of annotated images."""
        annotated = [caption for caption in self.captions if caption.image is not None]
        ways = Counter(caption.how for caption in annotated)
        return {
            "name": self.name,
            "annotated_images": sum(image is not None for image in self.images),
            "images_without_annotation": sum(image is None for image in self.images),
            "captions": len(annotated),
            "exact": ways["exact"],
            "nearest": ways["nearest"],
            "unaligned": ways["none"],
            "phrases": sum(len(caption.phrases) for caption in annotated),
            "lost_phrases": sum(len(caption.lost) for caption in annotated),
            "left_out": [str(entry) for entry in self.left_out],
        }

    def __str__(self) -> str:
        text = (
            "{name}: {captions:,} captions of {annotated_images:,} annotated images, "
            "{exact:,} exact, {nearest:,} nearest, {unaligned:,} unaligned; "
            "{phrases:,} phrases, {lost_phrases:,} lost; "
            "{images_without_annotation:,} images without annotation"
        )
        return text.format(**self.describe())


def align(
    captioned: CaptionedImages,
    entities: Mapping[str, EntityImage],
    split: Callable[[str], list[str]] | None = None,
    threshold: float = THRESHOLD,
) -> EntityAlignment:
    """Pair the captions of a set with annotated sentences and carry the phrases over.

    Args:
        captioned: images whose file name is ID.jpg (Flickr30K) or ID_more.jpg (Flickr8k).
        entities: annotated images by id, see `crossgaze.data.entities.annotations.Entities.open`.
        split: cuts a caption into words; `crossgaze.data.text.words.caption_words` by default.
        threshold: the least similarity, in 0..1, of a pair that is not exact.

    Example:
        >>> from crossgaze.data.entities.annotations import parse_sentence
        >>> sentence = parse_sentence("[/EN#4/people A blond man] waves .")
        >>> image = EntityImage("7", 9, 9, (sentence,), {}, frozenset(), frozenset())
        >>> toy = CaptionedImages("toy", ("7_a.jpg",), ("a blonde man waves.",), [0], ("",))
        >>> align(toy, {"7": image}, split=str.split).captions[0].phrases[0].text
        'a blonde man'
    """
    if not 0 <= threshold <= 1:
        raise InputError(f"threshold is {threshold}, wanted a similarity in 0..1")
    if split is None:
        from crossgaze.data.text.words import caption_words

        split = caption_words
    members: list[list[int]] = [[] for _ in captioned.images]
    for j, i in enumerate(captioned.image_of.tolist()):
        members[i].append(j)
    ids = tuple(_entity_id(name, entities) for name in captioned.images)
    done: dict[int, AlignedCaption] = {}
    for image, rows in zip(ids, members, strict=True):
        sentences = entities[image].sentences if image is not None else ()
        pairs = _pair([captioned.captions[j] for j in rows], sentences, threshold)
        for j, (number, how, similarity) in zip(rows, pairs, strict=True):
            words = tuple(split(captioned.captions[j]))
            carried = _carry(sentences[number], words) if number is not None else ((), ())
            done[j] = AlignedCaption(image, number, how, similarity, words, *carried)
    captions = tuple(done[j] for j in range(len(captioned.captions)))
    bare = [name for name, image in zip(captioned.images, ids, strict=True) if image is None]
    stray = [j for j, c in enumerate(captions) if c.image is not None and c.how == "none"]
    unaligned = [f"{captions[j].image}: {captioned.captions[j]!r}" for j in stray]
    lost = [f"{c.image}: {phrase.text!r}" for c in captions for phrase in c.lost]
    left_out = (
        *LeftOut.of("images without annotation", bare),
        *LeftOut.of("captions like no sentence of their image", unaligned),
        *LeftOut.of("phrases without a word in the caption", lost),
    )
    return EntityAlignment(captioned.name, ids, captions, left_out)


def _entity_id(name: str, known: Container[str]) -> str | None:
    """Return the id of the image file `name`: its stem, or the part of it before a `_`."""
    stem = PurePosixPath(name).stem
    return next((image for image in (stem, stem.partition("_")[0]) if image in known), None)


def _pair(
    captions: Sequence[str], sentences: Sequence[EntitySentence], threshold: float
) -> list[tuple[int | None, How, float]]:
    """Return (sentence number, how, similarity) for each caption of an image."""
    heard = [[fold(word) for word in caption.split()] for caption in captions]
    written = [[fold(word) for word in sentence.words] for sentence in sentences]
    free: defaultdict[str, deque[int]] = defaultdict(deque)
    for number, folded in enumerate(written):
        free["".join(folded)].append(number)
    free.pop("", None)  # nothing but punctuation says nothing
    pairs: list[tuple[int | None, How, float]] = [(None, "none", 0.0)] * len(captions)
    for row, folded in enumerate(heard):
        if free.get("".join(folded)):
            pairs[row] = (free["".join(folded)].popleft(), "exact", 1.0)
    rows = [row for row, pair in enumerate(pairs) if pair[1] == "none"]
    columns = sorted(number for numbers in free.values() for number in numbers)
    if not rows or not columns:
        return pairs
    similar = [[link_words(written[n], heard[row])[1] for n in columns] for row in rows]
    for row, values, column in zip(rows, similar, _assign(similar, threshold), strict=True):
        if column is None:
            pairs[row] = (None, "none", max(values))
        else:
            pairs[row] = (columns[column], "nearest", values[column])
    return pairs


def _carry(
    sentence: EntitySentence, words: Sequence[str]
) -> tuple[tuple[Phrase, ...], tuple[Phrase, ...]]:
    """Return the sentence's phrases as spans of the caption's `words`, and those that are lost."""
    links, _ = link_words([fold(w) for w in sentence.words], [fold(w) for w in words])
    carried: list[Phrase] = []
    lost: list[Phrase] = []
    end = 0
    for phrase in sentence.phrases:
        spans = [link for link in links[phrase.first : phrase.last] if link is not None]
        # A caption word that joins the ends of two phrases stays with the first.
        first, last = (max(spans[0][0], end), spans[-1][1]) if spans else (0, 0)
        if first >= last:
            lost.append(phrase)
            continue
        text = " ".join(words[first:last])
        carried.append(Phrase(first, last, phrase.entity, phrase.types, text))
        end = last
    return tuple(carried), tuple(lost)
