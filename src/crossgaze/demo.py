"""The demonstration: photographs that come inside Python packages, searched, explained and asked.

It needs no data and no network, and it takes the models that ship. What a person would call right
is written beside each sentence, so that the demonstration can say where it was wrong.
"""

from __future__ import annotations

import importlib.util
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossgaze.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from crossgaze.asking.ask import Reply
    from crossgaze.models.answerer import Answerer
    from crossgaze.search.index import Index
    from crossgaze.search.report import IndexReport
    from crossgaze.search.results import Found
    from crossgaze.search.stamps import Model

# (package, folder inside it, file, the name in the gallery)
PHOTOGRAPHS = (
    ("skimage", "data", "astronaut.png", "astronaut.png"),
    ("skimage", "data", "chelsea.png", "cat.png"),
    ("skimage", "data", "coffee.png", "coffee.png"),
    ("skimage", "data", "rocket.jpg", "rocket.jpg"),
    ("skimage", "data", "motorcycle_left.png", "motorcycle-left.png"),
    ("skimage", "data", "motorcycle_right.png", "motorcycle-right.png"),
    ("skimage", "data", "camera.png", "photographer.png"),
    ("skimage", "data", "coins.png", "coins.png"),
    ("skimage", "data", "grass.png", "grass.png"),
    ("skimage", "data", "gravel.png", "gravel.png"),
    ("skimage", "data", "brick.png", "brick.png"),
    ("skimage", "data", "moon.png", "moon.png"),
    ("skimage", "data", "hubble_deep_field.jpg", "galaxies.jpg"),
    ("sklearn", "datasets/images", "china.jpg", "temple.jpg"),
    ("sklearn", "datasets/images", "flower.jpg", "flower.jpg"),
    ("matplotlib", "mpl-data/sample_data", "grace_hopper.jpg", "officer.jpg"),
)
# (sentence, the photograph that a person would choose)
SENTENCES = (
    ("a cat looks at the camera", "cat.png"),
    ("a cup of coffee on a table", "coffee.png"),
    ("a flower", "flower.jpg"),
    ("a woman in an orange suit", "astronaut.png"),
    ("buildings by the water", "temple.jpg"),
)
# (photograph, question, answers that a person would call right, the first what one would say)
QUESTION = ("coffee.png", "what is on the table?", ("cup", "plastic cup of coffee", "coffee"))
ROOMS = "The model that ships learned from rooms, and is right about one question of four there."
SHOWN = 3  # photographs a sentence in the report


@dataclass(frozen=True)
class Search:
    """One sentence of the demonstration.

    Args:
        sentence: what was looked for.
        wanted: the photograph that a person would choose.
        found: the answer.
    """

    sentence: str
    wanted: str
    found: Found

    @property
    def rank(self) -> int:
        """Where the right photograph stands, from 1."""
        names = [Path(hit.path).name for hit in self.found.hits]
        # A package of another version may lack the photograph.
        return names.index(self.wanted) + 1 if self.wanted in names else len(names) + 1

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        told = [{"photograph": Path(h.path).name, "score": h.score} for h in self.found.hits]
        return {
            "sentence": self.sentence,
            "wanted": self.wanted,
            "rank": self.rank,
            "found": told[:SHOWN],
        }


@dataclass(frozen=True)
class Demo:
    """What the demonstration did.

    Args:
        indexed: what was done to the index.
        searches: one a sentence.
        asked: the photograph that was asked about.
        reply: the answer.
        wanted: the answers that a person would call right.
        page: the report.
        seconds: in all.
    """

    indexed: IndexReport
    searches: tuple[Search, ...]
    asked: str
    reply: Reply
    wanted: tuple[str, ...]
    page: Path
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "indexed": self.indexed.to_dict(),
            "searches": [one.to_dict() for one in self.searches],
            "asked": self.asked,
            "reply": self.reply.to_dict(),
            "wanted": list(self.wanted),
            "right": is_right(self.reply, self.wanted),
            "page": str(self.page),
            "seconds": round(self.seconds, 3),
        }


