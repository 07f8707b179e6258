"""lr_schedule.npz: the learning rate of every step for a budget of I steps."""

from dicot.train import Recipe, lr_at
from tests.golden.compare import Comparison, Vectors


def check_lr_schedule(vectors: Vectors) -> Comparison:
    out = Comparison()
    for name in (name for name in vectors if name.startswith("lr_")):
        rates = vectors[name]
        recipe = Recipe(steps=int(name.removeprefix("lr_")), batch_size=1, lr=float(vectors.get("base", 3e-4)))
        out.close(name, [lr_at(step, recipe, 1) for step in range(recipe.steps)], rates, absolute=1e-15)
    return out
