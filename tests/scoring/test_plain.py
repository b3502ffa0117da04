"""The kernel of models that have none of their own: against loops, with gradient, and refusals."""

import pytest
import torch

from crossgaze.errors import InputError
from crossgaze.models.encoded import Encoded
from crossgaze.models.regions import EncoderConfig, FragmentMatcher
from crossgaze.models.text import TextConfig
from crossgaze.scoring.plain import PlainKernel
from scoring_parts import COUNTS, LENGTHS, SHAPES, SIZE, cut, gap, score, sides, table


class Scaled(FragmentMatcher):
    """The mean of all inner products, times a number that is learned."""

    family = "scaled"

    def __init__(self):
        torch.manual_seed(0)
        text = TextConfig(word_size=2)
        super().__init__(EncoderConfig(region_width=4, size=SIZE, text=text), 5)
        self.scale = torch.nn.Parameter(torch.tensor(3.0))
        self.double()

    def _pairs(self, regions, words, k_mask, n_mask):
        real = k_mask[..., None] & n_mask[:, None]
        products = (regions @ words.transpose(1, 2)) * real
        return self.scale * products.sum((1, 2)) / real.sum((1, 2))

    def attention(self, images, texts):
        raise NotImplementedError


def one_pair(regions, words):
    total = sum(float(v @ e) for v in regions for e in words)
    return 3.0 * total / (len(regions) * len(words))


@pytest.mark.parametrize("shape", SHAPES)
def test_every_pair_is_what_the_model_says_of_it(shape):
    encoded = sides(*shape)  # NaN in the padding
    wanted = table(one_pair, *encoded)
    assert gap(score(Scaled(), *encoded), wanted) < 1e-12
    with pytest.MonkeyPatch.context() as patch, cut(block=2, small=0):
        patch.setattr(PlainKernel, "tile", (5, 4))
        assert gap(score(Scaled(), *encoded, workers=2), wanted) < 1e-12


def test_the_gradient_reaches_both_sides_and_the_weights_that_are_used_between():
    model = Scaled()
    assert [part is model.scale for part in model._meeting()] == [True]
    images, texts = sides(COUNTS, LENGTHS, padding=0.0)
    leaves = [part.fragments.requires_grad_() for part in (images, texts)]
    scores = model.similarity(images, texts)
    loss = (scores[0, 0] - 2 * scores[3, 4]).sum()  # as a ranking loss looks at few pairs
    found = torch.autograd.grad(loss, [*leaves, model.scale])
    plain = sum(
        factor * one_torch(model, images, texts, *pair)
        for factor, pair in ((1, (0, 0)), (-2, (3, 4)))
    )
    wanted = torch.autograd.grad(plain, [*leaves, model.scale])
    for ours, theirs in zip(found, wanted, strict=True):
        assert gap(ours, theirs) < 1e-12
        assert float(ours.abs().max()) > 1e-3


def one_torch(model, images, texts, i, t):
    v = images.fragments[i, : images.counts[i]]
    e = texts.fragments[t, : texts.counts[t]]
    return model.scale * (v @ e.T).mean()


def test_sides_without_fragments_are_refused():
    side = Encoded(torch.ones(2, 3), None, torch.ones(2, dtype=torch.long))
    kernel = Scaled().kernel()
    for take in (kernel.images, kernel.texts):
        with pytest.raises(InputError, match="without fragments"):
            take(side)


def test_memory_grows_with_the_tile():
    kernel = PlainKernel(lambda *_: torch.zeros(1))
    assert kernel.numbers(36, 10) < kernel.numbers(72, 10) < kernel.numbers(72, 20)
