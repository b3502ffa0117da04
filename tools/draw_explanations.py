"""Draw the pictures of docs/explain.md and docs/questions.md.

    python tools/draw_explanations.py default
    python tools/draw_explanations.py default --beside my-scan/ my-scan-ccr/ --also my-m-dan/

Photographs come with Python packages (the extra `demo`), sentences stand here. The astronaut's was
chosen among half a dozen, the question among some thirty, as ones that were answered well: by
`default`, a BFAN, and by `daquar`. Another model wants another look at both, and at the caption of
docs/explain.md, which names every miss.
The sheet is a small evaluation: every sentence looks for its photograph among all of them. Models
of other families, and two that stand beside each other, are those of tools/experiments.py; their
pictures are called by their families.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from crossgaze.asking.ask import ask
from crossgaze.asking.picture import draw_reply
from crossgaze.data.captions.captioned import CaptionedImages
from crossgaze.demo import build_gallery
from crossgaze.evaluation.bootstrap import BootstrapConfig
from crossgaze.evaluation.evaluate import EvaluateConfig, evaluate
from crossgaze.evaluation.report import to_dict
from crossgaze.evaluation.sources import open_regions
from crossgaze.explain.explaining import explain, load_matcher
from crossgaze.explain.figure import draw
from crossgaze.explain.regions import source_for
from crossgaze.explain.sheet import draw_sheet
from crossgaze.files import write_json
from crossgaze.vision.extract import extract
from draw_regions import PICTURES, encoded

SHOWN, SHORTER = "astronaut.png", "a woman in an orange suit"
ASKED, QUESTION = "motorcycle-left.png", "what is left of the shelves?"
SMOOTH = Image.Resampling.LANCZOS
SENTENCES = {
    "astronaut.png": "a smiling woman in an orange uniform in front of a flag",
    "cat.png": "a close up of the face of a cat",
    "coffee.png": "a red cup on a wooden table",
    "rocket.jpg": "a rocket stands between towers at night",
    "motorcycle-left.png": "a motorcycle in a garage",
    "photographer.png": "a man in a black coat stands with a camera in a field",
    "temple.jpg": "a large red building above the trees by the water",
    "flower.jpg": "an orange flower in front of green leaves",
    "officer.jpg": "an old woman in a uniform and a hat",
    "grass.png": "grass",
    "brick.png": "a brick wall",
}


def explained(name, photo, sentence):
    _, model = load_matcher(name)
    source, fit, _ = source_for(model)
    called = next(part for part in reversed(Path(name).parts) if part != "best")
    return explain(model, photo, sentence, source=source, fit=fit, name=called)


def sheet(model, photos, work, args):
    """Return the sheet of a small evaluation over the photographs that have a sentence."""
    names = tuple(name for name in SENTENCES if (photos / name).is_file())
    kept = work / "kept"
    kept.mkdir()
    for name in names:
        (kept / name).hardlink_to(photos / name)
    extract(kept, work / "regions")
    captions = tuple(SENTENCES[name] for name in names)
    of = CaptionedImages("gallery", names, captions, np.arange(len(names)), ("test",) * len(names))
    bootstrap = BootstrapConfig(resamples=10)
    found = evaluate(
        model,
        of,
        open_regions(of, kept, work / "regions"),
        EvaluateConfig(top=5, bootstrap=bootstrap),
    )
    write_json(work / "result.json", to_dict(found, bootstrap, queries=True))
    return draw_sheet(work / "result.json", kept, rows=args.rows, top=5)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a model's folder")
    parser.add_argument("--beside", nargs=2, metavar="MODEL", help="two, one below the other")
    parser.add_argument("--also", nargs="+", default=[], metavar="MODEL", help="one picture each")
    parser.add_argument("--answerer", default="daquar", help="answers the question")
    parser.add_argument("--rows", type=int, default=4, help="queries on the sheet")
    parser.add_argument("--out", type=Path, default=PICTURES)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        photos = build_gallery(work / "photos")[0].parent
        photo, (_, first) = photos / SHOWN, load_matcher(args.model)
        made = {
            "explain-words": draw(explained(args.model, photo, SENTENCES[SHOWN])),
            "explain-sheet": sheet(first, photos, work, args),
        }
        draw_reply(ask(args.answerer, photos / ASKED, QUESTION), work / "asked.png")
        if args.beside:
            made["explain-beside"] = draw([explained(one, photo, SHORTER) for one in args.beside])
        for name in args.also:
            seen = explained(name, photo, SENTENCES[SHOWN])
            made[f"explain-{seen.family}"] = draw(seen)
        for name, scene in made.items():
            target = args.out / f"{name}.jpg"
            target.write_bytes(encoded(scene.image(1)))
            print(target)
        with Image.open(work / "asked.png") as asked:  # twice as fine as a page shows it
            small = asked.convert("RGB").resize((asked.width // 2, asked.height // 2), SMOOTH)
        (args.out / "ask-motorcycle.jpg").write_bytes(encoded(small))


if __name__ == "__main__":
    main()
