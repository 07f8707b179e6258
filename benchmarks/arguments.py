"""Arguments that several benchmarks take."""

import argparse
from collections.abc import Callable, Collection


def some_of(known: Collection[str]) -> Callable[[str], list[str]]:
    """Make a type for argparse: names separated by commas, all of them known."""

    def parse(text: str) -> list[str]:
        chosen = [part.strip() for part in text.split(",")]
        for part in chosen:
            if part not in known:
                raise argparse.ArgumentTypeError(f"{part!r} is none of {', '.join(known)}")
        return chosen

    return parse
