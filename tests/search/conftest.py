"""What the tests of the index share."""

import pytest

import search_parts


@pytest.fixture
def world(tmp_path):
    """Twelve photographs, two models, and an index that holds nothing yet."""
    search_parts.save_models(tmp_path)
    for number in range(12):
        search_parts.make_photo(tmp_path / "photos" / f"{number:02}.png", number)
    return tmp_path
