"""An index over a small world: what it holds, what it finds, and what it refuses."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import search_parts
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.errors import FileFormatError, InputError
from crossgaze.models.encoded import Encoded
from crossgaze.models.ensemble import Ensemble
from crossgaze.models.mmca import Mmca, MmcaConfig
from crossgaze.models.text import TextConfig
from crossgaze.search import adding, ranking
from crossgaze.search.filters import Where
from crossgaze.search.index import Index
from crossgaze.vision.photos import read_photo

pytest.importorskip("lancedb", reason="needs crossgaze[search]")
QUERY = "a red dog in the snow"


@pytest.fixture
def world(tmp_path):
    """Twelve photographs, two models, and an index that holds nothing yet."""
    search_parts.save_models(tmp_path)
    for number in range(12):
        search_parts.make_photo(tmp_path / "photos" / f"{number:02}.png", number)
    return tmp_path


def create(world, **more):
    how = {
        "embedder": world / "embedder",
        "reranker": world / "reranker",
        "source": search_parts.CellSource(),
    }
    return Index.create(world / "index", **how | more)


def reopen(world, **more):
    return Index.open(world / "index", source=search_parts.CellSource(), **more)


def encoded(path, model):
    """A photograph's regions by the source itself, encoded: nothing of the index in between."""
    photo = read_photo(path, 8)
    (found,) = search_parts.CellSource()([photo], [""], lambda: None)
    with torch.no_grad():
        return model.encode_images(torch.from_numpy(found.features)[None])


def similarity(path, text, model):
    with torch.no_grad():
        return float(model.similarity(encoded(path, model), model.encode_texts([text])))


def by_definition(paths, text, model, count):
    return sorted(paths, key=lambda path: -similarity(path, text, model))[:count]


def paths_of(found):
    return [Path(hit.path) for hit in found.hits]


def photos_of(world):
    return sorted((world / "photos").iterdir())


def test_two_stages_are_the_candidates_by_vector_in_the_rerankers_order(world):
    index = create(world)
    report = index.add(world / "photos")
    assert (report.found, report.added, report.unchanged) == (12, 12, 0)
    first, second = search_parts.embedder(), search_parts.reranker()
    for candidates in (3, 5, 12):
        found = index.search(QUERY, k=3, candidates=candidates)
        chosen = by_definition(photos_of(world), QUERY, first, candidates)
        assert paths_of(found) == by_definition(chosen, QUERY, second, 3)
        assert found.looked_at == candidates
        for hit in found.hits:
            assert hit.score == pytest.approx(similarity(hit.path, QUERY, second), abs=2e-3)
    assert [hit.rank for hit in found.hits] == [1, 2, 3]
    assert (found.stages, found.total, found.notes) == ("two stages", 12, ())


def test_exhaustive_is_the_rerankers_order_of_all(world):
    index = create(world)
    index.add(world / "photos")
    found = index.search(QUERY, k=5, exhaustive=True)
    assert paths_of(found) == by_definition(photos_of(world), QUERY, search_parts.reranker(), 5)
    assert (found.stages, found.looked_at) == ("exhaustive", 12)


