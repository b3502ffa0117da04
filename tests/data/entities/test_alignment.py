"""Captions onto annotated sentences: hand-worked spans, shuffles and slips, the real counts."""

import random
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.data.captions.captioned import CaptionedImages
from crossgaze.data.entities import alignment as module
from crossgaze.data.entities.alignment import align
from crossgaze.data.entities.annotations import EntityImage, Phrase, parse_sentence
from crossgaze.data.entities.archive import Entities
from crossgaze.data.entities.word_links import fold
from crossgaze.errors import InputError
from support import SHARED, needs_shared


def annotated(*lines, image="7"):
    sentences = tuple(parse_sentence(line) for line in lines)
    return {image: EntityImage(image, 10, 10, sentences, {}, frozenset(), frozenset())}


def captioned(*captions, image="7_ab.jpg"):
    owners = np.zeros(len(captions), dtype=np.int64)
    return CaptionedImages("toy", (image,), captions, owners, ("",))


def aligned(caption, line, split=str.split, **more):
    return align(captioned(caption), annotated(line), split, **more).captions[0]


def spans(caption):
    return [(phrase.first, phrase.last) for phrase in caption.phrases]


def test_an_exact_caption_keeps_its_spans():
    line = "[/EN#1/people A Man] in [/EN#0/notvisual it] rides [/EN#3/other/scene a red bike] ."
    caption = aligned("a man in it rides a red bike .", line)
    assert (caption.image, caption.sentence, caption.how) == ("7", 0, "exact")
    assert caption.similarity == 1
    assert caption.words == ("a", "man", "in", "it", "rides", "a", "red", "bike", ".")
    assert caption.phrases == (
        Phrase(0, 2, "1", ("people",), "a man"),
        Phrase(3, 4, "0", ("notvisual",), "it"),
        Phrase(5, 8, "3", ("other", "scene"), "a red bike"),
    )
    assert caption.lost == ()


@pytest.mark.parametrize(
    ("caption", "line", "how", "wanted"),
    [
        # Joined and split words, punctuation apart: the letters are the same.
        ("her t shirt, wet", "[/EN#1/clothing her t-shirt] , [/EN#2/other wet]", "exact", (0, 3)),
        ("her t-shirt, wet", "[/EN#1/clothing her t shirt] , [/EN#2/other wet]", "exact", (0, 2)),
        ("( two men ) sit", "[/EN#1/people Two men] sit", "exact", (1, 3)),
        # Mended spelling.
        ("a blonde man sits", "[/EN#1/people A blond man] sits", "nearest", (0, 3)),
        ("there sits a grey cat", "there sits [/EN#1/animals a gray cat]", "nearest", (2, 5)),
        # Mended, and joined or split as well.
        (
            "with blonde hair she sits",
            "with [/EN#1/bodyparts blond-hair] she sits",
            "nearest",
            (1, 3),
        ),
        ("the sheepdogg runs off", "[/EN#1/animals the sheep dog] runs off", "nearest", (0, 2)),
        # A word more or less, inside and at the edge of a phrase.
        ("a big brown dog sits", "[/EN#1/animals a brown dog] sits", "nearest", (0, 4)),
        ("a dog sits down", "[/EN#1/animals a brown dog] sits down", "nearest", (0, 2)),
        ("now a dog sits down", "[/EN#1/animals a dog] sits down", "nearest", (1, 3)),
        ("sit on grass all day", "sit on [/EN#1/scene the grass] all day", "nearest", (2, 3)),
        # Another word in the same place.
        ("the child runs off", "[/EN#1/people the boy] runs off", "nearest", (0, 2)),
    ],
)
def test_spans_follow_the_words(caption, line, how, wanted):
    result = aligned(caption, line)
    assert result.how == how
    assert spans(result)[0] == wanted
    assert result.phrases[0].text == " ".join(caption.split()[slice(*wanted)])
    assert result.lost == ()


def test_spans_are_in_the_words_of_any_split():
    line = "[/EN#1/people The man 's son] ca n't see [/EN#2/clothing a t-shirt] ."
    caption = "The man's son can't see a t-shirt."
    assert spans(aligned(caption, line)) == [(0, 3), (5, 7)]
    letters = aligned(caption, line, split=list)
    assert [phrase.text for phrase in letters.phrases] == [
        "T h e   m a n ' s   s o n",
        "a   t - s h i r t",
    ]
    # A split that drops or changes words is followed as far as it goes.
    stems = aligned(caption, line, split=lambda text: [w[:4] for w in text.split() if w != "a"])
    assert stems.how == "exact"
    assert spans(stems) == [(0, 3), (5, 6)]


