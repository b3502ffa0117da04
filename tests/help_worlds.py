"""The folders and files that the examples of each verb's help speak of, small, one world a verb."""

import json

import numpy as np
import torch
import yaml
from PIL import Image

import asking_parts
import entity_files
import precomp_files
import training_parts
from checkpoint_files import VOCAB, options, pickle_vocabulary, save, text_state, vsrn_state
from command_line import FAST
from crossgaze.cli import main
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.models.families import family
from crossgaze.models.rdan import RDan, RDanConfig
from crossgaze.models.text import TextConfig
from feature_files import tsv_line

WIDTH = 1792  # of the regions of the region model that ships
RECIPES = training_parts.__file__.rsplit("/", 2)[0] + "/recipes"
CAPTIONS = (precomp_files.PUPS, "a brown dog runs in the snow .", "a red car near a tree .")
WORDS = Vocabulary.build(CAPTIONS, min_count=1)


# Parts ----------------------------------------------------------------------------------------


def photographs(folder, names):
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        pixels = np.full((60, 80, 3), 20 * (number + 1), np.uint8)
        pixels[10:50, 20:60] = (230, 120, 20 * number)
        (folder / name).parent.mkdir(exist_ok=True)
        Image.fromarray(pixels).save(folder / name)


def matcher(folder, kind="scan", width=WIDTH, **more):
    """Write a small model that matches."""
    torch.manual_seed(0)
    made, config = family(kind)
    text = TextConfig(word_size=4, bidirectional=kind != "vsrn")
    made(config(region_width=width, size=8, text=text, **more), WORDS).save_pretrained(folder)


def regions(folder, names, width, count=4):
    """Write a store of random regions with places."""
    rng = np.random.default_rng(0)
    boxes = np.tile(
        np.array([[0, 0, 100, 200], [10, 20, 30, 60], [40, 50, 90, 90], [0, 9, 50, 99]]),
        (len(names), 1, 1),
    )
    with RegionWriter(folder, count, width, fields=["boxes", "sizes"]) as writer:
        features = rng.normal(size=(len(names), count, width))
        writer.append(
            list(names), features, boxes=boxes, sizes=np.full((len(names), 2), (100, 200))
        )


def flickr8k(folder, train=4, dev=2):
    """Write Flickr8k's files: some images of each split, the first of test with phrases."""
    folder.mkdir(parents=True)
    split_of = {f"{number}_a.jpg": "train" for number in range(train)}
    split_of |= {f"{100 + number}_a.jpg": "dev" for number in range(dev)}
    split_of |= {f"{precomp_files.FIRST}_a.jpg": "test", "43_a.jpg": "test"}
    lines = []
    for number, name in enumerate(split_of):
        told = CAPTIONS[0] if name.startswith("42_") else CAPTIONS[1 + number % 2]
        lines += [f"{name}#{k}\t{told if k == 0 else CAPTIONS[1 + k % 2]}\n" for k in range(5)]
    (folder / "Flickr8k.token.txt").write_text("".join(lines))
    for split in ("train", "dev", "test"):
        names = "".join(f"{name}\n" for name, own in split_of.items() if own == split)
        (folder / f"Flickr_8k.{split}Images.txt").write_text(names)
    photographs(folder / "images", split_of)
    return list(split_of)


def entities(path):
    members = {"Annotations/42.xml": entity_files.XML, "Sentences/42.txt": entity_files.SENTENCES}
    entity_files.zipped(path, members)


def vqa(folder):
    """Write VQA's dev files with choices; return the images' names."""
    folder.mkdir()
    asked = [
        {
            "question_id": n,
            "image_id": n,
            "question": "is it red?",
            "multiple_choices": ["yes", "no"],
        }
        for n in (1, 2, 3)
    ]
    told = [
        {
            "question_id": n,
            "image_id": n,
            "answers": [{"answer": "yes"}] * 10,
            "answer_type": "yes/no",
        }
        for n in (1, 2, 3)
    ]
    head = {"data_type": "mscoco", "data_subtype": "val2014"}
    name = "MultipleChoice_mscoco_val2014_questions.json"
    (folder / name).write_text(json.dumps(head | {"questions": asked}))
    (folder / "mscoco_val2014_annotations.json").write_text(
        json.dumps(head | {"annotations": told})
    )
    return [f"COCO_val2014_{n:012}.jpg" for n in (1, 2, 3)]


# Worlds ---------------------------------------------------------------------------------------


def extract(here):
    import transformers

    photographs(here / "photos", ["a.jpg", "b.png", "c.jpg"])
    boxes = [{"image_id": name, "bbox": [1, 2, 30, 20]} for name in "abc"]
    (here / "detections.json").write_text(json.dumps(boxes))
    sizes = {"embedding_size": 8, "hidden_sizes": [8, 8, 8, 8], "depths": [1, 1, 1, 1]}
    config = transformers.ResNetConfig(**sizes, layer_type="basic")
    transformers.ResNetModel(config).save_pretrained(here / "microsoft" / "resnet-152")


