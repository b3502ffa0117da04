import json

import pytest

from crossgaze.data.captions.reading import FORMATS, detect_format, read_captions
from crossgaze.errors import InputError
from support import SHARED, needs_shared

KARPATHY = {"images": [{"filename": "a.jpg", "split": "val", "sentences": [{"raw": "A cat"}]}]}
COCO = {
    "images": [{"id": 1, "file_name": "a.jpg"}],
    "annotations": [{"image_id": 1, "caption": "A cat"}],
}
# format -> (the file that its folder has, its content); each says that a.jpg shows "A cat"
FILES = {
    "flickr8k": ("Flickr8k.token.txt", "\ufeffa.jpg#0\tA cat\n"),
    "karpathy": ("dataset_toy.json", json.dumps(KARPATHY)),
    "coco": ("captions_val.json", json.dumps(COCO, indent=1)),
    "precomp": ("dev_caps.txt", "A cat\n" * 5),
    "own": ("captions.csv", "image,caption\na.jpg,A cat\n"),
}


def put(folder, kind):
    name, content = FILES[kind]
    (folder / name).write_text(content)
    return folder / name


def test_every_format_is_tested():
    assert tuple(FILES) == FORMATS


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("named", [False, True], ids=["guessed", "named"])
@pytest.mark.parametrize("as_folder", [False, True], ids=["file", "folder"])
def test_each_format_from_its_file_or_folder(tmp_path, kind, named, as_folder):
    source = put(tmp_path, kind)
    if as_folder:
        source = tmp_path
    assert detect_format(source) == kind
    found = read_captions(source, format=kind if named else None)
    assert set(found.captions) == {"A cat"}
    assert found.images == (("dev/0",) if kind == "precomp" else ("a.jpg",))


@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind != "precomp"])
def test_the_images_folder_reaches_the_reader(tmp_path, kind):
    source = put(tmp_path, kind)
    images = tmp_path / "photos"
    images.mkdir()
    (images / "a.jpg").touch()
    assert read_captions(source, images=images).folder == images
    assert read_captions(tmp_path, images=images).folder == images
    images.rename(tmp_path / "images")
    assert read_captions(tmp_path).folder == tmp_path / "images"


def test_precomp_has_no_use_for_images(tmp_path):
    put(tmp_path, "precomp")
    with pytest.raises(InputError, match="a precomp folder names no image files"):
        read_captions(tmp_path, images=tmp_path)
    with pytest.raises(InputError, match=r"captions.csv: is a file, wanted a folder with e.g."):
        read_captions(put(tmp_path, "own"), format="precomp")


def test_one_caption_file_of_precomp_is_one_split(tmp_path):
    put(tmp_path, "precomp")
    (tmp_path / "testall_caps.txt").write_text("A dog\n" * 10)
    assert read_captions(tmp_path / "testall_caps.txt").splits == ("testall", "testall")


@pytest.mark.parametrize("name", ["x.tsv", "x.txt", "captions.txt"])
def test_tables_by_other_names(tmp_path, name):
    (tmp_path / name).write_text("image\tcaption\na.jpg\tA cat\n")
    assert read_captions(tmp_path / name).captions == ("A cat",)


def test_vqas_annotations_are_no_captions(tmp_path):
    path = tmp_path / "v2_mscoco_val2014_annotations.json"
    path.write_text(json.dumps({"annotations": [{"question_id": 1, "answers": []}]}))
    with pytest.raises(InputError, match="fits no caption format"):
        detect_format(path)


def test_a_quoted_word_in_a_caption_does_not_mislead(tmp_path):
    tricky = json.loads(json.dumps(COCO))
    tricky["annotations"][0]["caption"] = 'a sign "sentences"'
    (tmp_path / "x.json").write_text(json.dumps(tricky))
    assert detect_format(tmp_path / "x.json") == "coco"


def test_nothing_fits(tmp_path):
    with pytest.raises(InputError) as caught:
        read_captions(tmp_path)
    for name, _ in FILES.values():
        stem = name.split("_")[0].split(".")[0].removeprefix("dev")
        assert stem in str(caught.value)
    (tmp_path / "x.json").write_text('{"images": []}')
    (tmp_path / "x.jpg").write_bytes(b"\xff\xd8")
    for name in ("x.json", "x.jpg"):
        with pytest.raises(InputError, match=f"{name}: fits no caption format, wanted JSON with"):
            read_captions(tmp_path / name)
    with pytest.raises(InputError, match="none: no such file or folder, wanted captions: Flickr8k"):
        read_captions(tmp_path / "none")


def test_two_formats_fit(tmp_path):
    put(tmp_path, "coco")
    put(tmp_path, "karpathy")
    with pytest.raises(InputError, match="fits the formats karpathy and coco, say which is meant"):
        read_captions(tmp_path)
    assert read_captions(tmp_path, format="coco").name == "coco"


def test_two_files_of_a_format(tmp_path):
    put(tmp_path, "karpathy")
    (tmp_path / "dataset_other.json").write_text("{}")
    with pytest.raises(
        InputError, match=r"has dataset_other.json and dataset_toy.json, wanted one"
    ):
        read_captions(tmp_path)
    with pytest.raises(InputError, match=r"has none, wanted one of captions.csv"):
        read_captions(tmp_path, format="own")


def test_an_unknown_format_names_the_nearest(tmp_path):
    message = r"format is 'karpaty' \(did you mean 'karpathy'\?\), wanted one of flickr8k, karpathy"
    with pytest.raises(InputError, match=message):
        read_captions(tmp_path, format="karpaty")


@needs_shared
@pytest.mark.parametrize(
    ("folder", "images", "captions"),
    [("flickr8k", 8_090, 40_450), ("coco", 3_617, 18_094), ("f30k_precomp", 2_014, 10_070)],
)
def test_real_folders(folder, images, captions):
    found = read_captions(SHARED / "data" / folder)
    assert (len(found), len(found.captions)) == (images, captions)
