import json
from collections import Counter

import pytest

from crossgaze.data.captions.coco import caption_files, read_coco
from crossgaze.errors import FileFormatError, InputError
from support import SHARED, needs_shared


def write(path, images, annotations):
    """Write {number: name} and (number, caption) pairs as COCO does."""
    data = {
        "info": {},
        "images": [{"id": number, "file_name": name} for number, name in images.items()],
        "annotations": [
            {"id": i, "image_id": number, "caption": caption}
            for i, (number, caption) in enumerate(annotations)
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))
    return path


def small(path, stem):
    return write(path, {1: f"{stem}.jpg"}, [(1, f"About {stem}")])


def test_captions_follow_the_order_of_images_however_many(tmp_path):
    path = write(
        tmp_path / "captions_val.json",
        {9: "a.jpg", 4: "b.jpg"},
        [(4, "b one\n"), (9, "a one"), (4, "b two"), (4, "b three")],
    )
    found = read_coco(path)
    assert (found.name, found.images) == ("coco", ("a.jpg", "b.jpg"))
    assert found.captions == ("a one", "b one", "b two", "b three")
    assert found.image_of.tolist() == [0, 1, 1, 1]
    assert found.splits == ("dev", "dev")
    assert (found.folder, found.left_out) == (None, ())


def test_sources_may_be_a_folder_files_or_a_mapping(tmp_path):
    files = {s: small(tmp_path / f"captions_{s}.json", s) for s in ("train", "val", "test")}
    expected = {"train.jpg": "train", "val.jpg": "dev", "test.jpg": "test"}
    for sources in ([tmp_path], list(files.values()), [files]):
        found = read_coco(*sources)
        assert dict(zip(found.images, found.splits, strict=True)) == expected
    found = read_coco({"dev": files["train"]})  # a mapping's word counts, not the file's name
    assert (found.images, found.splits) == (("train.jpg",), ("dev",))


def test_a_file_with_another_name_has_no_split(tmp_path):
    assert read_coco(small(tmp_path / "mine.json", "a")).splits == ("",)


