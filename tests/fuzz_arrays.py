"""Readers of features, weights, runs, indexes and photographs, with a small good source of each."""

import contextlib
import json
import re
import shutil
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

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
from crossgaze.models.pretrained import digest_of, load_answerer
from crossgaze.models.sparse_rows import pack
from crossgaze.models.text import TextConfig
from crossgaze.models.vse import Vse, VseConfig
from crossgaze.models.vsrn_captioner import Captioner, CaptionerConfig
from crossgaze.search.head import read_head
from crossgaze.search.index import Index
from crossgaze.training.config import TrainConfig
from crossgaze.training.trainer import train
from crossgaze.vision.backbones.auto import read_preprocessing
from crossgaze.vision.backbones.base import read_weights
from crossgaze.vision.extract import ExtractReport, Shard, require_same_shard
from crossgaze.vision.objects.detector import load_detector
from crossgaze.vision.photos import read_photo
from crossgaze.vision.sources.box_files import read_box_file
from crossgaze.vision.taken import taken_at
from fuzz_parts import Reader

CHECKPOINT = "model_best.old"  # not by a name whose mutations are of zips

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
    report(folder)


def _store(source, target):
    assert isinstance(verify(source).problems, tuple)
    found = RegionStore(source)
    found.read(list(found.ids))
    found.describe()
    merge_stores([source], target / "merged")


def report(folder):
    """Write what an extraction says of a store, which merging and going on read."""
    left = {"unreadable": (("c.jpg", "is empty"),), "changed": ("a.jpg",)}
    ExtractReport(6, extracted=6, finished=True, config={"size": 64}, **left).save(folder)


def _report(source, target):
    require_same_shard(source, Shard())


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


def boxes_list(folder):
    found = [{"image_id": n, "bbox": [1, 2, 3.5, 4], "score": 0.5} for n in (1, 1, 2)]
    (folder / "boxes.json").write_text(json.dumps(found))


def _boxes(source, target):
    (path,) = source.iterdir()
    read_box_file(path)


# Recipes, checkpoints, models ---------------------------------------------------------------------


def train_recipe(folder):
    tree = training_parts.tree(("captions.jsonl", "regions"))
    (folder / "recipe.yaml").write_text(json.dumps(tree, indent=1))


def _train_recipe(source, target):
    load_recipe(TrainConfig, source / "recipe.yaml")


def checkpoint(folder, family, zipped=True):
    """Write what the papers' public code saves, and for SCAN its words, too."""
    torch.manual_seed(0)
    both_ways = family in ("scan", "bfan")
    states = checkpoint_files.plain_states(bi=both_ways)
    if family == "vsrn":
        states[0] = checkpoint_files.vsrn_state(f30k=False)
    opt = checkpoint_files.options(bi_gru=both_ways, data_name="coco_precomp")
    path = folder / ("model_best.pth.tar" if zipped else CHECKPOINT)
    checkpoint_files.save(path, states, opt, zipped=zipped)
    if family == "scan":
        checkpoint_files.VOCAB.save(folder / "vocab.json")


def _checkpoint(source, target, family):
    words = source / "vocab.json" if family == "scan" else None
    (path,) = source.glob("model_best.*")
    model = import_checkpoint(path, family, words)
    model.save_pretrained(target / "model")


def model_folder(folder):
    search_parts.reranker().save_pretrained(folder)


def ensemble(folder):
    Ensemble([search_parts.reranker(), search_parts.reranker(2)]).save_pretrained(folder)


def bert_model(folder):
    """A model that reads by a BERT beside its folder, with words and rows of its own."""
    model_parts.save_bert(folder.parent / "bert")
    text = TextConfig(kind="bert", bert=str(folder.parent / "bert"), own_words=3)
    model = Vse(VseConfig(region_width=search_parts.WIDTH, size=4, text=text), None)
    with torch.no_grad():
        model.text.own[0].weight[6:8] = 1.0
    model.text.seen = frozenset(("a", "red", "dog"))
    model.save_pretrained(folder)
    path = folder / "model.safetensors"
    save_file(pack(load_file(path)), path)
    _sign(folder)


def _sign(folder):
    """Write a folder's checksums anew, so that what is bad in it lies behind good ones."""
    for head in folder.rglob("config.json"):
        content = head.read_bytes()
        for key, name in (("weights", "model.safetensors"), ("vocabulary", "vocab.json")):
            if head.with_name(name).is_file():
                digest = digest_of(head.with_name(name)).encode()
                old = rb'("%s": ")[0-9a-f]{64}"' % key.encode()
                content = re.sub(old, rb'\g<1>%s"' % digest, content)
        head.write_bytes(content)


def _signed(source, target):
    folder = Path(shutil.copytree(source, target / "signed"))
    _sign(folder)
    return folder


def _model(source, target):
    model = crossgaze.load(_signed(source, target))
    regions = model.encode_images(torch.ones(1, 3, search_parts.WIDTH))
    model.similarity(regions, model.encode_texts(["a red dog"]))


def _bert_model(source, target):
    # Nearly any text in the head is an id on the Hub, which nobody should be asked for.
    with mock.patch("huggingface_hub.constants.HF_HUB_OFFLINE", True):
        _model(source, target)


