"""The region model that ships: photographs in, regions with boxes, words and features out.

    detector = load_detector()
    for regions in detector(pixels):       # (B, 320, 320, 3) uint8
        regions.boxes, regions.features    # (n, 4) shares, (n, d)

A feature is the mean of 4 x 4 samples of the backbone's ImageNet map in the box (1,280 numbers)
and the second stage's view of the box (what nouns and attributes are read from), side by side.
Words and features are those of the final box, so that `pool` gives the same features for the same
box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from crossgaze import __version__
from crossgaze.config import build, to_dict
from crossgaze.data.textfiles import parse_head
from crossgaze.errors import FileFormatError, InputError
from crossgaze.files import write_atomically, write_json
from crossgaze.models.fitting import load_weights, require_fit
from crossgaze.vision.backbones import BUILT_IN, load_backbone
from crossgaze.vision.backbones.base import read_weights
from crossgaze.vision.backbones.efficientnet_lite import EfficientNetLite
from crossgaze.vision.objects.boxes import inside, mirror
from crossgaze.vision.objects.network import HEAD, Judged, NetworkConfig, RegionNetwork
from crossgaze.vision.objects.selection import SelectionConfig, blended, choose, evidence
from crossgaze.vision.objects.taps import Taps
from crossgaze.vision.objects.words import Words

FORMAT, VERSION = "crossgaze-regions", 1
ZOO = Path(__file__).parents[2] / "zoo"

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Regions:
    """The regions of one photograph, the most telling first.

    Args:
        boxes: (n, 4), x1, y1, x2, y2 as shares of width and height, inside the photograph.
        confidence: (n,), what the region added to what those before it cover, 0 to 1, falling.
        nouns: (n,) number of the likeliest noun.
        noun_probability: (n,).
        attributes: (n,) number of the likeliest attribute.
        attribute_probability: (n,), given that the thing is described at all.
        features: (n, d).
    """

    boxes: Floats
    confidence: Floats
    nouns: Ints
    noun_probability: Floats
    attributes: Ints
    attribute_probability: Floats
    features: Floats

    def __len__(self) -> int:
        return len(self.boxes)


@dataclass(frozen=True, eq=False)
class Candidates:
    """What the two stages give before the choice: boxes, probabilities, and maps to pool from."""

    boxes: Tensor  # (B, n, 4)
    quality: Tensor  # (B, n, 3) probabilities
    known: Tensor  # (B, n, 11), what they follow from, `selection.evidence`
    valid: Tensor  # (B, n)
    finest: Tensor  # (B, width, h, w)
    head: Tensor  # (B, 1280, h', w')


class ObjectDetector(nn.Module):
    """A frozen backbone, the trained region network, and the choice of regions.

    Args:
        backbone: EfficientNet-Lite2.
        network: the trained parts.
        words: what its nouns and attributes are called.
        selection: how regions are chosen.
    """

    def __init__(
        self,
        backbone: EfficientNetLite,
        network: RegionNetwork,
        words: Words,
        selection: SelectionConfig | None = None,
    ) -> None:
        super().__init__()
        config = network.config
        if (len(words.nouns), len(words.attributes)) != (config.nouns, config.attributes):
            raise InputError(
                f"words: {len(words.nouns)} nouns and {len(words.attributes)} attributes, wanted "
                f"{config.nouns} and {config.attributes}"
            )
        self.taps, self.network = Taps(backbone), network
        self.words = words
        self.selection = selection or SelectionConfig()
        self.eval().requires_grad_(False)
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    @property
    def width(self) -> int:
        """Numbers in a region's feature, d."""
        return HEAD + self.network.config.hidden

    @property
    def size(self) -> int:
        """Input pixels along a side."""
        return self.network.config.size

    @property
    def nouns(self) -> tuple[str, ...]:
        """What the numbers in `Regions.nouns` mean."""
        return self.words.nouns

    @property
    def attributes(self) -> tuple[str, ...]:
        """What the numbers in `Regions.attributes` mean."""
        return self.words.attributes

    @torch.inference_mode()
    def forward(self, pixels: Tensor, *, whole: bool = False) -> list[Regions]:
        """Find the regions of some photographs.

        Args:
            pixels: (B, H, W, 3) uint8 RGB; another size than `size` x `size` is stretched to it.
            whole: whether the whole image is one more region, the last, with confidence 0.

        Returns:
            B times between 1 and 36 regions, and the whole image.
        """
        pixels = self._input(pixels)
        mirrored = self.taps(pixels.flip(2)) if self.selection.mirror else None
        found = self.candidates(self.taps(pixels), mirrored)
        number, gain, real = choose(found.boxes, found.quality, found.valid, self.selection)
        boxes = found.boxes.gather(1, number.unsqueeze(-1).expand(-1, -1, 4))  # (B, m, 4)
        # The best is always kept, so that no photograph is without a region.
        real[:, 0] = True
        if whole:
            unit = boxes.new_tensor([0, 0, 1, 1]).expand(len(boxes), 1, 4)
            boxes = torch.cat([boxes, unit], 1)
            gain, real = F.pad(gain, (0, 1)), F.pad(real, (0, 1), value=True)
        judged = self.network.judge(found.finest, found.head, boxes)
        return self._pack(boxes, gain.clamp(0, 1), judged, real)

    def candidates(
        self, maps: tuple[Tensor, ...], mirrored: tuple[Tensor, ...] | None = None
    ) -> Candidates:
        """Both stages on the backbone's maps, before the choice.

        Args:
            maps: of the photographs.
            mirrored: of their mirror images; with them boxes and qualities are the mean of both.
        """
        network, head = self.network, self.taps.head(maps[-1])
        other = None if mirrored is None else network.guess(mirrored)
        found = network.propose(maps, mirrored=other)
        judged = network.judge(found.finest, head, found.boxes)
        boxes, logits = judged.boxes, judged.quality
        if mirrored is not None and other is not None:
            turned = self.taps.head(mirrored[-1])
            again = network.judge(other.finest, turned, mirror(found.boxes))
            boxes = (boxes + mirror(again.boxes)) / 2
            logits = (logits + again.quality) / 2
        known = evidence(logits, found.scores, found.support, boxes)
        quality = blended(known, self.selection)
        return Candidates(boxes, quality, known, found.valid, found.finest, head)

    @torch.inference_mode()
    def pool(
        self, pixels: Tensor, boxes: Sequence[Tensor | npt.NDArray[np.floating]]
    ) -> list[Floats]:
        """Give the features of boxes that came from elsewhere.

        Args:
            pixels: (B, H, W, 3) uint8 RGB.
            boxes: for each photograph (n, 4), shares of width and height; cut to the photograph.

        Returns:
            For each photograph (n, d).
        """
        if len(boxes) != len(pixels):
            raise InputError(f"boxes: of {len(boxes)} photographs, wanted {len(pixels)}")
        maps = self.taps(self._input(pixels))
        head, finest = self.taps.head(maps[-1]), self.network.pyramid(maps)[0]
        out = []
        for row, given in enumerate(boxes):
            mine = torch.as_tensor(given, dtype=torch.float32, device=head.device)
            if mine.ndim != 2 or mine.shape[1] != 4 or not mine.isfinite().all():
                shape = tuple(mine.shape)
                raise InputError(f"boxes of photograph {row}: {shape}, wanted (n, 4), finite")
            if not (mine[:, :2] < mine[:, 2:]).all():
                raise InputError(f"boxes of photograph {row}: wanted x1 < x2 and y1 < y2 in each")
            one = slice(row, row + 1)
            judged = self.network.judge(finest[one], head[one], inside(mine).unsqueeze(0))
            out.append(judged.features[0].float().cpu().numpy())
        return out

    def _input(self, pixels: Tensor) -> Tensor:
        """Check photographs and stretch them to the network's size."""
        if pixels.ndim != 4 or pixels.shape[-1] != 3 or pixels.dtype != torch.uint8:
            shape = tuple(pixels.shape)
            raise InputError(f"pixels: {shape} {pixels.dtype}, wanted (B, H, W, 3) uint8")
        if 0 in pixels.shape:
            raise InputError(f"pixels: {tuple(pixels.shape)}, wanted at least one pixel")
        pixels = pixels.to(self.network.anchors.device)
        if pixels.shape[1:3] != (self.size, self.size):
            x = pixels.permute(0, 3, 1, 2).float()  # (B, 3, H, W)
            x = F.interpolate(x, (self.size, self.size), mode="bicubic", antialias=True)
            pixels = x.round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1)
        return pixels

    def _pack(self, boxes: Tensor, gain: Tensor, judged: Judged, real: Tensor) -> list[Regions]:
        nouns, noun = judged.nouns.softmax(-1).max(-1)
        attributes, attribute = judged.attributes.softmax(-1).max(-1)
        parts = (boxes, gain, noun, nouns, attribute, attributes, judged.features)
        arrays = [part.cpu().numpy() for part in parts]  # once for the whole batch
        keep = real.cpu().numpy()
        return [Regions(*(a[row][keep[row]] for a in arrays)) for row in range(len(keep))]

    def save(self, folder: str | Path) -> None:
        """Write `config.json` and the trained parts, 16-bit, as `weights.safetensors`."""
        from safetensors.torch import save

        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        weights = {k: v.half().contiguous() for k, v in self.network.state_dict().items()}
        write_atomically(out / "weights.safetensors", save(weights, metadata={"format": "pt"}))
        head = {"format": FORMAT, "version": VERSION, "crossgaze": __version__}
        head |= {"backbone": self.taps.backbone.name, "network": to_dict(self.network.config)}
        head |= {"selection": to_dict(self.selection), "words": to_dict(self.words)}
        write_json(out / "config.json", head)


