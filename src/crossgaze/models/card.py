"""The card of a saved model, for people."""

from __future__ import annotations

from crossgaze import __version__
from crossgaze.config import to_dict
from crossgaze.models.base import Model


def model_card(model: Model) -> str:
    """Return a card that says what the model is, how to use it, and where it came from."""
    parameters = sum(parameter.numel() for parameter in model.parameters())
    rows = to_dict(model.config)
    rows |= {f"text: {key}": value for key, value in rows.pop("text").items()}
    if answers := rows.get("answers"):
        more = f" and {len(answers) - 12:,} more" if len(answers) > 12 else ""
        rows["answers"] = ", ".join(answers[:12]) + more
    settings = "\n".join(f"| {key} | {value} |" for key, value in rows.items())
    known = f"{model.text.words:,} words" if model.text.words else "words"
    if model.config.text.kind == "bert":
        known = f"word pieces of {model.config.text.bert}"
    elif model.vocabulary is None:
        known += " known by number only"
    origin = "\n".join(f"- {key}: {value}" for key, value in model.origin.items())
    use = (
        'scores = model.similarity(model.encode_images(regions), model.encode_texts(["two dogs"]))'
    )
    if answers:
        use = 'logits = model.answer(regions, ["what is on the desk?"]).logits'
    return f"""# {model.family}

A crossgaze model: {parameters:,} parameters, {known}, regions of width {model.config.region_width}.

```python
import crossgaze

model = crossgaze.load("THIS-FOLDER")
{use}
```

| setting | value |
| --- | --- |
{settings}

## Where it came from

{origin or "Nothing was recorded."}

Made with crossgaze {__version__}. What data it was trained on decides what it may be used for.
"""
