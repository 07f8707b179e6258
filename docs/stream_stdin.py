"""cat rec.csv | python stream_stdin.py MODEL [WINDOW RATE]: a line of JSON for each window, as soon as it is complete.

MODEL is an .onnx file, which needs no torch, or what else `Stream` takes. The first line names the columns. One that is
called "time" holds seconds or dates in ISO 8601; the others are channels. A line that cannot be read ends it (exit 2).
"""

import csv
import json
import sys
from datetime import datetime

from dicot import Stream


def number(text: str, column: str) -> float:
    if column == "time" and "T" in text:
        return datetime.fromisoformat(text).timestamp()
    return float(text)


def main(model: str, window: str | None = None, rate: str | None = None) -> None:
    stream = Stream(model, window=window, rate=float(rate) if rate else None)
    lines = csv.reader(sys.stdin)
    names = next(lines, [])
    for row in filter(None, lines):
        line = f"line {lines.line_num} ({','.join(row)[:60]})"
        if len(row) != len(names):
            raise ValueError(f"{line} has {len(row)} values. Send {len(names)}, one for each of {', '.join(names)}.")
        values = {}
        for name, text in zip(names, row, strict=True):
            try:
                values[name] = number(text, name)
            except ValueError:
                kind = "seconds or a date such as 2026-03-02T08:00:00Z" if name == "time" else "a number"
                raise ValueError(f"{line} has {text!r} in the column {name!r}. Send {kind}, or no such line.") from None
        times = [values.pop("time")] if "time" in values else None
        try:
            windows = stream.push(list(values.values()), times)
        except ValueError as error:
            raise ValueError(f"{line} was refused: {error}") from error
        for found in windows:
            print(json.dumps({**found._asdict(), "vector": found.vector.tolist()}), flush=True)


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except (ValueError, OSError, ImportError) as error:
        print(f"stream_stdin.py: {error}", file=sys.stderr)
        sys.exit(2)