def load_detector(
    source: str | Path = "objects", *, device: str | torch.device = "cpu"
) -> ObjectDetector:
    """Load the region model that ships ("objects"), or one from a folder that `save` wrote.

    Args:
        source: "objects" or a folder.
        device: where to put it.
    """
    folder = ZOO / "objects" if source == "objects" else Path(source)
    path = folder / "config.json"
    if not path.is_file():
        raise InputError(f"detector {str(source)!r}: wanted 'objects' or a folder with config.json")
    try:
        head = parse_head(path, "a region model's head")
        if head["format"] != FORMAT or head["version"] != VERSION:
            raise ValueError(f"it has format {head['format']!r}, version {head['version']!r}")
        if head["backbone"] not in BUILT_IN:  # nothing that would be looked for elsewhere
            raise ValueError(f"it names the backbone {head['backbone']!r}")
        network = build(NetworkConfig, head["network"], source=str(path))
        selection = build(SelectionConfig, head["selection"], source=str(path))
        words = build(Words, head["words"], source=str(path))
        backbone = load_backbone(head["backbone"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileFormatError(path, f"does not describe a region model: {error!r}") from None
    if not isinstance(backbone, EfficientNetLite):
        raise FileFormatError(path, f"names the backbone {head['backbone']!r}, wanted efficientnet")
    file = folder / "weights.safetensors"
    weights = read_weights(file)
    with torch.device("meta"):  # its shapes, before any memory is taken
        skeleton = RegionNetwork(network).state_dict()
    shapes = {name: tuple(tensor.shape) for name, tensor in skeleton.items()}
    require_fit(shapes, {name: tuple(tensor.shape) for name, tensor in weights.items()}, file)
    model = RegionNetwork(network)
    load_weights(model, weights, file)
    return ObjectDetector(backbone, model, words, selection).to(device)
