import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgaze.data.captions.captioned import CaptionedImages
from crossgaze.data.left_out import LeftOut
from crossgaze.errors import InputError


def toy(**changes):
    fields = {
        "name": "toy",
        "images": ("a.jpg", "b.jpg", "c.jpg"),
        "captions": ("b one", "a one", "c one", "b two"),
        "image_of": np.array([1, 0, 2, 1]),
        "splits": ("train", "test", ""),
    }
    return CaptionedImages(**(fields | changes))


def test_captions_of_gives_each_image_its_own_in_reading_order():
    assert [toy().captions_of(i) for i in range(3)] == [("a one",), ("b one", "b two"), ("c one",)]


def test_captions_keep_their_order_however_they_are_mixed():
    owners = np.arange(600) % 3
    mixed = toy(captions=tuple(str(j) for j in range(600)), image_of=owners)
    assert mixed.captions_of(1) == tuple(str(j) for j in range(600) if j % 3 == 1)


@pytest.mark.parametrize("image", [-1, 3])
def test_captions_of_an_image_that_is_not_there(image):
    with pytest.raises(InputError, match=f"toy: no image {image}, it has 3 images"):
        toy().captions_of(image)


def test_image_of_is_a_locked_copy():
    given_owners = np.array([1, 0, 2, 1])
    made = toy(image_of=given_owners)
    given_owners[0] = 2
    assert made.image_of.tolist() == [1, 0, 2, 1]
    with pytest.raises(ValueError, match="read-only"):
        made.image_of[0] = 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"splits": ("train",)}, "toy: splits has 1 entries, wanted one for each of the 3 images"),
        ({"image_of": np.array([0, 1, 2])}, r"toy: image_of has shape \(3,\), wanted \(4,\)"),
        ({"image_of": np.array([[0, 1, 2, 1]])}, r"image_of has shape \(1, 4\), wanted \(4,\)"),
        ({"image_of": np.array([0, 1, 2, 3])}, r"outside the 3 images \(from 0 to 3\)"),
        ({"image_of": np.array([0, 1, 2, -1])}, r"outside the 3 images \(from -1 to 2\)"),
        ({"image_of": np.array([0.0, 1.0, 2.0, 1.5])}, "has type float64, wanted whole numbers"),
        ({"images": ("a", "b", "a")}, "toy: image id 'a' occurs more than once"),
        ({"image_of": np.array([0, 0, 2, 0])}, "1 images have no caption, the first is 'b.jpg'"),
    ],
)
def test_a_set_that_does_not_hang_together_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        toy(**changes)


def test_split_keeps_image_order_and_accepts_several_names():
    both = toy().split("test", "")
    assert both.images == ("b.jpg", "c.jpg")
    assert both.captions == ("b one", "b two", "c one")
    assert both.image_of.tolist() == [0, 0, 1]
    assert both.splits == ("test", "")


def test_split_names_the_nearest():
    with pytest.raises(InputError, match=r"toy: no split 'tran' \(did you mean 'train'\?\)"):
        toy().split("tran")


def test_first_and_select():
    assert toy().first(2).images == ("a.jpg", "b.jpg")
    assert toy().first(9).images == toy().images
    picked = toy().select(["c.jpg", "b.jpg"])
    assert (picked.images, picked.captions) == (("c.jpg", "b.jpg"), ("c one", "b one", "b two"))


def test_select_of_nothing_is_an_empty_set():
    empty = toy().select([])
    assert (len(empty), empty.captions, empty.image_of.shape) == (0, (), (0,))
    assert empty.describe()["splits"] == {}


def test_select_and_first_refuse_what_is_not_there():
    with pytest.raises(InputError, match="2 of the asked images are not in it, the first is 'x'"):
        toy().select(["a.jpg", "x", "y"])
    with pytest.raises(InputError, match="toy: first is 0, wanted at least 1"):
        toy().first(0)


