"""Draw the best regions of photographs; those whose noun is sure enough have their names.

The best are those that tell the most (`confidence`) and are named the surest, the product of both.

    python tools/draw_regions.py                                 # the pictures in docs/pictures
    python tools/draw_regions.py PHOTO ... --out FOLDER --best 10

The documentation's pictures show photographs that come inside Python packages (the extra `demo`).
"""

import argparse
import importlib.util
import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont

from crossgaze.evaluation.coverage import box_iou
from crossgaze.explain.naming import FITTING, spoken
from crossgaze.vision.objects.detector import load_detector
from crossgaze.vision.photos import read_photo

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
SHOWN = (
    ("skimage", "data", "astronaut.png"),
    ("sklearn", "datasets/images", "china.jpg"),
)
# Okabe and Ito's colours, which also the colour-blind tell apart, with white for their black.
COLOURS = ("#E69F00", "#56B4E9", "#F0E442", "#CC79A7", "#009E73", "#D55E00", "#0072B2", "#FFFFFF")
DARK = {"#0072B2", "#D55E00", "#009E73"}  # these take white letters
LARGEST = 150_000  # bytes of a picture


class Place(NamedTuple):
    """A rectangle in the picture's pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other):
        """Pixels that both hold."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(wide, 0) * max(high, 0)

    @property
    def area(self):
        """Pixels that it holds."""
        return (self.right - self.left) * (self.bottom - self.top)


def package_file(package, folder, name):
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{name} comes with the package {package}: pip install 'crossgaze[demo]'")
    return Path(spec.submodule_search_locations[0]) / folder / name


def label_place(box, size, picture, taken, edges, line):
    """Choose where a label goes: along an edge of its box, where it covers least of the others."""
    wide, high = size
    tops = {"above": box.top - high, "top": box.top, "bottom": box.bottom - high}
    tops["below"] = box.bottom
    best, least = None, float("inf")
    for number, top in enumerate(tops.values()):
        for share in (0, 0.25, 0.5, 0.75, 1):
            left = box.left + share * (box.right - box.left - wide)
            # Beside the picture's edge there is no room.
            left = min(max(left, 0), picture[0] - wide)
            place = Place(left, min(max(top, 0), picture[1] - high), left + wide, 0)
            place = place._replace(bottom=place.top + high)
            cost = 20 * sum(place.overlap(other) for other in taken)
            cost += 2 * sum(place.overlap(edge) for edge in edges)
            cost += high * line * (number + 2 * share)  # the corner above the box is where to look
            if cost < least:
                best, least = place, cost
    return best


def edges_of(box, line):
    """The four strokes of a frame, which labels had better not cover."""
    half = line / 2
    return [
        Place(box.left - half, box.top - half, box.right + half, box.top + half),
        Place(box.left - half, box.bottom - half, box.right + half, box.bottom + half),
        Place(box.left - half, box.top, box.left + half, box.bottom),
        Place(box.right - half, box.top, box.right + half, box.bottom),
    ]


def colours_of(places):
    """Give each box a colour that those which overlap it have not, as far as there are enough."""
    chosen = {}
    for number, place in enumerate(places):
        cost = dict.fromkeys(COLOURS, 0.0)
        for other, colour in chosen.items():
            both = place.overlap(places[other])
            cost[colour] += 0.1 + both / (place.area + places[other].area - both)
        chosen[number] = min(COLOURS, key=cost.get)
    return chosen


def different(boxes, most):
    """Return the numbers of boxes that overlap no better one by more than `most` (IoU)."""
    overlaps = box_iou(boxes, boxes)
    kept = []
    for number in range(len(boxes)):
        if all(overlaps[number, other] <= most for other in kept):
            kept.append(number)
    return kept


def label(detector, found, number, sure):
    """Return a region's name where it is sure enough, else its number in the store."""
    if found.noun_probability[number] < sure:
        return f"region {number + 1}"
    fits = found.attribute_probability[number] >= FITTING
    attribute = detector.attributes[found.attributes[number]] if fits else ""
    return spoken(detector.nouns[found.nouns[number]], attribute)


