"""simmtm_loss.npz: similarities, contrast, aggregation, both targets and the learned weighting of the two losses."""

import torch
import torch.nn.functional as F

from dicot.methods.simmtm import aggregate, copies_contrast, uncertainty_weighted
from dicot.nets.losses import log_p_of_others
from tests.golden.compare import GRADIENT_ABSOLUTE, LOSS_RELATIVE, Comparison, Vectors, cases

VALUE_ABSOLUTE = 1e-9
LOSS_ABSOLUTE = 1e-14  # one series with one copy has contrast 0, which a relative tolerance alone cannot meet


def check_simmtm_loss(vectors: Vectors) -> Comparison:
    out = Comparison()
    for label, case in cases(vectors):
        z, points, awl = (torch.from_numpy(case[name]).requires_grad_() for name in ("z", "point_emb", "awl_params"))
        n_series, decoder = int(case["B"]), torch.from_numpy(case["decoder_w"])  # (F, C)
        target = torch.from_numpy(case["target"]).transpose(1, 2)  # (N, C, T)
        features = points.transpose(1, 2)  # (N, F, T)

        log_p = log_p_of_others(z, float(case["tau"]))
        weights = log_p.exp()
        aggregated = aggregate(weights, features)
        contrast = copies_contrast(log_p, n_series)
        rebuilt = aggregate(weights, decoder.T @ features)  # decoded first, as the method does
        first, every = F.mse_loss(rebuilt[:n_series], target[:n_series]), F.mse_loss(rebuilt, target)
        total = uncertainty_weighted([contrast, first], awl)
        total.backward()

        tensors = {"weights": weights, "aggregated": aggregated.transpose(1, 2)}
        for name, ours in tensors.items():
            out.close(f"{label} {name}", ours.detach(), case[name], absolute=VALUE_ABSOLUTE)
        scalars = {
            "loss_contrastive": contrast,
            "loss_recon_all_rows": every,
            "loss_recon_first_B": first,
            "loss_total_awl_first_B": total,
        }
        for name, ours in scalars.items():
            out.close(f"{label} {name}", ours.item(), case[name], relative=LOSS_RELATIVE, absolute=LOSS_ABSOLUTE)
        for name, leaf in {"grad_z": z, "grad_point_emb": points, "grad_awl": awl}.items():
            out.close(f"{label} {name}", leaf.grad, case[name], absolute=GRADIENT_ABSOLUTE)
    return out
