"""The answers of a model as JSON and as a table beside the paper's printed numbers."""

from __future__ import annotations

from typing import Any

from crossgaze.evaluation.answers import AnswerEvaluation
from crossgaze.evaluation.bootstrap import BootstrapConfig
from crossgaze.evaluation.tables import MEASURED, PRINTED, Table

FORMAT, VERSION = "crossgaze-answers", 1
TITLES = {
    "accuracy": "all",
    "yes_no": "yes/no",
    "number": "number",
    "other": "other",
    "wups_0.9": "WUPS@0.9",
    "wups_0.0": "WUPS@0.0",
}
# DAN, table 1, test-dev: (row, open-ended yes/no, number, other, all, multiple-choice all).
DAN_TABLE_1 = (
    ("DAN (VGG)", 82.1, 38.2, 50.2, 62.0, 67.0),
    ("DAN (ResNet)", 83.0, 39.1, 53.9, 64.3, 69.1),
)


def to_dict(
    found: AnswerEvaluation, config: BootstrapConfig, *, queries: bool = False
) -> dict[str, Any]:
    """Return an evaluation for JSON.

    Args:
        found: what was measured.
        config: how intervals were made.
        queries: whether each question with its answers is part of it.
    """
    asked = found.questions
    described: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "data": {
            "name": asked.name,
            "splits": sorted({question.split for question in asked.questions}),
            "images": len(asked.images),
            "questions": len(asked),
        },
        "metric": found.metric,
        "task": "multiple-choice" if found.choices else "open-ended",
        "known_answers": round(found.known, 2),
        "figures": {name: figure.to_dict() for name, figure in found.figures.items()},
        "bootstrap": {
            "resamples": config.resamples,
            "level": config.level,
            "seed": config.seed,
            "resampled": "images",
        },
        "notes": list(found.notes),
    }
    if queries:
        rows = zip(asked.questions, found.best, found.right.tolist(), strict=True)
        described["queries"] = [
            {
                "id": question.id,
                "image": question.image,
                "question": question.text,
                "answers": list(question.answers),
                "said": [{"answer": one, "probability": round(p, 5)} for one, p in best],
                "right": round(right, 4),
            }
            for question, best, right in rows
        ]
    return described


def answer_table(found: AnswerEvaluation, name: str, level: float, *, papers: bool = True) -> Table:
    """Return the figures with their intervals, and DAN's own for VQA.

    Args:
        found: what was measured.
        name: what the model is called.
        level: of the intervals.
        papers: whether the paper's rows are shown.
    """
    asked = found.questions
    splits = ", ".join(sorted({question.split for question in asked.questions} - {""}))
    data = f"{asked.name} {splits}, {len(asked):,} questions".replace(" ,", ",")
    shown = list(found.figures.items())
    rows = [(MEASURED, name, data, *(f"{figure.value:.2f}" for _, figure in shown))]
    if any(figure.low is not None for _, figure in shown):
        spans = (
            "-" if figure.low is None else f"{figure.low:.1f}-{figure.high:.1f}"
            for _, figure in shown
        )
        rows.append(("", f"  {100 * level:.0f} % interval", "", *spans))
    notes = [f"questions whose answer the model can give: {found.known:.1f} %"]
    if papers and found.metric == "vqa":
        rows += [
            _printed(row, [figure for figure, _ in shown], found.choices) for row in DAN_TABLE_1
        ]
        notes.append(
            f"Rows marked '{PRINTED}' are printed in the paper (VQA test-dev) and were not "
            "measured here."
        )
    header = ("whose", "what", "tested on", *(TITLES[figure] for figure, _ in shown))
    task = "multiple choice" if found.choices else "open-ended"
    return Table(f"{asked.name}: accuracy, {task}", header, tuple(rows), tuple(notes))


def _printed(
    row: tuple[str, float, float, float, float, float], figures: list[str], choices: bool
) -> tuple[str, ...]:
    name, yes_no, number, other, every, chosen = row
    told = {"yes_no": yes_no, "number": number, "other": other, "accuracy": every}
    told = {"accuracy": chosen} if choices else told
    cells = (f"{told[figure]:.1f}" if figure in told else "-" for figure in figures)
    return (PRINTED, f"DAN table 1: {name}", "VQA test-dev", *cells)
