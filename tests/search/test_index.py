"""An index over a small world: what it holds, what it finds, and what it refuses."""

import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import search_parts
from crossgaze.errors import InputError
from crossgaze.models.ensemble import Ensemble
from crossgaze.models.mmca import Mmca, MmcaConfig
from crossgaze.models.text import TextConfig
from crossgaze.search import adding, ranking
from crossgaze.search.filters import Where
from crossgaze.vision.photos import read_photo
from search_parts import create, encoded, reopen

pytest.importorskip("lancedb", reason="needs crossgaze[search]")
QUERY = "a red dog in the snow"


def similarity(path, text, *models):
    """The mean of the models' similarities."""
    with torch.no_grad():
        found = [
            float(model.similarity(encoded(path, model), model.encode_texts([text])))
            for model in models
        ]
    return sum(found) / len(found)


def both_models():
    return search_parts.embedder(), search_parts.reranker()


def by_definition(paths, text, models, count):
    return sorted(paths, key=lambda path: -similarity(path, text, *models))[:count]


def paths_of(found):
    return [Path(hit.path) for hit in found.hits]


def photos_of(world):
    return sorted((world / "photos").iterdir())


@pytest.mark.parametrize("rank_by", ["both", "reranker"])
def test_two_stages_are_the_candidates_by_vector_in_the_exact_order(world, rank_by):
    index = create(world)
    report = index.add(world / "photos")
    assert (report.found, report.added, report.unchanged) == (12, 12, 0)
    first, second = both_models()
    models = (first, second) if rank_by == "both" else (second,)
    for candidates in (3, 5, 12):
        found = index.search(QUERY, k=3, candidates=candidates, rank_by=rank_by)
        chosen = by_definition(photos_of(world), QUERY, [first], candidates)
        assert paths_of(found) == by_definition(chosen, QUERY, models, 3)
        assert found.looked_at == candidates
        for hit in found.hits:
            assert hit.score == pytest.approx(similarity(hit.path, QUERY, *models), abs=2e-3)
    assert [hit.rank for hit in found.hits] == [1, 2, 3]
    assert (found.stages, found.total, found.notes) == ("two stages", 12, ())


@pytest.mark.parametrize("rank_by", ["both", "reranker"])
def test_exhaustive_is_the_exact_order_of_all(world, rank_by):
    index = create(world)
    index.add(world / "photos")
    found = index.search(QUERY, k=5, exhaustive=True, rank_by=rank_by)
    models = both_models() if rank_by == "both" else both_models()[1:]
    assert paths_of(found) == by_definition(photos_of(world), QUERY, models, 5)
    assert (found.stages, found.looked_at) == ("exhaustive", 12)
    assert found.ranked_by == ("both models" if rank_by == "both" else "the re-ranker")
    with pytest.raises(InputError, match="rank_by: got 'vectors', wanted one of both, reranker"):
        index.search(QUERY, rank_by="vectors")


def test_without_a_reranker_vectors_decide(world):
    index = create(world, reranker=None)
    index.add(world / "photos")
    found = index.search(QUERY, k=4)
    model = search_parts.embedder()
    assert paths_of(found) == by_definition(photos_of(world), QUERY, [model], 4)
    assert found.stages == "vectors only"
    assert found.hits[0].score == pytest.approx(similarity(found.hits[0].path, QUERY, model))
    assert index.look(QUERY, found.hits[0]) == ()
    for how in ({"exhaustive": True}, {"rank_by": "reranker"}):
        with pytest.raises(InputError, match="has no reranker"):
            index.search(QUERY, **how)
    with pytest.raises(InputError, match=r"was made without a reranker"):
        reopen(world, reranker=world / "reranker")


