"""What a folder holds, against trees laid out by hand."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgaze.errors import InputError
from crossgaze.vision.listing import PHOTO_EXTENSIONS, list_photos
from support import SHARED, needs_shared


def lay(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    return root


def left(found):
    return {entry.reason: (entry.count, entry.examples) for entry in found.left_out}


def test_photographs_of_all_folders_come_sorted_with_forward_slashes(tmp_path):
    lay(tmp_path, "b.jpg", "a/z.png", "a/b/c.webp", "Z.JPEG", "a.tiff", "é.gif", "a b.BMP")
    found = list_photos(tmp_path)
    wanted = ("Z.JPEG", "a b.BMP", "a.tiff", "a/b/c.webp", "a/z.png", "b.jpg", "é.gif")
    assert found.names == wanted
    assert found.root == tmp_path
    assert found.left_out == ()
    assert len(found) == 7
    assert all((found.root / name).is_file() for name in found.names)


def test_order_is_that_of_the_names_not_of_the_file_system(tmp_path, monkeypatch):
    lay(tmp_path, *(f"{i}/{j}.jpg" for i in range(3) for j in range(3)))
    before = list_photos(tmp_path)
    real = os.scandir

    class Backwards(list):
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    def backwards(path):
        with real(path) as entries:
            return Backwards(sorted(entries, key=lambda entry: entry.name, reverse=True))

    monkeypatch.setattr(os, "scandir", backwards)
    assert list_photos(tmp_path) == before


def test_hidden_and_other_files_are_counted(tmp_path):
    lay(tmp_path, "a.jpg", ".b.jpg", ".git/c.jpg", "d/.e/f.jpg", "g.txt", "d/h", "jpg", "i.jpg.zip")
    found = list_photos(tmp_path)
    assert found.names == ("a.jpg",)
    assert left(found) == {
        "hidden files": (1, (".b.jpg",)),
        "hidden folders": (2, (".git", "d/.e")),
        "files with another extension": (4, ("d/h", "g.txt", "i.jpg.zip")),
    }


def test_one_photograph_has_its_folder_as_root(tmp_path):
    lay(tmp_path, "a.jpg", "b.jpg")
    found = list_photos(str(tmp_path / "a.jpg"))
    assert (found.root, found.names, found.left_out) == (tmp_path, ("a.jpg",), ())


@pytest.mark.parametrize("given", [["png"], (".PNG",), "png", {".png", "PNG"}])
def test_extensions_may_be_chosen(tmp_path, given):
    lay(tmp_path, "a.jpg", "b.png", "c.Png")
    assert list_photos(tmp_path, extensions=given).names == ("b.png", "c.Png")


@pytest.mark.parametrize("given", [[], [""], ["."], ""])
def test_extensions_that_name_nothing_are_refused(tmp_path, given):
    with pytest.raises(InputError, match=r"^extensions: found \["):
        list_photos(tmp_path, extensions=given)


def test_a_folder_without_photographs_says_what_was_looked_for(tmp_path):
    with pytest.raises(InputError, match=r"holds no photograph, looked for \.bmp, .*\.webp$"):
        list_photos(tmp_path)
    lay(tmp_path, "a.txt", "b/.c.jpg")
    with pytest.raises(InputError) as caught:
        list_photos(tmp_path)
    message = str(caught.value)
    assert all(extension in message for extension in PHOTO_EXTENSIONS)
    assert message.endswith(
        "; left out: 1 hidden files (b/.c.jpg), 1 files with another extension (a.txt)"
    )


def test_what_is_neither_folder_nor_photograph_is_refused(tmp_path):
    lay(tmp_path, "a.txt")
    os.mkfifo(tmp_path / "pipe.jpg")
    for name, problem in [
        ("a.txt", "is not a photograph by its name, looked for .bmp, "),
        ("none", "cannot be opened (No such file or directory), wanted a folder"),
        ("none.jpg", "cannot be opened (No such file or directory), wanted a folder"),
        ("a.txt/b", "cannot be opened (Not a directory)"),
        ("pipe.jpg", "is a pipe, socket or device"),
        ("x" * 300, "cannot be opened (File name too long)"),
    ]:
        with pytest.raises(InputError) as caught:
            list_photos(tmp_path / name)
        assert str(caught.value).startswith(f"{tmp_path / name}: {problem}")
    with pytest.raises(InputError, match=r"^'a\\x00b': cannot be opened \(embedded null byte\)"):
        list_photos("a\0b")


def test_pipes_and_names_that_are_not_utf8_are_counted(tmp_path):
    lay(tmp_path, "a.jpg", "line\nbreak.txt")
    os.mkfifo(tmp_path / "pipe.jpg")
    for raw in (b"caf\xe9.jpg", b"\xff/inner.jpg"):
        path = Path(os.fsdecode(bytes(tmp_path) + b"/" + raw))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
    found = list_photos(tmp_path)
    assert found.names == ("a.jpg",)
    assert left(found) == {
        "files with another extension": (1, (r"'line\nbreak.txt'",)),
        "names that are not UTF-8": (2, (r"'caf\udce9.jpg'", r"'\udcff'")),
        "pipes, sockets or devices": (1, ("pipe.jpg",)),
    }
    json.dumps(found.names, ensure_ascii=False).encode()
    with pytest.raises(InputError, match=r"caf\\udce9\.jpg': the name is not UTF-8"):
        list_photos(os.fsdecode(bytes(tmp_path) + b"/caf\xe9.jpg"))


def test_unreadable_folders_and_entries_are_counted(tmp_path, monkeypatch):
    lay(tmp_path, "a.jpg", "shut/b.jpg", "odd/c.jpg", "odd/d.jpg")
    real = os.scandir

    class Entry:
        def __init__(self, entry):
            self.name, self.path, self.entry = entry.name, entry.path, entry

        def is_dir(self, follow_symlinks):
            if self.name == "c.jpg":
                raise OSError("stale handle")
            return self.entry.is_dir(follow_symlinks=follow_symlinks)

        def __getattr__(self, name):
            return getattr(self.entry, name)

    class Entries(list):
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    def guarded(path):
        if Path(path).name == "shut":
            raise PermissionError(13, "Permission denied", path)
        with real(path) as entries:
            return Entries(map(Entry, entries))

    monkeypatch.setattr(os, "scandir", guarded)
    found = list_photos(tmp_path)
    assert found.names == ("a.jpg", "odd/d.jpg")
    assert left(found) == {"files or folders that cannot be read": (2, ("odd/c.jpg", "shut"))}
    with pytest.raises(InputError, match=r"shut: cannot be read, wanted a folder"):
        list_photos(tmp_path / "shut")


@pytest.fixture
def linked(tmp_path):
    """A folder with links of every kind, and what lies outside of it."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    lay(root, "a.jpg", "sub/b.jpg", ".store/blob")
    lay(outside, "x.jpg", "more/y.jpg", ".h.jpg")
    (root / "again.jpg").symlink_to("a.jpg")
    (root / "subagain").symlink_to(root / "sub")
    (root / "circle").symlink_to(root)
    (root / "stored.jpg").symlink_to(".store/blob")
    (root / "out.jpg").symlink_to(outside / "x.jpg")
    (root / "far").symlink_to(outside)
    (root / "notes.txt").symlink_to(outside / "x.jpg")
    (root / "gone.jpg").symlink_to("nowhere")
    (root / "loop.jpg").symlink_to("loop.jpg")
    (root / ".dot").symlink_to(outside)
    (outside / "back").symlink_to(root)
    (outside / "up").symlink_to(tmp_path)
    return root


