"""cost_loss.npz: CoST's time loss, amplitude and phase losses, their sum with gradients, and the queue afterwards."""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from dicot.methods.cost import enqueued, frequency_contrast, queue_contrast, spectrum
from tests.golden.compare import LOSS_RELATIVE, Comparison, Vectors, cases

GRADIENT = {"absolute": 1e-7}  # phase gradients are steep near zero coefficients
VALUE = {"absolute": 1e-9}


def features(array: np.ndarray) -> Tensor:
    """(B, T, D) in the file -> (B, D, T)."""
    return torch.from_numpy(array).transpose(1, 2).contiguous().requires_grad_()


def check_cost_loss(vectors: Vectors) -> Comparison:
    out = Comparison()
    for label, case in cases(vectors):
        trend_q, trend_k, season_q, season_k = (
            features(case[name]) for name in ("trend_q", "trend_k", "season_q", "season_k")
        )
        queue, t, tau = torch.from_numpy(case["queue"]), int(case["t_index"]), float(case["tau"])
        q, k = normalize(trend_q[..., t], dim=1), normalize(trend_k[..., t], dim=1).detach()
        q.retain_grad()
        time = queue_contrast(q, k, queue, tau)
        amplitude, phase = frequency_contrast(season_q, season_k)
        total = time + float(case["alpha"]) * (amplitude + phase) / 2
        total.backward()  # the frequency part does not reach q: its gradient is that of the time loss
        for name, loss in (("time", time), ("amp", amplitude), ("phase", phase), ("total", total)):
            # With one case the frequency losses are 0, which a relative tolerance alone cannot meet.
            out.close(f"{label} loss {name}", loss.item(), case[f"loss_{name}"], relative=LOSS_RELATIVE, absolute=1e-14)
        for name, value in (("q", q), ("k", k)):
            out.close(f"{label} {name}", value.detach(), case[name], **VALUE)
        for name, season in (("q", season_q), ("k", season_k)):
            for part, value in zip(("amp", "phase"), spectrum(season.detach()), strict=True):
                out.close(f"{label} {part} {name}", value, case[f"{part}_{name}"], **VALUE)
        out.close(f"{label} gradient q", q.grad, case["grad_q"], **GRADIENT)
        for name, leaf in (("trend_q", trend_q), ("season_q", season_q), ("season_k", season_k)):
            out.close(f"{label} gradient {name}", leaf.grad.transpose(1, 2), case[f"grad_{name}"], **GRADIENT)
        queue, pointer = enqueued(queue, torch.tensor(0), k)
        out.close(f"{label} queue", queue, case["queue_after"], **VALUE)
        out.equal(f"{label} pointer", pointer, case["ptr_after"])
    return out
