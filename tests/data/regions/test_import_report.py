"""The report of an import."""

import json

import pytest

from crossgaze.data.regions.import_report import ImportReport, read_import_report
from crossgaze.errors import FileFormatError, InputError


def test_a_report_reads_back(tmp_path):
    report = ImportReport("npz", 3, 2, 14, 1, ("info", "num_bbox"))
    report.save(tmp_path)
    assert read_import_report(tmp_path) == report
    assert json.loads((tmp_path / "report.json").read_text()) == {
        "from": "npz",
        "files": 3,
        "images": 2,
        "regions_cut": 14,
        "images_cut": 1,
        "ignored": ["info", "num_bbox"],
        "finished": True,
        "shard": "",
    }


@pytest.mark.parametrize("content", [[], {"photos": 3}, {"from": 3}])
def test_another_report_is_named(tmp_path, content):
    (tmp_path / "report.json").write_text(json.dumps(content))
    with pytest.raises(FileFormatError, match=r"report.json: does not read as the report of an im"):
        read_import_report(tmp_path)


def test_no_report(tmp_path):
    with pytest.raises(InputError, match=r"report.json: no such file, wanted the report of an imp"):
        read_import_report(tmp_path)