def test_a_model_that_compares_vectors_too_and_ensembles(world):
    """MMCA's vectors lie in front of the regions; an ensemble's members side by side."""
    torch.manual_seed(3)
    text = TextConfig(word_size=4)
    config = MmcaConfig(region_width=search_parts.WIDTH, size=8, heads=2, filters=3, text=text)
    mmca = Mmca(config, search_parts.WORDS).eval()
    both = Ensemble([mmca, search_parts.reranker()])
    pair = Ensemble([search_parts.embedder(5), search_parts.embedder(6, size=3)])
    index = create(world, embedder=pair, reranker=both)
    index.add(world / "photos")
    found = index.search(QUERY, k=12, exhaustive=True, rank_by="reranker")
    for hit in found.hits:
        assert hit.score == pytest.approx(similarity(hit.path, QUERY, *both.matchers), abs=3e-3)
        assert len(hit.regions) in (3, 4)
        assert hit.regions[0].noun == "top left"
    candidates = index.search(QUERY, k=4, candidates=4)
    mean = sorted(
        photos_of(world),
        key=lambda path: -sum(similarity(path, QUERY, member) for member in pair.matchers),
    )
    assert set(paths_of(candidates)) == set(mean[:4])
    looks = index.look(QUERY, found.hits[0])
    assert [look.word for look in looks][1:3] == ["a", "red"]


def test_hits_carry_boxes_names_and_where_each_word_looked(world):
    index = create(world)
    index.add(world / "photos")
    hit = index.search(QUERY, k=1).hits[0]
    assert (hit.width, hit.height) == (16, 16)
    assert hit.regions[1].box == (8.0, 0.0, 16.0, 8.0)
    assert hit.regions[1].noun == "top right"
    assert hit.regions[0].confidence == 1.0
    looks = index.look(QUERY, hit)
    model = search_parts.reranker()
    image = encoded(hit.path, model)
    with torch.no_grad():
        weights = model.attention(image, model.encode_texts([QUERY])).weights[0, 0]
    assert [look.word for look in looks] == ["<start>", *QUERY.split(), "<end>"]
    for look, row in zip(looks, weights, strict=True):
        assert look.weights == pytest.approx(row.tolist(), abs=2e-3)
        assert look.strongest == max(range(len(look.weights)), key=look.weights.__getitem__)


def test_only_what_is_new_changed_or_gone_is_looked_at(world, monkeypatch):
    index = create(world)
    index.add(world / "photos")
    read = []
    monkeypatch.setattr(adding, "read_photo", lambda *a, **k: read.append(a) or read_photo(*a, **k))
    assert index.add(world / "photos").unchanged == 12
    assert read == []
    photos = world / "photos"
    search_parts.make_photo(photos / "03.png", "other")
    (photos / "04.png").unlink()
    os.utime(photos / "05.png", ns=(1, 1))
    search_parts.make_photo(photos / "deep" / "new.png", "new")
    (photos / "06.png").rename(photos / "moved.png")
    report = index.add(photos)
    assert (report.added, report.changed, report.touched, report.removed) == (2, 1, 1, 2)
    assert len(read) == 3
    found = index.search(QUERY, k=50, exhaustive=True)
    wanted = list(photos.rglob("*.png"))
    assert set(paths_of(found)) == set(wanted)
    for hit in found.hits:
        score = similarity(hit.path, QUERY, *both_models())
        assert hit.score == pytest.approx(score, abs=2e-3)
    assert index.add(photos).unchanged == 12
    again = reopen(world)
    assert paths_of(again.search(QUERY, k=50, exhaustive=True)) == paths_of(found)


def test_progress_is_told_from_the_beginning_and_more_often_than_batches(world, monkeypatch):
    monkeypatch.setattr(adding, "COMMIT", 6)
    monkeypatch.setattr(adding, "SECONDS", 1000.0)
    monkeypatch.setattr(adding, "GROUP", 2)
    monkeypatch.setattr(adding, "default_batch", lambda device: 0)  # groups are not larger
    (world / "photos" / "03.png").write_bytes(b"no picture")
    index, told = create(world), []
    index.add(world / "photos", on_progress=lambda *step: told.append((*step, len(index))))
    # Acknowledged are whole batches, the last of them before all are said to be done.
    assert told == [(0, 12, 0)] + [
        (read, 12, acknowledged)
        for read, acknowledged in ((2, 0), (4, 0), (6, 0), (8, 7), (10, 7), (12, 11))
    ]
    told.clear()
    index.add(world / "photos", on_progress=lambda *step: told.append(step))
    assert told == [(0, 1), (1, 1)]  # what could not be read is looked at again


