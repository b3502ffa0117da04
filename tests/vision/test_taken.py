"""When a photograph was taken."""

import io
from datetime import UTC, datetime

import pytest
from PIL import Image

from crossgaze.vision.taken import taken_at


def photo(form="JPEG", original=None, changed=None):
    exif = Image.Exif()
    if original is not None:
        exif.get_ifd(0x8769)[0x9003] = original
    if changed is not None:
        exif[0x0132] = changed
    file = io.BytesIO()
    Image.new("RGB", (4, 4)).save(file, form, exif=exif)
    return file.getvalue()


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_the_cameras_date_counts_before_the_programs(form):
    wanted = int(datetime(2020, 2, 29, 23, 59, 58, tzinfo=UTC).timestamp())
    data = photo(form, "2020:02:29 23:59:58", "2021:01:01 00:00:00")
    assert taken_at(data) == wanted
    assert taken_at(photo(form, None, "2020:02:29 23:59:58")) == wanted


@pytest.mark.parametrize(
    "data",
    [
        photo(),
        photo(original="0000:00:00 00:00:00"),
        photo(original="yesterday"),
        photo(original="2020:02:29 23:59:58")[:60],
        b"",
        b"no photograph",
    ],
)
def test_without_a_date_there_is_none(data):
    assert taken_at(data) is None
