"""cat rec.csv | python stream_stdin.py MODEL [WINDOW RATE]: a line of JSON for each window, as soon as it is complete.

MODEL is an .onnx file, which needs no torch, or what else `Stream` takes. The first line names the columns. One that is
called "time" holds seconds; the others are channels.
"""

import csv
import json
import sys

from dicot import Stream


def main(model: str, window: str | None = None, rate: str | None = None) -> None:
    stream = Stream(model, window=window, rate=rate and float(rate))
    for row in csv.DictReader(sys.stdin):
        times = [float(row.pop("time"))] if "time" in row else None
        sample = [float(value) for value in row.values()]
        for found in stream.push(sample, times):
            print(json.dumps({**found._asdict(), "vector": found.vector.tolist()}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