def draw(pixels, boxes, labels, side=720):
    """Return the photograph, at most `side` pixels long, with framed and named regions.

    Args:
        pixels: (H, W, 3) uint8.
        boxes: (n, 4) as shares, the best first.
        labels: n texts.
        side: of the picture.
    """
    fine = 2  # drawn larger and shrunk, so that lines are smooth
    scale = fine * side / max(pixels.shape[:2])
    size = tuple(round(length * scale) for length in (pixels.shape[1], pixels.shape[0]))
    image = Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS)
    pen = ImageDraw.Draw(image)
    font, line, pad = ImageFont.load_default(15 * fine), 3 * fine, 4 * fine
    inset = line  # a frame at the photograph's edge stays inside the picture
    low, high = np.array([inset] * 4), np.array([size[0] - inset, size[1] - inset] * 2)
    places = [Place(*np.clip(box * np.tile(size, 2), low, high).tolist()) for box in boxes]
    chosen = colours_of(places)
    # Large frames first, so that small ones lie over them.
    order = sorted(chosen, key=lambda n: -places[n].area)
    for number in order:
        pen.rectangle(places[number], outline="black", width=line + 2 * fine)
        box = places[number]
        inner = (box.left + fine, box.top + fine, box.right - fine, box.bottom - fine)
        pen.rectangle(inner, outline=chosen[number], width=line)
    strokes = {n: edges_of(places[n], line + 2 * fine) for n in chosen}
    taken = []
    # Small boxes choose first: they have the fewest places that are plainly theirs.
    for number in reversed(order):
        letters = (font.getlength(labels[number]) + 2 * pad, font.size + 2 * pad)
        others = [edge for n, edges in strokes.items() if n != number for edge in edges]
        place = label_place(places[number], letters, size, taken, others, line)
        taken.append(place)
        colour = chosen[number]
        pen.rounded_rectangle(place, radius=pad, fill=colour, outline="black", width=fine)
        middle = ((place.left + place.right) / 2, (place.top + place.bottom) / 2)
        ink = "white" if colour in DARK else "black"
        pen.text(middle, labels[number], fill=ink, font=font, anchor="mm")
    return image.resize((size[0] // fine, size[1] // fine), Image.Resampling.LANCZOS)


def encoded(image):
    """Return the best JPEG below the limit."""
    for quality in range(90, 30, -5):
        file = io.BytesIO()
        image.save(file, "JPEG", quality=quality, optimize=True, progressive=True)
        if file.tell() < LARGEST:
            return file.getvalue()
    raise SystemExit(f"a picture of {image.width} x {image.height} pixels is too large")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", nargs="*", type=Path)
    parser.add_argument("--out", type=Path, default=PICTURES)
    parser.add_argument("--best", type=int, default=6, help="regions that are drawn")
    parser.add_argument("--overlap", type=float, default=0.45, help="IoU past which one is enough")
    parser.add_argument(
        "--sure", type=float, default=0.2, help="a noun's probability from which it is written"
    )
    parser.add_argument("--side", type=int, default=720, help="pixels of the longer side")
    parser.add_argument("--detector", default="objects")
    args = parser.parse_args()
    detector = load_detector(args.detector)
    args.out.mkdir(parents=True, exist_ok=True)
    for path in args.photos or [package_file(*where) for where in SHOWN]:
        pixels = read_photo(path).pixels
        (found,) = detector(torch.from_numpy(read_photo(path, detector.size).pixels).unsqueeze(0))
        order = np.argsort(-found.confidence * found.noun_probability, kind="stable")
        shown = order[different(found.boxes[order], args.overlap)[: args.best]]
        labels = [label(detector, found, n, args.sure) for n in shown]
        target = args.out / f"regions-{path.stem}.jpg"
        image = draw(pixels, found.boxes[shown], labels, args.side)
        target.write_bytes(encoded(image))
        print(f"{target}: {len(shown)} of {len(found)} regions")


if __name__ == "__main__":
    main()
