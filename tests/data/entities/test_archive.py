"""Flickr30k Entities on disk: zip and folder, damage, and the real data's counts."""

import pickle
import threading
import zipfile

import pytest

from crossgaze.data.entities import archive as module
from crossgaze.data.entities.archive import Entities
from crossgaze.errors import FileFormatError, InputError
from entity_files import SENTENCES, XML, folder, refusal, zipped
from support import SHARED, needs_shared

ZIP = SHARED / "data" / "flickr30k_entities" / "annotations.zip"


@pytest.mark.parametrize("prefix", ["", "flickr30k_entities-master/"])
def test_zip_and_folder_read_alike(tmp_path, prefix):
    plain = folder(tmp_path / "plain" / prefix) if prefix else folder(tmp_path / "plain")
    (tmp_path / "clone").mkdir()
    members = {
        "flickr30k_entities-master/": "",
        "flickr30k_entities-master/README.md": "hello",
        f"{prefix}Annotations/42.xml": XML,
        f"{prefix}Sentences/42.txt": SENTENCES,
    }
    archive = zipped(tmp_path / "clone" / "annotations.zip", members)
    # A clone of the dataset is a folder that holds the zip.
    for path in (archive, str(archive), tmp_path / "clone", tmp_path / "plain", plain):
        entities = Entities.open(path)
        assert (len(entities), list(entities), entities.ids) == (1, ["42"], ("42",))
        assert entities.left_out == ()
        assert entities["42"].sentences == entities.read("42").sentences
        assert entities["42"].boxes["5"].tolist() == [[0, 0, 100, 200], [10, 20, 30, 60]]


def test_is_a_mapping_that_reads_late(tmp_path):
    folder(tmp_path)
    entities = Entities.open(folder(tmp_path, xml="not xml", image="7"))
    assert "7" in entities
    assert "8" not in entities
    assert entities.get("8") is None
    assert sorted(entities) == ["42", "7"]
    assert entities["42"].width == 100
    with pytest.raises(KeyError):
        entities["8"]
    with pytest.raises(InputError, match="has no image '8' among its 2"):
        entities.read("8")
    with pytest.raises(FileFormatError, match="not XML"):
        entities["7"]


def test_threads_and_pickles_read_well(tmp_path):
    members = {}
    for i in range(30):
        members[f"Annotations/{i}.xml"] = XML.replace("<width>100", f"<width>{100 + i}")
        members[f"Sentences/{i}.txt"] = SENTENCES
    entities = Entities.open(zipped(tmp_path / "annotations.zip", members))
    wanted = {str(i): 100 + i for i in range(30)}
    seen = []

    def work():
        seen.append({image: entities[image].width for image in entities})

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [wanted] * 4
    copy = pickle.loads(pickle.dumps(entities))
    assert {image: copy[image].width for image in copy} == wanted


def test_another_process_opens_the_zip_again(tmp_path, monkeypatch):
    members = {"Annotations/42.xml": XML, "Sentences/42.txt": SENTENCES}
    entities = Entities.open(zipped(tmp_path / "annotations.zip", members))
    assert entities["42"].width == 100
    before = entities._archive
    assert entities["42"].width == 100
    assert entities._archive is before
    # What a forked worker sees: the parent's open zip under another process id.
    monkeypatch.setattr(module.os, "getpid", lambda: -1)
    assert entities["42"].width == 100
    assert entities._archive is not before


def test_files_that_are_neither_are_counted(tmp_path):
    members = {
        "Annotations/42.xml": XML,
        "Sentences/42.txt": SENTENCES,
        "Sentences/notes.doc": "x",
        "__MACOSX/Sentences/42.txt": "x",
        "Annotations/._42.xml": "x",
        "README.md": "x",
    }
    entities = Entities.open(zipped(tmp_path / "a.zip", members))
    assert entities.ids == ("42",)
    (entry,) = entities.left_out
    assert entry.count == 3
    assert "README.md" not in str(entry)
    assert "Sentences/notes.doc" in str(entry)


def test_half_an_image_is_refused_when_opened(tmp_path):
    folder(tmp_path)
    folder(tmp_path, sentences=None, image="43")
    with pytest.raises(FileFormatError) as caught:
        Entities.open(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: 1 images have no file in Sentences, the first is Annotations/43.xml"
    )
    archive = zipped(tmp_path / "a.zip", {"Sentences/1.txt": "a", "Sentences/2.txt": "b"})
    with pytest.raises(FileFormatError) as caught:
        Entities.open(archive)
    assert str(caught.value) == (
        f"{archive}: 2 images have no file in Annotations, the first is Sentences/1.txt"
    )


def test_an_image_twice_is_refused(tmp_path):
    folder(tmp_path / "a")
    folder(tmp_path / "b")
    with pytest.raises(
        FileFormatError, match=r"both a/Annotations/42.xml and b/Annotations/42.xml"
    ):
        Entities.open(tmp_path)


