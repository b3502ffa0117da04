"""What a summary says of the machine."""

from crossgaze.training.summary import cpu_name, versions


def test_the_processor_is_named_by_linuxs_list(tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel name\t: Some CPU @ 2.50GHz\n\nmodel name\t: Other\n")
    assert cpu_name(info) == "Some CPU @ 2.50GHz"
    info.write_text("processor\t: 0\n")  # as on ARM
    assert cpu_name(info) is None
    cpu_name(tmp_path / "not there")  # another system: whatever Python knows
    assert versions()["cpu"] == cpu_name()
