"""Encoders: (B, C, T) -> (B, F, T). `ENCODERS` is the registry; `build_encoder` makes one by name."""

from collections.abc import Mapping
from typing import Any

from dicot.core.errors import InputError, lookup
from dicot.nets.encoders.backbones import FCN, ResNet
from dicot.nets.encoders.base import Encoder
from dicot.nets.encoders.foreign import ForeignEncoder, as_encoder
from dicot.nets.encoders.inception import InceptionTime
from dicot.nets.encoders.universal import Universal

__all__ = [
    "ENCODERS",
    "FCN",
    "Encoder",
    "ForeignEncoder",
    "InceptionTime",
    "ResNet",
    "Universal",
    "as_encoder",
    "build_encoder",
    "encoder_name",
]

ENCODERS: dict[str, type[Encoder]] = {
    "inception_time": InceptionTime,
    "fcn": FCN,
    "resnet": ResNet,
    "universal": Universal,
}


def build_encoder(name: str, config: Mapping[str, Any]) -> Encoder:
    kind = lookup(ENCODERS, name, "encoder")
    try:
        return kind(**config)
    except TypeError as error:
        raise InputError(f"Encoder {name!r} does not take {dict(config)}: {error}.") from error


def encoder_name(encoder: Encoder) -> str:
    for name, kind in ENCODERS.items():
        if type(encoder) is kind:
            return name
    raise InputError(f"{encoder.describe()} is not in ENCODERS; register it before saving.")