def test_group_builds_the_set_that_plain_loops_read_back():
    made = CaptionedImages.group("g", {"x": ["1", "2"], "y": ["3"]}, {"y": "dev"}, notes=("n",))
    assert made.captions == ("1", "2", "3")
    assert made.image_of.tolist() == [0, 0, 1]
    assert (made.splits, made.notes) == (("", "dev"), ("n",))


@given(st.lists(st.integers(1, 4), max_size=8), st.data())
def test_selecting_is_what_a_plain_loop_does(counts, data):
    captions = {f"i{i}": [f"{i}-{k}" for k in range(n)] for i, n in enumerate(counts)}
    made = CaptionedImages.group("p", captions, {})
    wanted = data.draw(st.permutations(list(captions)))[: data.draw(st.integers(0, len(counts)))]
    picked = made.select(wanted)
    assert picked.images == tuple(wanted)
    assert [list(picked.captions_of(i)) for i in range(len(picked))] == [
        captions[name] for name in wanted
    ]
    assert picked.captions == tuple(c for name in wanted for c in captions[name])


def test_describe_counts_by_split():
    told = toy(left_out=LeftOut.of("bad", ["x"]), notes=("a note",)).describe()
    assert told["splits"] == {
        "(none)": {"images": 1, "captions": 1},
        "test": {"images": 1, "captions": 2},
        "train": {"images": 1, "captions": 1},
    }
    assert (told["images"], told["captions"]) == (3, 4)
    assert (told["left_out"], told["notes"]) == (["1 bad (x)"], ["a note"])


def test_left_out_shows_the_first_few():
    assert LeftOut.of("bad", []) == ()
    assert [str(entry) for entry in LeftOut.of("bad", list("abcd"))] == ["4 bad (a, b, c, ...)"]
    assert str(LeftOut("images", 1_200)) == "1,200 images"


def test_in_folder_leaves_out_and_counts(tmp_path):
    (tmp_path / "sub").mkdir()
    for name in ("a.jpg", "sub/b.jpg", "extra.PNG", "readme.txt"):
        (tmp_path / name).touch()
    (tmp_path / "c.jpg").mkdir()  # a folder is no image file
    names = ("a.jpg", "sub/b.jpg", "c.jpg")
    kept = toy(images=names).in_folder(tmp_path, count_unnamed=True)
    assert kept.images == names[:2]
    assert kept.captions == ("a one", "b one", "b two")
    assert kept.folder == tmp_path
    assert [str(entry) for entry in kept.left_out] == [
        f"1 images without a file in {tmp_path} (c.jpg)",
        f"1 image files in {tmp_path} that no caption names (extra.PNG)",
    ]
    assert toy(images=("a.jpg", "sub/b.jpg", "readme.txt")).in_folder(tmp_path).left_out == ()


def test_in_folder_counts_files_beside_the_named_ones(tmp_path):
    for name in ("sub/a.jpg", "sub/b.jpg", "sub/new.jpg", "other/far.jpg", "top.gif", "c.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    named = toy(images=("sub/a.jpg", "sub/b.jpg", "c.jpg"))
    (left,) = named.in_folder(tmp_path, count_unnamed=True).left_out
    assert (left.count, left.examples) == (2, ("sub/new.jpg", "top.gif"))
    (left,) = named.in_folder(tmp_path, count_unnamed=True, silent=["top.gif"]).left_out
    assert left.examples == ("sub/new.jpg",)
    assert named.in_folder(tmp_path).left_out == ()


def test_in_folder_refuses(tmp_path):
    (tmp_path / "a.jpg").touch()
    message = "2 of the 3 images of toy have no file there, the first is 'b.jpg'"
    with pytest.raises(InputError, match=message):
        toy().in_folder(tmp_path, missing="error")
    with pytest.raises(InputError, match="3 of the 3 images of toy have no file"):
        toy(images=("no/x", "a.jpg/y", "z")).in_folder(tmp_path)
    with pytest.raises(InputError, match=r"a.jpg: is a file, wanted the folder of images"):
        toy().in_folder(tmp_path / "a.jpg")
    with pytest.raises(InputError, match="cannot be listed: File name too long"):
        toy(images=("n" * 300 + "/x", "y", "z")).in_folder(tmp_path)