def captioner(folder):
    config = CaptionerConfig(size=6, hidden=4, word_size=4)
    Captioner(config, search_parts.WORDS).save(folder)


def _captioner(source, target):
    Captioner.load(source)


def answerer(folder):
    asking_parts.answerer(width=6, origin=False).save_pretrained(folder)


def _answerer(source, target):
    model = load_answerer(_signed(source, target))
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


def weights_safetensors(folder):
    save_file({"a": torch.ones(3), "b": torch.ones(2, 2)}, folder / "weights.safetensors")


def _weights(source, target):
    (path,) = source.iterdir()
    read_weights(path)


def preprocessing(folder):
    tree = {"do_rescale": True, "rescale_factor": 0.00392, "image_mean": [0.5] * 3}
    text = json.dumps(tree | {"do_normalize": True, "image_std": [0.25] * 3})
    (folder / "preprocessor_config.json").write_text(text)


def _preprocessing(source, target):
    read_preprocessing(str(source))


# Runs, results, indexes, photographs --------------------------------------------------------------


def _run_settings():
    # By paths from where it runs: a run goes on with its own data only, which is copied here.
    paths = Path("world/captions.jsonl"), Path("world/regions")
    return training_parts.settings(paths, "vse++", epochs=2, batch=6, save_every=1)


def run(folder):
    (folder / "world").mkdir()
    training_parts.write_world(folder / "world", images=6, dev=2)

    class StopError(Exception):
        pass

    calls = []

    def step(done, total):
        calls.append(done)
        if len(calls) == 3:
            raise StopError

    with contextlib.chdir(folder), contextlib.suppress(StopError):
        train(_run_settings(), Path("run"), device="cpu", on_progress=step)
    (folder / "run" / ".crossgaze.lock").unlink()


def _run(source, target):
    with contextlib.chdir(source):
        train(_run_settings(), Path("run"), device="cpu")


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


def sentences(folder):
    import lancedb  # noqa: F401 (once, before reading is timed)

    (folder / "lines.txt").write_text("a red dog\n\nthe cat runs in the snow .\na red dog\n")


def _sentences(source, target):
    search_parts.save_models(target)
    with search_parts.create(target) as made:
        made.add_sentences(source / "lines.txt")


def photo(folder, kind="PNG"):
    pixels = np.random.default_rng(0).integers(0, 256, (24, 40, 3), np.uint8)
    Image.fromarray(pixels).save(folder / f"photo.{kind.lower()}", kind)


def _photo(source, target):
    (path,) = source.iterdir()
    read_photo(path, 32)


def dated_photo(folder, kind):
    exif = Image.Exif()
    exif[0x0132], exif[0x0112] = "2021:01:01 00:00:00", 6
    exif.get_ifd(0x8769)[0x9003] = "2020:02:29 23:59:58"
    Image.new("RGB", (8, 4)).save(folder / f"photo.{kind.lower()}", kind, exif=exif)


def _dated_photo(source, target):
    (path,) = source.iterdir()
    found = taken_at(path.read_bytes())
    assert found is None or abs(found) < 1 << 40
    read_photo(path, 32)


READERS = (
    Reader("region store", store, _store, 0.2),
    Reader("features: TSV", tsv, _import, 0.2),
    Reader("features: LXMERT's TSV", lxmert, _import, 0.2),
    Reader("features: .npy", npy, _import, 0.2),
    Reader("features: .npz", npz, _import_npz, 0.2),
    Reader("boxes: COCO's JSON", boxes_json, _boxes),
    Reader("boxes: COCO's detections", boxes_list, _boxes),
    Reader("boxes: TSV", tsv, _boxes),
    Reader("report of an extraction", report, _report),
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
    Reader(
        "checkpoint: without a zip",
        partial(checkpoint, family="vse++", zipped=False),
        partial(_checkpoint, family="vse++"),
        0.1,
    ),
    Reader("weights: PyTorch", weights, _weights),
    Reader("weights: safetensors", weights_safetensors, _weights),
    Reader("backbone: preprocessing", preprocessing, _preprocessing),
    Reader("model folder", model_folder, _model, 0.2),
    Reader("model folder: ensemble", ensemble, _model, 0.2),
    Reader("model folder: caption generator", captioner, _captioner, 0.2),
    Reader("model folder: r-DAN", answerer, _answerer, 0.1),
    Reader("model folder: words by a BERT", bert_model, _bert_model, 0.02),
    Reader("model folder: regions", region_model, _region_model, 0.02),
    Reader("model folder: BERT", bert, _bert, 0.05, malice=False),
    Reader("training run", run, _run, 0.02, malice=False, grows=True),
    Reader("result of an evaluation", result, _result),
    Reader("index: head", index_head, _index_head),
    Reader("index: sentences", sentences, _sentences, 0.02),
    Reader("index: all files", index, _index, 0.02, malice=False, grows=True),
    *(
        Reader(f"photograph: {kind}", partial(photo, kind=kind), _photo)
        for kind in ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
    ),
    *(
        Reader(f"photograph: EXIF in {kind}", partial(dated_photo, kind=kind), _dated_photo)
        for kind in ("JPEG", "TIFF")
    ),
)
