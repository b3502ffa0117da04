"""Readers of texts, tables, JSON, XML and YAML, with a small good source of each."""

import json
import pickle
import sys
import types

import numpy as np

import entity_files
from crossgaze.config import load_recipe
from crossgaze.data.captions.precaps import read_precaps
from crossgaze.data.captions.reading import read_captions
from crossgaze.data.detect import holds_questions
from crossgaze.data.entities.archive import Entities
from crossgaze.data.questions.reading import read_questions
from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.evaluation import wordnet
from crossgaze.vision.settings import ExtractConfig
from fuzz_parts import Reader

WORDS = Vocabulary.build(["a red green blue dog cat runs in the snow ."], min_count=1)
CAPTIONS = ["A dog runs .", "Two cats sit on a mat", 'He said "no", then left', "snow", "A red car"]


def _images(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


# Captions -----------------------------------------------------------------------------------------


def flickr8k(folder):
    lines = [f"{n}.jpg#{i}\t{CAPTIONS[i]}\n" for n in "abc" for i in range(5)]
    (folder / "Flickr8k.token.txt").write_text("".join(lines))
    for split, name in (("train", "a"), ("dev", "b"), ("test", "c")):
        (folder / f"Flickr_8k.{split}Images.txt").write_text(f"{name}.jpg\n")
    _images(folder / "images", "a.jpg", "b.jpg", "c.jpg")


def karpathy(folder):
    images = [
        {
            "filename": f"{n}.jpg",
            "filepath": "val2014",
            "split": split,
            "sentences": [{"raw": text, "tokens": text.split()} for text in CAPTIONS],
        }
        for n, split in (("a", "train"), ("b", "val"), ("c", "test"), ("d", "restval"))
    ]
    (folder / "dataset_toy.json").write_text(json.dumps({"dataset": "toy", "images": images}))


def coco(folder):
    for split, first in (("train", 0), ("val", 10)):
        images = [{"id": first + i, "file_name": f"{first + i}.jpg"} for i in range(3)]
        notes = [
            {"id": i, "image_id": first + i % 3, "caption": text} for i, text in enumerate(CAPTIONS)
        ]
        content = {"images": images, "annotations": notes}
        (folder / f"captions_{split}2014.json").write_text(json.dumps(content))


def precomp(folder):
    for split, rows in (("train", 2), ("test", 10)):  # test: each image five times
        (folder / f"{split}_caps.txt").write_text("\n".join(CAPTIONS * 2) + "\n")
        np.save(folder / f"{split}_ims.npy", np.ones((rows, 4, 6), np.float32))


def precomp_ids(folder):
    precomp(folder)
    for split, names in (("train", "ab"), ("test", "cd")):  # one a caption
        lines = [f"{name}.jpg\n" * 5 for name in names]
        (folder / f"{split}_ids.txt").write_text("".join(lines))


def own_csv(folder):
    rows = "".join(f'{n}.jpg;"{text}";train\n' for n, text in enumerate(("a, b", "c\nd", "e")))
    (folder / "captions.csv").write_text("image;caption;split\n" + rows)


def own_txt(folder):
    rows = "".join(f"{number}.jpg\t{text}\n" for number, text in enumerate(CAPTIONS[:2]))
    (folder / "captions.txt").write_text("image\tcaption\n" + rows)


def own_jsonl(folder):
    rows = [{"image": f"{n}.jpg", "caption": t, "split": "dev"} for n, t in enumerate(CAPTIONS)]
    (folder / "captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def precaps(folder):
    (folder / "train_precaps.txt").write_text("1,5,6,2\n1,3,2\n" * 5)


def _precaps(source, target):
    read_precaps(source / "train_precaps.txt")


def _captions(source, target):
    found = read_captions(source)
    for split in set(found.splits):
        found.split(split)
    assert not holds_questions(source)


# Questions ----------------------------------------------------------------------------------------


def vqa(folder):
    for split, numbers in (("train2014", (1, 2)), ("val2014", (3,))):
        head = {"data_type": "mscoco", "data_subtype": split}
        asked = [{"question_id": n, "image_id": n, "question": "What?"} for n in numbers]
        answers = [
            {
                "question_id": n,
                "image_id": n,
                "answer_type": "other",
                "multiple_choice_answer": "a",
                "answers": [{"answer": "a", "answer_id": i} for i in range(10)],
            }
            for n in numbers
        ]
        for name, more in (
            (f"OpenEnded_mscoco_{split}_questions.json", {"questions": asked}),
            (f"mscoco_{split}_annotations.json", {"annotations": answers}),
        ):
            (folder / name).write_text(json.dumps(head | more))


def daquar(folder):
    pairs = "what is left of the lamp in the image1 ?\nbed\nhow many in the image3 ?\n2, 3\n"
    (folder / "all_qa_pairs.txt").write_text(pairs)
    (folder / "train_images_list.txt").write_text("image1\nimage2\n")
    (folder / "test_images_list.txt").write_text("image3\n")


def easy_vqa(folder):
    (folder / "answers.txt").write_text("yes\nno\nred\n")
    for split in ("train", "test"):
        _images(folder / split / "images", "0.png", "1.png")
        asked = [["what colour is it?", "red", 1], ["is it red?", "yes", 0]]
        (folder / split / "questions.json").write_text(json.dumps(asked))


def _questions(source, target):
    found = read_questions(source)
    for split in {question.split for question in found.questions}:
        found.split(split)
    holds_questions(source)


# Entities and vocabularies ------------------------------------------------------------------------


def entities(folder):
    entity_files.folder(folder)


def entities_zip(folder):
    members = {"Annotations/42.xml": entity_files.XML, "Sentences/42.txt": entity_files.SENTENCES}
    entity_files.zipped(folder / "annotations.zip", members)


def _entities(source, target):
    found = Entities.open(source)
    for image in found:
        found.read(image)


def vocabulary_json(folder):
    WORDS.save(folder / "vocab.json")


def vocabulary_pickle(folder):
    kind = type("Vocabulary", (), {"__module__": "vocab"})
    words = WORDS.words
    made = kind()
    made.word2idx = {word: i for i, word in enumerate(words)}
    made.idx2word, made.idx = dict(enumerate(words)), len(words)
    sys.modules["vocab"] = module = types.ModuleType("vocab")
    module.Vocabulary = kind  # type: ignore[attr-defined]
    try:
        (folder / "vocab.pkl").write_bytes(pickle.dumps(made, 2))
    finally:
        del sys.modules["vocab"]


def _vocabulary(source, target):
    (path,) = source.iterdir()
    Vocabulary.load(path).encode("a red dog barks")


# WordNet ------------------------------------------------------------------------------------------


def nouns(folder):
    (folder / "index.noun").write_text(
        "  1 a licence\n"
        "cat n 1 1 @ 1 0 00000003\ndog n 2 1 @ 2 1 00000002 00000004\nthing n 1 0 1 0 00000001\n"
    )
    rows = ("1 03 n 01 thing 0 000", "2 03 n 01 dog 0 001 @ 00000001 n 0000")
    more = ("3 03 n 01 cat 0 001 @ 00000001 n 0000", "4 03 n 01 dog 0 001 @i 00000002 n 0000")
    (folder / "data.noun").write_text("".join(f"0000000{row} | x\n" for row in (*rows, *more)))
    (folder / "noun.exc").write_text("kine cat\n")


def _nouns(source, target):
    # By its folder, WordNet is read once; here it is another each time.
    found = wordnet._read.__wrapped__(source)
    synsets = [synset for word in ("dogs", "kine", "thing") for synset in found.synsets(word)]
    for one in synsets:
        for other in synsets:
            assert 0 <= found.wup(one, other) <= 1


# Recipes ----------------------------------------------------------------------------------------


def recipe_text(folder):
    text = "# a recipe\nregions: grid\ngrid: 3\nsize: 64\nbatch: 4\ndtype: float16\nfit: keep\n"
    (folder / "recipe.yaml").write_text(text)


def _extract_recipe(source, target):
    load_recipe(ExtractConfig, source / "recipe.yaml")


READERS = (
    Reader("captions: Flickr8k", flickr8k, _captions),
    Reader("captions: Karpathy's JSON", karpathy, _captions),
    Reader("captions: MS-COCO's JSON", coco, _captions),
    Reader("captions: precomp with .npy", precomp, _captions),
    Reader("captions: precomp with ids", precomp_ids, _captions),
    Reader("captions: own CSV", own_csv, _captions),
    Reader("captions: own text", own_txt, _captions),
    Reader("captions: own JSON Lines", own_jsonl, _captions),
    Reader("captions: BFAN's word numbers", precaps, _precaps),
    Reader("questions: VQA's JSON", vqa, _questions),
    Reader("questions: DAQUAR's text", daquar, _questions),
    Reader("questions: easy-vqa's JSON", easy_vqa, _questions),
    Reader("entities: XML and sentences", entities, _entities),
    Reader("entities: zip", entities_zip, _entities),
    Reader("vocabulary: JSON", vocabulary_json, _vocabulary),
    Reader("vocabulary: pickle", vocabulary_pickle, _vocabulary),
    Reader("WordNet: nouns", nouns, _nouns),
    Reader("recipe: extraction", recipe_text, _extract_recipe),
)
