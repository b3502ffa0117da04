"""How many bad files `make reliability` makes for each reader that is fuzzed."""

# Bad files that `make reliability` makes for each reader by Hypothesis: fewer of what reads slowly.
# Those of texts have 10,000 each, and as ATHERIS_RUNS says by Atheris.
TEXT_INPUTS, ATHERIS_RUNS = 10_000, 20_000
ARRAY_INPUTS = {
    10_000: (
        *("boxes: COCO's JSON", "boxes: COCO's detections", "boxes: TSV"),
        *("report of an extraction", "recipe: training", "result of an evaluation", "index: head"),
        *("weights: PyTorch", "weights: safetensors", "backbone: preprocessing"),
        *(f"photograph: {kind}" for kind in ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")),
        *("photograph: EXIF in JPEG", "photograph: EXIF in TIFF"),
    ),
    2_000: (
        *("region store", "features: TSV", "features: LXMERT's TSV"),
        *("features: .npy", "features: .npz"),
        *("model folder", "model folder: ensemble", "model folder: caption generator"),
    ),
    1_000: (
        *(f"checkpoint: {family}" for family in ("scan", "bfan", "vsrn", "vse++")),
        *("checkpoint: without a zip", "model folder: r-DAN"),
    ),
    500: ("model folder: BERT",),
    200: (
        *("model folder: words by a BERT", "model folder: regions", "training run"),
        *("index: sentences", "index: all files"),
    ),
}
