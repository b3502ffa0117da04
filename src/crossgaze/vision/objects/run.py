"""A training run of the region network: what it has between epochs, and its steps."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from crossgaze.config import to_dict
from crossgaze.errors import InputError
from crossgaze.vision.objects.losses import judge_loss, proposal_loss
from crossgaze.vision.objects.network import RegionNetwork
from crossgaze.vision.objects.taps import TapCache, Taps
from crossgaze.vision.objects.targets import Target
from crossgaze.vision.objects.train_config import TrainConfig

SECOND = ("from_", "trunk", "refine", "quality", "nouns", "attributes")  # parts of stage 2
LOSS_WEIGHTS = {
    "objectness": 1.0,
    "proposal box": 8.0,
    "quality": 4.0,
    "box": 8.0,
    "noun": 1.0,
    "attribute": 0.5,
}


class Run:
    """A training run's state between epochs."""

    def __init__(
        self,
        config: TrainConfig,
        model: RegionNetwork,
        taps: Taps,
        parts: list[tuple[TapCache, list[Target]]],
    ) -> None:
        self.config, self.model, self.taps, self.parts = config, model, taps, parts
        self.epoch = 0
        self.device = torch.device(config.device)
        self.per_epoch = math.ceil(len(parts[0][1]) / config.batch)
        self.log = config.out / "log.jsonl"
        if not config.rounds or config.epochs % config.rounds:
            raise InputError(
                f"rounds: got {config.rounds} for {config.epochs} epochs, wanted a number that "
                "divides them"
            )
        self._begin_round()

    @property
    def round(self) -> tuple[int, int]:
        """The number of the round and the epoch within it; the second stage is the last round."""
        config = self.config
        each = config.epochs // config.rounds
        if self.epoch >= config.epochs:
            return config.rounds, self.epoch - config.epochs
        return self.epoch // each, self.epoch % each

    def _begin_round(self) -> None:
        """Let the parameters of the stage whose turn it is learn, with rates from their start."""
        config, (number, _) = self.config, self.round
        second = number == config.rounds
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(name.startswith(SECOND) == second)
        learning = [p for p in self.model.parameters() if p.requires_grad]
        steps = self.per_epoch * (config.second if second else config.epochs // config.rounds)
        highest = config.rate * (1.0 if second else config.again**number)

        def rate(step: int) -> float:
            fall = 0.5 + 0.5 * math.cos(math.pi * min(step / max(steps, 1), 1))
            return min(1.0, (step + 1) / 200) * fall

        rates = torch.optim.lr_scheduler.LambdaLR
        self.optimizer = torch.optim.AdamW(learning, highest, weight_decay=config.decay)
        self.rates = rates(self.optimizer, rate)

    def resume(self) -> None:
        """Go on from the state in the run's folder, if there is one."""
        path = self.config.out / "state.pt"
        if not path.is_file():
            return
        state = torch.load(path, map_location=self.device, weights_only=True)
        if state["config"] != self.settings():
            raise InputError(f"{path}: is of a run with other settings; choose another out folder")
        self.model.load_state_dict(state["model"])
        self.epoch = state["epoch"]
        self._begin_round()
        if self.round[1]:  # else a round begins, with an optimiser of its own
            self.optimizer.load_state_dict(state["optimizer"])
            self.rates.load_state_dict(state["rates"])

    def settings(self) -> str:
        """Return what a run that goes on must agree in.

        Neither where things lie nor the choice of regions, which is made after training.
        """
        found, other = to_dict(self.config), ("flickr8k", "entities", "out", "selection")
        kept = {key: found[key] for key in found if key not in other}
        return json.dumps(kept, sort_keys=True)

    def save(self) -> None:
        """Write the state whole."""
        state: dict[str, Any] = {"epoch": self.epoch, "config": self.settings()}
        for name in ("model", "optimizer", "rates"):
            state[name] = getattr(self, name).state_dict()
        fresh = self.config.out / "state.pt.new"
        torch.save(state, fresh)
        fresh.replace(self.config.out / "state.pt")

    def one_epoch(self, on_progress: Callable[[int, int], None]) -> None:
        """Show every photograph once."""
        config, began = self.config, time.perf_counter()
        cache, wanted = self.parts[self.epoch % len(self.parts)]
        number, place = self.round
        stage = 2 if number == config.rounds else 1  # a round repeats the orders of the first
        torch.manual_seed(config.seed * 1000 + stage * 100 + place)
        order = torch.randperm(len(wanted)).tolist()
        self.model.train()
        sums: dict[str, float] = {}
        count = 0
        total = (config.epochs + config.second) * len(order)
        for start in range(0, len(order), config.batch):
            rows = order[start : start + config.batch]
            losses = self.step(cache, rows, wanted)
            for name, loss in losses.items():
                sums[name] = sums.get(name, 0.0) + loss.item()
            count += 1
            on_progress(self.epoch * len(order) + start + len(rows), total)
            if count % 100 == 0 or start + config.batch >= len(order):
                means = {name: round(value / count, 4) for name, value in sums.items()}
                self._note({"epoch": self.epoch + 1, "step": start // config.batch + 1, **means,
                            "seconds": round(time.perf_counter() - began, 1)})  # fmt: skip
                sums, count = {}, 0
        self.epoch += 1
        self.save()
        if not self.round[1]:
            self._begin_round()

    def step(
        self, cache: TapCache, rows: Sequence[int], wanted: Sequence[Target]
    ) -> dict[str, Tensor]:
        """One step of the stage whose turn it is; return the losses, detached."""
        mine = [wanted[row].to(self.device) for row in rows]
        maps = cache.batch(rows, self.device)
        if self.epoch < self.config.epochs:
            score, box = proposal_loss(self.model.guess(maps), self.model.anchors, mine)
            losses = {"objectness": score, "proposal box": box}
        else:
            losses = self._second_losses(maps, mine)
        loss = torch.stack([LOSS_WEIGHTS[name] * value for name, value in losses.items()]).sum()
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.optimizer.param_groups[0]["params"], 10.0)
        self.optimizer.step()
        self.rates.step()
        return {name: value.detach() for name, value in losses.items()}

    def _second_losses(self, maps: tuple[Tensor, ...], mine: list[Target]) -> dict[str, Tensor]:
        config = self.config
        with torch.no_grad():
            head = self.taps.head(maps[-1])
            found = self.model.propose(maps, first=config.first, proposals=config.proposals)
        whole = found.boxes.new_tensor([0.0, 0, 1, 1]).expand(len(mine), 1, 4)
        boxes = torch.cat([found.boxes, whole], 1)
        valid = torch.cat([found.valid, found.valid.new_ones(len(mine), 1)], 1)
        judged = self.model.judge(found.finest, head, boxes)
        return judge_loss(judged, boxes, valid, mine)

    def _note(self, line: dict[str, Any]) -> None:
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
