"""python -m tests.survival: damage files, read them, say what did not survive. Exit code 1 where something did not."""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.survival.kinds import KINDS
from tests.survival.mutations import bomb
from tests.survival.run import SOUND, Outcome, survive


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.survival", description=__doc__)
    parser.add_argument("--files", type=int, default=300, help="how many, over all kinds")
    parser.add_argument("--kind", action="append", choices=sorted(KINDS), help="only this; repeat for more")
    parser.add_argument("--seed", type=int, default=0, help="of the first file of each kind")
    parser.add_argument("--keep", type=Path, help="a folder in which every damaged file is left")
    chosen = parser.parse_args()
    bomb(b"", Random(0))  # takes a second; the processes to come find it done
    names = chosen.kind or list(KINDS)
    shares = [chosen.files // len(names) + (i < chosen.files % len(names)) for i in range(len(names))]
    wrong: list[Outcome] = []
    for name, share in zip(names, shares, strict=True):
        began = time.monotonic()
        outcomes = list(survive(KINDS[name], range(chosen.seed, chosen.seed + share), chosen.keep))
        count = Counter(outcome.verdict for outcome in outcomes)
        wrong += [outcome for outcome in outcomes if outcome.verdict == "wrong"]
        facts = f"{len(outcomes):5} files, {count['ours']:5} ours, {count['right']:5} right, {count['wrong']:5} wrong"
        print(f"{name:18} {facts}  ({time.monotonic() - began:.1f} s)", flush=True)
    show(wrong, lambda o: f"python -m tests.survival --kind {o.kind} --seed {o.seed} --files 1 --keep FOLDER")
    print(f"{sum(shares)} files, {len(wrong)} wrong")
    return 1 if wrong else 0


def show(wrong: list[Outcome], where: Callable[[Outcome], str]) -> None:
    """One example for each cause, the most frequent first, and where to find it."""
    causes = Counter((outcome.kind, outcome.cause) for outcome in wrong)
    for (kind, cause), count in causes.most_common():
        first = next(o for o in wrong if (o.kind, o.cause) == (kind, cause))
        print(f"\n{kind}: {cause}: {count} of them, the first by {' '.join(first.detail.split())[:300]}")
        if first.seed != SOUND:
            print(f"    {where(first)}")


if __name__ == "__main__":
    sys.exit(main())
