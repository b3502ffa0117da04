"""How often two stages return the exhaustive top 10, by the number of candidates.

python tools/two_stage_curve.py EMBEDDER RERANKER DATA --store REGIONS [--gallery all]
    [--rank-by reranker] [--out FILE.json] [--plot FILE.svg]

Every caption of the split is a query. The embedder chooses candidates, the mean of both models'
scores orders them (--rank-by reranker: its alone); the exhaustive answer is that order of the whole
gallery: the split's images, or with --gallery all every image of the data set that the store holds.
Beside the curve stands how often the right photograph is among the first 1, 5 and 10. Printed is
the smallest number of candidates that keeps --want of the exhaustive top 10 on average, and whether
the number that a search takes by default does. Written to results/ and docs/pictures/,
two-stage-curve-GALLERY, with -reranker at the end where that alone orders.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path

import numpy as np
import torch

import crossgaze
from crossgaze.data.captions.reading import read_captions
from crossgaze.data.regions.store import RegionStore
from crossgaze.evaluation.scores import matchers_of
from crossgaze.evaluation.sources import read_split
from crossgaze.scoring.every_pair import score_into
from crossgaze.scoring.sinks import ScoreMatrix
from crossgaze.search.models import load_model
from crossgaze.search.ranking import CANDIDATES
from crossgaze.threads import cores

ROOT = Path(__file__).parents[1]
COUNTS = (10, 20, 30, 50, 70, 100, 150, 200, 300, 400, 500, 700, 1000, 1500, 2000, 3000, 5000)
TOP = 10
BATCH = 128  # images or captions encoded together


@torch.inference_mode()
def score(model, store, rows, captions):
    """Return the scores of a store's rows with captions, (rows, captions), any model's."""
    members = matchers_of([model])
    out = np.zeros((len(rows), len(captions)), np.float32)
    for member in members:
        images = (
            member.encode_images(store.features[part], store.counts[part])
            for part in np.split(rows, range(BATCH, len(rows), BATCH))
        )
        texts = (
            member.encode_texts(captions[start : start + BATCH])
            for start in range(0, len(captions), BATCH)
        )
        part = np.empty_like(out)
        score_into(member, images, texts, [ScoreMatrix(part)])
        out += part / len(members)
    return out


def curve(first, second, counts=COUNTS, top=TOP):
    """Return, for each number of candidates, how much of the exhaustive answer it keeps.

    Args:
        first: (N, M) the embedder's scores of N images with M queries.
        second: (N, M) what orders candidates.
        counts: numbers of candidates.
        top: how many are returned.

    Returns:
        A row a count: mean share of the exhaustive top that two stages return, the share of
        queries for which they return all of it, and for which the first is the same.
    """
    images, queries = first.shape
    top = min(top, images)
    exhaustive = np.argsort(-second, axis=0, kind="stable")[:top]  # (top, M)
    # Where each of these stands among the candidates: it is kept iff it is one of them, because
    # nothing that is not in the exhaustive top can come before it.
    order = np.argsort(-first, axis=0, kind="stable")
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.arange(images)[:, None].repeat(queries, 1), axis=0)
    places = np.take_along_axis(place, exhaustive, axis=0)  # (top, M)
    rows = []
    for count in counts:
        kept = places < max(count, top)
        rows.append(
            {
                "candidates": count,
                "kept of the top": float(kept.mean()),
                "whole top the same": float(kept.all(0).mean()),
                "first the same": float(kept[0].mean()),
            }
        )
        if count >= images:
            break
    return rows


def found_first(scores, right, places=(1, 5, 10)):
    """Return how often the right image is among the first few; equals count against it.

    Args:
        scores: (N, M) of N images with M queries.
        right: (M,) each query's image.
        places: how few.
    """
    of_right = scores[right, np.arange(len(right))]
    before = (scores >= of_right).sum(0) - 1
    return {f"first {count}": float((before < count).mean()) for count in places}


def choose(rows, want):
    """Return the smallest number of candidates that keeps `want` of the top, or None."""
    return next((row["candidates"] for row in rows if row["kept of the top"] >= want), None)


def plot(rows, path, want):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "crossgaze"
    figure, axes = pyplot.subplots(figsize=(6, 3.2), layout="constrained")
    counts = [row["candidates"] for row in rows]
    for key, colour, marker in (
        ("kept of the top", "#0072b2", "o"),
        ("whole top the same", "#d55e00", "s"),
    ):
        axes.plot(counts, [row[key] for row in rows], color=colour, marker=marker, label=key)
    axes.axhline(want, color="grey", linewidth=0.8, linestyle="--")
    axes.set(xscale="log", xlabel="candidates", ylabel=f"of the exhaustive top {TOP}")
    axes.set_ylim(0, 1.02)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("embedder")
    parser.add_argument("reranker")
    parser.add_argument("data", help="captions, as crossgaze data reads them")
    parser.add_argument("--store", required=True)
    parser.add_argument("--split", default="test")
    parser.add_argument("--gallery", choices=("split", "all"), default="split")
    parser.add_argument("--want", type=float, default=0.98)
    parser.add_argument("--rank-by", choices=("both", "reranker"), default="both")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plot", type=Path)
    args = parser.parse_args()
    started = time.perf_counter()
    name = f"two-stage-curve-{args.gallery}" + ("" if args.rank_by == "both" else "-reranker")
    out = args.out or ROOT / "results" / f"{name}.json"
    picture = args.plot or ROOT / "docs" / "pictures" / f"{name}.svg"
    store, asked = RegionStore(args.store), read_split(args.data, args.split)
    gallery = asked.images
    if args.gallery == "all":
        gallery = [name for name in read_captions(args.data).images if name in store]
    models = {"embedder": load_model(args.embedder), "reranker": load_model(args.reranker)}
    scores = [
        score(model, store, store.rows(gallery), asked.captions) for model, _ in models.values()
    ]
    counts = sorted({*COUNTS, CANDIDATES})
    by = dict(zip(models, scores, strict=True)) | {"both": (scores[0] + scores[1]) / 2}
    rows = curve(by["embedder"], by[args.rank_by], counts)
    place = {name: number for number, name in enumerate(gallery)}
    right = np.array([place[asked.images[owner]] for owner in asked.image_of])
    found = {name: found_first(part, right) for name, part in by.items()}
    chosen = choose(rows, args.want)
    # Where the gallery is smaller than what a search takes, everything is a candidate.
    default = next((row for row in rows if row["candidates"] >= CANDIDATES), rows[-1])
    met = default["kept of the top"] >= args.want
    for name, shares in found.items():
        print(f"right photograph by {name}:", ", ".join(f"{k} {v:.4f}" for k, v in shares.items()))
    for row in rows:
        print(", ".join(f"{name} {value:.4g}" for name, value in row.items()))
    print(f"keeps {args.want} of the top {TOP}: {chosen} candidates of {len(gallery)}")
    print(
        f"the default, {CANDIDATES} candidates, keeps {default['kept of the top']:.4f} "
        f"(at least {args.want}: {'met' if met else 'MISSED'})"
    )
    written = {
        "command": " ".join(["python", "tools/two_stage_curve.py", *sys.argv[1:]]),
        "what": f"two stages against exhaustive, {asked.name}, {len(gallery)} images, "
        f"{len(asked.captions)} queries",
        **{
            role: {"folder": stamp.source, "family": stamp.family, "digest": stamp.digest}
            for role, (_, stamp) in models.items()
        },
        "machine": f"{platform.machine()}, {cores()} cores",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "crossgaze": crossgaze.__version__,
        "seconds": round(time.perf_counter() - started, 1),
        "ranked by": args.rank_by,
        "right photograph among the": found,
        "want": args.want,
        "default": {"candidates": CANDIDATES, "kept": default["kept of the top"], "met": met},
        "chosen": chosen,
        "rows": rows,
    }
    for path in (out, picture):
        path.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(written, indent=2) + "\n")
    plot(rows, picture, args.want)
    print(f"written to {out}, drawn to {picture}")


if __name__ == "__main__":
    main()
