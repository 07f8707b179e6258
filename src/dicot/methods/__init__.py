"""Self-supervised methods. `METHODS` is the registry: a new method is one file here and one line below."""

from collections.abc import Mapping
from typing import Any

from dicot.core.errors import lookup
from dicot.methods.across import Across
from dicot.methods.base import Batch, Method, Places, TrainingSet
from dicot.methods.catt import CaTT
from dicot.methods.cost import CoST
from dicot.methods.dicot import DiCOT
from dicot.methods.infots import InfoTS
from dicot.methods.settings import check_settings
from dicot.methods.simmtm import SimMTM
from dicot.methods.soft import Soft
from dicot.methods.supervised import Supervised
from dicot.methods.tfc import TFC
from dicot.methods.tnc import TNC
from dicot.methods.ts2vec import TS2Vec
from dicot.methods.tstcc import TSTCC
from dicot.nets.encoders import Encoder

__all__ = ["METHODS", "Batch", "Method", "Places", "TrainingSet", "build_method"]

METHODS: dict[str, type[Method]] = {
    "dicot": DiCOT,
    "across": Across,
    "catt": CaTT,
    "cost": CoST,
    "infots": InfoTS,
    "simmtm": SimMTM,
    "soft": Soft,
    "supervised": Supervised,
    "tfc": TFC,
    "tnc": TNC,
    "ts2vec": TS2Vec,
    "tstcc": TSTCC,
}


def build_method(method: str | type[Method], encoder: Encoder, params: Mapping[str, Any]) -> Method:
    """Make a method, registered or given as a class, around `encoder` with these constructor arguments."""
    kind = lookup(METHODS, method, "method") if isinstance(method, str) else method
    check_settings(kind, params, f"Method {method!r}" if isinstance(method, str) else method.__name__)
    return kind(encoder, **params)
