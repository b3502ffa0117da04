"""Where words looked, by a re-ranker that reads pieces of words."""

import numpy as np
import torch

import search_parts
from crossgaze.models.bfan import Bfan, BfanConfig
from crossgaze.models.mmca import Mmca, MmcaConfig
from crossgaze.models.scan import Scan, ScanConfig
from crossgaze.models.text import TextConfig
from crossgaze.search.page import page
from model_parts import save_bert


def test_pieces_are_whole_words_in_looks_and_in_reports(world):
    save_bert(world, ("a", "red", "dog", "snow", "##board", "##er"))
    text = TextConfig(kind="bert", bert=str(world))
    torch.manual_seed(0)
    model = Scan(ScanConfig(region_width=search_parts.WIDTH, size=5, text=text)).eval()
    model.save_pretrained(world / "reranker")
    with search_parts.create(world) as index:
        index.add(world / "photos")
        found = index.search("a red snowboarder", k=1)
        looks = index.look("a red snowboarder", found.hits[0])
        html = page(index, found)
    assert [look.word for look in looks] == ["[CLS]", "a", "red", "snowboarder", "[SEP]"]
    image = search_parts.encoded(found.hits[0].path, model)
    with torch.no_grad():
        weights = model.attention(image, model.encode_texts(["a red snowboarder"])).weights[0, 0]
    assert weights.shape[0] == 7  # pieces
    np.testing.assert_allclose(looks[2].weights, weights[2], atol=2e-3)  # kept as half floats
    np.testing.assert_allclose(looks[3].weights, weights[3:6].mean(0), atol=2e-3)
    assert looks[3].strongest == int(np.argmax(looks[3].weights))
    assert ">snowboarder</button>" in html
    assert "##" not in html
    assert "CLS" not in html


def looks_of(world, model, sentence):
    """Return what an index says of its best photograph, and the model's own map of it."""
    model.eval().save_pretrained(world / "reranker")
    with search_parts.create(world) as index:
        index.add(world / "photos")
        hit = index.search(sentence, k=1).hits[0]
        looks = index.look(sentence, hit)
    image = search_parts.encoded(hit.path, model)
    with torch.no_grad():
        return looks, model.attention(image, model.encode_texts([sentence]))


def test_of_two_directions_it_is_the_words_that_look(world):
    torch.manual_seed(0)
    config = BfanConfig(region_width=search_parts.WIDTH, size=5, text=TextConfig(word_size=4))
    looks, seen = looks_of(world, Bfan(config, search_parts.WORDS), "a red dog")
    assert seen.names == ("t-i", "i-t")
    ahead, back = seen.weights[0]
    weights = np.array([look.weights for look in looks])
    np.testing.assert_allclose(weights, ahead, atol=5e-3)  # kept as half floats
    np.testing.assert_allclose(weights.sum(1), 1, atol=1e-5)  # all of a word's look
    assert np.abs(weights - (ahead + back).numpy() / 2).max() > 0.05  # the two do differ


def test_of_several_heads_it_is_their_mean(world):
    torch.manual_seed(0)
    text = TextConfig(word_size=8)
    config = MmcaConfig(region_width=search_parts.WIDTH, size=8, text=text, heads=2)
    looks, seen = looks_of(world, Mmca(config, search_parts.WORDS), "a red dog")
    wanted = (seen.weights[0, 0] + seen.weights[0, 1]) / 2
    np.testing.assert_allclose([look.weights for look in looks], wanted, atol=5e-3)


def test_a_word_gets_all_that_regions_gave_to_its_pieces(world):
    save_bert(world, ("a", "red", "dog", "snow", "##board", "##er"))
    text = TextConfig(kind="bert", bert=str(world))
    torch.manual_seed(0)
    config = ScanConfig(region_width=search_parts.WIDTH, size=5, text=text, direction="i-t")
    looks, seen = looks_of(world, Scan(config), "a red snowboarder")
    assert seen.names == ("i-t",)
    weights = np.array([look.weights for look in looks])
    np.testing.assert_allclose(weights[3], seen.weights[0, 0, 3:6].sum(0), atol=5e-3)
    np.testing.assert_allclose(weights.sum(0), 1, atol=1e-5)  # all of a region's look


def test_a_word_that_no_region_answered_has_no_strongest_one(world):
    search_parts.taker().save_pretrained(world / "reranker")
    sentence = "red green blue dog cat runs snow"  # for three or four regions, one word each
    with search_parts.create(world) as index:
        index.add(world / "photos")
        found = index.search(sentence, k=1)
        looks = index.look(sentence, found.hits[0])
        html = page(index, found)
    for look in looks:
        wanted = int(np.argmax(look.weights)) if any(look.weights) else None
        assert look.strongest == wanted
    answered = [look.strongest is not None for look in looks[1:-1]]  # without <start>, <end>
    assert 1 <= sum(answered) <= 4
    for number, there in enumerate(answered):
        assert (f'class="box hover h{number}"' in html) == there
    assert html.count('title="no region answered this word"') == answered.count(False)
    assert html.count('class="box shown"') == min(sum(answered), 3)
