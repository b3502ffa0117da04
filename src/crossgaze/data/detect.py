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
        as_captions = captions.detect_format(source)
    except InputError as unlike_captions:
        try:
            questions.detect_format(source)
        except InputError:
            if not Path(source).exists():
                raise InputError(f"{source}: no such file or folder, wanted a data set") from None
            raise unlike_captions from None
        return True
    if Path(source).is_dir() and (as_questions := _question_format(source)):
        raise InputError(
            f"{source}: holds captions ({as_captions}) and questions ({as_questions}), say which "
            "are meant with format"
        )
    return False


def _question_format(source: str | Path) -> str | None:
    try:
        return questions.detect_format(source)
    except InputError:
        return None
