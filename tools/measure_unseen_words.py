"""Words that a model never learned: what does it find for them?

    python tools/measure_unseen_words.py GRU-MODEL BERT-MODEL

such as runs/flickr8k/vse-whole-gru-0/best and runs/flickr8k/vse-whole-0/best.

Both models must have learned from Flickr8k alone. Words are those of Flickr30K's captions that no
training caption of Flickr8k has, and that stand in captions of at least two photographs of MS-COCO,
which neither model has seen. Asked are all of COCO's photographs here:

- a word alone; right are the photographs with a caption that has the word. Average precision,
  and the chance that a right one stands before a wrong one (AUC, 0.5 for a ranking by chance);
- every caption of COCO with such a word; right is its photograph. R@1, R@5, R@10.

Intervals are percentiles of a bootstrap over words, and over photographs for captions. Written to
results/unseen-words.json; it holds words, no caption.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from crossgaze.data.captions.reading import read_captions
from crossgaze.data.regions.store import RegionStore
from crossgaze.data.text.words import caption_words
from crossgaze.evaluation.sources import read_split
from crossgaze.search.models import load_model
from two_stage_curve import score

ROOT = Path(__file__).parents[1]
LEARNED, WORDS_OF, SEEN = "flickr8k", "f30k_precomp", "coco"
DRAWS, SEED, SHARE = 10_000, 0, 0.95


def unseen_words(learned, offered, captions, image_of, least=2):
    """Return words that were offered and not learned, each with the images that have it.

    Args:
        learned: captions of the training set.
        offered: captions that words are taken from.
        captions: of the images that are searched.
        image_of: the image of each of these captions.
        least: images that a word must have.

    Returns:
        Word to sorted image numbers, in alphabetical order.
    """
    known = {word for text in learned for word in caption_words(text)}
    wanted = {word for text in offered for word in caption_words(text)} - known
    found = {}
    for text, image in zip(captions, image_of, strict=True):
        for word in {*caption_words(text)} & wanted:
            if word.isalpha() and len(word) > 2:
                found.setdefault(word, set()).add(int(image))
    return {word: sorted(found[word]) for word in sorted(found) if len(found[word]) >= least}


def average_precision(scores, right):
    """Return AP and AUC of one ranking; ties stand against the right ones.

    Args:
        scores: (N,).
        right: numbers of the right ones.
    """
    is_right = np.zeros(len(scores), bool)
    is_right[right] = True
    order = np.lexsort((is_right, -scores))  # of equals, the wrong one first
    places = np.flatnonzero(is_right[order])  # from 0, ascending
    nth = np.arange(1, len(places) + 1)
    precision = (nth / (places + 1)).mean()
    # Wrong ones behind each right one; half of the equals, as chance would have it.
    wrong = scores[~is_right]
    behind = [(wrong < s).mean() + (wrong == s).mean() / 2 for s in scores[is_right]]
    return float(precision), float(np.mean(behind))


def ranks(scores, image_of):
    """Return each caption's rank of its image, from 0; ties stand against it.

    Args:
        scores: (N, M) images and captions.
        image_of: (M,).
    """
    own = scores[image_of, np.arange(len(image_of))]
    return (scores >= own).sum(0) - 1


def interval(values, groups=None):
    """Return mean and percentile interval, drawing groups again (each value its own by default)."""
    values = np.asarray(values, float)
    groups = np.arange(len(values)) if groups is None else np.unique(groups, return_inverse=True)[1]
    sums, counts = np.bincount(groups, values), np.bincount(groups)
    drawn = np.random.default_rng(SEED).integers(0, len(sums), (DRAWS, len(sums)))
    means = sums[drawn].sum(1) / counts[drawn].sum(1)
    low, high = np.quantile(means, [(1 - SHARE) / 2, (1 + SHARE) / 2])
    return {"value": float(values.mean()), "low": float(low), "high": float(high)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="MODEL", help="the first is compared with")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--store", default="regions/coco", help="COCO's regions")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "unseen-words.json")
    args = parser.parse_args()
    store, coco = RegionStore(args.store), read_captions(args.data / SEEN)
    learned = read_split(args.data / LEARNED, "train").captions
    offered = [
        text
        for split in ("dev", "test")
        for text in (args.data / WORDS_OF / f"{split}_caps.txt").read_text("utf-8").splitlines()
    ]
    words = unseen_words(learned, offered, coco.captions, coco.image_of)
    asked = [n for n, text in enumerate(coco.captions) if {*caption_words(text)} & words.keys()]
    captions, image_of = [coco.captions[n] for n in asked], np.asarray(coco.image_of)[asked]
    rows = store.rows(coco.images)
    print(f"{len(words)} words, {len(captions)} captions, {len(rows)} photographs")
    found, every = [], []
    for folder in args.models:
        model, stamp = load_model(folder)
        alone = score(model, store, rows, list(words))
        of_words = [
            average_precision(column, right)
            for column, right in zip(alone.T, words.values(), strict=True)
        ]
        place = ranks(score(model, store, rows, captions), image_of)
        figures = {
            "word alone, average precision": [one for one, _ in of_words],
            "word alone, AUC": [one for _, one in of_words],
            **{f"captions, R@{k}": 100.0 * (place < k) for k in (1, 5, 10)},
        }
        every.append(figures)
        told = {name: interval(v, group(name, image_of)) for name, v in figures.items()}
        more = {
            name: interval(np.subtract(v, every[0][name]), group(name, image_of))
            for name, v in figures.items()
        }
        unknown = model.vocabulary is not None
        read = f"a vocabulary of {len(model.vocabulary):,} words" if unknown else "MiniLM's pieces"
        entry = {"folder": folder, "family": stamp.family, "digest": stamp.digest, "words": read}
        found.append({**entry, "figures": told, "over the first": more})
        print(f"\n{folder} ({stamp.family}, {read})")
        for name, one in told.items():
            print(f"  {name}: {one['value']:.4g} ({one['low']:.4g} to {one['high']:.4g})")
    chance = float(np.mean([len(right) / len(rows) for right in words.values()]))
    print(f"\naverage precision by chance: about {chance:.4f}")
    sizes = Counter(len(right) for right in words.values())
    result = {
        "command": " ".join(["python", "tools/measure_unseen_words.py", *sys.argv[1:]]),
        "photographs": len(rows),
        "words": list(words),
        "photographs a word": {str(k): sizes[k] for k in sorted(sizes)},
        "captions": len(captions),
        "share of right ones": chance,
        "models": found,
    }
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written to {args.out}")


def group(name, image_of):
    return image_of if name.startswith("captions") else None


if __name__ == "__main__":
    main()