def build_gallery(folder: Path) -> list[Path]:
    """Copy the packages' photographs into `folder`; those of other versions may lack a few."""
    found = []
    for package, inside, file, name in PHOTOGRAPHS:
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise MissingExtraError("the demonstration", package, "demo")
        source = Path(spec.submodule_search_locations[0]) / inside / file
        if source.is_file():
            found.append((source, folder / name))
    if not found:
        raise InputError("demo: none of the packages carries its photographs")
    folder.mkdir(parents=True, exist_ok=True)
    for source, target in found:
        shutil.copyfile(source, target)
        shutil.copystat(source, target)  # the same file twice is the same photograph
    return [target for _, target in found]


def run_demo(
    folder: str | Path,
    *,
    embedder: Model | None = None,
    reranker: Model | None = None,
    answerer: Answerer | str | Path = "daquar",
    on_progress: Callable[[int, int], None] | None = None,
) -> Demo:
    """Build the gallery in `folder`, index it, search it, ask about it, write a report.

    An index that an earlier run made with other models is made anew.

    Args:
        folder: photographs, index and report go here.
        embedder: instead of the one that ships.
        reranker: likewise.
        answerer: likewise.
        on_progress: told how many photographs of how many have been read.
    """
    from crossgaze.asking.ask import ask
    from crossgaze.demo_index import open_index
    from crossgaze.files import write_atomically

    began = time.monotonic()
    folder = Path(folder)
    gallery = build_gallery(folder / "photos")
    with open_index(folder / "index", folder / "photos", embedder, reranker) as index:
        report = index.add(folder / "photos", on_progress=on_progress)
        searches = tuple(
            Search(sentence, wanted, index.search(sentence, len(gallery)))
            for sentence, wanted in SENTENCES
        )
        name, question, wanted = QUESTION
        reply = ask(answerer, folder / "photos" / name, question)
        write_atomically(folder / "report.html", report_page(index, searches, name, reply, wanted))
    seconds = time.monotonic() - began
    return Demo(report, searches, name, reply, wanted, folder / "report.html", seconds)


def report_page(
    index: Index,
    searches: tuple[Search, ...],
    asked: str,
    reply: Reply,
    wanted: tuple[str, ...],
) -> str:
    """Return the report as HTML: every sentence with what it found, and the question."""
    from dataclasses import replace

    import numpy as np

    from crossgaze.asking.picture import draw_reply
    from crossgaze.explain.scene import data_uri
    from crossgaze.search.page import cards_of, document

    right = sum(one.rank == 1 for one in searches)
    parts = [
        "<h1>crossgaze, the demonstration</h1>",
        f"<p>{len(index)} photographs that come inside Python packages, {len(searches)} sentences; "
        f"the right photograph came first for {right}. Point at a word to see the regions that "
        "answered it.</p>",
    ]
    most = 0
    for one in searches:
        cards, words = cards_of(index, replace(one.found, hits=one.found.hits[:SHOWN]))
        most = max(most, words)
        parts.append(f"<h2>{escape(one.sentence)}</h2><p>{escape(verdict(one))}</p>{cards}")
    picture = data_uri(np.asarray(draw_reply(reply).convert("RGB")), quality=90)
    parts.append(
        f"<h2>{escape(reply.question)}</h2><p>Asked about {escape(asked)}: "
        f"{escape(said(reply))}</p><p>{escape(judged(reply, wanted))}</p>"
        "<p>Below, what each step looked at.</p>"
        f'<img src="{picture}" alt="the steps of attention" style="max-width:100%">'
    )
    return document("The demonstration", "\n".join(parts), most)


def verdict(one: Search) -> str:
    """Say in words whether a sentence found what a person would have chosen."""
    if one.rank == 1:
        return f"{one.wanted} came first, as it should."
    return f"{one.wanted} should have come first, and came as number {one.rank}."


def said(reply: Reply) -> str:
    """Return an answer as people read it, with how sure the model is.

    Example: "flower pot (7 %)".
    """
    from crossgaze.asking.ask import shown_answer

    answer, share = reply.answers[0]
    return f"{shown_answer(answer)} ({100 * share:.0f} %)"


def is_right(reply: Reply, wanted: tuple[str, ...]) -> bool:
    """Tell whether the likeliest answer is one that a person would call right."""
    from crossgaze.asking.ask import shown_answer

    return shown_answer(reply.answers[0][0]) in wanted


def judged(reply: Reply, wanted: tuple[str, ...]) -> str:
    """Say in words whether the answer is what a person would have said."""
    if is_right(reply, wanted):
        return "As a person would say."
    return f'A person would say "{wanted[0]}": the answer is wrong. {ROOMS}'