def test_the_default_split_is_the_librarys_own():
    words = pytest.importorskip("crossgaze.data.text.words")
    line = '[/EN#1/people A girl] does n\'t wear [/EN#2/clothing a " hat "] .'
    caption = align(captioned('A girl doesn\'t wear a "hat".'), annotated(line)).captions[0]
    assert caption.words == tuple(words.caption_words('A girl doesn\'t wear a "hat".'))
    assert [fold(phrase.text) for phrase in caption.phrases] == ["agirl", "ahat"]


def test_a_word_shared_by_two_phrases_stays_with_the_first():
    result = aligned("a snowman here", "[/EN#1/other a snow] [/EN#2/people man] here")
    assert result.how == "exact"
    assert spans(result) == [(0, 2)]
    assert [phrase.text for phrase in result.lost] == ["man"]
    result = aligned("a snowman smiles", "[/EN#1/other a snow] [/EN#2/people man smiles]")
    assert spans(result) == [(0, 2), (2, 3)]


def test_a_phrase_without_a_word_in_the_caption_is_lost_and_counted():
    line = "[/EN#1/people A man] walks in the old town by [/EN#2/scene night] [/EN#3/other #]"
    report = align(captioned("A man walks in the old town by"), annotated(line), str.split)
    (caption,) = report.captions
    assert spans(caption) == [(0, 2)]
    assert [phrase.text for phrase in caption.lost] == ["night", "#"]
    assert report.describe()["lost_phrases"] == 2
    assert "2 phrases without a word in the caption (7: 'night', 7: '#')" in map(
        str, report.left_out
    )


def test_each_sentence_is_used_once_and_twins_in_order():
    lines = ("A dog runs .", "Something else entirely .", "a dog, runs", "A dog runs !")
    captions = ("A DOG RUNS", "a dog runs .", "something else entirely", "a dog runs", "a dog runs")
    report = align(captioned(*captions), annotated(*lines), str.split)
    assert [caption.sentence for caption in report.captions] == [0, 2, 1, 3, None]
    assert [caption.how for caption in report.captions] == ["exact"] * 4 + ["none"]


def test_the_best_assignment_beats_the_greedy_one():
    lines = ("aa bb cc dd ee ff gg hh", "aa bb cc dd ee ff gg xx")
    # Caption 0 is 6/8 like both; caption 1 is 7/8 like sentence 0 and 6/8 like sentence 1.
    captions = ("aa bb cc dd ee ff qq rr", "aa bb cc dd ee qq gg hh")
    report = align(captioned(*captions), annotated(*lines), str.split)
    assert [caption.sentence for caption in report.captions] == [1, 0]
    assert [caption.similarity for caption in report.captions] == [0.75, 0.875]


def test_a_caption_under_the_threshold_is_unaligned():
    line = "[/EN#1/people One] two three four five"
    short = aligned("one two", line)
    assert (short.sentence, short.how, short.phrases, short.lost) == (None, "none", (), ())
    assert short.similarity == pytest.approx(2 / 5)
    assert aligned("one two", line, threshold=0.4).how == "nearest"
    assert aligned("one two three four", line, threshold=1.0).how == "none"
    with pytest.raises(InputError, match=r"threshold is 1\.5, wanted a similarity in 0..1"):
        aligned("one", line, threshold=1.5)


def test_punctuation_alone_is_no_sentence():
    report = align(captioned(".", "- -", "A man"), annotated(".", "- -", "A man"), str.split)
    assert [caption.how for caption in report.captions] == ["none", "none", "exact"]
    assert [caption.similarity for caption in report.captions] == [0, 0, 1]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("7_ab.jpg", "7"),
        ("7.jpg", "7"),
        ("images/7_a_b.jpg", "7"),
        ("7", "7"),
        ("7_8.png", "7_8"),
        ("8_7.jpg", None),
    ],
)
def test_file_names_to_ids(name, wanted):
    entities = annotated("A man", image="7") | annotated("A man", image="7_8")
    report = align(captioned("A man", image=name), entities, str.split)
    assert report.images == (wanted,)
    assert report.captions[0].image == wanted
    assert report.captions[0].how == ("none" if wanted is None else "exact")


