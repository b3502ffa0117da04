"""Readers of features, weights, runs, indexes and photographs, with a small good source of each."""

import argparse
import contextlib
import json
import shutil
from functools import partial

import numpy as np
import torch
from PIL import Image

import crossgaze
import feature_files
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
from crossgaze.models.vsrn_captioner import Captioner, CaptionerConfig
from crossgaze.search.head import read_head
from crossgaze.search.index import Index
from crossgaze.training.config import TrainConfig
from crossgaze.training.trainer import train
from crossgaze.vision.backbones.base import read_weights
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


def _gru(width, size, words, reverse):
    gru = torch.nn.GRU(width, size, bidirectional=reverse)
    state = {f"rnn.{key}": value.detach() for key, value in gru.state_dict().items()}
    return {"embed.weight": torch.ones(words, width)} | state


def checkpoint(folder):
    opt = {
        "img_dim": 6, "embed_size": 5, "word_dim": 4, "num_layers": 1, "bi_gru": True,
        "no_imgnorm": False, "no_txtnorm": False, "cross_attn": "t2i", "agg_func": "Mean",
        "lambda_lse": 6.0, "lambda_softmax": 9.0, "raw_feature_norm": "clipped_l2norm",
    }  # fmt: skip
    image = {"fc.weight": torch.ones(5, 6), "fc.bias": torch.ones(5)}
    states = [image, _gru(4, 5, len(search_parts.WORDS), True)]
    raw = {"epoch": 3, "model": states, "best_rsum": 1.5, "opt": argparse.Namespace(**opt)}
    torch.save(raw, folder / "model_best.pth.tar")
    search_parts.WORDS.save(folder / "vocab.json")


def checkpoint_vsrn(folder):
    opt = {"img_dim": 6, "embed_size": 4, "word_dim": 4, "data_name": "coco_precomp"}
    image = {"fc.weight": torch.ones(4, 6), "fc.bias": torch.ones(4)}
    image |= {
        f"img_rnn.{key}": value.detach() for key, value in torch.nn.GRU(4, 4).state_dict().items()
    }
    for layer in range(1, 5):
        for part in ("g", "theta", "phi", "W.0"):
            image[f"Rs_GCN_{layer}.{part}.weight"] = torch.ones(4, 4, 1)
            image[f"Rs_GCN_{layer}.{part}.bias"] = torch.ones(4)
        for part in ("weight", "bias", "running_mean", "running_var"):
            image[f"Rs_GCN_{layer}.W.1.{part}"] = torch.ones(4)
    raw = {"epoch": 1, "model": [image, _gru(4, 4, 9, False)], "opt": argparse.Namespace(**opt)}
    torch.save(raw, folder / "model_best.pth.tar")


def _checkpoint(source, target):
    model = import_checkpoint(source / "model_best.pth.tar", "scan", source / "vocab.json")
    model.save_pretrained(target / "model")


def _checkpoint_vsrn(source, target):
    model = import_checkpoint(source / "model_best.pth.tar", "vsrn")
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
    Reader("checkpoint: SCAN", checkpoint, _checkpoint, 0.2),
    Reader("checkpoint: VSRN", checkpoint_vsrn, _checkpoint_vsrn, 0.2),
    Reader("weights: PyTorch", weights, _weights),
    Reader("model folder", model_folder, _model, 0.2),
    Reader("model folder: ensemble", ensemble, _model, 0.2),
    Reader("model folder: caption generator", captioner, _captioner, 0.2),
    Reader("training run", run, _run, 0.02, malice=False),
    Reader("result of an evaluation", result, _result),
    Reader("index: head", index_head, _index_head),
    Reader("index: all files", index, _index, 0.02, malice=False),
    *(
        Reader(f"photograph: {kind}", partial(photo, kind=kind), _photo)
        for kind in ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
    ),
)
