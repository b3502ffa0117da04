"""Readers of features, weights, runs, indexes and photographs, with a small good source of each."""

import contextlib
import json
import shutil
from functools import partial

import numpy as np
import torch
from PIL import Image

import asking_parts
import checkpoint_files
import crossgaze
import feature_files
import model_parts
import search_parts
import training_parts
from crossgaze.config import load_recipe
from crossgaze.data.regions.importing import import_regions
from crossgaze.data.regions.merge import merge_stores
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.verify import verify
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.evaluation.report import read_ranks
from crossgaze.explain.queries import read_queries
from crossgaze.models.checkpoints import import_checkpoint
from crossgaze.models.ensemble import Ensemble
from crossgaze.models.finding import ZOO
from crossgaze.models.pretrained import load_answerer
from crossgaze.models.text import TextConfig
from crossgaze.models.vse import Vse, VseConfig
from crossgaze.models.vsrn_captioner import Captioner, CaptionerConfig
from crossgaze.search.head import read_head
from crossgaze.search.index import Index
from crossgaze.training.config import TrainConfig
from crossgaze.training.trainer import train
from crossgaze.vision.backbones.base import read_weights
from crossgaze.vision.objects.detector import load_detector
from crossgaze.vision.photos import read_photo
from crossgaze.vision.sources.box_files import read_box_file
from fuzz_parts import Reader

# Region features ----------------------------------------------------------------------------------


def store(folder):
    fields = ["counts", "boxes", "sizes", "confidence", "classes"]
    with RegionWriter(
        folder, 4, 6, fields=fields, labels={"classes": ["dog", "cat"]}, made_by={"from": "a test"}
    ) as writer:
        for batch in range(2):
            names = [f"{batch}-{n}.jpg" for n in range(3)]
            boxes = np.tile([0.0, 0, 5, 5], (3, 4, 1))
            writer.append(
                names,
                np.ones((3, 4, 6)),
                boxes=boxes,
                sizes=np.full((3, 2), 9),
                confidence=np.ones((3, 4)),
                classes=np.ones((3, 4), np.int32),
            )


def _store(source, target):
    assert isinstance(verify(source).problems, tuple)
    found = RegionStore(source)
    found.read(list(found.ids))
    found.describe()
    merge_stores([source], target / "merged")


def tsv(folder):
    lines = [feature_files.tsv_line(n, *feature_files.random_image(3)) for n in "abc"]
    (folder / "train.tsv").write_text("".join(lines))


def lxmert(folder):
    lines = [feature_files.lxmert_line(n, *feature_files.random_image(2)) for n in "ab"]
    (folder / "train.tsv").write_text("".join(lines))


def npy(folder):
    np.save(folder / "features.npy", np.ones((3, 4, 6), np.float32))


def npz(folder):
    for name in "ab":
        boxes, x = feature_files.random_image(3)
        np.savez(folder / f"{name}.npz", x=x, bbox=boxes, image_w=640, image_h=480)


def _import(source, target):
    (first, *more) = source.iterdir()
    import_regions(source if more else first, target / "store")


def _import_npz(source, target):
    import_regions(source, target / "store")


def boxes_json(folder):
    images = [{"id": n, "file_name": f"{n}.jpg", "width": 64, "height": 48} for n in range(2)]
    notes = [{"image_id": n, "bbox": [1, 2, 3.5, 4], "score": 0.5} for n in range(2)]
    (folder / "boxes.json").write_text(json.dumps({"images": images, "annotations": notes}))


def _boxes(source, target):
    (path,) = source.iterdir()
    read_box_file(path)


# Recipes, checkpoints, models ---------------------------------------------------------------------


def train_recipe(folder):
    tree = training_parts.tree(("captions.jsonl", "regions"))
    (folder / "recipe.yaml").write_text(json.dumps(tree, indent=1))


def _train_recipe(source, target):
    load_recipe(TrainConfig, source / "recipe.yaml")


def checkpoint(folder, family):
    """Write what the papers' public code saves, and for SCAN its words, too."""
    torch.manual_seed(0)
    both_ways = family in ("scan", "bfan")
    states = checkpoint_files.plain_states(bi=both_ways)
    if family == "vsrn":
        states[0] = checkpoint_files.vsrn_state(f30k=False)
    opt = checkpoint_files.options(bi_gru=both_ways, data_name="coco_precomp")
    checkpoint_files.save(folder / "model_best.pth.tar", states, opt)
    if family == "scan":
        checkpoint_files.VOCAB.save(folder / "vocab.json")


def _checkpoint(source, target, family):
    words = source / "vocab.json" if family == "scan" else None
    model = import_checkpoint(source / "model_best.pth.tar", family, words)
    model.save_pretrained(target / "model")


def model_folder(folder):
    search_parts.reranker().save_pretrained(folder)


def ensemble(folder):
    Ensemble([search_parts.reranker(), search_parts.reranker(2)]).save_pretrained(folder)


def _model(source, target):
    model = crossgaze.load(source)
    regions = model.encode_images(torch.ones(1, 3, search_parts.WIDTH))
    model.similarity(regions, model.encode_texts(["a red dog"]))


