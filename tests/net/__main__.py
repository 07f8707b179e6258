"""`python -m tests.net freeze` writes what the library computes; `python -m tests.net check [PART ...]` compares.

A change of structure alone must leave every bit: `check --exact`, on the processor where it was frozen, accepts nothing
else. Without it a difference below 2e-3 passes: another processor makes one, and so may a small change of a constant.
A learning rate that is 10 % higher is found by 62 of the 90 records of what was trained.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy and torch are loaded

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))  # the library beside this file, whatever is installed

from tests.net.parts import PARTS, compute
from tests.net.records import DIFFERS, Record, differences, record_of

FROZEN = Path(__file__).parent / "frozen.json"
Records = dict[str, dict[str, Record]]


def computed(parts: Sequence[str]) -> Records:
    """Compute the records of these parts."""
    found: Records = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in parts:
            started = time.monotonic()
            values = compute(name, Path(folder) / name)
            found[name] = {what: record_of(value) for what, value in values.items()}
            print(f"{name}: {len(values)} records in {time.monotonic() - started:.1f} s", file=sys.stderr)
    return found


def freeze(parts: Sequence[str]) -> None:
    """Write the records of these parts in place of those that are there."""
    held: Records = json.loads(FROZEN.read_text()) if FROZEN.exists() else {}
    records = {name: one for name, one in (held | computed(parts)).items() if name in PARTS}
    FROZEN.write_text(as_text(records))


def as_text(records: Records) -> str:
    """Write a record per line, so that a diff shows what was frozen anew."""
    blocks = [
        f"{json.dumps(part)}: {{\n"
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(found[name], separators=(',', ':'))}" for name in sorted(found))
        + "\n}"
        for part, found in sorted(records.items())
    ]
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def check(parts: Sequence[str], exact: bool) -> bool:
    """Print what is not the same; tell whether nothing differs by more than rounding, or with `exact` at all."""
    held: Records = json.loads(FROZEN.read_text())
    now = computed(parts)
    told = [(part, *one) for part in parts for one in differences(held.get(part, {}), now[part])]
    for part, name, verdict, how in told:
        print(f"{verdict}: {part}: {name}: {how}")
    count = sum(len(now[part]) for part in parts)
    wrong = sum(verdict == DIFFERS for _, _, verdict, _ in told)
    print(f"{count} records: {count - len(told)} same, {len(told) - wrong} within rounding, {wrong} differ")
    return not (told if exact else wrong)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.net", description=__doc__)
    parser.add_argument("command", choices=("freeze", "check"))
    parser.add_argument("parts", nargs="*", metavar="part", help=f"some of {', '.join(PARTS)}; all where none is named")
    parser.add_argument("--exact", action="store_true", help="rounding counts as a difference too")
    given = parser.parse_args()
    if unknown := [name for name in given.parts if name not in PARTS]:
        parser.error(f"unknown part {unknown[0]!r}; known are {', '.join(PARTS)}")
    parts = given.parts or list(PARTS)
    if given.command == "freeze":
        freeze(parts)
        return 0
    return 0 if check(parts, given.exact) else 1


if __name__ == "__main__":
    sys.exit(main())
