"""soft_loss.npz: SoftCLT's instance weights, time-lag weights, losses and gradients."""

import numpy as np
import torch

from dicot.methods.soft import CaseSimilarity, sharpen
from dicot.nets.hierarchy import contrast, hierarchical_contrast, soft_targets, time_lag_weights
from tests.golden.compare import GRADIENT_ABSOLUTE, LOSS_RELATIVE, Comparison, Vectors, cases

SIMILARITY_ABSOLUTE = 1e-12
WEIGHTS_RELATIVE = 1e-9  # sharpened weights go down to 1e-22


def check_soft_loss(vectors: Vectors) -> Comparison:
    out = Comparison()
    loss_tolerance = {"relative": LOSS_RELATIVE, "absolute": 1e-14}
    for label, case in cases(vectors):
        _check_weights(out, label, case)
        z1, z2 = (torch.from_numpy(case[name]).requires_grad_() for name in ("z1", "z2"))  # (B, T, F)
        weights, tau_temp = torch.from_numpy(case["soft_batch"]), float(case["tau_temp"])
        loss = hierarchical_contrast(
            z1.transpose(1, 2),
            z2.transpose(1, 2),
            alpha=float(case["lambda_"]),
            case_weights=weights if int(case["soft_instance"]) else None,
            tau_temp=tau_temp if int(case["soft_temporal"]) else 0.0,
        )
        loss.backward()
        out.close(f"{label} loss", loss.item(), case["loss"], **loss_tolerance)
        for name, z in (("grad_z1", z1), ("grad_z2", z2)):
            out.close(f"{label} {name}", z.grad, case[name], absolute=GRADIENT_ABSOLUTE)
        lags = time_lag_weights(z1.shape[1], tau_temp, z1.dtype, z1.device)
        out.close(f"{label} timelag_level0", lags, case["timelag_level0"], relative=WEIGHTS_RELATIVE)
        instance = contrast(z1.transpose(0, 1), z2.transpose(0, 1), soft_targets(weights))
        out.close(f"{label} inst_soft", instance.item(), case["inst_soft"], **loss_tolerance)
        temporal = contrast(z1, z2, soft_targets(lags))
        out.close(f"{label} temp_soft", temporal.item(), case["temp_soft"], **loss_tolerance)
    return out


def _check_weights(out: Comparison, label: str, case: dict[str, np.ndarray]) -> None:
    """The whole matrix and the batch's part, both as slices on the fly."""
    flat = case["raw_flat"][:, None, :]  # (N, 1, values)
    similarity = CaseSimilarity()
    similarity.fit(flat)
    tau, alpha = float(case["tau_inst"]), float(case["alpha"])
    everything = np.arange(len(flat))
    for index, name in ((everything, "soft_matrix"), (case["batch_index"], "soft_batch")):
        ours = similarity(torch.from_numpy(flat[index]), torch.from_numpy(index))
        if name == "soft_matrix":
            out.close(f"{label} cos_norm_similarity", ours, case["cos_norm_similarity"], absolute=SIMILARITY_ABSOLUTE)
        out.close(f"{label} {name}", sharpen(ours, tau, alpha), case[name], relative=WEIGHTS_RELATIVE)
