"""Small Flickr30k Entities files, written by hand, for several test files."""

import zipfile

import pytest

from crossgaze.data.entities.annotations import EntityImage
from crossgaze.data.entities.archive import Entities
from crossgaze.errors import FileFormatError

# 100 x 200 pixels; entities 5 and 6 share a box, 5 has a second, 7 is a scene, 8 has no box.
XML = """<annotation>
\t<filename>42.jpg</filename>
\t<size>
\t\t<width>100</width><height>200</height><depth>3</depth>
\t</size>
\t<object>
\t\t<name>5</name>
\t\t<name>6</name>
\t\t<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>100</xmax><ymax>200</ymax></bndbox>
\t</object>
\t<object>
\t\t<name>5</name>
\t\t<bndbox><xmin>11</xmin><ymin>21</ymin><xmax>30</xmax><ymax>60</ymax></bndbox>
\t</object>
\t<object><name>7</name><scene>1</scene><nobndbox>0</nobndbox></object>
\t<object><name>8</name><scene>0</scene><nobndbox>1</nobndbox></object>
\t<object><name>9</name><scene>1</scene><nobndbox>1</nobndbox></object>
</annotation>
"""
SENTENCES = (
    "[/EN#5/people/animals Two pups] chase [/EN#0/notvisual each other] "
    "near [/EN#7/scene a lake] .\n"
    "Nothing here is marked .\n"
)


def folder(root, xml=XML, sentences=SENTENCES, image="42"):
    for name, suffix, content in (("Annotations", "xml", xml), ("Sentences", "txt", sentences)):
        if content is not None:
            (root / name).mkdir(parents=True, exist_ok=True)
            raw = content if isinstance(content, bytes) else content.encode()
            (root / name / f"{image}.{suffix}").write_bytes(raw)
    return root


def zipped(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def read(root, **files) -> EntityImage:
    return Entities.open(folder(root, **files)).read("42")


def refusal(root, **files) -> FileFormatError:
    with pytest.raises(FileFormatError) as caught:
        read(root, **files)
    assert "\n" not in str(caught.value)
    return caught.value
