"""Presets that recorded rows belong to and dicot itself has no more; to import this registers them."""

from dicot.model.presets import PRESETS, Preset, SizeRule

BEST_2026_11 = Preset(
    name="best-2026.11",
    summary="the default until November 2026: views across cases, beside a bank of fixed kernels, compressed",
    method="across",
    recipe=SizeRule(),
    features={"pooling": "mean+max+std", "bank": "mixed", "n_components": 2048},
)
PRESETS[BEST_2026_11.name] = BEST_2026_11
