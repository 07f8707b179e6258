"""A protocol by its name."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TypeVar

from dicot.errors import InputError

T = TypeVar("T")

AMOUNT = re.compile(r"(?:\d+(?:pct)?|all)$")  # of labels, at the end of a name


def find_protocol(registry: Mapping[str, T], name: str) -> T:
    """The entry called `name`, or an error that suggests what is spelled alike or takes as many labels."""
    if name in registry:
        return registry[name]
    amount = AMOUNT.findall(name)
    meant = [known for known in registry if amount and AMOUNT.findall(known) == amount]
    meant += get_close_matches(name, registry, n=1)
    guess = f"Did you mean {' or '.join(map(repr, dict.fromkeys(meant)))}? " if meant else ""
    raise InputError(f"Unknown protocol {name!r}. {guess}Known: {', '.join(registry)}.")