def captioner(folder):
    config = CaptionerConfig(size=6, hidden=4, word_size=4)
    Captioner(config, search_parts.WORDS).save(folder)


def _captioner(source, target):
    Captioner.load(source)


def answerer(folder):
    asking_parts.answerer(width=6, origin=False).save_pretrained(folder)


def _answerer(source, target):
    model = load_answerer(source)
    model.answer(torch.ones(1, 3, model.config.region_width), asking_parts.QUESTIONS[:1])


def bert(folder):
    model_parts.save_bert(folder / "bert")


def _bert(source, target):
    text = TextConfig(kind="bert", bert=str(source / "bert"))
    Vse(VseConfig(region_width=6, size=4, text=text), None).encode_texts(["a red dog"])


def region_model(folder):
    for name in ("config.json", "weights.safetensors"):
        shutil.copy(ZOO / "objects" / name, folder)


def _region_model(source, target):
    load_detector(source)


def weights(folder):
    torch.save({"a": torch.ones(3), "b": torch.ones(2, 2)}, folder / "weights.pth")


def _weights(source, target):
    read_weights(source / "weights.pth")


# Runs, results, indexes, photographs --------------------------------------------------------------


def run(folder):
    (folder / "world").mkdir()
    paths = training_parts.write_world(folder / "world", images=6, dev=2)
    config = training_parts.settings(paths, "vse++", epochs=2, batch=6, save_every=1)

    class StopError(Exception):
        pass

    calls = []

    def step(done, total):
        calls.append(done)
        if len(calls) == 3:
            raise StopError

    with contextlib.suppress(StopError):
        train(config, folder / "run", device="cpu", on_progress=step)
    (folder / "run" / ".crossgaze.lock").unlink()


def _run(source, target):
    paths = source / "world" / "captions.jsonl", source / "world" / "regions"
    config = training_parts.settings(paths, "vse++", epochs=2, batch=6, save_every=1)
    train(config, source / "run", device="cpu")


def result(folder):
    images = [{"image": n, "rank": 1, "top": [{"caption": 0, "score": 0.5}]} for n in "ab"]
    captions = [
        {"caption": i, "text": "t", "image": n, "rank": 2, "top": [{"image": "a", "score": 1}]}
        for i, n in enumerate("ab")
    ]
    tree = {
        "format": "crossgaze-evaluation",
        "version": 1,
        "protocols": [{"folds": 1, "queries": {"images": images, "captions": captions}}],
    }
    (folder / "result.json").write_text(json.dumps(tree))


def _result(source, target):
    read_ranks(source / "result.json")
    for side in ("sentences", "images"):
        read_queries(source / "result.json", side)


def index(folder):
    search_parts.save_models(folder)
    for number in range(3):
        search_parts.make_photo(folder / "photos" / f"{number}.png", number)
    made = search_parts.create(folder)
    made.add(folder / "photos")
    made.close()


def _index(source, target):
    found = Index.open(source / "index", source=search_parts.CellSource())
    try:
        found.search("a red dog", k=3)
    finally:
        found.close()


def index_head(folder):
    index(folder / "made")
    (folder / "index.json").write_bytes((folder / "made" / "index" / "index.json").read_bytes())
    shutil.rmtree(folder / "made")


def _index_head(source, target):
    read_head(source)


def photo(folder, kind="PNG"):
    pixels = np.random.default_rng(0).integers(0, 256, (24, 40, 3), np.uint8)
    Image.fromarray(pixels).save(folder / f"photo.{kind.lower()}", kind)


def _photo(source, target):
    (path,) = source.iterdir()
    read_photo(path, 32)


READERS = (
    Reader("region store", store, _store, 0.2),
    Reader("features: TSV", tsv, _import, 0.2),
    Reader("features: LXMERT's TSV", lxmert, _import, 0.2),
    Reader("features: .npy", npy, _import, 0.2),
    Reader("features: .npz", npz, _import_npz, 0.2),
    Reader("boxes: COCO's JSON", boxes_json, _boxes),
    Reader("recipe: training", train_recipe, _train_recipe),
    *(
        Reader(
            f"checkpoint: {family}",
            partial(checkpoint, family=family),
            partial(_checkpoint, family=family),
            0.1,
        )
        for family in ("scan", "bfan", "vsrn", "vse++")
    ),
    Reader("weights: PyTorch", weights, _weights),
    Reader("model folder", model_folder, _model, 0.2),
    Reader("model folder: ensemble", ensemble, _model, 0.2),
    Reader("model folder: caption generator", captioner, _captioner, 0.2),
    Reader("model folder: r-DAN", answerer, _answerer, 0.1),
    Reader("model folder: regions", region_model, _region_model, 0.02),
    Reader("model folder: BERT", bert, _bert, 0.05, malice=False),
    Reader("training run", run, _run, 0.02, malice=False, grows=True),
    Reader("result of an evaluation", result, _result),
    Reader("index: head", index_head, _index_head),
    Reader("index: all files", index, _index, 0.02, malice=False, grows=True),
    *(
        Reader(f"photograph: {kind}", partial(photo, kind=kind), _photo)
        for kind in ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
    ),
)
