"""Whether a data set holds captions or questions, seen from its files."""

from __future__ import annotations

from pathlib import Path

from crossgaze.data.captions import reading as captions
from crossgaze.data.questions import reading as questions
from crossgaze.errors import InputError, nearest


def holds_questions(source: str | Path, format: str | None = None) -> bool:  # noqa: A002
    """Tell a question set from captions.

    Args:
        source: a data set's folder or file, or "easy-vqa".
        format: its format, if it is known.

    Example:
        >>> holds_questions("easy-vqa")
        True
    """
    formats = (*captions.FORMATS, *questions.FORMATS)
    if format is not None:
        if format not in formats:
            raise InputError(
                f"format is {format!r}{nearest(format, formats)}, "
                f"wanted one of {', '.join(formats)}"
            )
        return format in questions.FORMATS
    try:
        captions.detect_format(source)
    except InputError as unlike_captions:
        try:
            questions.detect_format(source)
        except InputError:
            if not Path(source).exists():
                raise InputError(f"{source}: no such file or folder, wanted a data set") from None
            raise unlike_captions from None
        return True
    return False
