"""What is the same scores the same, bit for bit, wherever it stands."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.data.captions.captioned import CaptionedImages
from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.evaluation.bootstrap import BootstrapConfig
from crossgaze.evaluation.evaluate import EvaluateConfig, evaluate
from crossgaze.evaluation.report import to_dict
from crossgaze.evaluation.scores import score_split
from crossgaze.evaluation.sources import RegionSource
from crossgaze.evaluation.twins import Twins, twin_captions, twin_images
from crossgaze.models.families import family

WORDS = ["two", "dogs", "run", "over", "the", "green", "grass", "near", "a", "lake", "."]
IMAGES, EACH, REGIONS, WIDTH = 40, 5, 36, 32
QUICK = EvaluateConfig(batch=32, bootstrap=BootstrapConfig(resamples=2))  # more than one batch


def make(name, **options):
    torch.manual_seed(0)
    model_type, config_type = family(name)
    made = model_type(
        config_type(region_width=WIDTH, size=16, **options), Vocabulary.build([" ".join(WORDS)], 1)
    )
    return made.eval()


def captioned(captions, images=IMAGES):
    names = tuple(f"{number}.jpg" for number in range(images))
    owners = np.repeat(np.arange(images), len(captions) // images)
    return CaptionedImages("toy", names, tuple(captions), owners, ("test",) * images)


def source(features, counts=None):
    return RegionSource("toy", np.arange(len(features)), features, counts)


def some_regions(seed=0):
    random = np.random.default_rng(seed)
    return random.normal(size=(IMAGES, REGIONS, WIDTH)).astype(np.float32)


def some_captions(seed=0):
    """Some short, some long, some said of several images."""
    random = np.random.default_rng(seed)
    own = [" ".join(random.choice(WORDS, random.integers(1, 12))) for _ in range(IMAGES * EACH)]
    return [own[number // 2] if number % 3 == 0 else own[number] for number in range(len(own))]


@given(st.lists(st.binary(max_size=2), max_size=20))
def test_twins_are_those_with_the_same_key(keys):
    found = Twins.of(keys)
    assert len(found.first) == len(set(keys))
    for place, key in enumerate(keys):
        assert keys[found.first[found.number[place]]] == key
    for number, place in enumerate(found.first):
        twins = [other for other, key in enumerate(keys) if key == keys[place]]
        assert list(found.places(number, number + 1)) == [(twin, number) for twin in twins]
        assert place == twins[0]
    assert [place for place, _ in found.places(0, len(found.first))] == found.by_number.tolist()
    assert found.ends[-1] == len(keys)


@given(st.permutations([b"", b"b", b"a", b"b", b"ab", b"a", b"\0"]))
def test_the_order_of_things_is_not_that_of_places(keys):
    found = Twins.of(keys)
    assert [keys[place] for place in found.first] == [b"", b"\0", b"a", b"b", b"ab"]


def test_captions_of_one_reading_are_twins_and_short_ones_come_first():
    said = ["two dogs run", "a lake", "Two  dogs run", "two cats run", "two cows run"]
    found = twin_captions(make("scan").text, said)
    assert found.number.tolist() == [found.number[0], 0, found.number[0], *[found.number[3]] * 2]
    assert len(found.first) == 3  # cats and cows are no words of the model


def test_images_of_the_same_regions_are_twins_whatever_stands_behind_them():
    features = some_regions()[:6]
    features[4, :30] = features[1, :30]
    features[5] = features[1]
    counts = np.array([36, 30, 36, 36, 30, 31], np.int32)
    number = twin_images(source(features, counts), 0, 6, 4).number
    assert number[4] == number[1]
    assert len(set(number.tolist())) == 5
    assert len(twin_images(source(features), 0, 6, 4).first) == 5  # all are real: 1 and 5 are twins
    part = twin_images(source(features, counts), 1, 5, 4)
    assert part.first.min() == 0
    assert part.number[3] == part.number[0]


@pytest.mark.parametrize("name", ["sum-max", "scan", "bfan", "vse++"])
def test_one_caption_said_of_all_images_finds_none(name):
    """Every image has 195 wrong sentences that score as its own do."""
    same = captioned([" ".join(WORDS)] * IMAGES * EACH)
    regions = source(some_regions())
    scores = score_split([make(name)], same, regions, batch=32)
    assert (scores == scores[:, :1]).all()
    (fold,) = evaluate(make(name), same, regions, QUICK).protocols[0].folds
    assert fold.ranks.text_ranks.tolist() == [(IMAGES - 1) * EACH] * IMAGES
    figures = fold.ranks.figures()
    assert [figures[f"i2t_r{k}"] for k in (1, 5, 10)] == [0, 0, 0]


def test_one_image_under_all_names_is_found_by_no_sentence():
    regions = source(np.repeat(some_regions()[:1], IMAGES, axis=0))
    steps = []
    (fold,) = (
        evaluate(
            make("scan"),
            captioned(some_captions()),
            regions,
            replace(QUICK, top=3),
            on_progress=lambda *step: steps.append(step),
        )
        .protocols[0]
        .folds
    )
    assert fold.ranks.image_ranks.tolist() == [IMAGES - 1] * IMAGES * EACH
    assert steps[-1] == (IMAGES, IMAGES)


def test_a_constant_scorer_gets_nothing():
    model = make("scan")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    found = evaluate(model, captioned(some_captions()), source(some_regions()), QUICK)
    assert found.protocols[0].figures["rsum"].value == 0


@pytest.mark.parametrize("name", ["sum-max", "scan", "bfan"])
def test_the_order_of_files_changes_no_bit(name):
    """Several batches and tiles, twins on both sides: other neighbours, the same scores."""
    features = some_regions()
    features[7] = features[30]
    straight, regions = captioned(some_captions()), source(features)
    order = np.random.default_rng(1).permutation(IMAGES)
    turned = straight.select([straight.images[place] for place in order])
    columns = np.concatenate([np.arange(EACH) + EACH * place for place in order])
    models = [make(name)]
    first = score_split(models, straight, regions, batch=32)
    other = score_split(models, turned, replace(regions, rows=order), batch=32)
    assert np.array_equal(other, first[np.ix_(order, columns)])
    assert np.array_equal(first[7], first[30])
    figures = [
        {n: figure.value for n, figure in evaluate(*given).protocols[0].figures.items()}
        for given in (
            (models[0], straight, regions, QUICK),
            (models[0], turned, replace(regions, rows=order), QUICK),
        )
    ]
    assert figures[0] == figures[1]


def test_among_equals_wrong_answers_come_first_as_ranks_count_them():
    features = some_regions()
    features[1::2] = features[::2]
    given = captioned(some_captions()), source(features)
    found = evaluate(make("scan"), *given, replace(QUICK, top=40))
    (fold,) = found.protocols[0].folds
    owners = found.captioned.image_of
    tied = 0
    for rows, query, rank in zip(
        fold.best_images[1], owners.tolist(), fold.ranks.image_ranks, strict=True
    ):
        assert rows[rank] == query
        tied += int(rows[rank - 1]) == query ^ 1  # its twin stands right before it
    assert tied == len(owners)
    for image, (scores, rows, rank) in enumerate(
        zip(*fold.best_texts, fold.ranks.text_ranks, strict=True)
    ):
        own = np.flatnonzero(owners[rows] == image)
        assert own[0] == rank if len(own) else rank >= 40
        assert (np.diff(scores) <= 0).all()
    # And so it stands in the file.
    queries = to_dict(found, QUICK.bootstrap, queries=True)["protocols"][0]["queries"]
    for entry in queries["captions"]:
        assert entry["top"][entry["rank"] - 1]["image"] == entry["image"]
