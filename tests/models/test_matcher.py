"""The interface, by the smallest model that has it: sums of regions and of word numbers."""

import numpy as np
import pytest
import torch
from torch import nn

from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import InputError
from crossgaze.models.encoded import Attention, Encoded, real
from crossgaze.models.matcher import Matcher, require_pairs
from crossgaze.models.regions import EncoderConfig
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.models.text import TextConfig, build_text

WORDS = Vocabulary.build(["a dog runs", "the cat sleeps"], min_count=1)


class Sums(Matcher):
    family = "sums"
    embeds = True

    def __init__(self):
        super().__init__()
        self.config = EncoderConfig(region_width=3, size=1, text=TextConfig(word_size=1))
        self.text = build_text(self.config.text, 1, WORDS)
        self.scale = nn.Parameter(torch.ones(()))

    def _encode_regions(self, regions, counts):
        self.seen = regions, counts
        kept = regions.masked_fill(~real(counts, regions.shape[1])[..., None], 0)
        return Encoded(kept.sum((1, 2))[:, None], None, counts)

    def _encode_words(self, ids, lengths):
        self.seen = ids, lengths
        kept = ids.masked_fill(~real(lengths, ids.shape[1]), 0)
        return Encoded(kept.sum(1, keepdim=True).to(self.scale.dtype), None, lengths)

    def _similarity(self, images, texts):
        return images.vectors @ texts.vectors.T

    def attention(self, images, texts):
        require_pairs(images, texts)
        return Attention(names=())


@pytest.mark.parametrize(
    "kind", [lambda x: x, torch.as_tensor, lambda x: x.astype(np.float64), np.float16]
)
def test_images_come_as_arrays_or_tensors_of_any_float(kind):
    model = Sums()
    regions = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    found = model.encode_images(kind(regions))
    assert found.vectors.tolist() == [[15.0], [51.0]]
    assert found.vectors.dtype == torch.float32
    assert found.counts.tolist() == [2, 2]
    assert found.counts.dtype == torch.int64


def test_images_are_turned_to_the_models_type():
    found = Sums().double().encode_images(np.ones((1, 1, 3), np.float32))
    assert found.vectors.dtype == torch.float64


def test_one_feature_an_image_is_one_region():
    model = Sums()
    assert model.encode_images(np.ones((2, 3), np.float32)).counts.tolist() == [1, 1]
    assert model.seen[0].shape == (2, 1, 3)


@pytest.mark.parametrize("counts", [[1, 2], np.array([1, 2], np.int32), torch.tensor([1, 2])])
def test_counts_come_in_any_form(counts):
    found = Sums().encode_images(np.ones((2, 2, 3), np.float32), counts)
    assert found.vectors.tolist() == [[3.0], [6.0]]


@pytest.mark.parametrize("shape", [(3,), (2, 4), (2, 0, 3), (2, 2, 4), (1, 1, 1, 3)])
def test_regions_of_another_shape_are_refused(shape):
    with pytest.raises(InputError, match=r"regions: got shape .*, wanted \(N, k, 3\)"):
        Sums().encode_images(np.ones(shape, np.float32))


def test_counts_that_do_not_fit_are_refused():
    regions = np.ones((2, 2, 3), np.float32)
    with pytest.raises(InputError, match=r"counts: got shape \(1,\), wanted \(2,\)"):
        Sums().encode_images(regions, [1])
    with pytest.raises(InputError, match="counts: go from 0 to 1, wanted 1 to 2"):
        Sums().encode_images(regions, [0, 1])
    with pytest.raises(InputError, match="counts: go from 1 to 3, wanted 1 to 2"):
        Sums().encode_images(regions, [3, 1])


def test_no_images_are_no_images():
    assert len(Sums().encode_images(np.ones((0, 2, 3), np.float32))) == 0


def test_texts_become_padded_numbers():
    model = Sums()
    found = model.encode_texts(["a dog", "The cat sleeps", "emu"])
    ids, lengths = model.seen
    assert lengths.tolist() == [4, 5, 3]
    assert [row[:n] for row, n in zip(ids.tolist(), lengths.tolist(), strict=True)] == [
        [1, *WORDS.encode_words(["a", "dog"]), 2],
        [1, *WORDS.encode_words(["the", "cat", "sleeps"]), 2],
        [1, 3, 2],
    ]
    assert len(found) == 3


