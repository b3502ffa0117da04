"""Fuzz one reader of texts with Atheris: libFuzzer, led by which lines of crossgaze are reached.

    python atheris_child.py READER RUNS FOLDER

Ends with code 0 if every input was read or refused as it should be.
"""

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))

with atheris.instrument_imports(include=["crossgaze"]):
    from fuzz_texts import READERS

from fuzz_parts import Tally, good_files, try_reading


def main(name, runs, folder):
    (reader,) = (one for one in READERS if one.name == name)
    files, tally = good_files(reader, folder), Tally()
    names = sorted(files)
    seeds = folder / "seeds"
    seeds.mkdir()
    for number, file in enumerate(names):
        (seeds / str(number)).write_bytes(bytes([number]) + files[file])

    def one(data):
        if data:
            chosen = names[data[0] % len(names)]
            try_reading(reader, files | {chosen: data[1:]}, folder, tally)

    options = [f"-runs={runs}", "-max_len=20000", "-timeout=0", "-rss_limit_mb=8000", "-seed=1"]
    atheris.Setup([sys.argv[0], *options, str(seeds)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