def test_the_report_counts_everything():
    captions = ("a dog runs fast", "no note", "a dgo runs", "what", "one cat", "none here")
    owners = np.array([0, 1, 0, 0, 2, 1])
    images = ("7_a.jpg", "missing.jpg", "9.jpg")
    toy = CaptionedImages("toy", images, captions, owners, ("train", "", "test"))
    entities = annotated(
        "[/EN#1/animals A dog] runs fast", "[/EN#1/animals A dog] runs", "Why so ?"
    )
    entities |= annotated("[/EN#4/animals One cat]", image="9")
    report = align(toy, entities, str.split)
    described = report.describe()
    lines = described.pop("left_out")
    assert described == {
        "name": "toy",
        "annotated_images": 2,
        "images_without_annotation": 1,
        "captions": 4,
        "exact": 2,
        "nearest": 1,
        "unaligned": 1,
        "phrases": 3,
        "lost_phrases": 0,
    }
    assert lines == [
        "1 images without annotation (missing.jpg)",
        "1 captions like no sentence of their image (7: 'what')",
    ]
    assert str(report) == (
        "toy: 4 captions of 2 annotated images, 2 exact, 1 nearest, 1 unaligned; "
        "3 phrases, 0 lost; 1 images without annotation"
    )
    assert [caption.image for caption in report.captions] == ["7", None, "7", "7", "9", None]
    assert [caption.words for caption in report.captions] == [tuple(c.split()) for c in captions]


MATRIX = st.integers(1, 4).flatmap(
    lambda columns: st.lists(
        st.lists(st.integers(0, 20).map(lambda n: n / 20), min_size=columns, max_size=columns),
        min_size=1,
        max_size=4,
    )
)


@given(MATRIX, st.sampled_from([0.0, 0.3, 0.6]))
def test_the_assignment_is_the_best_of_all(similar, threshold):
    picks = module._assign(similar, threshold)
    used = [column for column in picks if column is not None]
    assert len(used) == len(set(used))

    def total(columns):
        values = [row[c] for row, c in zip(similar, columns, strict=True) if c is not None]
        return sum(values) if all(value >= threshold for value in values) else -1

    options = product([None, *range(len(similar[0]))], repeat=len(similar))
    single = [o for o in options if len({c for c in o if c is not None}) == len(o) - o.count(None)]
    assert total(picks) == pytest.approx(max(total(option) for option in single))


def test_many_sentences_stay_bounded_and_sensible():
    side = 40
    similar = [[1.0 if i == j else 0.7 for j in range(side)] for i in range(side)]
    picks = module._assign(similar, 0.6)
    assert len(set(picks)) == side
    assert sum(row[column] for row, column in zip(similar, picks, strict=True)) >= 0.7 * side


# Words far from each other, so that a slip of one letter leaves no doubt which was meant.
WORDS = [
    "mountain",
    "bicycle",
    "frisbee",
    "umbrella",
    "children",
    "quickly",
    "jumping",
    "between",
    "stadium",
    "velvet",
]
WORDS += [
    "orange",
    "harbour",
    "kitchen",
    "policeman",
    "whiskers",
    "zeppelin",
    "guitar",
    "scaffold",
    "lanterns",
    "pyjamas",
]


@st.composite
def picture(draw):
    """Five sentences as word lists, each with the spans of its phrases."""
    sentences = []
    orders = st.lists(st.sampled_from(WORDS), min_size=5, max_size=10, unique=True)
    unlike = st.lists(orders, min_size=5, max_size=5, unique_by=frozenset)
    for words in draw(unlike):
        edges = sorted(draw(st.sets(st.integers(0, len(words)), max_size=6)))
        pairs = zip(edges[::2], edges[1::2], strict=False)
        sentences.append((words, list(pairs)))
    return sentences


def bracketed(words, pairs):
    out = list(words)
    for number, (first, last) in enumerate(pairs, start=1):
        out[first] = f"[/EN#{number}/other {out[first]}"
        out[last - 1] += "]"
    return " ".join(out) + " ."


@given(picture(), st.permutations(range(5)), st.randoms(use_true_random=False))
def test_a_shuffled_set_returns_the_permutation(sentences, order, chance):
    entities = annotated(*(bracketed(*sentence) for sentence in sentences))
    cases = (str.upper, str.title, str.lower)
    captions = [chance.choice(cases)(" ".join(sentences[number][0])) + "." for number in order]
    report = align(captioned(*captions), entities, str.split)
    assert [caption.how for caption in report.captions] == ["exact"] * 5
    for number, caption in zip(order, report.captions, strict=True):
        words, pairs = sentences[number]
        # Two sentences with the same letters are the same sentence to us: none here, by `unique`.
        assert caption.sentence == number
        assert spans(caption) == pairs
        assert [p.entity for p in caption.phrases] == [str(n + 1) for n in range(len(pairs))]
        assert len(caption.words) == len(words)


