"""Self-supervised methods. `METHODS` is the registry: a new method is one file here and one line below."""

from collections.abc import Mapping
from typing import Any

from dicot.encoders import Encoder
from dicot.errors import InputError, lookup
from dicot.methods.base import Batch, Method
from dicot.methods.dicot import DiCOT
from dicot.methods.supervised import Supervised

__all__ = ["METHODS", "Batch", "DiCOT", "Method", "Supervised", "build_method"]

METHODS: dict[str, type[Method]] = {
    "dicot": DiCOT,
    "supervised": Supervised,
}


def build_method(name: str, encoder: Encoder, params: Mapping[str, Any]) -> Method:
    """The registered method around `encoder` with these constructor arguments."""
    kind = lookup(METHODS, name, "method")
    try:
        return kind(encoder, **params)
    except TypeError as error:
        raise InputError(f"Method {name!r} does not take {dict(params)}: {error}.") from error
