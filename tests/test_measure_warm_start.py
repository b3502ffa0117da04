"""What a cold and a warm start are compared by, and that the page holds the JSON's table."""

import json
from itertools import islice

import pytest
import torch

from crossgaze.training.losses import Hardest, LossConfig
from crossgaze.training.warm_start import WarmStart
from model_parts import draw

warm = pytest.importorskip("measure_warm_start", reason="needs tools/")


def test_what_is_written_down_is_what_loops_find():
    scores, owners = draw(5, 5), torch.tensor([0, 1, 1, 2, 3])
    rows = scores.tolist()
    found = losses = 0
    for i in range(5):
        wrong = [j for j in range(5) if owners[j] != owners[i]]
        texts, images = [rows[i][j] for j in wrong], [rows[j][i] for j in wrong]
        found += rows[i][i] > max(texts)
        losses += max(0, 0.2 - rows[i][i] + max(texts)) + max(0, 0.2 - rows[i][i] + max(images))
    told = warm.look(scores, owners, owners, Hardest(0.2))
    assert told["found"] == pytest.approx(found / 5)
    assert told["loss"] == pytest.approx(losses)
    mean = sum(map(sum, rows)) / 25
    spread = (sum((one - mean) ** 2 for row in rows for one in row) / 24) ** 0.5
    assert told["spread"] == pytest.approx(spread)
    equal = torch.full((4, 4), 0.3)
    alone = torch.arange(4)
    told = warm.look(equal, alone, alone, Hardest(0.2))
    assert told["found"] == 0  # ties do not count
    assert told["spread"] == pytest.approx(0, abs=1e-6)
    assert told["loss"] == pytest.approx(2 * 4 * 0.2)


def test_losses_stay_those_of_the_start_and_are_watched():
    schedule = WarmStart(LossConfig(warm_steps=4))
    watched = warm.Watched(schedule, 0.2)
    scores, images = draw(3, 3), torch.arange(3)
    for step in range(6):
        assert watched.at(step)(scores, images, images) == schedule.at(step)(scores, images, images)
    assert len(watched.seen) == 6
    assert len({one["loss"] for one in watched.seen}) == 1  # the hardest, whatever the start


def test_a_rows_figures_are_means_of_its_last_steps():
    seen = [{"loss": 60.0, "spread": 1.0}] * 9
    seen += [{"loss": 50.0 + n, "spread": 0.001 * n} for n in range(15)]
    assert warm.means(seen) == {"loss": 57.0, "spread": 0.007, "collapsed": False}
    assert warm.means([{"spread": 0.0049}] * 15)["collapsed"]


def test_starts_differ_in_the_warm_steps_alone_and_one_rate_is_low():
    assert [warm.warm_steps(start, 235) for start in warm.STARTS] == [0, 117, 235]
    for _, recipe, rate, steps, starts in warm.ROWS:
        assert (starts[0], starts[-1]) == ("cold", "an epoch")
        assert steps >= 235 + warm.LAST  # the last of them are after the start
        config = warm.config_of(recipe, rate)
        assert config.model["text"]["kind"] == "gru"
        assert (config.model["size"], config.batch, config.average) == (256, warm.BATCH, 0)
        assert (config.schedule.kind, config.schedule.warmup) == ("constant", 0)
        assert (config.augment.regions, config.augment.features) == (0, 0)
    assert min(float(rate) for _, _, rate, *_ in warm.ROWS) == 2e-4


def test_one_epoch_follows_the_other():
    class Captions:
        def order(self, seed, epoch, batch):
            return [(epoch, number) for number in range(2)]

        def batches(self, order):
            yield from order

    assert list(islice(warm.endless(Captions(), 0), 3)) == [(0, 0), (0, 1), (1, 0)]


def run_of(start, steps, spread, *, fallen):
    figures = {"loss": 51.23, "found": 0.254, "spread": spread, "collapsed": fallen}
    return {"start": start, "warm_steps": steps, **figures}


def test_the_page_is_the_jsons(tmp_path):
    starts = [run_of("cold", 0, 0.0004, fallen=True), run_of("an epoch", 235, 0.1812, fallen=False)]
    rows = [{"model": "VSE++", "rate": "2e-3", "steps": 400, "starts": starts}]
    page = tmp_path / "page.md"
    page.write_text(f"before\n{warm.BEGIN}\nstale\n{warm.END}\nafter\n")
    warm.write_page({"command": "python x.py", "rows": rows}, page)
    text = page.read_text()
    assert "| VSE++, 2e-3, 400 | cold | 51.2 | 0.25 | 0.0004: collapsed |" in text
    assert "|  | warm over 235 (an epoch) | 51.2 | 0.25 | 0.18 |" in text
    assert "51.2 is 2 x batch x margin" in text
    assert "stale" not in text
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")


def test_the_guide_has_the_table_that_was_measured_or_says_whose_it_is():
    text = (warm.ROOT / warm.PAGE).read_text("utf-8")
    held = text.split(warm.BEGIN)[1].split(warm.END)[0].strip()
    measured = warm.ROOT / warm.JSON
    if measured.is_file():
        assert held == warm.written(json.loads(measured.read_text("utf-8")))
    else:
        assert held.startswith("Of an earlier session, whose script was not kept")