def test_a_change_that_keeps_size_and_date_is_not_noticed_and_one_of_the_date_is(world):
    """What the documentation says: size and date first, then the content."""
    index = create(world)
    photo = world / "photos" / "00.png"
    index.add(world / "photos")
    before = photo.stat()
    data = bytearray(photo.read_bytes())
    data[-1] ^= 1
    photo.write_bytes(data)
    os.utime(photo, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert index.add(world / "photos").unchanged == 12
    os.utime(photo, ns=(5, 5))
    report = index.add(world / "photos")
    assert report.changed + len(report.unreadable) == 1


def test_a_photograph_without_a_cameras_date_has_its_files_date_also_when_that_changes(world):
    index = create(world)
    exif = Image.Exif()
    exif.get_ifd(0x8769)[0x9003] = "2021:07:04 12:00:00"
    dated, plain = world / "photos" / "dated.jpg", world / "photos" / "00.png"
    Image.new("RGB", (16, 16), (9, 200, 9)).save(dated, exif=exif)
    july = int(datetime(2021, 7, 4, 12, tzinfo=UTC).timestamp())
    os.utime(dated, (july, july))  # as copied from the camera: both dates are the same
    index.add(world / "photos")
    second = int(datetime(2015, 3, 2, tzinfo=UTC).timestamp())
    here = int(datetime(2015, 3, 2).timestamp())  # midnight by the clock of whoever runs this
    for photo in (dated, plain):
        os.utime(photo, (here, here))
    assert index.add(world / "photos").touched == 2
    taken = {Path(e.key).name: e.taken for part in index.tables.photos.every() for e in part}
    assert (taken["dated.jpg"], taken["00.png"]) == (july, second)
    found = index.search(QUERY, k=50, where=Where.of(until="2015-12-31"))
    assert [path.name for path in paths_of(found)] == ["00.png"]


def test_unused_regions_are_counted_and_given_back(world):
    index = create(world)
    index.add(world / "photos")
    for number in range(4):
        search_parts.make_photo(world / "photos" / f"{number:02}.png", f"changed {number}")
    index.add(world / "photos")
    found = index.search(QUERY, k=12)
    assert index.describe()["unused_regions"] == 4
    assert index.compact() == 4
    assert index.describe()["unused_regions"] == 0
    assert index.search(QUERY, k=12).hits == found.hits
    assert reopen(world).search(QUERY, k=12).hits == found.hits
    assert sorted(path.name for path in (world / "index").glob("regions-*")) == ["regions-2"]
    assert index.compact() == 0


def test_a_reader_that_looks_late_finds_the_compacted_regions(world):
    index = create(world)
    index.add(world / "photos")
    reader = reopen(world)  # nothing is mapped before it is wanted
    index.remove([1])
    assert index.compact() == 1
    assert len(reader) == 12  # it still sees the one that was removed, until it needs its regions
    assert len(reader.search(QUERY, k=20).hits) == len(reader) == 11


def test_tags_dates_and_filters(world):
    index = create(world)
    exif = Image.Exif()
    exif.get_ifd(0x8769)[0x9003] = "2021:07:04 12:00:00"
    Image.new("RGB", (16, 16), (9, 200, 9)).save(world / "photos" / "old.jpg", exif=exif)
    index.add(world / "photos", tags=["mine"])
    index.add(world / "photos" / "01.png", tags=["best"])
    found = index.search(QUERY, k=50, where=Where.of(until="2021-12-31"))
    assert [path.name for path in paths_of(found)] == ["old.jpg"]
    assert found.notes == ("1 photographs pass the filter, 50 were asked for",) or (
        "50 photographs were asked for, the index holds 13" in found.notes
    )
    found = index.search(QUERY, k=50, where=Where(tags=("mine", "best")))
    assert [hit.tags for hit in found.hits] == [("best", "mine")]
    for exhaustive in (True, False):
        found = index.search(QUERY, k=3, where=Where(path="photos/0*"), exhaustive=exhaustive)
        named = [path for path in photos_of(world) if path.name.startswith("0")]
        assert paths_of(found) == by_definition(named, QUERY, both_models(), 3)
    assert index.search(QUERY, where=Where(path="/nowhere/*")).hits == ()
    # Another file of the same folder was asked for by name: nothing else is gone.
    assert len(index) == 13


def test_two_folders_in_one_index_do_not_touch_each_other(world):
    index = create(world)
    index.add(world / "photos")
    search_parts.make_photo(world / "photos2" / "a.png", "a")
    assert index.add(world / "photos2").removed == 0
    assert len(index) == 13
    (world / "photos2" / "a.png").unlink()
    search_parts.make_photo(world / "photos2" / "b.png", "b")
    assert index.add(world / "photos2").removed == 1
    assert len(index) == 13


def test_photographs_like_a_picture_and_sentences_for_it(world):
    index = create(world)
    index.add(world / "photos")
    picture = world / "photos" / "07.png"
    found = index.search(picture, k=4)
    model = search_parts.embedder()
    with torch.no_grad():
        mine = encoded(picture, model).vectors
        near = {
            path: float(torch.cosine_similarity(encoded(path, model).vectors, mine))
            for path in photos_of(world)
        }
    assert paths_of(found) == sorted(near, key=lambda path: -near[path])[:4]
    assert found.hits[0].path == str(picture)
    assert found.picture
    assert found.sentences == ()
    with pytest.raises(InputError, match="rank_by: is for a sentence"):
        index.search(picture, rank_by="reranker")
    pixels = np.array(Image.open(picture))
    assert index.search(pixels, k=4).hits == found.hits

    lines = ["a dog runs", "a cat in the snow", "", "the blue snow", "a dog runs", "..."]
    (world / "lines.txt").write_text("\n".join(lines))
    report = index.add_sentences(world / "lines.txt")
    assert (report.found, report.added) == (3, 3)
    assert [str(one) for one in report.left_out] == ["1 lines without a word or too long (...)"]
    found = index.search(picture, k=2)
    texts = [line for line in dict.fromkeys(lines) if line not in ("", "...")]
    models = both_models()
    wanted = sorted(texts, key=lambda text: -similarity(picture, text, *models))
    assert [one.text for one in found.sentences] == wanted[:2]
    assert found.sentences[0].score == pytest.approx(
        similarity(picture, wanted[0], *models), abs=2e-3
    )
    (world / "lines.txt").write_text("a dog runs\na green cat\n")
    report = index.add_sentences(world / "lines.txt")
    assert (report.added, report.removed, report.unchanged) == (1, 2, 1)
    assert len(reopen(world).search(picture, k=9).sentences) == 2


def test_what_a_database_cuts_off_is_said(world, monkeypatch):
    pytest.importorskip("milvus_lite", reason="needs crossgaze[milvus-lite]")
    from crossgaze.search.milvus import MOST, MilvusEngine

    assert MilvusEngine.most == MOST == 16_384
    index = create(world, engine="milvus")
    index.add(world / "photos")
    assert index.search(QUERY, k=8).notes == ()
    monkeypatch.setattr(MilvusEngine, "most", 5)
    cut = "photographs were asked for by their vectors, the database gives the best 5 at most"
    for query in (QUERY, world / "photos" / "07.png"):
        found = index.search(query, k=8, candidates=9)
        assert (len(found.hits), found.notes) == (5, (f"9 {cut}",))
    assert index.search(QUERY, k=4, candidates=5).notes == ()
    found = index.search(QUERY, k=8, exhaustive=True)
    assert (len(found.hits), found.notes) == (8, ())
    index.close()


def test_remove(world):
    index = create(world)
    index.add(world / "photos")
    assert index.remove(Where(path="photos/0*")) == 10
    assert index.remove([11, 999]) == 1
    assert len(reopen(world)) == 1
    with pytest.raises(InputError, match="would remove everything"):
        index.remove(Where())


def test_watching_follows_a_folder_and_outlives_its_absence(world):
    index = create(world)
    steps = iter(range(6))
    troubles = []

    def stop():
        step = next(steps)
        if step == 3:
            (world / "photos" / "half.png").write_bytes(b"half")
        if step == 0:
            search_parts.make_photo(world / "photos" / "late.png", "late")
        if step == 1:
            (world / "photos").rename(world / "away")
        if step == 2:
            (world / "away").rename(world / "photos")
        return step == 5

    reports = list(index.watch(world / "photos", every=0.01, stop=stop, on_trouble=troubles.append))
    assert [report.added for report in reports] == [12, 1]
    assert len(troubles) == 2  # each is said once
    assert "cannot be opened" in troubles[0]
    assert troubles[1].startswith("half.png: cannot be read now: is not a")
    assert len(index) == 13
    with pytest.raises(InputError, match="every: got 0"):
        next(index.watch(world / "photos", every=0))


# What an index is made with ---------------------------------------------------------------------


def test_all_as_candidates_are_the_exhaustive_answer_equals_too(world):
    for number in range(5):
        shutil.copy(world / "photos" / "03.png", world / "photos" / f"same{number}.png")
    index = create(world)
    index.add(world / "photos")
    for query in (QUERY, "a cat runs", "the blue snow"):
        for k in (1, 4, 17):
            two = index.search(query, k=k, candidates=17)
            every = index.search(query, k=k, exhaustive=True)
            assert [hit.uid for hit in two.hits] == [hit.uid for hit in every.hits]
            scores = [hit.score for hit in every.hits]
            assert [hit.score for hit in two.hits] == pytest.approx(scores, abs=1e-5)
            two = index.search(query, k=k, candidates=17, rank_by="reranker")
            assert two.hits == index.search(query, k=k, exhaustive=True, rank_by="reranker").hits
    same = [hit for hit in two.hits if hit.path.endswith("03.png") or "same" in hit.path]
    assert len({hit.score for hit in same}) == 1
    assert [hit.uid for hit in same] == sorted(hit.uid for hit in same)


def test_of_two_entries_for_one_photograph_the_newer_stands_where_it_belongs(world):
    """As between the two steps of a change: the older is still there, with its own score."""
    index = create(world)
    index.add(world / "photos")
    ranks = index.search(QUERY, k=12).hits
    best, worst = ranks[0], ranks[-1]
    table = index.tables.photos
    (entry,) = table.get([worst.uid])
    # The worst photograph's entry, newest of all, now says that it is the best one's path.
    table.update([replace(entry, key=best.path)])
    older, newer = sorted([best.uid, worst.uid])
    found = index.search(QUERY, k=11)
    uids = [hit.uid for hit in ranks if hit.uid != older]
    assert [hit.uid for hit in found.hits] == uids
    assert [hit.rank for hit in found.hits] == list(range(1, 12))
    assert newer in uids


def test_a_photograph_that_is_gone_cannot_be_looked_at(world):
    index = create(world)
    index.add(world / "photos")
    hit = index.search(QUERY, k=1).hits[0]
    index.remove([hit.uid])
    index.compact()
    with pytest.raises(InputError, match=r"has no regions of .*png now; search again"):
        index.look(QUERY, hit)


def test_the_default_number_of_candidates_is_used(world, monkeypatch):
    index = create(world)
    index.add(world / "photos")
    monkeypatch.setattr(ranking, "CANDIDATES", 5)
    assert index.search(QUERY, k=2).looked_at == 5
    assert index.search(QUERY, k=7).looked_at == 7
