"""The papers' own numbers, as their tables print them; none of these was measured here.

Rows of the methods that crossgaze builds, typed in from the papers and named as they are there;
where CCR/CCS prints "+ CCR" below a model, the model's name is put in front. Where a paper copies
another's figures for comparison (DAN's in SCAN's table 1 and MMCA's, SCAN's pair in VSRN's tables
1-3, SCAN's pair and VSE++ in MMCA's tables 1-3) they stand once, in the paper that measured them.

* SCAN: Lee et al., Stacked Cross Attention for Image-Text Matching, ECCV 2018.
* VSRN: Li et al., Visual Semantic Reasoning for Image-Text Matching, ICCV 2019.
* DAN: Nam, Ha, Kim, Dual Attention Networks for Multimodal Reasoning and Matching, CVPR 2017.
* MMCA: Wei et al., Multi-Modality Cross Attention Network for Image and Sentence Matching, CVPR
  2020.
* CCR/CCS: Chen et al., More Than Just Attention: Learning Cross-Modal Attentions with Contrastive
  Constraints.

Their features come from networks that are not used here (VGG, ResNet, a Faster R-CNN trained on
Visual Genome). "5 x 1K" is the mean of five folds of 1,000 images of MS-COCO, "5K" all 5,000 at
once. VSRN's tables 1-3 average two models. Where a row prints an rsum, `rsum` is what is printed:
that of the last row of CCR/CCS's table 3 (435.2) is not the sum of its six recalls (437.4).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from crossgaze.evaluation.recall import RECALLS


@dataclass(frozen=True)
class PaperRow:
    """One row of a paper's table.

    Args:
        paper: "SCAN", "VSRN", "DAN", "MMCA" or "CCR/CCS".
        table: its number.
        name: the row, as it is called there.
        family: the crossgaze family that it belongs to.
        data: the data set that it was tested on.
        protocol: "1K", "5 x 1K" or "5K".
        figures: by the names of `crossgaze.evaluation.recall.FIGURES`; what a row does not print is
            not there. An attention table has "precision", "recall" and "f1".
        trained: what it was trained on, where that is another set.
    """

    paper: str
    table: int
    name: str
    family: str
    data: str
    protocol: str
    figures: dict[str, float]
    trained: str = ""

    @property
    def rsum(self) -> float | None:
        """The printed rsum, or the sum of the six recalls where none is printed."""
        if "rsum" in self.figures or any(name not in self.figures for name in RECALLS):
            return self.figures.get("rsum")
        return round(sum(self.figures[name] for name in RECALLS), 1)

    @property
    def source(self) -> str:
        """Where it stands."""
        return f"{self.paper} table {self.table}"


F30K, COCO = "Flickr30K", "MS-COCO"
_WITH_RSUM = (*RECALLS, "rsum")
_WITH_MEDIAN = (*RECALLS[:3], "i2t_median", *RECALLS[3:], "t2i_median")
_ATTENTION = ("precision", "recall", "f1")


def _rows(
    paper: str,
    table: int,
    family: str,
    data: str,
    protocol: str,
    lines: str,
    columns: Iterable[str] = RECALLS,
    trained: str = "",
) -> list[PaperRow]:
    """Return the rows of lines `name: number number ...`, a dash for what is not printed."""
    names = tuple(columns)
    rows = []
    for line in lines.strip().splitlines():
        name, _, cells = line.strip().rpartition(": ")
        pairs = zip(names, cells.split(), strict=True)
        figures = {column: float(cell) for column, cell in pairs if cell != "-"}
        rows.append(PaperRow(paper, table, name, family, data, protocol, figures, trained))
    return rows


ROWS: tuple[PaperRow, ...] = (
    *_rows("DAN", 2, "m-dan", F30K, "1K", """
        DAN (VGG): 41.4 73.5 82.5 2 31.8 61.7 72.5 3
        DAN (ResNet): 55.0 81.8 89.0 1 39.4 69.2 79.1 2
        """, _WITH_MEDIAN),
    *_rows("SCAN", 1, "vse++", F30K, "1K", "VSE++ (ResNet): 52.9 - 87.2 39.6 - 79.5"),
    *_rows("SCAN", 1, "scan", F30K, "1K", """
        SCAN t-i LSE (lambda_1 = 9, lambda_2 = 6): 61.1 85.4 91.5 43.3 71.9 80.9
        SCAN t-i AVG (lambda_1 = 9): 61.8 87.5 93.7 45.8 74.4 83.0
        SCAN i-t LSE (lambda_1 = 4, lambda_2 = 5): 67.7 88.9 94.0 44.0 74.2 82.6
        SCAN i-t AVG (lambda_1 = 4): 67.9 89.0 94.4 43.9 74.2 82.8
        SCAN t-i AVG + i-t LSE: 67.4 90.3 95.8 48.6 77.7 85.2
        """),
    *_rows("SCAN", 2, "vse++", COCO, "5 x 1K", "VSE++ (ResNet): 64.6 - 95.7 52.0 - 92.0"),
    *_rows("SCAN", 2, "scan", COCO, "5 x 1K", """
        SCAN t-i LSE (lambda_1 = 9, lambda_2 = 6): 67.5 92.9 97.6 53.0 85.4 92.9
        SCAN t-i AVG (lambda_1 = 9): 70.9 94.5 97.8 56.4 87.0 93.9
        SCAN i-t LSE (lambda_1 = 4, lambda_2 = 20): 68.4 93.9 98.0 54.8 86.1 93.3
        SCAN i-t AVG (lambda_1 = 4): 69.2 93.2 97.5 54.4 86.0 93.6
        SCAN t-i LSE + i-t AVG: 72.7 94.8 98.4 58.8 88.4 94.8
        """),
    *_rows("SCAN", 2, "vse++", COCO, "5K", "VSE++ (ResNet): 41.3 - 81.2 30.3 - 72.4"),
    *_rows("SCAN", 2, "scan", COCO, "5K", """
        SCAN i-t LSE: 46.4 77.4 87.2 34.4 63.7 75.7
        SCAN t-i AVG + i-t LSE: 50.4 82.2 90.0 38.6 69.3 80.4
        """),
    *_rows("SCAN", 3, "vse++", F30K, "1K", """
        VSE++ (fixed ResNet, 1 crop): 31.9 - 68.0 23.1 - 60.7
        """),
    *_rows("SCAN", 3, "sum-max", F30K, "1K", """
        Sum-Max t-i: 59.6 85.2 92.9 44.1 70.0 79.0
        Sum-Max i-t: 56.7 83.5 89.7 36.8 65.6 74.9
        """),
    *_rows("SCAN", 3, "scan", F30K, "1K", """
        SCAN t-i AVG (lambda_1 = 9): 61.8 87.5 93.7 45.8 74.4 83.0
        SCAN i-t AVG (lambda_1 = 10): 67.9 89.0 94.4 43.9 74.2 82.8
        """),
    *_rows("SCAN", 4, "scan", F30K, "1K", """
        Baseline: SCAN i-t AVG: 67.9 89.0 94.4 43.9 74.2 82.8
        No hard negatives: 45.8 77.8 86.2 33.9 63.7 73.4
        Not normalize image embedding: 67.8 89.3 94.6 43.3 73.7 82.7
        SCAN i-t SUM: 63.9 89.0 93.9 45.0 73.1 82.0
        SCAN i-t MAX: 59.7 83.9 90.8 43.3 72.0 80.9
        One-directional GRU: 63.6 87.7 93.7 43.2 73.1 82.3
        """),
    *_rows("VSRN", 1, "vse++", COCO, "5 x 1K", "VSE++: 64.6 89.1 95.7 52.0 83.1 92.0"),
    *_rows("VSRN", 1, "vsrn", COCO, "5 x 1K", "VSRN (ours): 76.2 94.8 98.2 62.8 89.7 95.1"),
    *_rows("VSRN", 2, "vse++", COCO, "5K", "VSE++: 41.3 69.2 81.2 30.3 59.1 72.4"),
    *_rows("VSRN", 2, "vsrn", COCO, "5K", "VSRN (ours): 53.0 81.1 89.4 40.5 70.6 81.1"),
    *_rows("VSRN", 3, "vse++", F30K, "1K", "VSE++: 52.9 79.1 87.2 39.6 69.6 79.5"),
    *_rows("VSRN", 3, "vsrn", F30K, "1K", "VSRN (ours): 71.3 90.6 96.0 54.7 81.8 88.2"),
    *_rows("VSRN", 4, "vsrn", COCO, "5 x 1K", """
        Mean-pool: 64.3 90.5 95.1 49.2 83.4 91.5
        RRR: 68.5 93.2 96.3 56.8 87.2 94.2
        GSR: 72.3 94.4 98.0 59.6 88.6 94.5
        1RRR + GSR: 75.3 94.7 98.1 62.1 89.2 94.9
        4RRR + GSR: 76.2 94.8 98.2 62.8 89.7 95.1
        4RRR + GSR*: 74.6 94.6 98.2 61.2 89.0 94.8
        """),
    *_rows("VSRN", 5, "vsrn", COCO, "5 x 1K", """
        VSRN-Random: 75.1 94.5 98.0 62.3 89.1 94.6
        VSRN-BboxSize: 75.8 94.9 98.4 62.5 89.5 94.8
        VSRN-Confidence: 76.2 94.8 98.2 62.8 89.7 95.1
        """),
    *_rows("MMCA", 1, "mmca", F30K, "1K", "MMCA: 74.2 92.8 96.4 54.8 81.4 87.8"),
    *_rows("MMCA", 2, "mmca", COCO, "5 x 1K", "MMCA: 74.8 95.6 97.7 61.6 89.8 95.2"),
    *_rows("MMCA", 3, "mmca", COCO, "5K", "MMCA: 54.0 82.5 90.7 38.7 69.7 80.8"),
    *_rows("MMCA", 4, "mmca", F30K, "1K", """
        64d: 71.4 91.0 95.3 52.5 79.6 87.2
        128d: 72.6 91.8 96.5 53.5 80.4 86.8
        256d: 74.2 92.8 96.4 54.8 81.4 87.8
        512d: 73.6 91.7 95.5 53.9 81.2 88.4
        """),
    *_rows("MMCA", 5, "mmca", COCO, "5 x 1K", """
        64d: 71.7 92.3 95.6 57.5 84.3 92.2
        128d: 73.7 93.8 97 60.7 90.8 94.7
        256d: 74.8 95.6 97.7 61.6 89.8 95.2
        512d: 74.1 94.2 97.5 60.4 88.5 94.3
        """),
    *_rows("MMCA", 6, "mmca", F30K, "1K", """
        alpha = 0.1: 71.7 91.6 95.9 53.8 81.2 89.1
        alpha = 0.2: 74.2 92.8 96.4 54.8 81.4 87.8
        alpha = 0.4: 71.8 91.9 95.0 50.9 76.6 84.1
        alpha = 0.8: 67.1 87.0 91.9 48.5 71.9 78.3
        """),
    *_rows("CCR/CCS", 1, "scan", F30K, "1K", """
        SCAN: 67.4 90.7 94.9 47.8 77.4 85.3 463.5
        SCAN + CCR: 71.4 92.7 95.5 50.6 79.4 86.2 475.8
        SCAN + CCS: 69.8 91.4 95.9 51.1 79.2 86.4 473.8
        SCAN + CCR + CCS: 70.1 92.0 96.0 52.3 79.9 86.8 477.1
        """, _WITH_RSUM),
    *_rows("CCR/CCS", 1, "bfan", F30K, "1K", """
        BFAN: 73.6 93.2 96.3 53.0 79.7 86.7 482.5
        BFAN + CCR: 73.7 93.8 96.7 54.6 81.3 87.3 487.4
        BFAN + CCS: 73.1 93.3 96.9 53.9 80.6 87.6 485.4
        BFAN + CCR + CCS: 75.3 93.6 96.7 55.4 81.3 87.7 490.0
        """, _WITH_RSUM),
    *_rows("CCR/CCS", 2, "scan", COCO, "5 x 1K", """
        SCAN: 69.4 93.5 97.4 52.2 85.1 93.1 490.7
        SCAN + CCR: 71.3 94.2 97.8 56.4 87.2 94.1 501.0
        SCAN + CCS: 70.4 94.2 98.0 56.8 87.4 94.2 501.0
        SCAN + CCR + CCS: 70.9 94.3 98.0 57.3 87.6 94.3 502.4
        """, _WITH_RSUM),
    *_rows("CCR/CCS", 2, "bfan", COCO, "5 x 1K", """
        BFAN: 73.9 95.0 98.4 59.2 88.4 94.6 509.5
        BFAN + CCR: 75.7 95.2 98.3 60.1 88.6 94.7 512.6
        BFAN + CCS: 75.1 95.1 98.2 59.3 88.3 94.5 510.5
        BFAN + CCR + CCS: 75.4 95.3 98.5 60.3 88.6 94.6 512.7
        """, _WITH_RSUM),
    *_rows("CCR/CCS", 2, "scan", COCO, "5K", """
        SCAN: 47.2 77.6 87.7 34.7 65.2 77.3 389.7
        SCAN + CCR: 47.7 78.3 88.2 36.2 66.6 78.2 395.2
        SCAN + CCS: 46.5 78.5 88.0 36.5 66.6 78.3 394.4
        SCAN + CCR + CCS: 47.9 78.1 88.2 36.9 66.9 78.4 396.4
        """, _WITH_RSUM),
    *_rows("CCR/CCS", 2, "bfan", COCO, "5K", """
        BFAN: 51.2 80.4 89.5 37.4 66.5 78.2 403.2
        BFAN + CCR: 53.5 81.5 90.1 38.3 67.8 78.5 409.7
        BFAN + CCS: 52.8 81.1 89.8 37.9 67.0 78.2 406.8
        BFAN + CCR + CCS: 53.1 81.8 90.2 38.8 67.8 78.6 410.3
        """, _WITH_RSUM),
    *_rows("CCR/CCS", 3, "scan", F30K, "1K", """
        SCAN: 55.0 80.7 88.2 41.8 69.9 78.7 414.3
        SCAN + CCR + CCS: 55.3 82.4 90.2 45.1 71.5 79.7 424.2
        """, _WITH_RSUM, trained=COCO),
    *_rows("CCR/CCS", 3, "bfan", F30K, "1K", """
        BFAN: 57.5 84.7 91.5 45.0 71.7 80.0 430.4
        BFAN + CCR + CCS: 59.9 85.7 92.0 46.3 72.6 80.9 435.2
        """, _WITH_RSUM, trained=COCO),
    *_rows("CCR/CCS", 4, "scan", F30K, "1K", """
        SCAN: 0.201 0.858 0.305
        SCAN + CCR: 0.221 0.914 0.333
        SCAN + CCS: 0.210 0.883 0.317
        SCAN + CCR + CCS: 0.238 0.916 0.352
        """, _ATTENTION),
    *_rows("CCR/CCS", 4, "bfan", F30K, "1K", """
        BFAN: 0.315 0.815 0.419
        BFAN + CCR: 0.356 0.784 0.448
        BFAN + CCS: 0.329 0.848 0.437
        BFAN + CCR + CCS: 0.372 0.805 0.466
        """, _ATTENTION),
)  # fmt: skip


def retrieval_rows(families: Iterable[str], data: str, protocol: str) -> list[PaperRow]:
    """Return the papers' retrieval rows of some families on a set, in the order of the tables.

    A row that a later table of the same paper repeats with the same numbers comes once.

    Example:
        >>> [row.name for row in retrieval_rows(["sum-max"], "Flickr30K", "1K")]
        ['Sum-Max t-i', 'Sum-Max i-t']
    """
    wanted = set(families)
    found: dict[tuple[object, ...], PaperRow] = {}
    for row in ROWS:
        here = row.family in wanted and (row.data, row.protocol) == (data, protocol)
        if here and "i2t_r1" in row.figures:
            found.setdefault((row.paper, row.family, *row.figures.items()), row)
    return list(found.values())


def attention_rows(families: Iterable[str]) -> list[PaperRow]:
    """Return the rows of CCR/CCS's table 4 of some families."""
    wanted = set(families)
    return [row for row in ROWS if row.family in wanted and "f1" in row.figures]
