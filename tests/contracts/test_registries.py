"""Every entry of every registry keeps the promises of its kind."""

import pytest

from dicot.core.errors import InputError
from dicot.data.datasets import DATASETS
from dicot.data.datasets.names import UCR, UEA
from dicot.methods import build_method
from dicot.nets.encoders import FCN, build_encoder
from tests.contracts.promises import PROMISES, REGISTRIES, SLOW, Promise

COMPILED = ("hydra-multirocket",)  # for a minute at first use


def names(registry: str) -> list[str]:
    """All registered names; of the archives, of which there are many alike, the set that comes with the library."""
    if registry != "datasets":
        return list(REGISTRIES[registry])
    archives = {*UCR, *UEA} - {"ItalyPowerDemand"}
    return [name for name in DATASETS if DATASETS.registered(name) is not None and name not in archives]


@pytest.fixture(autouse=True)
def _empty_data_folder(tmp_path, monkeypatch):
    """What is on this machine makes no difference."""
    monkeypatch.setenv("DICOT_DATA", str(tmp_path))
    monkeypatch.setenv("DICOT_CACHE", str(tmp_path))


@pytest.fixture(autouse=True)
def _small_forests(monkeypatch):
    """What a forest promises does not depend on the number of its trees."""
    monkeypatch.setattr("dicot.judge.protocols.embeddings.TREES", 20)


@pytest.mark.parametrize(
    ("registry", "name", "promise"),
    [
        pytest.param(
            registry,
            name,
            promise,
            id=f"{registry}-{name}-{promise.__name__}",
            marks=[pytest.mark.slow] if promise in SLOW or name in COMPILED else [],
        )
        for registry in REGISTRIES
        for name in names(registry)
        for promise in PROMISES[registry]
    ],
)
def test_promise(registry: str, name: str, promise: Promise):
    promise(name, REGISTRIES[registry][name])


def test_every_registry_has_promises():
    assert all(PROMISES.values()) and all(REGISTRIES.values())


def test_an_unknown_name_is_answered_with_the_closest():
    with pytest.raises(InputError, match="'dicot'"):
        build_method("di-cot", FCN(1, dim=8), {})
    with pytest.raises(InputError, match="'inception_time'"):
        build_encoder("InceptionTime", {"n_channels": 1})
