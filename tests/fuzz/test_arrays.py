"""Bad features, weights, runs, indexes, photographs: read, or refused in a line; no more."""

import pytest

from fuzz_arrays import READERS
from fuzz_parts import throw
from reliability_parts import record

FEW, MANY = 40, 10_000
BY_NAME = {reader.name: reader for reader in READERS}


@pytest.mark.parametrize("name", BY_NAME)
def test_bad_arrays_are_read_or_refused(tmp_path, name):
    reader = BY_NAME[name]
    tally = throw(reader, tmp_path, max(2, int(FEW * reader.share)))
    assert tally.read + tally.refused


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_NAME)
def test_many_bad_arrays_are_read_or_refused(request, tmp_path, name):
    reader = BY_NAME[name]
    tally = throw(reader, tmp_path, int(MANY * reader.share))
    assert tally.refused
    record(request, inputs=tally.read + tally.refused, read=tally.read, refused=tally.refused)