def test_what_is_not_there_or_not_a_zip(tmp_path):
    with pytest.raises(InputError, match=r"no such file, wanted annotations.zip"):
        Entities.open(tmp_path / "none.zip")
    with pytest.raises(FileFormatError, match=r"holds no Annotations/ID.xml"):
        Entities.open(tmp_path)
    (tmp_path / "text.zip").write_text("hello")
    with pytest.raises(FileFormatError, match=r"text.zip: is not a readable zip file"):
        Entities.open(tmp_path / "text.zip")


def test_a_bomb_is_refused_unread(tmp_path):
    huge = "x" * (module.MAX_MEMBER_BYTES + 1)
    members = {"Annotations/42.xml": XML, "Sentences/42.txt": huge}
    entities = Entities.open(zipped(tmp_path / "a.zip", members))
    with pytest.raises(FileFormatError, match=r"a.zip/Sentences/42.txt: has over 1,048,576 bytes"):
        entities["42"]
    assert "has over 1,048,576 bytes" in str(refusal(tmp_path / "f", sentences=huge))


def test_a_bomb_that_python_would_inflate_whole_is_refused_when_opened(tmp_path):
    """Packed by bzip2, a megabyte is unpacked from some fifty bytes, a gigabyte from a thousand."""
    members = {"Annotations/42.xml": XML, "Sentences/42.txt": "x" * 10_000_000}
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_BZIP2) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(FileFormatError, match=r"a.zip: has 'Annotations/42.xml' packed by bzip2"):
        Entities.open(tmp_path / "a.zip")


def test_names_that_are_not_what_they_say_are_damage(tmp_path):
    """A name that is UTF-8 by its flag, one bit of it flipped: in the list, or in the member."""
    path = zipped(tmp_path / "a.zip", {"Annotations/é.xml": XML, "Sentences/é.txt": SENTENCES})
    raw, name = path.read_bytes(), "Sentences/é".encode()
    spoilt = name[:-1] + bytes([name[-1] ^ 0x80])
    path.write_bytes(raw[: raw.rindex(name)] + spoilt + raw[raw.rindex(name) + len(name) :])
    with pytest.raises(FileFormatError, match=r"a.zip: is not a readable zip file"):
        Entities.open(path)
    path.write_bytes(raw.replace(name, spoilt, 1))
    with pytest.raises(FileFormatError, match=r"Sentences/é.txt: cannot be read"):
        Entities.open(path)["é"]


def test_members_that_lead_out_of_the_folder_are_none_of_ours(tmp_path):
    members = {"Annotations/42.xml": XML, "Sentences/42.txt": SENTENCES}
    evil = ["../Annotations/7.xml", "/tmp/Sentences/7.txt", "a/../../Annotations/7.xml", "..\\x"]
    (tmp_path / "in").mkdir()
    entities = Entities.open(zipped(tmp_path / "in" / "a.zip", members | dict.fromkeys(evil, XML)))
    assert entities.ids == ("42",)
    assert len(entities["42"].sentences) > 0
    assert [path.name for path in tmp_path.rglob("*")] == ["in", "a.zip"]


def test_a_damaged_or_vanished_member_is_named(tmp_path):
    path = zipped(tmp_path / "a.zip", {"Annotations/42.xml": XML, "Sentences/42.txt": SENTENCES})
    raw = path.read_bytes()
    place = raw.index(b"Sentences/42.txt") + len(b"Sentences/42.txt") + 4
    path.write_bytes(raw[:place] + b"\xff\xff\xff\xff" + raw[place + 4 :])
    with pytest.raises(FileFormatError, match=r"a.zip/Sentences/42.txt: cannot be read"):
        Entities.open(path)["42"]
    entities = Entities.open(folder(tmp_path / "f"))
    (tmp_path / "f" / "Annotations" / "42.xml").unlink()
    with pytest.raises(InputError, match=r"Annotations/42.xml: no such file, wanted annotations"):
        entities["42"]
    entities = Entities.open(zipped(path, {"Annotations/1.xml": XML, "Sentences/1.txt": "a"}))
    zipped(path, {"Annotations/2.xml": XML, "Sentences/2.txt": "a"})
    with pytest.raises(FileFormatError, match=r"Annotations/1.xml: cannot be read"):
        entities["1"]


@needs_shared
def test_the_real_annotations():
    entities = Entities.open(ZIP)
    assert len(entities) == 8086
    assert entities.left_out == ()
    low, high = [], []
    for image in (entities[name] for name in entities.ids[::20]):
        assert len(image.sentences) == 5
        named = {phrase.entity for sentence in image.sentences for phrase in sentence.phrases}
        assert named <= {"0", *image.boxes, *image.scenes, *image.no_box}
        assert not set(image.boxes) & (image.scenes | image.no_box)
        for boxes in image.boxes.values():
            assert (boxes[:, :2] < boxes[:, 2:]).all()
            low.append(boxes[:, :2].min())
            high.append((boxes[:, 2:] - [image.width, image.height]).max())
    # What the subtraction of 1 rests on: boxes reach both edges and never pass them.
    assert min(low) == 0
    assert max(high) == 0
