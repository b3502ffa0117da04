"""What the documentation shows is run here, on small made-up data, so that it cannot go stale."""

import base64
import importlib.util
import json
import re
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import asking_parts
import entity_files
import evaluation_parts
import search_parts
import training_parts
from crossgaze.cli import VERBS, main, module_of, parse
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.regions.writer import RegionWriter
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.models.vse import Vse, VseConfig
from sessions import blocks

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
GUIDES = ("own-model.md", "photos.md", "researchers.md")  # sessions, see test_guides.py
RESULTS = ROOT / "results"
HELP = [Path(module_of(verb).__file__) for verb in VERBS]


def name(page):
    return str(page.relative_to(ROOT))


@pytest.fixture
def data(tmp_path, monkeypatch):
    """The folders and files that the pages speak of, in the current folder."""
    monkeypatch.chdir(tmp_path)
    flickr8k = tmp_path / "flickr8k"
    flickr8k.mkdir()
    tokens = "42_a.jpg#0\tTwo pups chase each other near a lake.\n7_b.jpg#0\tA tree .\n"
    (flickr8k / "Flickr8k.token.txt").write_text(tokens)
    for split, image in (("train", "42_a.jpg"), ("dev", ""), ("test", "7_b.jpg")):
        (flickr8k / f"Flickr_8k.{split}Images.txt").write_text(f"{image}\n")
    members = {"Annotations/42.xml": entity_files.XML, "Sentences/42.txt": entity_files.SENTENCES}
    entity_files.zipped(tmp_path / "annotations.zip", members)
    (tmp_path / "f30k_precomp").mkdir()
    for split, images in (("train", 2), ("dev", 1014), ("test", 1)):
        (tmp_path / "f30k_precomp" / f"{split}_caps.txt").write_text("a cat\n" * 5 * images)
    (tmp_path / "daquar").mkdir()
    (tmp_path / "daquar" / "all_qa_pairs.txt").write_text(
        "what is on the desk in the image1 ?\ncup\nis it dark in the image2 ?\nyes\n"
    )
    (tmp_path / "daquar" / "train_images_list.txt").write_text("image1\n")
    (tmp_path / "daquar" / "test_images_list.txt").write_text("image2\n")
    (tmp_path / "PHOTOS").mkdir()
    Image.new("RGB", (40, 30), (200, 30, 30)).save(tmp_path / "PHOTOS" / "a.jpg")
    with RegionWriter(tmp_path / "regions", 2, 3) as writer:
        boxes = np.array([[[0, 0, 5, 5]] * 2])
        image = "1000268201_693b08cb0e.jpg"
        writer.append([image], np.ones((1, 2, 3)), boxes=boxes, sizes=np.array([[9, 9]]))
    evaluation_parts.write_store(tmp_path / "flickr8k-regions", ["42_a.jpg", "7_b.jpg"])
    evaluation_parts.model().save_pretrained(tmp_path / "my-scan")
    for folder, made in (("my-embedder", Vse), ("my-reranker", Scan)):
        config = {Vse: VseConfig, Scan: ScanConfig}[made](region_width=1792, size=8)
        made(config, search_parts.WORDS).save_pretrained(tmp_path / folder)
    asking_parts.answerer().save_pretrained(tmp_path / "my-rdan")
    asking_parts.photograph(tmp_path / "kitchen.jpg")
    with RegionWriter(tmp_path / "daquar-regions", 2, 1280, fields=[]) as writer:
        writer.append(["image1.jpg", "image2.jpg"], np.ones((2, 2, 1280)))
    (tmp_path / "tiny").mkdir()
    training_parts.write_world(tmp_path / "tiny")
    return tmp_path


def coded():
    return [page for page in PAGES if blocks(page, "python") and page.name not in GUIDES]


