"""A path that leads nowhere is refused at once: before torch is imported, which takes seconds."""

import json
import subprocess
import sys
from pathlib import Path

CALLS = (
    "embed nowhere --out v.npz",
    "embed nowhere.csv --window 1s --out v.npz",
    "embed nowhere/*.csv --window 1s --out v.npz",
    "embed no-model synthetic --out v.npz",
    "embed synthetic --out there.npz",
    "pretrain nowhere.npz --out model",
    "pretrain nowhere.npz synthetic --universal --out model",
    "evaluate nowhere.npz",
    "evaluate synthetic --model no-model",
    "evaluate synthetic --out there",
    "explore nowhere",
    "explore nowhere.npz",
    "inspect nowhere",
    "search nowhere.npz --like 1",
    "outliers nowhere.npz",
    "events fall nowhere.npz --out events.csv",
    "segment nowhere.npz --out segments.csv",
    "why nowhere.npz 3",
    "classify nowhere.npz",
    "predict nowhere.safetensors synthetic --out p.parquet",
    "predict there.npz nowhere --out p.parquet",
    "monitor nowhere.npz nowhere.npz --out page.html",
    "export nowhere --onnx model.onnx",
    "stream nowhere",
    "corpus build nowhere --out corpus --window 5",
    "vectors select nowhere.npz --where label=a --out v.npz",
    "label add labels.sqlite a@1 walk --vectors nowhere.npz",
    "label export nowhere.sqlite --out labels.csv",
    "label check nowhere.npz",
    "report smoke --records nowhere",
)
SCRIPT = """
import contextlib, io, json, sys
from dicot.cli import main

results = {}
for call in json.load(sys.stdin):
    sys.argv = ["dicot", *call.split()]
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.suppress(SystemExit):
        main()
    results[call] = (said.getvalue(), "torch" in sys.modules)
print(json.dumps(results))
"""


def test_a_path_that_leads_nowhere_is_refused_before_torch_is_imported(tmp_path: Path) -> None:
    (tmp_path / "there.npz").touch()
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "notes.txt").touch()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], input=json.dumps(CALLS), capture_output=True, text=True, cwd=tmp_path
    )
    results = json.loads(done.stdout)
    unanswered = [call for call, (said, _) in results.items() if "Error: " not in said]
    assert not unanswered
    unnamed = {call: said for call, (said, _) in results.items() if "no" not in said and "there" not in said}
    assert not unnamed
    first_with_torch = next((call for call, (_, has_torch) in results.items() if has_torch), None)
    assert first_with_torch is None
