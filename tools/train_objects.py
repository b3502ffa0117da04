"""Train the region model, or go on with a run that was stopped.

    python tools/train_objects.py recipes/regions-objects.yaml [key=value ...]

Writes cache, state and log to the recipe's `out`, and the model as `out/model/`. Then

    python tools/measure_coverage.py --split dev --detector runs/regions-objects/model
"""

import argparse

import torch

from crossgaze.config import load_recipe
from crossgaze.progress import progress_bar
from crossgaze.vision.objects.finishing import finish
from crossgaze.vision.objects.train_config import TrainConfig
from crossgaze.vision.objects.training import train


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe", nargs="?")
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    parser.add_argument("--threads", type=int, default=0, help="of torch; 0 leaves its own number")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    config = load_recipe(TrainConfig, args.recipe, args.overrides)
    with progress_bar("Training") as step:
        model = train(config, on_progress=step)
    finish(config, model).save(config.out / "model")
    print(config.out / "model")


if __name__ == "__main__":
    main()
