"""Options of the learner from the command line."""

import dataclasses
from typing import Any

from scal.learn.config import Config


def parse(texts: dict[str, str]) -> dict[str, Any]:
    """Values of the fields' own types.

    >>> parse({"mu": "0.5", "cuts": "false", "n_steps": "1"})
    {'mu': 0.5, 'cuts': False, 'n_steps': 1}
    """
    defaults = dataclasses.asdict(Config())
    options: dict[str, Any] = {}
    for name, text in texts.items():
        if name not in defaults:
            raise ValueError(f"option {name!r} is unknown; use one of {', '.join(defaults)}")
        kind = type(defaults[name])
        try:
            options[name] = _truth(text) if kind is bool else kind(text)
        except ValueError:
            wanted = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
            raise ValueError(f"option {name} is {text!r}; use {wanted}") from None
    return options


def _truth(text: str) -> bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    raise ValueError(text)
