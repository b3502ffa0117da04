"""VSRN's two objectives together."""

import pytest
import torch

from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.encoded import Encoded
from crossgaze.models.text import TextConfig
from crossgaze.models.vse import Vse, VseConfig
from crossgaze.models.vsrn import Vsrn, VsrnConfig
from crossgaze.training.captioning import generation_loss, joint_loss, make_captioner
from crossgaze.training.losses import Hardest
from model_parts import draw

WORDS = Vocabulary.build(["a dog runs", "two cats sit"], min_count=1)
TEXT = TextConfig(kind="gru", word_size=3, bidirectional=False)


def vsrn():
    torch.manual_seed(0)
    return Vsrn(VsrnConfig(region_width=4, size=6, text=TEXT, layers=1), WORDS).double()


def test_both_objectives_reach_the_regions_and_their_gradients_add():
    model, captioner = vsrn(), None
    captioner = make_captioner(model, hidden=5, word_size=3, dropout=0.0)
    rows = [WORDS.encode(text) for text in ("a dog runs", "two cats sit")]
    ids, lengths = torch.tensor(rows), torch.tensor([5, 5])
    grads = []
    for weights in ((1, 0), (0, 1), (1, 1)):
        model.zero_grad()
        images = model.encode_images(draw(2, 3, 4))
        texts = model.encode_tokens(ids, lengths)
        numbers = torch.arange(2)
        matching = Hardest(2.0)(model.similarity(images, texts), numbers, numbers)
        generation = generation_loss(captioner, images, ids, lengths)
        wanted = captioner.loss(images.features, images.counts, ids, lengths)
        torch.testing.assert_close(generation, wanted)
        whole = joint_loss(weights[0] * matching, generation, weights[1])
        assert whole.item() == pytest.approx(
            weights[0] * matching.item() + weights[1] * generation.item()
        )
        whole.backward()
        grads.append(model.fc.weight.grad.clone())
    assert grads[0].any()
    assert grads[1].any()
    torch.testing.assert_close(grads[2], grads[0] + grads[1])


def test_the_captioner_fits_the_model():
    captioner = make_captioner(vsrn(), hidden=5, word_size=3, dropout=0.1, max_length=9)
    assert captioner.config.size == 6
    assert captioner.vocabulary == WORDS
    assert captioner.out.weight.dtype == torch.float64
    assert captioner.config.max_length == 9
    other = Vocabulary.build(["an emu"], min_count=1)
    assert make_captioner(vsrn(), other).vocabulary == other


def test_models_without_words_or_features_are_refused():
    numbers_only = Vsrn(VsrnConfig(region_width=4, size=6, text=TEXT, layers=1), 9)
    with pytest.raises(InputError, match="vocabulary: got none"):
        make_captioner(numbers_only)
    model = Vse(VseConfig(region_width=4, size=6, text=TEXT), WORDS)
    images = model.encode_images(torch.rand(1, 3, 4))
    assert isinstance(images, Encoded)
    with pytest.raises(InputError, match="images: have no region features"):
        generation_loss(make_captioner(model), images, torch.tensor([[1, 2]]), torch.tensor([2]))