@pytest.mark.parametrize("page", coded(), ids=name)
def test_python_code_runs(page, data):
    names = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)  # one page is one session
    if page.name == "data.md":
        assert names["f30k"].left_out[0].count == 14
        assert names["image"].boxes_of(names["caption"].phrases[0], size=(224, 224)).max() == 224
        assert names["caption_words"]("A dog's ball.") == ["a", "dog", "'s", "ball", "."]
        assert names["first"].answers == ("cup",)
    if page.name == "models.md":
        assert names["scores"].shape == (3, 2)
        assert names["attention"].weights.shape[2:] == (4, 36)
        assert names["again"].config == names["model"].config
    if page.name == "evaluation.md":
        assert set(names["figures"]) == set(names["found"].protocols[0].figures)
        assert names["change"]["rsum"].value == 0
        assert len(names["quality"]) == 1
        assert "the paper's" in names["text"]
    if page.name == "search.md":
        assert names["report"].added == len(names["again"]) == len(names["like"].hits) == 1
        assert [look.word for look in names["looks"]][1:-1] == ["a", "red", "dog"]
    if page.name == "serve.md":
        assert len(names["index"]) == 1
        assert "/search" in names["app"].openapi()["paths"]
    if page.name == "questions.md":
        assert len(names["reply"].answers) == 3
        assert names["found"].attention.regions.shape == (2, 2, 36)
        assert names["judged"].figures["accuracy"].value in (0, 100)
        assert names["accuracy"] == 0.9
        assert (data / "answer.png").is_file()
    if page.name == "explain.md":
        seen = names["seen"]
        assert seen.words == ("<start>", "a", "red", "dog", "<end>")
        assert seen.weights.shape == (1, 5, len(seen.boxes))
        assert (data / "why.html").is_file()
        assert (data / "both.png").is_file()
    if page.name == "training.md":
        assert names["summary"]["steps"] == 6
        assert (data / "runs" / "tiny" / "best" / "model.safetensors").is_file()
    if page.name == "README.md":
        assert names["scores"].shape == (1, 2)
    if page.name == "extract.md":
        assert names["store"].features.shape == (1, 37, 1792)
        assert (names["mine"].extracted, names["mine"].without_boxes) == (1, ())


def test_every_source_of_regions_has_a_command_that_works(data):
    (data / "detections.json").write_text('[{"image_id": "a", "bbox": [1, 2, 30, 20]}]')
    boxes = base64.b64encode(np.array([1, 2, 30, 20], "<f4").tobytes()).decode()
    features = base64.b64encode(np.ones(3, "<f4").tobytes()).decode()
    (data / "boxes.tsv").write_text(f"a\t40\t30\t1\t{boxes}\t{features}\n")
    text = (ROOT / "docs" / "extract.md").read_text("utf-8")
    shown = text.split("## Where regions come from\n\n```sh\n")[1].split("```")[0].splitlines()
    if importlib.util.find_spec("cv2") is None:
        shown = [line for line in shown if "selective-search" not in line]
    regions = {}
    for line in shown:
        words = shlex.split(line, comments=True)[1:]
        assert main(words) == 0, line
        store = RegionStore(words[2])
        regions[words[2]] = (store.head.regions, store.head.made_by["regions"])
    wanted = {
        "REGIONS/": (37, "objects"),
        "REGIONS-OBJECTS/": (36, "objects"),
        "REGIONS-GRID/": (49, "grid"),
        "REGIONS-SEARCH/": (36, "selective-search"),
        "REGIONS-COCO/": (1, "given boxes"),
        "REGIONS-TSV/": (1, "given boxes"),
    }
    assert regions == {folder: wanted[folder] for folder in regions}
    assert len(regions) == len(shown) >= 5


