"""encoder.npz: InceptionTime with weights from a rule, in eval and train mode, in float64."""

import numpy as np
import torch

from dicot.nets.encoders import InceptionTime
from tests.golden.compare import Comparison, Vectors, cases

TOLERANCE = 1e-9


def check_encoder(vectors: Vectors) -> Comparison:
    out = Comparison()
    for channels, count in zip(vectors["param_count_C"], vectors["param_count"], strict=True):
        ours = sum(p.numel() for p in InceptionTime(int(channels)).parameters())
        out.equal(f"parameters at C={channels}", ours, count)
    names = [str(name) for name in vectors["tensor_names"]]
    for label, case in cases(vectors):
        x = torch.from_numpy(case["x"].transpose(0, 2, 1).copy()).requires_grad_()  # theirs is (B, T, C)
        encoder = ruled_encoder(x.shape[1], names).eval()
        features = encoder(x)
        objective = features.mean(-1).square().mean()
        objective.backward()
        weight = encoder.input.weight.grad.squeeze(-1)
        ours = {
            "eval_out": features.detach().transpose(1, 2),
            "eval_mean": features.detach().mean(-1),
            "eval_obj": objective.detach(),
            "eval_grad_x": x.grad.transpose(1, 2),
            "eval_grad_input_weight": weight,
        }
        encoder.train()
        ours["train_mean"] = encoder(x).mean(-1).detach()
        first = encoder.block0.module0.bn
        ours["train_first_bn_running_mean_after"] = first.running_mean
        ours["train_first_bn_running_var_after"] = first.running_var
        for name, value in ours.items():
            out.close(f"{label} {name}", value, case[name], absolute=TOLERANCE, relative=TOLERANCE)
    return out


def ruled_encoder(n_channels: int, names: list[str]) -> InceptionTime:
    """The encoder whose tensor number p at flat index i is a function of sin(0.37 i + 0.7 p)."""
    encoder = InceptionTime(n_channels).double()
    state = encoder.state_dict()
    for p, name in enumerate(names):
        shape = state[name].shape
        base = np.sin(0.37 * np.arange(state[name].numel()) + 0.7 * p)
        state[name] = torch.from_numpy(_ruled(name, base, shape)).reshape(shape)
    encoder.load_state_dict(state)
    return encoder


def _ruled(name: str, base: np.ndarray, shape: torch.Size) -> np.ndarray:
    if name.endswith("running_var"):
        return 1 + 0.5 * base
    if name.endswith(("running_mean", "bias")):
        return 0.1 * base
    if name.endswith("bn.weight"):
        return 1 + 0.2 * base
    return 1.5 * base / np.sqrt(np.prod(shape[1:]))
