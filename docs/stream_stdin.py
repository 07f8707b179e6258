"""cat rec.csv | python stream_stdin.py MODEL [WINDOW RATE]: a line of JSON for each window, as soon as it is complete.

MODEL is an .onnx file, which needs no torch, or what else `Stream` takes. The first line names the columns. One that is
called "time" holds seconds or dates in ISO 8601; the others are channels.
"""

import csv
import json
import sys
from datetime import datetime

from dicot import Stream


def main(model: str, window: str | None = None, rate: str | None = None) -> None:
    stream = Stream(model, window=window, rate=rate and float(rate))
    for row in csv.DictReader(sys.stdin):
        stamp = row.pop("time", None)
        times = None if stamp is None else [datetime.fromisoformat(stamp).timestamp() if "T" in stamp else float(stamp)]
        sample = [float(value) for value in row.values()]
        for found in stream.push(sample, times):
            print(json.dumps({**found._asdict(), "vector": found.vector.tolist()}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
