"""A whole evaluation against scoring pair by pair."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import evaluation_parts as parts
from crossgaze.data.entities.archive import Entities
from crossgaze.errors import InputError
from crossgaze.evaluation import scores
from crossgaze.evaluation.bootstrap import BootstrapConfig
from crossgaze.evaluation.evaluate import EvaluateConfig, evaluate
from crossgaze.evaluation.recall import ranks_of
from crossgaze.evaluation.sources import open_regions
from crossgaze.models.ensemble import Ensemble
from crossgaze.models.text import TextConfig
from model_parts import count_calls, save_bert


@pytest.fixture
def world(tmp_path):
    captioned = parts.captioned()
    store = parts.write_store(tmp_path / "regions", captioned.images)
    return captioned, open_regions(captioned, tmp_path, store)


def slow_scores(model, captioned, regions):
    """One pair at a time."""
    table = np.zeros((len(captioned), len(captioned.captions)))
    for i in range(len(captioned)):
        image = model.encode_images(*regions.read([i]))
        for j, caption in enumerate(captioned.captions):
            with torch.no_grad():
                table[i, j] = float(model.pair_similarity(image, model.encode_texts([caption])))
    return table


QUICK = EvaluateConfig(batch=3, top=3, bootstrap=BootstrapConfig(resamples=20))


@pytest.mark.parametrize("kind", ["scan", "bfan", "vse"])
def test_figures_are_those_of_pairs_scored_one_by_one(world, kind):
    captioned, regions = world
    model = parts.model(kind)
    found = evaluate(model, captioned, regions, QUICK)
    wanted = ranks_of(slow_scores(model, captioned, regions), captioned.image_of).figures()
    figures = {name: figure.value for name, figure in found.protocols[0].figures.items()}
    assert figures == pytest.approx(wanted)
    for figure in found.protocols[0].figures.values():
        assert figure.low <= figure.high


def test_what_a_bert_read_is_kept_for_the_next_time(world, tmp_path):
    captioned, regions = world
    save_bert(tmp_path / "bert")
    text = TextConfig(kind="bert", bert=str(tmp_path / "bert"))
    models = [parts.model(text=text) for _ in range(2)]
    reads = [count_calls(model.text) for model in models]
    config = replace(QUICK, kept_words=tmp_path / "words")
    first, second = (evaluate(model, captioned, regions, config) for model in models)
    assert sum(reads[0]) > 0
    assert reads[1] == []
    assert first.protocols[0].figures == second.protocols[0].figures


def test_an_ensemble_averages_scores(world):
    captioned, regions = world
    one, two, three = parts.model(seed=1), parts.model("bfan", seed=2), parts.model("vse", seed=3)
    tables = [slow_scores(model, captioned, regions) for model in (one, two, three)]
    made = scores.score_split([one, two, three], captioned, regions)
    assert made == pytest.approx(sum(tables) / 3, abs=1e-5)
    wanted = ranks_of(sum(tables) / 3, captioned.image_of).figures()
    for given in ([one, two, three], Ensemble([one, two, three]), [Ensemble([one, two]), three]):
        found = evaluate(given, captioned, regions, QUICK).protocols[0].figures
        assert {name: figure.value for name, figure in found.items()} == pytest.approx(wanted)


def test_folds_search_only_their_own_images(world):
    captioned, regions = world
    model = parts.model()
    table = slow_scores(model, captioned, regions)
    owners = captioned.image_of
    wanted = []
    for start in range(0, 10, 2):
        columns = np.flatnonzero((owners >= start) & (owners < start + 2))
        wanted.append(
            ranks_of(table[start : start + 2, columns], owners[columns] - start).figures()
        )
    for folds in ((5,), (1, 5), (5, 1)):
        found = evaluate(model, captioned, regions, replace(QUICK, folds=folds))
        assert [len(protocol.folds) for protocol in found.protocols] == list(folds)
        (five,) = [protocol for protocol in found.protocols if len(protocol.folds) == 5]
        assert [fold.ranks.figures() for fold in five.folds] == wanted
        for name, figure in five.figures.items():
            assert figure.value == pytest.approx(sum(fold[name] for fold in wanted) / 5)


def test_the_best_answers_are_kept(world):
    captioned, regions = world
    model = parts.model()
    found = evaluate(model, captioned, regions, QUICK)
    (fold,) = found.protocols[0].folds
    table = slow_scores(model, found.captioned, regions)
    for i, row in enumerate(table):
        assert fold.best_texts[1][i].tolist() == np.argsort(-row)[:3].tolist()
        assert fold.best_texts[0][i] == pytest.approx(np.sort(row)[::-1][:3], abs=1e-5)
    for j, column in enumerate(table.T):
        assert fold.best_images[1][j].tolist() == np.argsort(-column)[:3].tolist()
    nothing = evaluate(model, captioned, regions, replace(QUICK, top=0))
    assert nothing.protocols[0].folds[0].best_texts is None


def test_words_that_no_model_knows_are_counted(world):
    captioned, regions = world
    strange = replace(
        captioned, captions=("two wombats near platypuses .", *captioned.captions[1:])
    )
    found = evaluate(parts.model(), strange, regions, QUICK)
    assert found.unknown == (2, 5 * 20)


def test_progress_counts_images_of_every_model_and_fold(world):
    captioned, regions = world
    for folds in ((1,), (1, 5), (5,), (5, 2)):
        steps = []
        evaluate(
            [parts.model(), parts.model("vse")],
            captioned,
            regions,
            replace(QUICK, folds=folds),
            on_progress=lambda *step, steps=steps: steps.append(step),
        )
        done = [step[0] for step in steps]
        assert done == sorted(done)
        assert steps[-1] == (20 * (1 if 1 in folds else len(folds)),) * 2


def test_many_scores_go_to_a_mapped_file(world, monkeypatch):
    captioned, regions = world
    model = parts.model()
    held = scores.score_split([model], captioned, regions)
    monkeypatch.setattr(scores, "IN_MEMORY", 100)
    mapped = scores.score_split([model], captioned, regions)
    assert isinstance(mapped, np.memmap)
    assert np.array_equal(held, mapped)
    assert evaluate(model, captioned, regions, QUICK).protocols[0].figures["rsum"].value > 0


def test_double_precision_stays(world):
    captioned, regions = world
    table = scores.score_split([parts.model().double()], captioned, regions)
    assert table.dtype == np.float64


def test_a_model_that_scores_no_numbers_is_refused(world):
    captioned, regions = world
    model = parts.model("vse")
    with torch.no_grad():
        next(iter(model.parameters())).fill_(math.nan)
    with pytest.raises(InputError, match=r"model: scores image \d with caption \d+ as nan"):
        evaluate(model, captioned, regions, QUICK)


def test_regions_of_another_width_are_refused_by_name(world, tmp_path):
    captioned, regions = world
    narrow = replace(regions, features=regions.features[..., :4])
    with pytest.raises(InputError, match="regions: has regions of width 4, the model takes 6"):
        evaluate(parts.model(), captioned, narrow, QUICK)


def test_a_caption_without_a_word_is_named(world):
    captioned, regions = world
    empty = replace(captioned, captions=("  ", *captioned.captions[1:]))
    with pytest.raises(InputError, match=r"toy: the caption '  ' of \d_x.jpg has no word"):
        evaluate(parts.model(), empty, regions, QUICK)


def test_a_member_without_attention_is_a_note(tmp_path):
    from crossgaze.data.captions.reading import read_captions

    data = parts.write_flickr8k(tmp_path / "flickr8k")
    captioned = read_captions(data).split("test")
    store = parts.write_store(tmp_path / "regions", captioned.images)
    entities = Entities.open(parts.write_entities(tmp_path / "annotations.zip"))
    found = evaluate(
        [parts.model("vse"), parts.model("bfan")],
        captioned,
        open_regions(captioned, data, store),
        QUICK,
        entities=entities,
    )
    assert [family for family, _ in found.attention] == ["bfan"]
    assert found.notes == ("vse++: has no map 't-i' of words over regions (its maps: none)",)


@pytest.mark.parametrize(
    "wrong", [{"folds": ()}, {"folds": (5, 5)}, {"folds": (0,)}, {"top": -1}, {"batch": 0}]
)
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))}: got"):
        EvaluateConfig(**wrong)


def test_folds_that_do_not_divide_are_refused_before_scoring(world):
    captioned, regions = world
    with pytest.raises(InputError, match="folds: got 3 for 10 images"):
        evaluate(parts.model(), captioned, regions, EvaluateConfig(folds=(1, 3)))
