"""The readers of texts under Atheris, which looks for inputs that reach new lines."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz_texts import READERS
from reliability_parts import record

pytest.importorskip("atheris", reason="needs Linux on x86-64")
CHILD = Path(__file__).with_name("atheris_child.py")
MANY = 20_000


@pytest.mark.slow
@pytest.mark.parametrize("name", [reader.name for reader in READERS])
def test_no_input_that_atheris_finds_breaks_a_reader(request, tmp_path, name):
    words = [sys.executable, str(CHILD), name, str(MANY), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    runs = int(re.search(r"Done (\d+) runs", done.stderr)[1])
    assert runs >= MANY
    record(request, inputs=runs)
