"""Region features in the files that users have, for the tests of their importers."""

import base64

import numpy as np

RNG = np.random.default_rng(3)


def save(path, array):
    np.save(path, array)
    return path


def random_image(count, width=6):
    """Return boxes (count, 4) and features (count, width)."""
    corner = RNG.uniform(0, 100, (count, 2))
    boxes = np.concatenate([corner, corner + RNG.uniform(1, 50, (count, 2))], axis=1)
    return boxes.astype(np.float32), RNG.normal(size=(count, width)).astype(np.float32)


def base64_of(array, dtype="<f4"):
    return base64.b64encode(np.asarray(array, dtype).tobytes()).decode()


def tsv_line(name, boxes, features, width=640, height=480, count=None):
    cells = [name, width, height, count or len(boxes), base64_of(boxes), base64_of(features)]
    return "\t".join(map(str, cells)) + "\n"


def lxmert_cells(name, boxes, features, width=640, height=480, **other):
    """Return LXMERT's ten columns by name, objects and attributes made from the image's number."""
    n = len(boxes)
    return {
        "img_id": name,
        "img_h": height,
        "img_w": width,
        "objects_id": base64_of(np.arange(n) + 1000, "<i8"),
        "objects_conf": base64_of(np.linspace(0.25, 0.5, n)),
        "attrs_id": base64_of(np.arange(n) * 3, "<i8"),
        "attrs_conf": base64_of(np.linspace(0.125, 1, n)),
        "num_boxes": n,
        "boxes": base64_of(boxes),
        "features": base64_of(features),
    } | other


def lxmert_line(name, boxes, features, **other):
    return "\t".join(map(str, lxmert_cells(name, boxes, features, **other).values())) + "\n"