def store(here):
    photographs(here / "photos", [f"{letter}.jpg" for letter in "abcdef"])
    for number in (1, 2):
        words = ["extract", "photos", f"part-{number}", "--shard", f"{number}/2", *FAST]
        assert main(words) == 0
    assert main(["extract", "photos", "regions", *FAST]) == 0
    precomp_files.write_precomp(here / "f30k_precomp")
    boxes = np.array([[0, 0, 5, 5], [1, 2, 9, 9]])
    lines = [tsv_line(name, boxes, np.ones((2, 3))) for name in ("9", "12")]
    (here / "trainval_36.tsv").write_text("".join(lines))


def data(here):
    flickr8k(here / "flickr8k")
    entities(here / "annotations.zip")
    precomp_files.write_precomp(here / "f30k_precomp")
    training_parts.write_questions(here)


def import_(here):
    precomp_files.write_checkpoint(here / "model_best.pth.tar", here / "f30k_precomp_vocab.json")
    (here / "vsrn").mkdir()
    states = [vsrn_state(f30k=True), text_state(bi=False)]
    save(here / "vsrn" / "model_best.pth.tar", states, options(bi_gru=False))
    pickle_vocabulary(here / "f30k_vocab.pkl", VOCAB)


def train(here):
    """Beside the current folder lies the shared data that the recipes name."""
    (here / "recipes").symlink_to(RECIPES)
    shared = here.parent / "shared" / "data"
    names = flickr8k(shared / "flickr8k")
    regions(here / "regions" / "flickr8k", names, 6)
    regions(here / "mine", names, 7)
    training_parts.write_questions(shared)
    (shared / "daquar" / "regions").rename(here / "regions" / "daquar")
    tiny = here / "tiny"
    tiny.mkdir()
    recipe = training_parts.tree(training_parts.write_world(tiny), epochs=1)
    (here / "mine.yaml").write_text(yaml.safe_dump(recipe))


def evaluate(here):
    names = flickr8k(here / "flickr8k")
    regions(here / "regions", names, 6)
    entities(here / "annotations.zip")
    for name in ("my-scan", "new"):
        matcher(here / name, width=6, lambda1=9.0 if name == "new" else 4.0)
    for name in ("scan-coco", "scan-t-i", "scan-i-t"):
        way = "i-t" if name == "scan-i-t" else "t-i"
        matcher(here / name, width=precomp_files.WIDTH, direction=way)
    precomp_files.write_precomp(here / "f30k_precomp")
    coco = here / "coco_precomp"
    coco.mkdir()
    (coco / "testall_caps.txt").write_text("a red car .\n" * 50)
    np.save(
        coco / "testall_ims.npy", np.random.default_rng(0).normal(size=(10, 4, precomp_files.WIDTH))
    )
    training_parts.write_questions(here)
    (here / "daquar" / "regions").rename(here / "daquar-regions")
    regions(here / "vqa-regions", vqa(here / "vqa"), training_parts.WIDTH)
    text = TextConfig(kind="lstm", word_size=8, join="sum")
    answers = ("yes", "no", *training_parts.THINGS, *training_parts.COLOURS)
    config = RDanConfig(training_parts.WIDTH, 16, text, answers=answers)
    RDan(config, WORDS).save_pretrained(here / "my-rdan")


def index(here):
    photographs(here / "photos", ["a.jpg", "b.png", "2024/c.jpg"])
    photographs(here / "holidays", ["d.jpg"])
    (here / "captions.txt").write_text("".join(f"{line}\n" for line in CAPTIONS))
    matcher(here / "my-vsrn", "vsrn", layers=1)
    matcher(here / "my-scan")


def search(here):
    index(here)
    photographs(here, ["query.jpg"])
    words = ["index", "photos/", "--into", "index/", "--tag", "holidays"]
    assert main(words) == 0


def serve(here):
    search(here)
    asking_parts.answerer().save_pretrained(here / "my-rdan")


def ask(here):
    asking_parts.answerer().save_pretrained(here / "my-rdan")
    asking_parts.photograph(here / "kitchen.jpg")


def explain(here):
    photographs(here, ["dog.jpg", "1000.jpg"])
    for name in ("my-scan", "my-scan-ccr", "scan-f30k"):
        matcher(here / name)
    matcher(here / "my-bfan", "bfan")
    regions(here / "f30k", ["1000"], WIDTH)
    regions(here / "regions", flickr8k(here / "flickr8k"), WIDTH)


def demo(here):
    """Take nothing with it: the photographs come with packages."""


WORLDS = {
    "extract": extract,
    "store": store,
    "data": data,
    "import": import_,
    "train": train,
    "evaluate": evaluate,
    "index": index,
    "search": search,
    "serve": serve,
    "ask": ask,
    "explain": explain,
    "demo": demo,
}