def test_without_a_reranker_vectors_decide(world):
    index = create(world, reranker=None)
    index.add(world / "photos")
    found = index.search(QUERY, k=4)
    model = search_parts.embedder()
    assert paths_of(found) == by_definition(photos_of(world), QUERY, model, 4)
    assert found.stages == "vectors only"
    assert found.hits[0].score == pytest.approx(similarity(found.hits[0].path, QUERY, model))
    assert index.look(QUERY, found.hits[0]) == ()
    with pytest.raises(InputError, match="has no reranker"):
        index.search(QUERY, exhaustive=True)
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
    found = index.search(QUERY, k=12, exhaustive=True)
    for hit in found.hits:
        wanted = similarity(hit.path, QUERY, mmca) + similarity(hit.path, QUERY, both.matchers[1])
        assert hit.score == pytest.approx(wanted / 2, abs=3e-3)
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
        score = similarity(hit.path, QUERY, search_parts.reranker())
        assert hit.score == pytest.approx(score, abs=2e-3)
    assert index.add(photos).unchanged == 12
    again = reopen(world)
    assert paths_of(again.search(QUERY, k=50, exhaustive=True)) == paths_of(found)


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
        assert paths_of(found) == by_definition(named, QUERY, search_parts.reranker(), 3)
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
    pixels = np.array(Image.open(picture))
    assert index.search(pixels, k=4).hits == found.hits

    lines = ["a dog runs", "a cat in the snow", "", "the blue snow", "a dog runs", "..."]
    (world / "lines.txt").write_text("\n".join(lines))
    report = index.add_sentences(world / "lines.txt")
    assert (report.found, report.added) == (4, 4)  # "..." is a word to the tokenizer
    found = index.search(picture, k=2)
    texts = [line for line in dict.fromkeys(lines) if line]
    second = search_parts.reranker()
    wanted = sorted(texts, key=lambda text: -similarity(picture, text, second))
    assert [one.text for one in found.sentences] == wanted[:2]
    assert found.sentences[0].score == pytest.approx(
        similarity(picture, wanted[0], second), abs=2e-3
    )
    (world / "lines.txt").write_text("a dog runs\na green cat\n")
    report = index.add_sentences(world / "lines.txt")
    assert (report.added, report.removed, report.unchanged) == (1, 3, 1)
    assert len(reopen(world).search(picture, k=9).sentences) == 2


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
    steps = iter(range(4))
    troubles = []

    def stop():
        step = next(steps)
        if step == 0:
            search_parts.make_photo(world / "photos" / "late.png", "late")
        if step == 1:
            (world / "photos").rename(world / "away")
        if step == 2:
            (world / "away").rename(world / "photos")
        return step == 3

    reports = list(index.watch(world / "photos", every=0.01, stop=stop, on_trouble=troubles.append))
    assert [report.added for report in reports] == [12, 1]
    assert len(troubles) == 1
    assert "cannot be opened" in troubles[0]
    assert len(index) == 13
    with pytest.raises(InputError, match="every: got 0"):
        next(index.watch(world / "photos", every=0))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "query: is empty"),
        ("  ", "query: is empty"),
        ("?!", "has no word in it"),
        ("zebra qux", r"knows none of its words \(zebra, qux\)"),
        ("a " * 2000, "query: has 4,000 characters, 2,000 are the most"),
        ("a\ud800", "half of a character"),
    ],
)
def test_queries_that_say_nothing_are_refused(world, query, message):
    index = create(world)
    index.add(world / "photos" / "00.png")
    with pytest.raises(InputError, match=message):
        index.search(query)


def test_what_a_user_should_be_told(world):
    index = create(world)
    with pytest.raises(InputError, match="holds no photograph yet; crossgaze index PHOTOS"):
        index.search(QUERY)
    index.add(world / "photos")
    found = index.search("a zebra in the snow", k=20)
    assert found.unknown == ("zebra",)
    assert found.notes == (
        "words that the model does not know: zebra",
        "20 photographs were asked for, the index holds 12",
    )
    assert len(found.hits) == 12
    for k in (0, -1, 1.5, "3"):
        with pytest.raises(InputError, match="k: got"):
            index.search(QUERY, k=k)
    for query in (QUERY, world / "photos" / "00.png"):
        with pytest.raises(InputError, match="candidates: got 0"):
            index.search(query, candidates=0)
    with pytest.raises(InputError, match=r"wanted \(h, w, 3\) uint8"):
        index.search(np.zeros((4, 4)))
    with pytest.raises(InputError, match="no such file"):
        index.search(world / "nothing.jpg")


def test_unreadable_photographs_are_listed_and_the_rest_goes_on(world):
    index = create(world)
    (world / "photos" / "bad.jpg").write_bytes(b"nothing")
    report = index.add(world / "photos")
    assert report.added == 12
    assert report.unreadable[0][0] == "bad.jpg"
    (world / "photos" / "00.png").write_bytes(b"broken now")
    report = index.add(world / "photos")
    assert (report.removed, len(report.unreadable), len(index)) == (1, 2, 11)


def test_folders_without_a_readable_photograph(world):
    index = create(world)
    (world / "empty").mkdir()
    with pytest.raises(InputError, match="holds no photograph"):
        index.add(world / "empty")
    (world / "bad").mkdir()
    (world / "bad" / "a.jpg").write_bytes(b"x")
    with pytest.raises(InputError, match=r"none of the 1 photographs could be read; a.jpg: is not"):
        index.add(world / "bad")
    with pytest.raises(InputError, match="cannot be opened"):
        index.add(world / "nowhere")


# What an index is made with ---------------------------------------------------------------------


