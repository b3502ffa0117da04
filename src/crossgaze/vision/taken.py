"""When a photograph was taken, by what its camera wrote into it."""

from __future__ import annotations

from datetime import UTC, datetime

from PIL import ExifTags

from crossgaze.vision.photos import opener, quiet


def taken_at(data: bytes) -> int | None:
    """Return the second since 1970 that EXIF gives, or None where it gives none.

    Cameras write the time on their owner's clock and seldom which zone that is; it is taken as UTC.

    Args:
        data: the file's content.
    """
    with quiet():
        try:
            _, image_of = opener("photograph", data)
            exif = image_of().getexif()
            inner = exif.get_ifd(ExifTags.IFD.Exif)
            text = inner.get(ExifTags.Base.DateTimeOriginal) or exif.get(ExifTags.Base.DateTime)
            found = datetime.strptime(str(text).strip("\0 "), "%Y:%m:%d %H:%M:%S")
            return int(found.replace(tzinfo=UTC).timestamp())
        # Broken metadata makes Pillow raise nearly anything; a photograph without a date is fine.
        except Exception:  # noqa: BLE001
            return None
