"""One photograph, whatever its format and mode, as upright RGB pixels or as a PhotoError."""

from __future__ import annotations

import io
import logging
import operator
import os
import stat
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt
from PIL import ExifTags, Image
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.WebPImagePlugin import WebPImageFile

from crossgaze.errors import InputError, nearest, one_line
from crossgaze.vision.bombs import Tiff, jpeg_problem, tiles_problem

MAX_PIXELS = 100_000_000  # the guard against decompression bombs
MAX_BYTES = 1 << 30  # room for MAX_PIXELS of 16-bit RGBA, uncompressed
_LONGEST_SIDE = 10_000  # of the result: its square is MAX_PIXELS
_PILLOW_LIMIT = 1024 * 1024 * 1024 // 4 // 3  # PIL.Image.MAX_IMAGE_PIXELS if nobody touched it
_FITS = ("stretch", "keep")
_WANTED = "wanted a JPEG, PNG, WebP, GIF, BMP or TIFF photograph"


class _Jpeg(JpegImageFile):
    def _read_dpi_from_exif(self) -> None:
        """Leave the resolution alone: Pillow may trip over a broken one and lose the photograph."""


# Opening by format rather than by Image.open gives the real reason when a header is broken
# (Image.open says 'cannot identify'), and leaves the count of pixels to the one check below.
_FORMATS: tuple[tuple[str, tuple[bytes, ...], type[ImageFile]], ...] = (
    ("JPEG", (b"\xff\xd8\xff",), _Jpeg),
    ("PNG", (b"\x89PNG\r\n\x1a\n",), PngImageFile),
    ("WebP", (b"RIFF",), WebPImageFile),
    ("GIF", (b"GIF87a", b"GIF89a"), GifImageFile),
    ("BMP", (b"BM",), BmpImageFile),
    ("TIFF", (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"), Tiff),
)

# What makes a photograph upright, by its EXIF orientation; from 5 on, width and height swap.
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class PhotoError(InputError):
    """A photograph cannot be read.

    Example:
        >>> str(PhotoError("a.jpg", "is empty"))
        'a.jpg: is empty'
    """

    def __init__(self, path: str, reason: str) -> None:
        # Both go into `args`, so that the error survives the way back from a worker process.
        Exception.__init__(self, path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        # A name with a line break or bytes that are not UTF-8 could not be printed on one line.
        name = self.path if self.path.isprintable() else repr(self.path)
        return f"{name}: {one_line(self.reason)}"


@dataclass(frozen=True, eq=False)
class Photo:
    """A decoded photograph.

    Args:
        pixels: (h, w, 3) uint8 RGB, upright, contiguous and writable; resized if that was asked.
        width: of the upright photograph before it was resized.
        height: likewise.
    """

    pixels: npt.NDArray[np.uint8]
    width: int
    height: int


def read_photo(
    path_or_file: str | os.PathLike[str] | IO[bytes],
    size: int | None = None,
    *,
    fit: str = "stretch",
    multiple: int = 32,
    max_pixels: int = MAX_PIXELS,
    budget: Callable[[int], AbstractContextManager[None]] | None = None,
) -> Photo:
    """Read one photograph as upright RGB. Safe to call from many threads.

    Reads JPEG, PNG, WebP, GIF, BMP and TIFF in every mode Pillow knows; of several frames the
    first. What is transparent is laid over white. Grey values of 16 bits are scaled to 8; of 32
    bits too, where a value past 65,535 makes the largest value white; floating-point values
    likewise by the smallest of 1, 255 and 65,535 that holds them all.

    The file is refused before any pixel is decoded when its header announces more than
    `max_pixels`, or more than `PIL.Image.MAX_IMAGE_PIXELS` where somebody has lowered that; and
    when it asks for them to be decoded over and over (see `bombs.py`).

    Args:
        path_or_file: a regular file, or an open binary file, which is read from where it stands
            to its end and left open.
        size: the side to resize to, bicubic with antialiasing; None keeps the photograph's own.
        fit: "stretch" gives size x size; "keep" makes the longer side `size`, then rounds both
            sides to the nearest `multiple`, at least one.
        multiple: see `fit`.
        max_pixels: how many pixels (width times height) a photograph may have, inclusive.
        budget: entered with the number of pixels while they are decoded, so that many threads can
            share out the memory.

    Raises:
        PhotoError: for anything that is not a whole photograph, whatever its bytes. Bytes inside
            a JPEG that are wrong but can be decoded are not noticed: the format has no checksum.
        InputError: for an argument out of range.

    Example:
        >>> import io
        >>> from PIL import Image
        >>> file = io.BytesIO()
        >>> Image.new("L", (640, 480), 255).save(file, "PNG")
        >>> photo = read_photo(io.BytesIO(file.getvalue()), 256, fit="keep")
        >>> photo.pixels.shape, photo.width, photo.height
        ((192, 256, 3), 640, 480)
    """
    if size is not None:
        size = _within("size", size, _LONGEST_SIDE)
        multiple = _within("multiple", multiple, _LONGEST_SIDE)
    if fit not in _FITS:
        raise InputError(f"fit: found {fit!r}{nearest(str(fit), _FITS)}, wanted one of {_FITS}")
    max_pixels = _within("max_pixels", max_pixels, 1 << 32)
    name, data = _bytes_of(path_or_file)
    kind, image_of = opener(name, data)
    lowered = Image.MAX_IMAGE_PIXELS
    if lowered is not None and lowered < _PILLOW_LIMIT:
        max_pixels = min(max_pixels, lowered)
    with quiet():
        try:
            image = image_of()
            width, height = image.size
            if width * height <= max_pixels:
                if problem := tiles_problem(image):
                    raise ValueError(problem)
                with nullcontext() if budget is None else budget(width * height):
                    return _decode(image, size, fit, multiple)
        # A decoder fed with broken bytes raises nearly anything: OSError, SyntaxError, ValueError,
        # struct.error, zlib.error, EOFError, AssertionError, MemoryError, ...
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise PhotoError(name, f"cannot be read as {kind}: {reason}") from error
    raise PhotoError(
        name,
        f"has {width:,} x {height:,} = {width * height:,} pixels, wanted at most {max_pixels:,}",
    )


def _within(name: str, value: int, most: int) -> int:
    """Return `value` as an int if it lies in 1..most."""
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if not 1 <= number <= most:
        raise InputError(f"{name}: found {value!r}, wanted a whole number from 1 to {most:,}")
    return number


def _bytes_of(source: str | os.PathLike[str] | IO[bytes]) -> tuple[str, bytes]:
    """Return the name and the content of a file, never waiting on a pipe or device."""
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        try:
            status = Path(name).stat()
            if stat.S_ISDIR(status.st_mode):
                raise PhotoError(name, f"is a folder, {_WANTED}")
            if not stat.S_ISREG(status.st_mode):
                raise PhotoError(name, f"is a pipe, socket or device, {_WANTED}")
            with Path(name).open("rb") as file:
                data = file.read(status.st_size) if status.st_size <= MAX_BYTES else None
        except FileNotFoundError:
            raise PhotoError(name, f"no such file, {_WANTED}") from None
        except (OSError, ValueError) as error:  # ValueError: a null character in the name
            reason = getattr(error, "strerror", None) or error
            raise PhotoError(name, f"cannot be opened ({reason}), {_WANTED}") from error
    else:
        name = str(getattr(source, "name", "") or "photograph")
        pieces = bytearray()
        try:
            while len(pieces) <= MAX_BYTES and (piece := source.read(1 << 20)):
                pieces += piece
        except Exception as error:  # whatever kind of stream it is
            problem = f"cannot be read ({error}), wanted a file opened to read bytes"
            raise PhotoError(name, problem) from error
        data = bytes(pieces)
    if data is None or len(data) > MAX_BYTES:
        raise PhotoError(name, f"is larger than {MAX_BYTES:,} bytes, wanted a photograph")
    if not data:
        raise PhotoError(name, f"is empty, {_WANTED}")
    return name, data


def format_of(name: str, data: bytes) -> tuple[str, type[ImageFile]]:
    """Return a format's name and reader by the file's first bytes; its extension plays no part."""
    for kind, starts, reader in _FORMATS:
        if data.startswith(starts) and (kind != "WebP" or data[8:12] == b"WEBP"):
            return kind, reader
    raise PhotoError(name, f"is not an image (it begins with {data[:8]!r}), {_WANTED}")


def opener(name: str, data: bytes) -> tuple[str, Callable[[], ImageFile]]:
    """Return a format's name and what opens the file, once it has been looked at without Pillow."""
    kind, reader = format_of(name, data)
    if kind == "JPEG" and (problem := jpeg_problem(data)):
        raise PhotoError(name, problem)
    return kind, lambda: reader(io.BytesIO(data))


def _decode(image: ImageFile, size: int | None, fit: str, multiple: int) -> Photo:
    """Decode an opened file whose size has been checked."""
    jpeg = isinstance(image, _Jpeg)
    if not jpeg:
        # A PNG may carry its EXIF after the pixels, and Pillow turns a TIFF upright by itself.
        image.load()
    orientation = _orientation(image)
    stored = image.size
    width, height = upright = stored[::-1] if orientation >= 5 else stored
    target, box = None, None
    if size is not None:
        target = (size, size) if fit == "stretch" else _keep(upright, size, multiple)
        target = target[::-1] if orientation >= 5 else target
        # A JPEG can be decoded at 1/2, 1/4 or 1/8 for a fraction of the time; `box` is what the
        # whole photograph covers of that, which is not a whole number of pixels.
        draft = image.draft(None, (2 * target[0], 2 * target[1])) if jpeg else None
        box = draft[1] if draft else None
    flat = _flat(image)
    if target is not None:
        flat = flat.resize(target, Image.Resampling.BICUBIC, box=box, reducing_gap=3.0)
    if orientation in _UPRIGHT:
        flat = flat.transpose(_UPRIGHT[orientation])
    return Photo(np.array(flat if flat.mode == "RGB" else flat.convert("RGB")), width, height)


def _keep(upright: tuple[int, int], size: int, multiple: int) -> tuple[int, int]:
    """Return (width, height) with the longer side `size`, both rounded half up to `multiple`."""
    step = multiple * max(upright)
    width, height = (max(1, (2 * side * size + step) // (2 * step)) for side in upright)
    return width * multiple, height * multiple


def _orientation(image: ImageFile) -> int:
    """Return the EXIF orientation, 1 to 8; what is missing or broken counts as upright."""
    try:
        found = image.getexif().get(ExifTags.Base.Orientation)
    except Exception:  # noqa: BLE001 - as in read_photo, and no reason to lose the photograph
        return 1
    return found if isinstance(found, int) and found in _UPRIGHT else 1


def _flat(image: Image.Image) -> Image.Image:
    """Return the image as RGB, or L where it is grey, with nothing transparent left."""
    image.load()
    if image.mode.startswith("I") or image.mode == "F":
        return Image.fromarray(_grey(image))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGB", image.size, "white")
        white.paste(image, mask=image)
        return white
    if image.mode in ("L", "RGB"):
        return image
    return image.convert("L" if image.mode == "1" else "RGB")


def _grey(image: Image.Image) -> npt.NDArray[np.uint8]:
    """Return (h, w) levels 0..255 of an image of 16-bit, 32-bit or floating-point values."""
    values = np.asarray(image)
    peak = values.max(where=np.isfinite(values), initial=0) if image.mode in "IF" else 65_535
    tops = (1, 255, 65_535) if image.mode == "F" else (65_535,)
    top = float(next((top for top in tops if peak <= top), peak))
    levels = np.empty(values.shape, dtype=np.uint8)
    rows = max(1, 1_000_000 // image.width)  # at a time: a whole photograph of floats is large
    for start in range(0, image.height, rows):
        scaled = np.clip(values[start : start + rows], 0, top).astype(np.float32) * (255 / top)
        levels[start : start + rows] = np.nan_to_num(scaled) + 0.5
    if isinstance(clear := image.info.get("transparency"), int):
        levels[values == clear] = 255
    return levels


# Pillow warns about metadata it cannot read, about more than 89 million pixels, and more. None of
# that may be printed or, under `-W error`, fail a photograph. warnings.catch_warnings changes the
# filters of all threads and mixes them up when two threads leave it in another order, so one
# filter stays in place that matches only in a thread which is inside read_photo.
_thread = threading.local()


class _Reading:
    """Stands where a filter has its regular expression for the text of a warning."""

    def match(self, _text: str) -> bool:
        return getattr(_thread, "reading", False)


_IGNORE = ("ignore", _Reading(), Warning, None, 0)


@contextmanager
def quiet() -> Iterator[None]:
    """Ignore the warnings of this thread, and of no other."""
    filters = cast("list[Any]", warnings.filters)
    if not filters or filters[0] is not _IGNORE:
        with suppress(ValueError):
            filters.remove(_IGNORE)
        filters.insert(0, _IGNORE)
    _thread.reading = True
    try:
        yield
    finally:
        _thread.reading = False


# One complaint about a broken TIFF goes by logging, which prints it if nobody set logging up.
logging.getLogger("PIL.TiffImagePlugin").addFilter(
    lambda record: record.levelno < logging.WARNING or not getattr(_thread, "reading", False)
)
