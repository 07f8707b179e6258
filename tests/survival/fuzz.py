"""python -m tests.survival.fuzz: damage guided by coverage. Files that lead into new code are damaged further.

Exit code 1 where something was read wrong; the files that were lie in out/fuzz, or in the folder of --keep.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from tests.survival.__main__ import show
from tests.survival.kind import Kind
from tests.survival.kinds import KINDS
from tests.survival.mutations import bomb
from tests.survival.pool import Pool
from tests.survival.run import Outcome, survive

LIGHT = 6  # files of a light kind for one of a heavy kind


def shares(kinds: list[Kind], cases: int) -> list[int]:
    """How many cases each kind gets, which is `cases` in all."""
    weights = [1 if kind.heavy else LIGHT for kind in kinds]
    ends = [cases * sum(weights[: i + 1]) // sum(weights) for i in range(len(kinds))]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.survival.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=2000, help="how many, over all kinds")
    parser.add_argument("--kind", action="append", choices=sorted(KINDS), help="only this; repeat for more")
    parser.add_argument("--seed", type=int, default=0, help="of the first case of each kind")
    parser.add_argument("--keep", type=Path, default=Path("out/fuzz"), help="where files that are read wrong are left")
    chosen = parser.parse_args()
    bomb(b"", Random(0))  # takes a second; the processes to come find it done
    kinds = [KINDS[name] for name in chosen.kind or KINDS]
    wrong: list[Outcome] = []
    total = 0
    for kind, share in zip(kinds, shares(kinds, chosen.cases), strict=True):
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as place:
            pool = Pool(Path(place) / "pool.jsonl")
            outcomes = list(survive(kind, range(chosen.seed, chosen.seed + share), chosen.keep, pool))
            pool.load()
        count = Counter(outcome.verdict for outcome in outcomes)
        wrong += [outcome for outcome in outcomes if outcome.verdict == "wrong"]
        total += len(outcomes)
        facts = f"{len(outcomes):6} cases, {count['ours']:6} ours, {count['right']:6} right, {count['wrong']:4} wrong"
        led = f"{len(pool.entries):4} files led to {len(pool.arcs):5} arcs"
        print(f"{kind.name:18} {facts}; {led}  ({time.monotonic() - began:.0f} s)", flush=True)
    show(wrong, lambda outcome: f"{chosen.keep}/{outcome.kind}-{outcome.seed}")
    print(f"{total} cases, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
