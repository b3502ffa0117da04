"""Queries of an evaluation, read back with what was right."""

import json

import pytest

from crossgaze.errors import InputError
from crossgaze.evaluation.bootstrap import BootstrapConfig
from crossgaze.evaluation.evaluate import EvaluateConfig, evaluate
from crossgaze.evaluation.report import to_dict
from crossgaze.evaluation.sources import open_regions
from crossgaze.explain.queries import choose, read_queries
from evaluation_parts import captioned, model, write_store


@pytest.fixture
def result(tmp_path):
    """A real evaluation of a small model, and its captions."""
    made = captioned(images=8)
    write_store(tmp_path / "store", made.images)
    regions = open_regions(made, tmp_path, tmp_path / "store")
    config = EvaluateConfig(top=3, bootstrap=BootstrapConfig(resamples=10))
    found = evaluate(model(), made, regions, config)
    path = tmp_path / "result.json"
    path.write_text(json.dumps(to_dict(found, config.bootstrap, queries=True)))
    return path, found


def test_right_is_what_belongs_together(result):
    path, found = result
    of, ranks = found.captioned, found.protocols[0].folds[0].ranks
    sentences = read_queries(path)
    assert [query.what for query in sentences] == list(of.captions)
    assert [query.rank - 1 for query in sentences] == ranks.image_ranks.tolist()
    for number, query in enumerate(sentences):
        own = of.images[of.image_of[number]]
        assert [one.right for one in query.answers] == [one.what == own for one in query.answers]
        assert len(query.answers) == 3
        if query.answers[0].score > query.answers[1].score:
            assert (query.rank == 1) == query.answers[0].right
    images = read_queries(path, "images")
    assert [query.what for query in images] == list(of.images)
    for number, query in enumerate(images):
        own = set(of.captions_of(number))
        # Captions of other images may have the same words, so only one way round.
        assert all(one.what in own for one in query.answers if one.right)
        assert query.rank > 3 or any(one.right for one in query.answers)


def test_some_are_chosen_from_the_first_to_the_last(result):
    queries = read_queries(result[0])
    assert choose(queries, 100) == queries
    some = choose(queries, 3)
    assert (some[0], some[-1]) == (queries[0], queries[-1])
    hits, misses = (choose(queries, 100, only) for only in ("hits", "misses"))
    assert all(query.answers[0].right for query in hits)
    assert not any(query.answers[0].right for query in misses)
    assert len(hits) + len(misses) == len(queries)
    with pytest.raises(InputError, match="rows: got 0"):
        choose(queries, 0)
    with pytest.raises(InputError, match="there are no hits among"):
        choose(misses, 3, "hits")
    with pytest.raises(InputError, match="only: got 'none'"):
        choose(queries, 3, "none")


def test_other_files_are_refused_in_one_line(result, tmp_path):
    path, _ = result
    with pytest.raises(InputError, match="of: got 'words', wanted sentences or images"):
        read_queries(path, "words")
    tree = json.loads(path.read_text())
    bad = tmp_path / "bad.json"
    for text in ("", "[]", "{}", '{"format": "other"}', json.dumps(tree | {"protocols": []})):
        bad.write_text(text)
        with pytest.raises(InputError, match=r"bad\.json: does not read as an evaluation"):
            read_queries(bad)
    for entry in tree["protocols"][0]["queries"]["captions"]:
        entry.pop("top")
    bad.write_text(json.dumps(tree))
    with pytest.raises(InputError, match="holds no best answers"):
        read_queries(bad)
