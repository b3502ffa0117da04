"""Sentences in an index, to be found for a picture."""

from __future__ import annotations

import time
from collections.abc import Container, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from crossgaze.data.left_out import LeftOut
from crossgaze.data.textfiles import read_lines, sentence_problem
from crossgaze.errors import InputError
from crossgaze.search.entries import LONGEST_KEY, Entry
from crossgaze.search.models import TEXTS
from crossgaze.search.report import IndexReport

if TYPE_CHECKING:
    from crossgaze.search.index import Index


def bring_sentences(index: Index, file: Path) -> IndexReport:
    """Bring an index up to date with a text file, one sentence a line; the caller is its writer.

    A sentence is kept once, with all files that it stands in. One that this file gave before and no
    longer holds is removed, unless another file gave it, too.
    """
    started = time.perf_counter()
    lines = [" ".join(line.split()) for line in read_lines(file, "a text file of sentences")]
    wrong = [line for line in lines if line and not _is_sentence(index, line)]
    wanted = dict.fromkeys(line for line in lines if _is_sentence(index, line))
    table, source = index.tables.sentences, _source_of(file)
    known = {entry.key: entry for part in table.every() for entry in part}
    if not wanted and not any(source in _files(entry) for entry in known.values()):
        raise InputError(f"{file}: holds no sentence, wanted one a line")
    new = [line for line in wanted if line not in known]
    uid = max((entry.uid for entry in known.values()), default=0) + 1
    for start in range(0, len(new), 16 * TEXTS):
        part = new[start : start + 16 * TEXTS]
        entries = [Entry(uid + start + n, line, source) for n, line in enumerate(part)]
        table.add(entries, index.embedder.texts(part))
    touched, gone = _settle(index, known, source, wanted)
    return IndexReport(
        found=len(wanted),
        added=len(new),
        touched=len(touched),
        removed=len(gone),
        unchanged=len(wanted) - len(new) - sum(entry.key in wanted for entry in touched),
        left_out=LeftOut.of("lines without a word or too long", [line[:40] for line in wrong]),
        seconds=round(time.perf_counter() - started, 3),
    )


def forget_sentences(index: Index, file: Path) -> int:
    """Take out the sentences of a file; returns how many went. The caller is the index's writer."""
    source = _source_of(file)
    known = {entry.key: entry for part in index.tables.sentences.every() for entry in part}
    files = sorted({name for entry in known.values() for name in _files(entry)})
    if source not in files:
        raise InputError(
            f"{file}: the index holds no sentence of it; its files of sentences: "
            f"{', '.join(files) or 'none'}"
        )
    return len(_settle(index, known, source, {})[1])


def _settle(
    index: Index, known: Mapping[str, Entry], source: str, wanted: Container[str]
) -> tuple[list[Entry], list[int]]:
    """Write down which sentences a file holds now; return those that changed, and that went."""
    gone, touched = [], []
    for entry in known.values():
        before = _files(entry)
        files = before | {source} if entry.key in wanted else before - {source}
        if not files:
            gone.append(entry.uid)
        elif files != before:
            first, *others = sorted(files)
            touched.append(replace(entry, source=first, tags=tuple(others)))
    table = index.tables.sentences
    table.update(touched)
    table.delete(gone)
    table.tidy()
    return touched, gone


def _source_of(file: Path) -> str:
    return str(file.resolve())


def _files(entry: Entry) -> set[str]:
    return {entry.source, *entry.tags}


def _is_sentence(index: Index, line: str) -> bool:
    if sentence_problem(line) is not None or len(line.encode()) > LONGEST_KEY:
        return False
    members = index.embedder.members + (index.reranker.members if index.reranker else [])
    said = any(map(str.isalnum, line))
    return said and all(member.text.tokenize(line) for member in members)
