"""What an index refuses, in a line that says what to do, and what it goes on with."""

import errno
import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import search_parts
from crossgaze.errors import FileFormatError, InputError, MissingExtraError
from crossgaze.search.filters import Where
from crossgaze.search.index import Index
from search_parts import create, reopen

pytest.importorskip("lancedb", reason="needs crossgaze[search]")
QUERY = "a red dog in the snow"


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
    for k in (0, -1, 1.5, "3", True, None, np.float32(2)):
        for query in (QUERY, world / "photos" / "00.png"):
            with pytest.raises(InputError, match=r"k: got .*, wanted a whole number, 1 or more"):
                index.search(query, k=k)
    for query in (QUERY, world / "photos" / "00.png"):
        with pytest.raises(InputError, match="candidates: got 0"):
            index.search(query, candidates=0)
    with pytest.raises(InputError, match=r"wanted \(h, w, 3\) uint8"):
        index.search(np.zeros((4, 4)))
    with pytest.raises(InputError, match="no such file"):
        index.search(world / "nothing.jpg")


@pytest.mark.parametrize("exact", [None, 0])
def test_any_k_is_cut_to_what_the_index_holds(world, exact):
    create(world).close()
    index = reopen(world, exact=exact)  # in memory, and by LanceDB
    index.add(world / "photos")
    for k in (2**31, 2**63, 10**30):
        for query in (QUERY, world / "photos" / "00.png"):
            found = index.search(query, k=k)
            assert len(found.hits) == 12
            assert found.notes == (f"{k} photographs were asked for, the index holds 12",)
    for query in (QUERY, world / "photos" / "00.png"):
        assert index.search(query, k=np.int64(2)).hits == index.search(query, k=2).hits
    # Sentences may be more than photographs.
    (world / "lines.txt").write_text("".join(f"a red dog {'runs ' * n}\n" for n in range(20)))
    index.add_sentences(world / "lines.txt")
    assert len(index.search(world / "photos" / "00.png", k=15).sentences) == 15
    assert len(index.search(world / "photos" / "00.png", k=2**40).sentences) == 20


def test_calls_that_look_right_are_answered_or_told_what_is_wanted(world):
    index = create(world)
    report = index.add([world / "photos" / "00.png", str(world / "photos" / "01.png")])
    assert (report.found, report.added, len(index)) == (2, 2, 2)
    search_parts.make_photo(world / "more" / "a.png", "a")
    report = index.add((world / "photos", world / "more"), tags=["mine"])
    assert (report.found, report.added, report.touched, len(index)) == (13, 11, 2, 13)
    for photos in ([], None, 5, [None], {"a": 1}):
        with pytest.raises(InputError, match=r"photos: got .*, wanted a folder, a photograph, or"):
            index.add(photos)
    for where in ({"path": "photos/*"}, "photos/*"):
        for query in (QUERY, world / "photos" / "00.png"):
            with pytest.raises(
                InputError, match=r"where: got .*, wanted a filter .*Where.of\(path="
            ):
                index.search(query, where=where)
        with pytest.raises(InputError, match=r"where: got .*Where.of"):
            index.remove(where)
    with Image.open(world / "photos" / "00.png") as picture:
        with pytest.raises(InputError, match=r"query: got PngImageFile, wanted a sentence, a pict"):
            index.search(picture)
        # What it says to do instead.
        like = index.search(np.asarray(picture.convert("RGB")))
    assert like.hits[0].path == str(world / "photos" / "00.png")
    for query in (None, 7, b"dog", ["a dog"]):
        with pytest.raises(InputError, match="query: got"):
            index.search(query)
    with pytest.raises(InputError, match="exhaustive: is for a sentence"):
        index.search(world / "photos" / "00.png", exhaustive=True)
    with (world / "photos" / "00.png").open("rb") as file:  # as the service does
        assert index.search(file).hits[0].path == str(world / "photos" / "00.png")


