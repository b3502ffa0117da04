"""Tables of an evaluation."""

from collections import defaultdict
from types import SimpleNamespace

import pytest

from crossgaze.data.captions.captioned import CaptionedImages
from crossgaze.evaluation.bootstrap import BootstrapConfig, Estimate
from crossgaze.evaluation.report import attention_tables


class Quality:
    """Attention that was measured on seven phrases."""

    def __len__(self):
        return 7

    def estimates(self, config):
        return defaultdict(lambda: Estimate(0.5, 0.4, 0.6))


@pytest.mark.parametrize(
    ("name", "split", "other"),
    [("f30k_precomp", "test", False), ("f30k_precomp", "dev", True), ("flickr8k", "test", True)],
)
def test_attention_on_the_papers_own_data_is_not_called_other(name, split, other):
    images = [f"{number}.jpg" for number in range(1000)]
    captioned = CaptionedImages(name, images, ["a dog"] * 1000, range(1000), [split] * 1000)
    found = SimpleNamespace(attention=[("scan", Quality())], captioned=captioned, models=1)
    (table,) = attention_tables(found, "mine", BootstrapConfig())
    assert any("other data" in note for note in table.notes) is other