def test_another_model_is_refused_with_what_to_do(world):
    create(world).close()
    search_parts.embedder(seed=99).save_pretrained(world / "other")
    with pytest.raises(InputError, match=r"was made with the embedder vse.* is vse.*index the"):
        reopen(world, embedder=world / "other")
    shutil.rmtree(world / "reranker")
    with pytest.raises(InputError, match=r"its reranker cannot be loaded.*--reranker"):
        reopen(world)
    search_parts.reranker().save_pretrained(world / "elsewhere")
    assert len(reopen(world, reranker=world / "elsewhere")) == 0


def test_another_region_model_is_refused(world):
    create(world).close()
    index = Index.open(world / "index", source=search_parts.CellSource(version=2))
    with pytest.raises(InputError, match="its regions were made with version = 1, now it is 2"):
        index.add(world / "photos")


def test_models_that_do_not_fit_are_refused(world):
    with pytest.raises(InputError, match="embedder: scan compares pairs"):
        create(world, embedder=world / "reranker")
    with pytest.raises(InputError, match=r"reranker: vse\+\+ gives one vector a side"):
        create(world, reranker=world / "embedder")
    source = search_parts.CellSource()
    source.width = 9
    with pytest.raises(InputError, match="takes regions of width 6, the detector's have 9"):
        create(world, source=source)
    with pytest.raises(InputError, match="no matching model ships with this crossgaze yet"):
        create(world, embedder=None)
    with pytest.raises(InputError, match="engine: got 'sqlite'"):
        create(world, engine="sqlite")
    with pytest.raises(InputError, match="a URL with a password"):
        create(world, engine="http://me:secret@host:1/x")
    assert not (world / "index").exists()


def test_another_version_and_damage_are_refused_in_a_line(world):
    create(world).close()
    head = world / "index" / "index.json"
    good = head.read_text()
    for text, message in (
        (good.replace('"version": 1', '"version": 2'), "is version 2 of an index.*index the"),
        (good.replace("crossgaze-index", "something"), "format is 'something'"),
        (good[: len(good) // 2], "does not read as an index's head"),
        ("[]", "does not read as an index's head"),
        (json.dumps(json.loads(good) | {"store": "../x"}), "store: is '../x'"),
        (json.dumps(json.loads(good) | {"bogus": 1}), "unknown key 'bogus'"),
    ):
        head.write_text(text)
        with pytest.raises(InputError, match=message) as caught:
            reopen(world)
        assert "\n" not in str(caught.value)
    head.write_text(good)
    assert len(reopen(world)) == 0
    with pytest.raises(InputError, match="no such folder, wanted an index"):
        Index.open(world / "nowhere")
    with pytest.raises(InputError, match="is not an index"):
        Index.open(world / "photos")
    with pytest.raises(InputError, match="is an index already"):
        create(world)
    with pytest.raises(InputError, match="is not empty and not an index"):
        Index.create(world / "photos", embedder=world / "embedder")


def test_a_damaged_database_is_refused_in_a_line(world):
    index = create(world)
    index.add(world / "photos")
    index.close()
    for manifest in (world / "index" / "database" / "photos.lance" / "_versions").iterdir():
        manifest.write_bytes(b"nonsense")
    with pytest.raises(FileFormatError, match="LanceDB cannot work with it") as caught:
        len(reopen(world))
    assert "\n" not in str(caught.value)


def test_regions_that_are_missing_are_said_and_made_again(world):
    index = create(world)
    index.add(world / "photos")
    index.close()
    store = world / "index" / "regions-1"
    shutil.rmtree(store)
    fresh = Index.create(
        world / "fresh",
        embedder=world / "embedder",
        reranker=world / "reranker",
        source=search_parts.CellSource(),
    )
    fresh.close()
    shutil.copytree(world / "fresh" / "regions-1", store)
    index = reopen(world)
    with pytest.raises(FileFormatError, match="lacks the regions of 12 photographs; index"):
        index.search(QUERY)
    assert index.add(world / "photos").added == 12
    assert len(index.search(QUERY, k=12).hits) == 12


def test_what_an_interrupted_creation_left_is_no_obstacle(world):
    index = create(world)
    index.add(world / "photos")
    index.close()
    (world / "index" / "index.json").unlink()
    (world / "index" / "milvus.db").write_text("a file, as older versions of Milvus Lite have")
    assert len(create(world)) == 0
    assert not (world / "index" / "milvus.db").exists()


@pytest.mark.parametrize("moved", [False, True])
def test_an_index_that_another_process_made_meanwhile_is_not_overwritten(world, monkeypatch, moved):
    """Loading models takes seconds; who comes second must not clear what the first has made."""
    from crossgaze.search import making, moving

    create(world).close()
    first = Index.create(
        world / "late", embedder=world / "embedder", source=search_parts.CellSource()
    )
    shutil.move(world / "late", world / "ready")
    first.close()

    def appear(done):
        shutil.rmtree(world / "late", ignore_errors=True)  # nobody has written there yet
        shutil.move(world / "ready", world / "late")
        return done

    lock, load = moving.only_writer, making.load_model
    if moved:  # after the first look at the place, before the second
        monkeypatch.setattr(
            moving,
            "only_writer",
            lambda at, what: lock(appear(at) if at.name == "late" else at, what),
        )
        with pytest.raises(InputError, match="late: is an index already"):
            moving.move_index(world / "index", world / "late")
    else:
        monkeypatch.setattr(making, "load_model", lambda *a: appear(load(*a)))
        how = {"embedder": world / "embedder", "source": search_parts.CellSource()}
        with pytest.raises(InputError, match="late: is an index already"):
            Index.create(world / "late", **how)
    monkeypatch.undo()
    assert Index.open(world / "late").head.id == first.head.id


def test_reading_some_at_a_time_finds_the_same(world, monkeypatch):
    from crossgaze.search import kept

    index = create(world)
    index.add(world / "photos")
    first = index.search(QUERY, k=12).hits
    monkeypatch.setattr(kept, "PART", 1)  # one photograph at a time
    for exhaustive in (False, True):
        found = index.search(QUERY, k=12, exhaustive=exhaustive).hits
        assert [hit.path for hit in found] == [hit.path for hit in first]
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in first], abs=1e-5)


