"""TS-TCC's module beside the encoder: a context of the past, predictions of the future, and a head."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dicot.losses.prediction import prediction_contrast

HEADS = 4
DEPTH = 4
WIDTH_HIDDEN = 64  # of the feed-forward parts
DROPOUT = 0.1


class ContextLayer(nn.Module):
    """A pre-norm transformer layer as the authors have it: no dropout on the attention, full-width scale."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attn_norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.attn_out = nn.Linear(width, width)
        self.ff_norm = nn.LayerNorm(width)
        self.ff_in = nn.Linear(width, WIDTH_HIDDEN)
        self.ff_out = nn.Linear(WIDTH_HIDDEN, width)
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, x: Tensor, seen: Tensor | None = None) -> Tensor:
        """(B, n, H) -> (B, n, H); tokens outside the boolean `seen` (1, n) are looked at by none."""
        q, k, v = self.qkv(self.attn_norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        # The scale is that of the full width, not of a head; the fused kernel never stores the n x n weights.
        mixed = F.scaled_dot_product_attention(q, k, v, seen, scale=x.shape[-1] ** -0.5)  # (B, heads, n, H / heads)
        x = x + self.drop(self.attn_out(mixed.transpose(1, 2).flatten(2)))
        y: Tensor = x + self.drop(self.ff_out(self.drop(torch.relu(self.ff_in(self.ff_norm(x))))))
        return y


class TemporalContrast(nn.Module):
    """`dim`: features of the encoder, F. `width`: of the context, H. `n_future`: how many steps are predicted, K."""

    def __init__(self, dim: int, width: int, n_future: int, heads: int = HEADS, depth: int = DEPTH) -> None:
        super().__init__()
        self.embed = nn.Linear(dim, width)
        self.ctx_token = nn.Parameter(torch.randn(1, 1, width))
        self.layers = nn.ModuleList(ContextLayer(width, heads) for _ in range(depth))
        self.predictors = nn.ModuleList(nn.Linear(width, dim) for _ in range(n_future))
        self.proj_in = nn.Linear(width, dim // 2)
        self.proj_bn = nn.BatchNorm1d(dim // 2)
        self.proj_out = nn.Linear(dim // 2, dim // 4)

    def context(self, source: Tensor, t: int | Tensor) -> Tensor:
        """(B, F, T) -> (B, H): the last state of the context token, put in front of time steps 0 .. t; no positions.

        A tensor t is not known here: then all time steps are tokens, and the later ones are hidden from attention.
        """
        past = source[:, :, : t + 1] if isinstance(t, int) else source
        tokens = self.embed(past.transpose(1, 2))  # (B, n, H)
        x = torch.cat([self.ctx_token.expand(len(tokens), -1, -1), tokens], dim=1)
        seen = None if isinstance(t, int) else (torch.arange(x.shape[1], device=x.device) <= t + 1).unsqueeze(0)
        for layer in self.layers:
            x = layer(x, seen)
        return x[:, 0]

    def project(self, context: Tensor) -> Tensor:
        """(B, H) -> (B, F / 4), what is contrasted across the batch."""
        q: Tensor = self.proj_out(torch.relu(self.proj_bn(self.proj_in(context))))
        return q

    def forward(self, source: Tensor, target: Tensor, t: int | Tensor) -> tuple[Tensor, Tensor]:
        """How badly the source's past 0 .. t predicts the target's next K steps, and the context's projection.

        Both are features (B, F, T) of unit length per time step.
        """
        context = self.context(source, t)
        predicted = torch.stack([predictor(context) for predictor in self.predictors])  # (K, B, F)
        future = t + 1 + torch.arange(len(self.predictors), device=target.device)
        actual = target.index_select(2, future).permute(2, 0, 1)  # (K, B, F)
        return prediction_contrast(actual, predicted), self.project(context)
