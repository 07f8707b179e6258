"""What a unit will cost, before it is run: enough to begin with the cheapest."""

from collections.abc import Iterable

from dicot.data.datasets import card, family_of, is_path
from dicot.judge.evaluation.jobs import Unit
from dicot.judge.evaluation.loading import load_labelled


def cheapest_first(units: Iterable[Unit]) -> list[Unit]:
    """Order units by what a training on their data set takes, then by their own: a data set is still loaded once."""
    units = list(units)
    passes = {name: _passes(name) for name in {unit.first.source.name for unit in units}}

    def cost(unit: Unit) -> tuple[float, str, float]:
        name, settings = unit.first.source.name, unit.first.contender.settings
        once, step, steps, size = passes[name]
        own = (
            settings.get("steps", steps) * settings.get("batch_size", size) * step
            if unit.first.contender.trained
            else 0
        )
        return once + steps * size * step, name, once + own

    return sorted(units, key=cost)


def _passes(name: str) -> tuple[int, int, int, int]:
    """Time steps of all training cases and of one, then steps and batch size of the paper's recipe."""
    from dicot.train import paper_recipe

    if is_path(name):
        train = load_labelled(name).split.train
        n_cases, n_times = len(train), train.n_times
    else:
        facts = card(name)
        n_cases, n_times = facts.n_train, facts.n_times or 1
    recipe = paper_recipe(family_of(name), n_cases, n_times)
    return n_cases * n_times, n_times, recipe.steps, recipe.batch_size