def slip(word, chance):
    place = chance.randrange(1, len(word))
    kind = chance.choice(["change", "drop", "double"])
    if kind == "change":
        return word[:place] + "x" + word[place + 1 :]
    return word[:place] + (word[place:][1:] if kind == "drop" else word[place] + word[place:])


@settings(max_examples=40, deadline=None)  # 25 comparisons of whole sentences an example
@given(picture(), st.permutations(range(5)), st.randoms(use_true_random=False))
def test_slips_of_the_pen_change_neither_sentence_nor_spans(sentences, order, chance):
    entities = annotated(*(bracketed(*sentence) for sentence in sentences))
    captions = []
    for number in order:
        words = list(sentences[number][0])
        for place in chance.sample(range(len(words)), 2):
            words[place] = slip(words[place], chance)
        captions.append(" ".join(words))
    report = align(captioned(*captions), entities, str.split)
    for number, caption in zip(order, report.captions, strict=True):
        assert caption.sentence == number
        assert caption.how == "nearest"
        assert spans(caption) == sentences[number][1]


@given(
    st.lists(st.sampled_from(["a", "dog", "dgo", "t", "shirt", "tshirt", ".", "-"]), max_size=7),
    st.lists(st.sampled_from(["a", "dog", "t", "shirt", "t-shirt", "."]), min_size=1, max_size=7),
    st.sets(st.integers(0, 7), max_size=6),
)
def test_spans_are_never_empty_never_overlap_and_none_is_dropped(caption, words, edges):
    edges = sorted(edge for edge in edges if edge <= len(words))
    pairs = list(zip(edges[::2], edges[1::2], strict=False))
    if not caption:
        return
    result = aligned(" ".join(caption), bracketed(words, pairs), threshold=0.0)
    ends = [0, *(edge for span in spans(result) for edge in span), len(caption)]
    assert ends == sorted(ends)
    assert all(first < last for first, last in spans(result))
    if result.sentence is not None:
        kept = sorted([p.entity for p in result.phrases] + [p.entity for p in result.lost])
        assert kept == [str(n + 1) for n in range(len(pairs))]
    assert 0 <= result.similarity <= 1


def flickr8k():
    """The token file read by hand, so that this test stands on nothing but `align`."""
    images, captions, owners = {}, [], []
    path = SHARED / "data" / "flickr8k" / "Flickr8k.token.txt"
    for line in path.read_text(encoding="utf-8").splitlines():
        name, caption = line.split("\t")
        owners.append(images.setdefault(name.split("#")[0], len(images)))
        captions.append(caption)
    return CaptionedImages("flickr8k", tuple(images), tuple(captions), owners, ("",) * len(images))


@needs_shared
def test_the_real_captions():
    entities = Entities.open(SHARED / "data" / "flickr30k_entities")
    whole = flickr8k()
    fixed = random.Random(0).sample(sorted(whole.images), 500)
    subset = whole.select(fixed)
    some = align(subset, entities, str.split)
    # Equal sentences counted another way: what two bags of bare letters have in common.
    equal = 0
    for number, name in enumerate(some.images):
        theirs = entities[name].sentences if name is not None else ()
        bags = [
            Counter("".join(filter(str.isalnum, text.lower())) for text in texts)
            for texts in (subset.captions_of(number), [sentence.text for sentence in theirs])
        ]
        equal += (bags[0] & bags[1]).total()
    counts = some.describe()
    assert counts["exact"] == equal == 2458
    assert counts["annotated_images"] == 499
    assert counts["nearest"] == 499 * 5 - equal
    assert counts["lost_phrases"] == 0
    wider = 0
    for caption in (caption for caption in some.captions if caption.image is not None):
        sentence = entities[caption.image].sentences[caption.sentence]
        assert [p.entity for p in caption.phrases] == [p.entity for p in sentence.phrases]
        if caption.how == "exact":
            for ours, theirs in zip(caption.phrases, sentence.phrases, strict=True):
                assert fold(theirs.text) in fold(ours.text)
                wider += fold(theirs.text) != fold(ours.text)
    # A caption that joins words makes a span wider ('onstage' for the phrase 'stage'): 48 of
    # 124,000 phrases do in the whole set.
    assert wider <= 5


@needs_shared
@pytest.mark.slow
def test_every_real_caption():
    entities = Entities.open(SHARED / "data" / "flickr30k_entities")
    counts = align(flickr8k(), entities).describe()
    del counts["left_out"]
    assert counts == {
        "name": "flickr8k",
        "annotated_images": 8086,
        "images_without_annotation": 4,
        "captions": 40430,
        "exact": 39859,
        "nearest": 568,
        "unaligned": 3,
        "phrases": 125848,
        "lost_phrases": 0,
    }
