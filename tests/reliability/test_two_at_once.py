"""Two processes that write to one place: the second is told who the first is."""

import random
import signal
import time

import pytest

import bad_places
import crossgaze
import feature_files
import killing_work
import search_parts
import training_parts
from crossgaze.errors import InputError
from killing import lines_of, start


@pytest.mark.parametrize("verb", ["extract", "import features", "train"])
def test_a_second_writer_is_refused_with_the_firsts_pid(tmp_path, verb):
    out = tmp_path / "out"
    if verb == "extract":
        for number in range(3):
            search_parts.make_photo(tmp_path / "photos" / f"{number}.png", number)
        work = (killing_work.extract, tmp_path / "photos", out)
    elif verb == "import features":
        (tmp_path / "a.tsv").write_text(feature_files.tsv_line("a", *feature_files.random_image(2)))
        work = (killing_work.bring_features, tmp_path / "a.tsv", out)
    else:
        paths = training_parts.write_world(tmp_path, images=6, dev=2)
        tree = training_parts.tree(paths, "vse++", epochs=1, batch=6)
        work = (killing_work.learn, tree, out)
    run, *args = work
    out.mkdir()
    holder, told = start(killing_work.hold, out)
    assert told.recv() == "held"
    with pytest.raises(InputError, match=rf"another process \(pid {holder.pid}\); wait"):
        run(None, *args)
    holder.kill()
    holder.join()
    told.close()
    assert holder.exitcode == -signal.SIGKILL
    run(None, *args)  # the lock has ended with its holder


def test_two_imports_to_one_place_leave_one_whole_model(tmp_path):
    """Neither waits for the other; whoever comes last, the model is never of both."""
    paths = [bad_places.checkpoint(tmp_path / f"{v}.pth.tar", v) for v in (0.25, 0.5)]
    out, rng = tmp_path / "model", random.Random(0)
    killing_work.import_checkpoint(paths[0], "scan").save_pretrained(out)
    both = [start(killing_work.bring_models, [path], out) for path in paths]
    assert [told.recv() for _, told in both] == [0, 0]  # each has brought its own
    found = []
    for _ in range(400):
        time.sleep(rng.random() * 0.05)
        assert (out / "config.json").is_file()  # at every moment there is a model
        try:
            found.append(weights_of(out))
        except InputError:
            continue  # its files were read across the change of one for the other
        assert found[-1] in ({0.25}, {0.5})  # whole, and never of both
        if len(found) == 10:
            break
    assert len(found) == 10, "most of the time it was refused"
    for process, told in both:
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert len(lines_of(told)) > 3, "it brought nothing meanwhile"
        told.close()
    assert weights_of(out) in ({0.25}, {0.5})


def weights_of(folder):
    """Return the numbers that a model's weights are."""
    return {float(x) for y in crossgaze.load(folder).state_dict().values() for x in y.unique()}