def test_texts_without_a_word_are_refused_by_name():
    with pytest.raises(InputError, match=r"texts\[1\]: '  ' has no word in it"):
        Sums().encode_texts(["a dog", "  "])
    with pytest.raises(InputError, match="texts: got one text 'a dog', wanted a list of texts"):
        Sums().encode_texts("a dog")


def test_tokens_are_checked():
    model = Sums()
    assert model.encode_tokens(np.array([[1, 4, 99]]), [2]).vectors.tolist() == [[5.0]]
    with pytest.raises(InputError, match=r"ids: got shape \(3,\), wanted \(N, n\)"):
        model.encode_tokens(torch.tensor([1, 4, 2]), [3])
    with pytest.raises(InputError, match="lengths: go from 0 to 0, wanted 1 to 3"):
        model.encode_tokens(torch.tensor([[1, 4, 2]]), [0])
    with pytest.raises(InputError, match=r"lengths: got shape \(2,\), wanted \(1,\)"):
        model.encode_tokens(torch.tensor([[1, 4, 2]]), [1, 1])
    for wrong in (len(WORDS), -1):
        with pytest.raises(InputError, match=f"ids: {wrong} is no word of the vocabulary"):
            model.encode_tokens(torch.tensor([[1, wrong, 2]]), [3])


def test_a_model_says_where_it_is_and_what_it_knows():
    model = Sums()
    assert model.device == torch.device("cpu")
    assert model.vocabulary is WORDS
    assert model.to("meta").device == torch.device("meta")


def test_attention_takes_pairs():
    model = Sums()
    images = model.encode_images(np.ones((2, 2, 3), np.float32))
    with pytest.raises(InputError, match="got 2 images and 1 texts, wanted pairs"):
        model.attention(images, model.encode_texts(["a"]))
    assert model.attention(images, model.encode_texts(["a", "dog"])).names == ()


def test_a_matcher_must_have_every_part():
    with pytest.raises(TypeError, match="abstract"):
        Matcher()


@pytest.mark.parametrize("kind", [np.uint16, np.uint32, np.int32, np.float64])
def test_whole_numbers_of_any_kind_are_taken(kind):
    model = small_scan()
    ids, lengths = np.array([[1, 4, 2]], kind), np.array([3], kind)
    expected = model.encode_tokens(torch.tensor([[1, 4, 2]]), [3]).fragments
    torch.testing.assert_close(model.encode_tokens(ids, lengths).fragments, expected)


def test_what_is_no_number_or_text_is_named():
    model = small_scan()
    with pytest.raises(InputError, match=r"ids: got \[1.5\], wanted whole numbers"):
        model.encode_tokens(torch.tensor([[1.5]]), [1])
    with pytest.raises(InputError, match="regions: are not an array of numbers"):
        model.encode_images(np.array([["a"]]))
    with pytest.raises(InputError, match=r"texts\[1\]: got a NoneType, wanted a text"):
        model.encode_texts(["a dog", None])
    assert len(model.encode_texts(text for text in ["a dog", "a dog"])) == 2
    assert len(model.encode_texts([])) == 0


def test_read_only_and_half_precision_arrays_are_taken():
    regions = np.ones((2, 3, 5), np.float16)
    regions.flags.writeable = False
    assert len(small_scan().encode_images(regions)) == 2


def test_picking_by_number_mask_and_slice():
    images = small_scan().encode_images(torch.randn(3, 2, 5))
    assert len(images[1]) == len(images[np.int64(1)]) == 1
    assert len(images[[False, True, True]]) == 2
    torch.testing.assert_close(images[[2, 0]].fragments, images.fragments[[2, 0]])
    torch.testing.assert_close(images[1:].fragments, images.fragments[1:])


def test_similarity_is_single_precision_where_a_model_computes_in_half():
    model = small_scan().half()
    regions = torch.zeros(2, 3, 5)
    regions[1] = torch.randn(3, 5)
    scores = model.similarity(model.encode_images(regions), model.encode_texts(["a dog"]))
    assert scores.dtype == torch.float32
    assert torch.isfinite(scores).all()  # also for the zero image


def small_scan():
    config = ScanConfig(region_width=5, size=6, text=TextConfig(word_size=4))
    return Scan(config, Vocabulary.build(["a dog runs"], 1)).eval()


def test_a_caption_of_a_million_words_is_refused_before_it_is_read():
    with pytest.raises(
        InputError, match=r"texts\[1\]: has 5,000,000 characters, 100,000 are the mo"
    ):
        Sums().encode_texts(["a dog", "word " * 1_000_000])
