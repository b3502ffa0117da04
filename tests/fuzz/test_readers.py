"""Bad files into every reader: an InputError of one line, or a good answer; nothing else ever."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fuzz_mutations import bad_file
from fuzz_parts import Tally, good_files, try_reading
from fuzz_sources import READERS

FEW, MANY = 60, 10_000
BY_NAME = {reader.name: reader for reader in READERS}


def throw(reader, folder, count):
    """Read `count` bad sources, each with one bad file; return how it went."""
    files, tally = good_files(reader, folder), Tally()

    @settings(
        max_examples=count,
        deadline=None,  # the guard has one of its own, which ends a hang instead of noting it
        database=None,
        derandomize=True,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def run(data):
        name = data.draw(st.sampled_from(sorted(files)))
        bad = data.draw(bad_file(name, files[name]))
        try_reading(reader, files | {name: bad}, folder, tally)

    run()
    return tally


@pytest.mark.parametrize("name", BY_NAME)
def test_bad_files_are_read_or_refused(tmp_path, name):
    reader = BY_NAME[name]
    tally = throw(reader, tmp_path, max(3, int(FEW * reader.share)))
    assert tally.read + tally.refused
