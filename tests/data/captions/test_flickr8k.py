import pytest

from crossgaze.data.captions.flickr8k import read_flickr8k
from crossgaze.errors import FileFormatError, InputError
from support import SHARED, needs_shared

TOKENS = """\
b.jpg#0\tA dog runs .
b.jpg#1\tDogs #1 ,\tfast .
a.jpg#0\t  A cat .
c.jpg#0\tA tree .
a.jpg#1\tTwo cats .
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "Flickr8k.token.txt").write_text(TOKENS)
    (tmp_path / "Flickr_8k.trainImages.txt").write_text("a.jpg\n")
    (tmp_path / "Flickr_8k.devImages.txt").write_text("")
    (tmp_path / "Flickr_8k.testImages.txt").write_text("b.jpg\r\n\n")
    return tmp_path


def test_images_in_file_order_with_their_captions(folder):
    found = read_flickr8k(folder)
    assert found.name == "flickr8k"
    assert found.images == ("b.jpg", "a.jpg", "c.jpg")
    assert found.splits == ("test", "train", "")
    assert found.captions_of(0) == ("A dog runs .", "Dogs #1 ,\tfast .")
    assert found.captions_of(1) == ("A cat .", "Two cats .")
    assert (found.folder, found.left_out, found.notes) == (None, (), ())


@pytest.mark.parametrize("where", ["images", "Flicker8k_Dataset", "elsewhere"])
def test_images_folder_decides_what_is_there(folder, where):
    (folder / where).mkdir()
    for name in ("a.jpg", "b.jpg", "z.jpg", "notes.txt"):
        (folder / where / name).touch()
    found = read_flickr8k(folder, images=folder / where if where == "elsewhere" else None)
    assert (found.images, found.folder) == (("b.jpg", "a.jpg"), folder / where)
    assert [(entry.count, entry.examples) for entry in found.left_out] == [
        (1, ("c.jpg",)),
        (1, ("z.jpg",)),
    ]


def test_a_folder_with_none_of_the_images_is_an_error(folder):
    (folder / "images").mkdir()
    with pytest.raises(InputError, match="3 of the 3 images of flickr8k have no file there"):
        read_flickr8k(folder)


def test_another_token_file_and_missing_lists(folder):
    other = folder / "results.token"
    other.write_text("\ufeffa.jpg#0\tOne .\n\nb.jpg#0\tTwo .\n")
    (folder / "Flickr_8k.devImages.txt").unlink()
    found = read_flickr8k(folder, token_file=other)
    assert found.images == ("a.jpg", "b.jpg")
    assert found.notes == (
        f"{folder} has no Flickr_8k.devImages.txt, so no image is in the split dev",
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a.jpg#2 no tab", "line 6: is 'a.jpg#2 no tab', wanted name.jpg#0, a tab and a caption"),
        ("a.jpg\tno number", "line 6: is 'a.jpg\\tno number', wanted"),
        ("a.jpg#x\tno number", "line 6: is 'a.jpg#x\\tno number', wanted"),
        ("#3\tno name", "line 6: the image name is blank"),
        ("../a.jpg#3\tout", "line 6: the image name is '../a.jpg', which leads out"),
        ("a.jpg#2\t  ", "line 6: the caption of 'a.jpg#2' is blank"),
        ("a.jpg#1\tagain", "line 6: caption 'a.jpg#1' was already given on line 5"),
    ],
)
def test_bad_token_lines(folder, line, message):
    (folder / "Flickr8k.token.txt").write_text(TOKENS + line)
    with pytest.raises(FileFormatError) as caught:
        read_flickr8k(folder)
    assert f"Flickr8k.token.txt, {message}" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("train", "a.jpg\na.jpg\n", "line 2: image 'a.jpg' is already in "
         "Flickr_8k.trainImages.txt, line 1"),
        ("dev", "a.jpg\n", "line 1: image 'a.jpg' is already in Flickr_8k.trainImages.txt, line 1"),
        ("dev", "c.jpg\nx.jpg\n", "line 2: image 'x.jpg' has no caption in "),
    ],
)  # fmt: skip
def test_bad_lists(folder, name, text, message):
    (folder / f"Flickr_8k.{name}Images.txt").write_text(text)
    with pytest.raises(FileFormatError) as caught:
        read_flickr8k(folder)
    assert f"Flickr_8k.{name}Images.txt, {message}" in str(caught.value)


def test_nothing_to_read(folder):
    (folder / "Flickr8k.token.txt").write_text("\n")
    with pytest.raises(FileFormatError, match=r"Flickr8k.token.txt: holds no caption"):
        read_flickr8k(folder)
    (folder / "Flickr8k.token.txt").unlink()
    with pytest.raises(InputError, match="no such file, wanted Flickr8k's caption file"):
        read_flickr8k(folder)
    with pytest.raises(InputError, match="none: no such folder, wanted a folder with Flickr8k's"):
        read_flickr8k(folder / "none")


@needs_shared
def test_the_real_flickr8k():
    folder = SHARED / "data/flickr8k"
    found = read_flickr8k(folder)
    assert (len(found), len(found.captions)) == (8_090, 40_450)
    sizes = [found.splits.count(split) for split in ("train", "dev", "test", "")]
    assert sizes == [5_999, 1_000, 1_000, 91]
    assert (found.folder, found.left_out, found.notes) == (folder / "images", (), ())
    assert set(found.image_of.tolist()) == set(range(8_090))
    lines = (folder / "Flickr8k.token.txt").read_text(encoding="utf-8").split("\n")
    for j in (0, 7, 20_001, 40_449):  # the real file has each image's captions together
        name, caption = lines[j].split("\t")
        assert (found.images[found.image_of[j]], found.captions[j]) == (name[:-2], caption)