def test_an_emptied_folder_is_refused_with_how_to_take_its_photographs_out(world):
    index = create(world)
    search_parts.make_photo(world / "more" / "a.png", "a")
    index.add([world / "photos", world / "more"])
    shutil.rmtree(world / "more")
    (world / "empty").mkdir()
    with pytest.raises(InputError) as caught:
        index.add(world / "more")
    said = f"--into {index.folder} --remove '{world}/more/*' takes them out"
    assert "more: cannot be opened" in str(caught.value)
    assert f"; 1 photographs of it stay in the index, crossgaze index {said}" in str(caught.value)
    for path in (world / "empty", world / "nowhere", "a\0b"):
        with pytest.raises(InputError) as caught:
            index.add(path)
        assert "stay" not in str(caught.value)
    (world / "photos" / "00.png").unlink()
    with pytest.raises(InputError, match=r"1 photographs of it stay.* --remove \S+/00.png takes"):
        index.add(world / "photos" / "00.png")
    for photo in (world / "photos").iterdir():
        photo.unlink()
    with pytest.raises(InputError, match=r"holds no photograph.*; 12 photographs of it stay"):
        index.add(world / "photos")
    assert len(index) == 13


@pytest.mark.parametrize("every", [0, -1, float("nan"), float("inf"), 1e12])
def test_a_watch_that_could_not_wait_is_refused_before_it_looks(world, every):
    index = create(world)
    with pytest.raises(InputError, match=r"every: got .*, wanted seconds above 0, at most"):
        index.watch(world / "photos", every=every)
    assert len(index) == 0


def test_what_milvus_in_a_file_needs_is_named(world, monkeypatch):
    pytest.importorskip("pymilvus", reason="needs crossgaze[search]")
    for name in [name for name in sys.modules if name.split(".")[0] == "milvus_lite"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "milvus_lite", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'crossgaze\[milvus-lite\]'"):
        create(world, engine="milvus")


def test_unreadable_photographs_are_listed_and_the_rest_goes_on(world):
    index = create(world)
    (world / "photos" / "bad.jpg").write_bytes(b"nothing")
    report = index.add(world / "photos")
    assert report.added == 12
    assert report.unreadable[0][0] == "bad.jpg"
    assert len(index) == 12


@pytest.mark.parametrize("how", ["half written", "EIO", "EACCES"])
def test_a_photograph_that_cannot_be_read_for_a_moment_stays_as_it_was(world, monkeypatch, how):
    index = create(world)
    index.add(world / "photos", tags=["mine"])
    where = Where(path="photos/00.png")
    before = index.search(QUERY, where=where).hits
    assert before[0].tags == ("mine",)
    path = world / "photos" / "00.png"
    whole = search_parts.make_photo(path, "another content").read_bytes()
    with monkeypatch.context() as patched:
        if how == "half written":
            path.write_bytes(whole[: len(whole) // 2])
        else:
            real, code = Path.read_bytes, getattr(errno, how)

            def fail(self):
                if self.name == "00.png":
                    raise OSError(code, os.strerror(code), str(self))
                return real(self)

            patched.setattr(Path, "read_bytes", fail)
        for _ in range(2):
            report = index.add(world / "photos")
            assert [name for name, _ in report.unreadable] == ["00.png"]
            assert (report.removed, report.unchanged, len(index)) == (0, 11, 12)
            assert index.search(QUERY, where=where).hits == before
    path.write_bytes(whole)
    report = index.add(world / "photos")
    assert (report.changed, report.unreadable, len(index)) == (1, (), 12)
    (after,) = index.search(QUERY, where=where).hits
    assert after.tags == ("mine",)
    assert after.score != before[0].score
    path.unlink()
    assert index.add(world / "photos").removed == 1


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
    with pytest.raises(InputError, match="embedder: takes regions of width 1792"):
        create(world, embedder=None)
    with pytest.raises(InputError, match="engine: got 'sqlite'"):
        create(world, engine="sqlite")
    with pytest.raises(InputError, match="a URL with a password"):
        create(world, engine="http://me:secret@host:1/x")
    for half in ("http://[", "http://[::1/x", "http://host:port/x", "http://:19530/x"):
        with pytest.raises(InputError, match=r"engine: got .*, wanted lance, milvus or a server's"):
            create(world, engine=half)
        with pytest.raises(InputError, match=r"engine: got .*, wanted lance, milvus or a server's"):
            Index.open(half)
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
    index.add(world / "photos", tags=["mine"])
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
    assert index.add(world / "photos").changed == 12
    assert len(index.search(QUERY, k=12, where=Where(tags=("mine",))).hits) == 12


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
