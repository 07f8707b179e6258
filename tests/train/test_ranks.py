"""Several processes that train together end where one does.

DICOT_RANKS=all tries every method, and four processes too; DICOT_RANKS=tnc,cost these.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.commands import dicot
from tests.conftest import make_waves
from tests.train.ranks_worker import RUNS, build, train

from dicot.core.errors import InputError
from dicot.model.runs import CHECKPOINT
from dicot.train import Checkpoint

ALL = "DICOT_RANKS" in os.environ
CHOSEN = os.environ.get("DICOT_RANKS", "").split(",")
NAMED = [run for run in RUNS if run in CHOSEN or CHOSEN == ["all"]]
TRAINED = [
    ("dicot", "float64"),
    ("across", "float64"),
    ("across", "float32"),
    ("dropout", "float64"),
]
TRAINED += [(run, precision) for run in NAMED for precision in ("float64", "float32")]
TRAINED = list(dict.fromkeys(TRAINED))
REFUSED = ("method", "encoder", "seed")
# Relative, of rounding alone: of every loss; of the embeddings by the weights in the end, with statistics of the batch;
# and of those with running statistics. The gradient of a bias in front of BatchNorm is nothing but rounding, of which
# AdamW makes a full step; the statistics of a batch take it out again, running ones only bit by bit.
TOLERANCES = {"float64": (1e-11, 1e-8, 1e-8), "float32": (1e-3, 1e-3, 5e-2)}
WORLDS = (2, 4) if ALL else (2,)


def environment(**more: str) -> dict[str, str]:
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), str(root / "src"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, **more}


@pytest.fixture(scope="module", params=WORLDS)
def outcomes(request, tmp_path_factory) -> Path:
    """What processes left that torchrun has started. During the last run one was killed, and all were started again."""
    folder = tmp_path_factory.mktemp("ranks")
    tasks = [f"train {run} {precision}" for run, precision in TRAINED]
    tasks += [*(f"refuse {what} float64" for what in REFUSED), "die across float32"]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(request.param)]
    words = ["--max-restarts", "1", "-m", "tests.train.ranks_worker", str(folder)]
    run = subprocess.run(
        [*launcher, *words, *tasks], env=environment(), capture_output=True, text=True, timeout=900, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "-9" in run.stderr, "nobody was killed"
    return folder


def everybodys(folder: Path, task: str) -> list[dict[str, torch.Tensor]]:
    paths = sorted(folder.glob(f"{task.replace(' ', '-')}-*"))
    assert len(paths) > 1
    return [load_file(path) for path in paths]


def embedded(run: str, precision: str, state: dict[str, torch.Tensor], training: bool) -> torch.Tensor:
    encoder = build(run).encoder.to(torch.float64 if precision == "float64" else torch.float32).train(training)
    encoder.load_state_dict({k.removeprefix("encoder."): v for k, v in state.items() if k.startswith("encoder.")})
    with torch.no_grad():
        return encoder.embed(torch.from_numpy(make_waves().x).to(next(encoder.parameters()).dtype))


@pytest.mark.slow
@pytest.mark.parametrize(("run", "precision"), TRAINED)
def test_the_number_of_processes_changes_rounding_alone(outcomes, run, precision):
    method = build(run)
    alone = torch.tensor(train(method, precision).loss, dtype=torch.float64)
    first, *others = everybodys(outcomes, f"train {run} {precision}")
    of_losses, *of_embeddings = TOLERANCES[precision]
    torch.testing.assert_close(first["loss"], alone, rtol=of_losses, atol=0)
    for training, tolerance in zip((True, False), of_embeddings, strict=True):
        expected = embedded(run, precision, method.state_dict(), training)
        off = (embedded(run, precision, first, training) - expected).abs().max() / expected.abs().max()
        assert off < tolerance, "in training" if training else "in use"
    for other in others:  # running statistics among them
        assert all(torch.equal(other[name], value) for name, value in first.items())


@pytest.mark.slow
@pytest.mark.parametrize(("what", "named"), [("method", "loss of step"), ("encoder", "Mixing"), ("seed", "seed")])
def test_what_processes_cannot_share_is_refused_by_name(outcomes, what, named):
    sentences = [path.read_text() for path in outcomes.glob(f"refuse-{what}-*")]
    assert len(sentences) > 1
    assert all(named in sentence for sentence in sentences)


@pytest.mark.slow
def test_a_run_whose_process_was_killed_ends_bit_equal(outcomes):
    whole = everybodys(outcomes, "train across float32")[0]
    for state in everybodys(outcomes, "die across float32"):
        assert all(torch.equal(state[name], value) for name, value in whole.items())


@pytest.mark.slow
def test_one_process_goes_on_where_one_of_several_was_killed(outcomes):
    checkpoint = Checkpoint(outcomes / "checkpoint-killed", 1000)
    history = train(build("across"), "float32", checkpoint=checkpoint)
    assert checkpoint.resumed
    whole = everybodys(outcomes, "train across float32")[0]
    torch.testing.assert_close(torch.tensor(history.loss, dtype=torch.float64), whole["loss"], rtol=1e-4, atol=0)


def pretrain(out: Path, *more: str) -> list[str]:
    words = ["pretrain", "ItalyPowerDemand", "--method", "dicot", "--steps", "30", "--device", "cpu", "--out", str(out)]
    settings = ["--set", "dim=8", "--set", "batch_size=16", "--set", "checkpoint_seconds=0"]
    settings += ["--set", "precision=float64"]  # where rounding does not add up
    return [sys.executable, "-m", "dicot", *words, *settings, *more]


@pytest.mark.slow
def test_a_command_of_two_processes_survives_a_kill_and_ends_as_one_process_does(tmp_path):
    subprocess.run(pretrain(tmp_path / "one"), env=environment(), check=True, capture_output=True)
    command = pretrain(tmp_path / "two", "--nproc", "2")
    run = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    given_up = time.monotonic() + 120
    while not (tmp_path / "two" / CHECKPOINT).exists():
        assert run.poll() is None and time.monotonic() < given_up, "no step was done"
        time.sleep(0.01)
    ranks = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    os.kill(int(ranks[-1]), signal.SIGKILL)
    said, _ = run.communicate(timeout=120)
    assert run.returncode == 1 and "was killed by SIGKILL" in said and "goes on from the last checkpoint" in said

    again = subprocess.run(command, env=environment(), check=True, capture_output=True, text=True)
    assert "resumed and finished: 30 steps" in again.stdout
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    for name, weights in one.items():
        torch.testing.assert_close(two[name], weights, rtol=1e-4, atol=1e-5)


def test_torchrun_and_nproc_contradict_each_other(monkeypatch, tmp_path):
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match="started as 2 processes already; leave out --nproc 3"):
        dicot("pretrain", "ItalyPowerDemand", "--out", tmp_path, "--nproc", "3")