def test_the_search_page_is_a_session_that_works(data, capsys):
    """Every command of the page in its order, but for those that never end or need a server."""
    pytest.importorskip("lancedb", reason="needs crossgaze[search]")
    (data / "HOLIDAYS").mkdir()
    Image.new("RGB", (50, 40), (30, 30, 200)).save(data / "HOLIDAYS" / "b.jpg")
    Image.new("RGB", (40, 40), (200, 40, 30)).save(data / "query.jpg")
    (data / "captions.txt").write_text("a red dog\nthe blue snow\n")
    lines = [
        line for block in blocks(ROOT / "docs" / "search.md", "sh") for line in block.splitlines()
    ]
    shown = [line for line in lines if line.startswith("crossgaze ")]
    if importlib.util.find_spec("milvus_lite") is None:
        shown = [line for line in shown if "--engine milvus" not in line]
    ran = [line for line in shown if "--watch" not in line and "http://" not in line]
    assert len(ran) >= 10
    for line in ran:
        words = shlex.split(line, comments=True)[1:]
        assert main(words) == 0, (line, capsys.readouterr().err)
    out = capsys.readouterr().out
    assert "2 photographs, 0 sentences, INDEX/ is kept" in out or "MOVED/" not in " ".join(ran)
    assert (data / "report.html").read_text("utf-8").startswith("<!doctype html>")


def test_the_pages_show_code_at_all():
    assert {page.name for page in coded()} == {
        "README.md",
        "data.md",
        "evaluation.md",
        "explain.md",
        "extract.md",
        "models.md",
        "questions.md",
        "regions.md",
        "scoring.md",
        "search.md",
        "serve.md",
        "training.md",
    }


def commands():
    for page in PAGES:
        for block in blocks(page, "sh"):
            yield from ((name(page), line) for line in block.splitlines())
        for line in re.findall(r"`(crossgaze [^`]+)`", page.read_text("utf-8")):
            yield name(page), line
    for file in HELP:
        text = file.read_text("utf-8").split('"""')[1]
        # A remark in brackets is for people.
        for line in re.findall(r"^  (crossgaze .*?)(?: {2,}\(.*)?$", text, re.MULTILINE):
            yield name(file), line


@pytest.mark.parametrize(
    ("where", "line"), [(w, line) for w, line in commands() if line.startswith("crossgaze ")]
)
def test_commands_are_ones_that_the_program_takes(where, line):
    words = shlex.split(line, comments=True)[1:]
    if words[0].startswith("-") or words[1:] == [] or words[1] in ("--help", "..."):
        assert words[0] in (*VERBS, "--help", "--version")
        return
    parse(words[0], words[1:])  # SystemExit if a flag or a word too many


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_and_make_tasks_exist(page):
    text = page.read_text("utf-8")
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert target.startswith("http") or (page.parent / target).exists(), target
    tasks = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    shown = re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE)
    assert set(shown) <= tasks
    for recipe in re.findall(r"recipes/[\w/-]+\.yaml", text):
        assert (ROOT / recipe).is_file(), recipe


@pytest.mark.skipif(not RESULTS.is_dir(), reason="needs results/")
def test_the_page_of_benchmarks_has_the_measured_numbers():
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    bench = json.loads((RESULTS / "bench-extract.json").read_text())
    rounds = bench["seconds (wall, CPU)"]
    same = [r[f"network, batch {bench['batch']}"][0] / r["extract"][0] for r in rounds]
    low, median, high = (f"{f(same):.2f}" for f in (min, statistics.median, max))
    assert f"{median} of its speed, the median of {len(rounds)} rounds from {low} to {high}" in page
    starts = json.loads((RESULTS / "bench-import.json").read_text())["median seconds of 10"]
    assert (
        f"| `crossgaze --help` | {starts['crossgaze --help']:.3f} s | at most 0.5 s: met |" in page
    )
    scoring = json.loads((RESULTS / "bench-scoring.json").read_text())["times the GEMM"]
    wall = scoring["SCAN t-i AVG"]["wall"]
    (row,) = [
        line for line in page.splitlines() if line.startswith("| SCAN t-i AVG, against the bare")
    ]
    assert f"{wall:.2f} x wall" in row
    assert ("met" in row) == (wall <= 1.3)


@pytest.mark.skipif(not RESULTS.is_dir(), reason="needs results/")
def test_tables_of_speeds_are_those_of_the_results():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "benchmark_page.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
