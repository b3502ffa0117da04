"""Which device computes."""

import warnings

import pytest
import torch

from crossgaze.devices import SAID, find_device
from crossgaze.errors import InputError


def test_auto_is_one_that_computes():
    assert find_device("cpu") == torch.device("cpu")
    assert torch.ones(2, device=find_device("auto")).sum() == 2


@pytest.mark.parametrize("name", ["gpu", "meta", "hpu", "mkldnn", "cpu:x", "cuda:99", "", "xla"])
def test_what_cannot_be_used_is_refused_in_a_line_and_in_silence(name):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with pytest.raises(InputError) as caught:
            find_device(name)
    said = str(caught.value)
    assert said.startswith(
        f"device: {name!r} cannot be used here, wanted auto, cpu, cuda or cuda:1: "
    )
    assert len(said) < SAID + 100
    assert heard == []
