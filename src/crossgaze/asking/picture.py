"""A picture of an answer: the photograph and, step by step, the regions and words looked at.

As figure 5 of DAN: the photograph is darkened where a step did not look, and a word stands on the
darker ground the more it was looked at. Brightness and darkness are shares of the step's largest
weight, so a step that looks everywhere alike leaves the photograph as it is. The parts are those of
every explanation, `crossgaze.explain.drawing`.
"""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from crossgaze.asking.ask import Reply, shown_answer
from crossgaze.explain.drawing import BLUE, GREY, INK, MARGIN, PALE, WORD, draw_steps
from crossgaze.explain.scene import Box, Scene, Text, text_width


def draw_reply(reply: Reply, out: str | Path | None = None) -> Image.Image:
    """Draw the question, the answers and every step's attention; write it if a file is named.

    Args:
        reply: what `ask` gave.
        out: a PNG, JPEG, WebP or SVG file.
    """
    scene = Scene(0, 0, f"{reply.question} {shown_answer(reply.answers[0][0])}")
    bottom = draw_steps(
        scene,
        reply.photo.pixels,
        reply.boxes,
        reply.words,
        reply.region_weights,
        reply.word_weights,
    )
    scene.height = round(_draw_answers(scene, reply, bottom + 16) + MARGIN)
    if out is not None:
        scene.save(out)
    return scene.image()


def _draw_answers(scene: Scene, reply: Reply, top: float) -> float:
    """Draw the likeliest answers with a bar of their probability; returns where they end."""
    wide = 220
    answers = [(shown_answer(answer), share) for answer, share in reply.answers]
    column = max(text_width(answer, WORD) for answer, _ in answers) + 18
    for row, (answer, share) in enumerate(answers):
        y = top + 26 * row
        ink, colour = (INK, BLUE) if not row else (GREY, PALE)
        right = MARGIN + column + max(wide * share, 1)
        scene.add(
            Text(answer, MARGIN, y, WORD, ink),
            Box(MARGIN + column, y + 4, right, y + 18, fill=colour),
            Text(f"{100 * share:.1f} %", right + 8, y, WORD, ink),
        )
    return top + 26 * len(answers)
