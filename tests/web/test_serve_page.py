"""docs/serve.md says what the code does."""

import re
from pathlib import Path

from crossgaze.search.ranking import CANDIDATES

PAGE = (Path(__file__).parents[2] / "docs" / "serve.md").read_text("utf-8")


def test_the_candidates_are_as_many_as_the_page_says():
    said = re.search(r"beyond the first (\d+)\s+photographs are blocks of (\d+) candidates", PAGE)
    assert said is not None
    assert {int(number) for number in said.groups()} == {CANDIDATES}
