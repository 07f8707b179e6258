"""Every entry of every registry keeps the promises of its kind."""

import pytest

from dicot.encoders import FCN, build_encoder
from dicot.errors import InputError
from dicot.methods import build_method
from tests.contracts.promises import PROMISES, REGISTRIES, Promise


@pytest.mark.parametrize(
    ("registry", "name", "promise"),
    [
        pytest.param(registry, name, promise, id=f"{registry}-{name}-{promise.__name__}")
        for registry, entries in REGISTRIES.items()
        for name in entries
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