def test_links_are_not_followed_unless_asked(linked):
    found = list_photos(linked)
    assert found.names == ("a.jpg", "sub/b.jpg")
    inside = ("again.jpg", "circle", "stored.jpg")
    assert left(found) == {
        "hidden files": (1, (".dot",)),
        "hidden folders": (1, (".store",)),
        "links that lead out of the folder, not followed": (3, ("far", "notes.txt", "out.jpg")),
        "links to something inside the folder": (4, inside),
        "links that lead nowhere": (2, ("gone.jpg", "loop.jpg")),
    }


def test_followed_links_list_nothing_twice_and_circles_end(linked):
    found = list_photos(linked, follow_links=True)
    # far/x.jpg is taken by the folder link 'far', which comes before 'out.jpg'.
    names = ("a.jpg", "far/more/y.jpg", "far/x.jpg", "stored.jpg", "sub/b.jpg")
    assert found.names == names
    real = [os.path.realpath(linked / name) for name in names]
    assert len(set(real)) == len(names)
    counts = {reason: count for reason, (count, _) in left(found).items()}
    assert counts == {
        "hidden files": 2,  # .dot and far/.h.jpg
        "hidden folders": 1,
        "files with another extension": 1,
        # again.jpg, subagain, circle, out.jpg, far/back, and by way of far/up root and outside
        "files or folders already reached another way": 7,
        "links that lead nowhere": 2,
    }


def test_a_folder_given_by_a_link_is_entered(linked):
    found = list_photos(linked / "far")
    assert found.names == ("more/y.jpg", "x.jpg")
    assert found.root == linked / "far"
    assert list_photos(linked / "out.jpg").names == ("out.jpg",)


def test_a_very_deep_folder_is_no_recursion(tmp_path):
    folders = [f"{tmp_path}{'/d' * depth}" for depth in range(1, 1101)]
    for folder in folders:
        os.mkdir(folder)  # noqa: PTH102 - pathlib takes seconds for a thousand parts
    photo = Path(folders[-1], "a.jpg")
    photo.write_bytes(b"")
    assert list_photos(tmp_path).names == ("d/" * 1100 + "a.jpg",)
    photo.unlink()
    for folder in reversed(folders):  # pytest would clear them by recursion
        os.rmdir(folder)  # noqa: PTH106


@settings(max_examples=40, deadline=None)
@given(st.sets(st.from_regex(r"\A(\.?[ab]{1,2}/){0,2}\.?[ab]{1,2}\.(jpg|txt|PNG)\Z"), max_size=12))
def test_every_file_is_listed_or_accounted_for(tmp_path_factory, names):
    root = lay(tmp_path_factory.mktemp("tree"), "always.jpg", *names)
    found = list_photos(root)
    visible = [n for n in names if not any(part.startswith(".") for part in n.split("/"))]
    photos = [n for n in visible if not n.endswith("txt")]
    assert list(found.names) == sorted({"always.jpg", *photos})
    counts = {reason: count for reason, (count, _) in left(found).items()}
    assert counts.get("files with another extension", 0) == len(visible) - len(photos)
    # What lies under a hidden folder is counted as that one folder.
    hidden = {
        n[: n.index("/.") + 1] + n[n.index("/.") + 1 :].split("/")[0]
        for n in ("/" + n for n in names)
        if "/." in n
    }
    assert counts.get("hidden files", 0) + counts.get("hidden folders", 0) == len(hidden)


@needs_shared
def test_flickr8k_is_listed():
    found = list_photos(SHARED / "data" / "flickr8k")
    assert len(found) == 8090
    assert {name.split("/")[0] for name in found.names} == {"images"}
    assert left(found)["files with another extension"][0] == 4