def test_the_official_layout(tmp_path):
    small(tmp_path / "annotations/captions_train2014.json", "t")
    small(tmp_path / "annotations/captions_val2014.json", "v")
    (tmp_path / "annotations/instances_val2014.json").write_text("not read")
    assert [path.name for path in caption_files(tmp_path)] == [
        "captions_train2014.json",
        "captions_val2014.json",
    ]
    assert read_coco(tmp_path).images == ("t.jpg", "v.jpg")
    for name in ("train2014/t.jpg", "val2014/v.jpg"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    found = read_coco(tmp_path)
    assert (found.images, found.folder) == (("train2014/t.jpg", "val2014/v.jpg"), tmp_path)


def test_images_folder(tmp_path):
    path = write(tmp_path / "captions_val.json", {1: "a.jpg", 2: "b.jpg"}, [(1, "x"), (2, "y")])
    (tmp_path / "images").mkdir()
    (tmp_path / "images/b.jpg").touch()
    by_default, given = read_coco(tmp_path), read_coco(path, images=tmp_path / "images")
    for found in (by_default, given):
        assert (found.images, found.captions) == (("b.jpg",), ("y",))
        assert found.folder == tmp_path / "images"
        assert [left.examples for left in found.left_out] == [("a.jpg",)]
    assert read_coco(path).folder is None


def test_image_files_that_no_caption_names_are_counted_once(tmp_path):
    path = write(tmp_path / "captions_val2014.json", {1: "a.jpg", 2: "silent.jpg"}, [(1, "x")])
    (tmp_path / "val2014").mkdir()
    for name in ("a.jpg", "silent.jpg", "new.jpg"):
        (tmp_path / "val2014" / name).touch()
    found = read_coco(path, images=tmp_path)
    assert [str(left) for left in found.left_out] == [
        "1 images without a caption (val2014/silent.jpg)",
        f"1 image files in {tmp_path} that no caption names (val2014/new.jpg)",
    ]


def test_silent_images_and_blank_captions_are_counted(tmp_path):
    path = write(
        tmp_path / "captions_train.json",
        {1: "a.jpg", 2: "b.jpg", 3: "c.jpg"},
        [(1, "x"), (1, "  "), (3, "\n")],
    )
    found = read_coco(path)
    assert (found.images, found.captions) == (("a.jpg",), ("x",))
    assert [str(left) for left in found.left_out] == [
        "2 images without a caption (b.jpg, c.jpg)",
        "2 blank captions (a.jpg, c.jpg)",
    ]
    with pytest.raises(FileFormatError, match=r"captions_train.json: no image has a caption"):
        read_coco(write(path, {1: "a.jpg"}, []))


GOOD_IMAGE = {"id": 1, "file_name": "a.jpg"}
GOOD_CAPTION = {"id": 1, "image_id": 1, "caption": "x"}


@pytest.mark.parametrize(
    ("images", "annotations", "message"),
    [
        (None, [], "is not COCO's caption JSON: images is null, wanted a list"),
        ([GOOD_IMAGE], None, "is not COCO's caption JSON: annotations is null, wanted a list"),
        (["a"], [], "images[0]: is a text, wanted an object"),
        ([GOOD_IMAGE], [GOOD_CAPTION, 3], "annotations[1]: is a number, wanted an object"),
        ([{"file_name": "a.jpg"}], [], "images[0]: id is null, wanted a number"),
        ([{"id": 1}], [], "images[0]: file_name is null, wanted a text"),
        ([{"id": 1, "file_name": "/a"}], [], "images[0]: file_name is '/a', an absolute path"),
        ([GOOD_IMAGE, {"id": 1, "file_name": "b.jpg"}], [], "images[1]: id 1 is already 'a.jpg'"),
        ([GOOD_IMAGE, {"id": 2, "file_name": "a.jpg"}], [], "images[1]: 'a.jpg' is already "
         "images[0] of "),
        ([GOOD_IMAGE], [GOOD_CAPTION | {"image_id": 2}], "annotations[0]: image_id 2 is no id in"),
        ([GOOD_IMAGE], [GOOD_CAPTION | {"image_id": "1"}], "annotations[0]: image_id '1' is no id"),
        ([GOOD_IMAGE], [GOOD_CAPTION | {"image_id": [1]}], "annotations[0]: image_id [1] is no id"),
        ([GOOD_IMAGE], [{"id": 1, "image_id": 1}], "annotations[0]: caption is null, wanted"),
        ([GOOD_IMAGE], [GOOD_CAPTION] * 2, "annotations[1]: id 1 is already annotations[0]"),
    ],
)  # fmt: skip
def test_malformed_files(tmp_path, images, annotations, message):
    path = tmp_path / "captions_val.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations}))
    with pytest.raises(FileFormatError) as caught:
        read_coco(path)
    assert f"captions_val.json: {message}" in str(caught.value)


def test_an_annotation_needs_no_id(tmp_path):
    path = tmp_path / "captions_val.json"
    caption = {"image_id": 1, "caption": "x"}
    path.write_text(json.dumps({"images": [GOOD_IMAGE], "annotations": [caption, caption]}))
    assert read_coco(path).captions == ("x", "x")


def test_problems_between_files(tmp_path):
    one = small(tmp_path / "captions_train2014.json", "a")
    two = small(tmp_path / "captions_train2017.json", "b")
    with pytest.raises(InputError, match=r"both captions_train2014.json and captions_train2017"):
        read_coco(tmp_path)
    assert read_coco(one, two).splits == ("train", "train")
    with pytest.raises(FileFormatError, match=r"'b.jpg' is already images\[0\] of .*train2017"):
        read_coco(two, small(tmp_path / "captions_val.json", "b"))


def test_bad_sources(tmp_path):
    with pytest.raises(InputError, match="read_coco: got nothing to read"):
        read_coco()
    with pytest.raises(InputError, match=r"has no captions_train.json"):
        read_coco(tmp_path)
    with pytest.raises(InputError, match=r"none.json: no such file, wanted COCO's caption JSON"):
        read_coco(tmp_path / "none.json")
    with pytest.raises(InputError, match=r"'tran' is not a split \(did you mean 'train'\?\)"):
        read_coco({"tran": tmp_path})
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(FileFormatError, match=r"list.json: is a list, wanted an object"):
        read_coco(tmp_path / "list.json")


@needs_shared
def test_the_real_coco():
    folder = SHARED / "data/coco"
    found = read_coco(folder)
    assert (len(found), found.folder, found.left_out) == (3_617, folder / "images", ())
    told = found.describe()["splits"]
    assert told == {
        "train": {"images": 2_617, "captions": 13_090},
        "dev": {"images": 500, "captions": 2_500},
        "test": {"images": 500, "captions": 2_504},
    }
    data = json.loads((folder / "captions_test.json").read_text())
    names = {image["id"]: image["file_name"] for image in data["images"]}
    pairs = Counter((names[a["image_id"]], a["caption"]) for a in data["annotations"])
    test = found.split("test")
    owners = [test.images[i] for i in test.image_of]
    assert Counter(zip(owners, test.captions, strict=True)) == pairs
