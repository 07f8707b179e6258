"""cost_heads.npz: CoST's trend head and season head with given weights."""

import torch

from dicot.methods.cost import SeasonHead, TrendHead
from tests.golden.compare import Comparison, Vectors, cases

TOLERANCE = {"absolute": 1e-9}


@torch.no_grad()
def check_cost_heads(vectors: Vectors) -> Comparison:
    out = Comparison()
    for label, case in cases(vectors):
        h = torch.from_numpy(case["x"]).transpose(1, 2)  # (B, F, T)
        kernels = [int(kernel) for kernel in case["kernels"]]
        n_features, n_times = h.shape[1:]
        n_out = case["trend"].shape[2]
        trend = TrendHead(n_features, n_out, kernels).double()
        for kernel, convolution in zip(kernels, trend.convolutions, strict=True):
            convolution.weight.copy_(torch.from_numpy(case[f"conv{kernel}_w"]))
            convolution.bias.copy_(torch.from_numpy(case[f"conv{kernel}_b"]))
        season = SeasonHead(n_features, n_out, n_times, dropout=0.1).double().eval()
        for part, suffix in (("real", "re"), ("imag", "im")):
            season.get_parameter(f"weight_{part}").copy_(torch.from_numpy(case[f"fourier_w_{suffix}"]))
            season.get_parameter(f"bias_{part}").copy_(torch.from_numpy(case[f"fourier_b_{suffix}"])[:, None])
        single = torch.stack([trend(h, t) for t in range(n_times)], dim=1)
        out.close(f"{label} trend", single, case["trend"], **TOLERANCE)
        out.close(f"{label} season", season(h).transpose(1, 2), case["season"], **TOLERANCE)
    return out
