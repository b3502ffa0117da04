"""Write docs/equations.md: every equation of the five papers, and the line that implements it.

The source says which: a docstring line or comment with `Eq. 3: ...`, `Eqs. 4-6 ...` or
`Eq. 16 for images, Eq. 17 for words`, with `of SCAN` where a file serves more than one paper.

    python tools/equations.py            # write the page
    python tools/equations.py --check    # say whether it is current
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "equations.md"

# paper -> (title, number of its last equation, files whose bare `Eq. n` are this paper's)
PAPERS = {
    "SCAN": ("Stacked Cross Attention for Image-Text Matching", 16, ["scan", "summax"]),
    "VSRN": ("Visual Semantic Reasoning for Image-Text Matching", 10, ["vsrn", "vsrn_captioner"]),
    "DAN": (
        "Dual Attention Networks for Multimodal Reasoning and Matching",
        23,
        ["dan", "dan_attention", "rdan"],
    ),
    "MMCA": (
        "Multi-Modality Cross Attention Network for Image and Sentence Matching",
        15,
        ["mmca", "transformer_unit"],
    ),
    "CCR/CCS": (
        "More Than Just Attention: Learning Cross-Modal Attentions with Contrastive Constraints",
        10,
        ["constraints"],
    ),
}
# Equations that come later, and what they are of.
LATER = {
    "SCAN": {},
    "VSRN": {},
    "DAN": {},
    "MMCA": {},
    "CCR/CCS": {},
}
MENTION = re.compile(r"\bEqs?\. (\d+)(?:-(\d+))?(?: of (SCAN|VSRN|DAN|MMCA|CCR/CCS))?")


def find(root=ROOT):
    """Return {paper: {equation: [(file, line)]}} from the sources."""
    found = {paper: {} for paper in PAPERS}
    for path in sorted((root / "src" / "crossgaze").rglob("*.py")):
        default = next((p for p, (_, _, files) in PAPERS.items() if path.stem in files), None)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            mentions = list(MENTION.finditer(line))
            if not mentions or not re.match(r'\s*(#|"""|r"""|Eqs?\.)|.*#.*\bEqs?\.', line):
                continue  # prose about an equation, not the place that implements it
            for mention in mentions:
                paper = mention[3] or default
                if paper is None:
                    continue
                for equation in range(int(mention[1]), int(mention[2] or mention[1]) + 1):
                    place = (path.relative_to(root).as_posix(), number)
                    found[paper].setdefault(equation, []).append(place)
    return found


def page(root=ROOT):
    """Return the page's text."""
    lines = [
        "# Where each equation is",
        "",
        "Made by `tools/equations.py` from the sources; a test keeps it current.",
    ]
    found = find(root)
    for paper, (title, last, _) in PAPERS.items():
        lines += ["", f"## {paper}", "", f"*{title}*", "", "| equation | where |", "| --- | --- |"]
        for equation in range(1, last + 1):
            places = found[paper].get(equation)
            where = ", ".join(f"`{file}:{line}`" for file, line in places or [])
            later = LATER[paper].get(equation, "")
            lines.append(f"| {equation} | {where or f'not built yet ({later})'} |")
    return "\n".join(lines) + "\n"


def main():
    if "--check" in sys.argv:
        sys.exit(0 if PAGE.read_text("utf-8") == page() else f"{PAGE} is not current")
    PAGE.write_text(page(), "utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
