"""A small set of images, captions, regions and phrases with boxes, for the tests of evaluation."""

import numpy as np
import torch

import entity_files
from crossgaze.data.captions.captioned import CaptionedImages
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.models.bfan import Bfan, BfanConfig
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.models.vse import Vse, VseConfig

WORDS = ["two pups chase each other near a lake .", "a tree stands alone", "nothing is marked here"]
WIDTH = 6


def vocabulary():
    return Vocabulary.build(WORDS, min_count=1)


def model(kind="scan", seed=0, **options):
    torch.manual_seed(seed)
    families = {"scan": (Scan, ScanConfig), "bfan": (Bfan, BfanConfig), "vse": (Vse, VseConfig)}
    family, config = families[kind]
    return family(config(region_width=WIDTH, size=8, **options), vocabulary()).eval()


def captioned(images=10, each=2, seed=0):
    """Captions in an order that is not that of their images."""
    random = np.random.default_rng(seed)
    words = vocabulary().words[4:]
    names = tuple(f"{i}_x.jpg" for i in range(images))
    owners = random.permutation(np.repeat(np.arange(images), each))
    captions = tuple(" ".join(random.choice(words, 5)) for _ in owners)
    return CaptionedImages("toy", names, captions, owners, ("test",) * images)


def write_store(folder, names, regions=4, seed=0, boxes=True):
    """Write a store of random regions in the order of the names turned round."""
    random = np.random.default_rng(seed)
    names = list(names)[::-1]
    fields = {}
    if boxes:
        corner = random.uniform(0, 60, (len(names), regions, 2))
        placed = np.concatenate([corner, corner + random.uniform(10, 40, corner.shape)], -1)
        placed[:, 0] = (0, 0, 100, 100)
        fields = {"boxes": placed, "sizes": np.full((len(names), 2), 100)}
    counts = random.integers(2, regions + 1, len(names))
    features = random.normal(size=(len(names), regions, WIDTH))
    kept = ["counts", *fields]
    with RegionWriter(folder, regions, WIDTH, dtype="float32", fields=kept) as writer:
        writer.append(names, features, counts=counts, **fields)
    return folder


def write_flickr8k(folder, images=10, each=2, seed=0):
    """Write a Flickr8k folder all of whose images are test; image 0 is entity image 42."""
    made = captioned(images, each, seed)
    names = ["42_x.jpg", *made.images[1:]]
    lines = []
    for number, name in enumerate(names):
        own = list(made.captions_of(number))
        if not number:
            own[0] = "Two pups chase each other near a lake."
        lines += [f"{name}#{k}\t{caption}\n" for k, caption in enumerate(own)]
    folder.mkdir()
    (folder / "Flickr8k.token.txt").write_text("".join(lines))
    for split in ("train", "dev", "test"):
        text = "".join(f"{name}\n" for name in names) if split == "test" else ""
        (folder / f"Flickr_8k.{split}Images.txt").write_text(text or "\n")
    return folder


def write_entities(path):
    members = {"Annotations/42.xml": entity_files.XML, "Sentences/42.txt": entity_files.SENTENCES}
    return entity_files.zipped(path, members)
