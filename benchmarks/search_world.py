"""A made-up world to search: images that show some words each, and models that know the words.

An image shows six words of 2,000. Its regions are the re-ranker's own word features with noise, its
vector is their mean; a query says five words of one image. So what a query should find is spread
over many images that share some of its words, and vectors know it less well than regions do, as
with trained models. Nothing is extracted or trained.
"""

import numpy as np
import torch

from crossgaze.data.text.vocabulary import SPECIAL_WORDS, Vocabulary
from crossgaze.models.encoded import Attention, Encoded
from crossgaze.models.matcher import Matcher
from crossgaze.models.norms import l2norm
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.search.entries import Entry
from crossgaze.search.index import Index
from crossgaze.search.kept import reopen_writer

REGIONS, SIZE, WORDS, SHOWN, SAID = 36, 512, 2000, 6, 5
NOISE = 0.7  # of a region, against a word of length 1
BATCH = 500


def make_scan(size=SIZE):
    torch.manual_seed(0)
    words = Vocabulary((*SPECIAL_WORDS, *(f"w{number}" for number in range(WORDS))))
    model = Scan(ScanConfig(region_width=8, size=size), words).eval()
    # Untrained word embeddings hardly reach the GRU's states; larger ones tell words apart.
    model.text.embed.weight.data.normal_(0, 1.5)
    return model


class MeanOfWords(Matcher):
    """One vector a side: the mean of what the re-ranker compares."""

    family, embeds = "mean of words", True

    def __init__(self, scan):
        super().__init__()
        self.scan, self.config, self.text = scan, scan.config, scan.text

    def _encode_regions(self, regions, counts):
        side = self.scan._encode_regions(regions, counts)
        return Encoded(l2norm(side.fragments.mean(1)), None, counts)

    def _encode_words(self, ids, lengths):
        side = self.scan._encode_words(ids, lengths)
        # Without <start> and <end>, which are in every sentence.
        places = torch.arange(ids.shape[1])
        real = ((places > 0) & (places < lengths[:, None] - 1))[..., None]
        return Encoded(l2norm((side.fragments * real).sum(1)), None, lengths)

    def attention(self, images, texts):
        """Return no map at all."""
        return Attention(names=())


class NoSource:
    """Stands where photographs would be made into regions; nothing is."""

    regions, width, size, multiple = REGIONS, 8, 8, 8
    fields, labels, made_by = (), {}, {"regions": "made up"}
    device = torch.device("cpu")

    def __call__(self, photos, names, go_on):
        """Be called by nobody."""
        raise AssertionError


@torch.inference_mode()
def images(scan, count, seed):
    """Return which words images show (count, 6) and their regions (count, 36, D), float32."""
    rng = np.random.default_rng(seed)
    shown = rng.integers(0, WORDS, (count, SHOWN))
    side = scan.encode_texts([" ".join(f"w{word}" for word in row) for row in shown])
    words = side.fragments[:, 1 : SHOWN + 1].numpy()  # without <start> and <end>
    which = rng.integers(0, SHOWN, (count, REGIONS))
    regions = np.take_along_axis(words, which[..., None], axis=1)
    noise = rng.standard_normal(regions.shape, dtype=np.float32)
    regions += NOISE * noise / np.sqrt(regions.shape[2])
    return shown, regions / np.linalg.norm(regions, axis=2, keepdims=True)


def make_index(folder, count, on_progress=print):
    """Make an index of made-up images, as `Index.add` would write them; returns what they show."""
    scan = make_scan()
    index = Index.create(folder, embedder=MeanOfWords(scan), reranker=scan, source=NoSource())
    said = []
    with index.writing(), reopen_writer(index.folder / index.head.store) as writer:
        boxes = np.zeros((BATCH, REGIONS, 4), np.float32)
        sizes = np.full((BATCH, 2), 500)
        for start in range(0, count, BATCH):
            here = min(BATCH, count - start)
            shown, regions = images(scan, here, seed=start)
            said.append(shown)
            entries = [
                Entry(start + n + 1, f"/made/up/{start + n}.jpg", "/made") for n in range(here)
            ]
            vectors = regions.mean(1)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            writer.append(
                [str(entry.uid) for entry in entries],
                regions.astype(np.float16),
                boxes=boxes[:here],
                sizes=sizes[:here],
            )
            index.tables.photos.add(entries, vectors)
            if start % 10_000 == 0:
                on_progress(f"{start:,} of {count:,} images made")
        index.tables.photos.tidy()
    return index, np.concatenate(said)


def queries(shown, count, seed=1):
    """Return sentences of five words, each of one image's."""
    rng = np.random.default_rng(seed)
    rows = shown[rng.integers(0, len(shown), count)]
    chosen = [rng.permutation(row)[:SAID] for row in rows]
    return [" ".join(f"w{word}" for word in row) for row in chosen]


def clustered(count, width, seed=0, centres=4096):
    """Give parts of `count` unit vectors around some centres, as embeddings lie."""
    rng = np.random.default_rng(7)
    middles = rng.standard_normal((centres, width), dtype=np.float32)
    rng = np.random.default_rng(seed)
    for start in range(0, count, 10_000):
        here = min(10_000, count - start)
        x = middles[rng.integers(0, centres, here)]
        x = x + rng.standard_normal(x.shape, dtype=np.float32)
        yield x / np.linalg.norm(x, axis=1, keepdims=True)
