"""A batch norm over all ranks' rows: here of one, in the precisions that training has."""

import pytest
import torch
from torch import nn

from crossgaze.models.batch_norm import shared_batch_norm


@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(4613, 3), (130, 3, 36)])
def test_it_is_torchs_in_every_precision(kind, shape):
    """Half precision alone would count 4,613 rows as 4,608 or 4,612 and stop adding up early."""
    torch.manual_seed(0)
    x = (torch.randn(shape) + 2).to(kind)
    ours, theirs = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    if kind == torch.float64:
        ours, theirs = ours.double(), theirs.double()
    out = shared_batch_norm(ours, x)
    assert out.dtype == kind
    wanted = theirs(x if kind == torch.float64 else x.float())
    torch.testing.assert_close(out, wanted.to(kind))
    for name, found in ours.named_buffers():
        torch.testing.assert_close(found, theirs.get_buffer(name))