def mapped_bytes(name):
    """How much of a mapped file this process holds, as the system says."""
    total, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(" ")[0]:
            inside = line.endswith(name)
        elif inside and line.startswith("Rss:"):
            total += 1024 * int(line.split()[1])
    return total


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="Linux says what is mapped")
def test_a_search_of_everything_holds_a_part_of_the_file(world, monkeypatch):
    """32 MB of regions, read 1 MB at a time: not one page of the file stays this process's."""
    from crossgaze.search import kept

    index = create(world)
    size = 64
    with RegionWriter(world / "big", 36, size, fields=["counts", "boxes", "sizes"]) as writer:
        for start in range(1, 7000, 1000):
            names = [str(uid) for uid in range(start, start + 1000)]
            rows = np.empty((1000, 36, size), np.float16)
            rows[:] = (np.arange(start, start + 1000) % 1024)[:, None, None]
            some = {"boxes": np.zeros((1000, 36, 4)), "sizes": np.ones((1000, 2), np.int32)}
            writer.append(names, rows, **some)
    monkeypatch.setattr(kept, "PART", 1 << 20)
    opened = kept.KeptRegions(world / "big", 0)
    monkeypatch.setattr(index, "_kept", opened)
    seen, held = [], []

    def score(said, features, rows, counts):
        assert features.nbytes <= 1 << 20
        seen.extend(features[rows][:, 35, 63].tolist())
        held.append(mapped_bytes("/big/features.bin"))
        return np.array(seen[-len(rows) :], np.float32)[:, None]

    monkeypatch.setattr(index.reranker, "score_texts", score)
    uids = np.random.default_rng(0).permutation(np.arange(1, 7001))
    assert ranking.rerank_uids(index, QUERY, uids).tolist() == (uids % 1024).tolist()
    assert len(seen) == 7000
    assert opened.features.nbytes > 30e6
    assert max(held) == 0


def test_all_as_candidates_are_the_exhaustive_answer_equals_too(world):
    for number in range(5):
        shutil.copy(world / "photos" / "03.png", world / "photos" / f"same{number}.png")
    index = create(world)
    index.add(world / "photos")
    for query in (QUERY, "a cat runs", "the blue snow"):
        for k in (1, 4, 17):
            two = index.search(query, k=k, candidates=17)
            assert two.hits == index.search(query, k=k, exhaustive=True).hits
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


def test_kept_features_are_what_the_reranker_made(world):
    index = create(world)
    index.add(world / "photos")
    model = search_parts.reranker()
    for hit in index.search(QUERY, k=12).hits:
        (row,) = index.kept.rows([hit.uid])
        side = encoded(hit.path, model)
        count = int(index.kept.counts[row])
        assert isinstance(side, Encoded)
        np.testing.assert_allclose(
            index.kept.features[row, :count], side.fragments[0].numpy(), atol=1e-3
        )
        assert not index.kept.features[row, count:].any()
