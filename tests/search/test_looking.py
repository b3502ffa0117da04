"""Where words looked, by a re-ranker that reads pieces of words."""

import numpy as np
import torch

import search_parts
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
