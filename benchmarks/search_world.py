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

    def part(here, start):
        shown, regions = images(scan, here, seed=start)
        said.append(shown)
        vectors = regions.mean(1)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), regions

    fill(index, count, part, on_progress)
    return index, np.concatenate(said)


def make_shipped(folder, count, on_progress=print):
    """Make an index with the models and the region model that ship, of random kept features.

    What is found means nothing; reading, attention and the encoding of a sentence take as long as
    with photographs. The models take regions of 1,792 numbers and keep 512 of each.
    """
    index = Index.create(folder)
    rows, width = index.source.regions + index.reranker.extra, index.reranker.width
    rng = np.random.default_rng(0)
    near = embedded(count, index.embedder.width, part=BATCH)

    def part(here, start):
        regions = rng.standard_normal((here, rows, width), dtype=np.float32)
        return next(near)[:here], regions / np.linalg.norm(regions, axis=2, keepdims=True)

    fill(index, count, part, on_progress)
    return index


def fill(index, count, part, on_progress):
    """Fill an index with made-up images; `part` gives some vectors and what is kept of regions."""
    k = index.source.regions + (index.reranker.extra if index.reranker else 0)
    with index.writing(), reopen_writer(index.folder / index.head.store) as writer:
        for start in range(0, count, BATCH):
            here = min(BATCH, count - start)
            vectors, regions = part(here, start)
            entries = [
                Entry(start + n + 1, f"/made/up/{start + n}.jpg", "/made") for n in range(here)
            ]
            more = {name: np.zeros((here, k), np.float32) for name in index.source.fields}
            writer.append(
                [str(entry.uid) for entry in entries],
                regions.astype(np.float16),
                counts=np.full(here, k),
                boxes=np.zeros((here, k, 4), np.float32),
                sizes=np.full((here, 2), 500),
                **more,
            )
            index.tables.photos.add(entries, vectors)
            if start % 10_000 == 0:
                on_progress(f"{start:,} of {count:,} images made")
        index.tables.photos.tidy()


def queries(shown, count, seed=1):
    """Return sentences of five words, each of one image's."""
    rng = np.random.default_rng(seed)
    rows = shown[rng.integers(0, len(shown), count)]
    chosen = [rng.permutation(row)[:SAID] for row in rows]
    return [" ".join(f"w{word}" for word in row) for row in chosen]


WHO = (
    "two brown dogs",
    "a girl in a red coat",
    "three men",
    "an old man with a beard",
    "a group of people",
    "a small child",
)
DOES = (
    "play with a yellow ball",
    "walk along the path",
    "look at something far away",
    "sit together and talk",
    "ride their bicycles",
    "wait for a bus",
)
WHERE = (
    "in the deep snow",
    "near the sea at sunset",
    "on a bench in the park",
    "in front of a large building",
    "under a stone bridge",
    "at the edge of a forest",
    "in a crowded city street",
    "beside a blue car",
    "on a green meadow",
    "in the rain",
    "by a swimming pool",
    "behind a fence",
)


def sentences(count, seed=1):
    """Return English sentences of 8 to 17 words, all different up to 432 of them."""
    rng = np.random.default_rng(seed)
    every = [f"{who} {does} {where}" for who in WHO for does in DOES for where in WHERE]
    return [every[place % len(every)] for place in rng.permutation(max(count, len(every)))[:count]]


LATENT, SPREAD = 48, 0.1  # dimensions in which embeddings really lie; noise in all others


def embedded(count, width, seed=0, part=10_000):
    """Give parts of `count` unit vectors near a plane of 48 dimensions, as embeddings lie.

    A plane and not centres: a vector has as many near ones at any distance, so that the first 500
    are as well told from the others as the first 10. Around centres, the 500 nearest would be some
    of one centre's and for the rest any.

    Args:
        count: of them.
        width: numbers in each.
        seed: of the vectors; the plane is always the same, so that another seed's are queries.
        part: vectors given at a time.
    """
    plane = np.random.default_rng(7).standard_normal((LATENT, width), dtype=np.float32)
    plane /= np.sqrt(LATENT)  # then a number of a vector has the variance 1
    rng = np.random.default_rng(seed)
    for start in range(0, count, part):
        here = min(part, count - start)
        x = rng.standard_normal((here, LATENT), dtype=np.float32) @ plane
        x += SPREAD * rng.standard_normal(x.shape, dtype=np.float32)
        yield x / np.linalg.norm(x, axis=1, keepdims=True)
