"""One case through the frozen network in C (single.c).

A single case gives a library of matrix products little to do and much to prepare: many small products, each of which
copies its weights first. Here nothing is copied, the whole network is one call, and every number is computed in the
order that large products take, so that it may be the same to the last bit; whoever relies on that tries it out
(`embedding.passes`). Where it cannot be compiled (see `compiled`), a single case goes the way of many.
"""

import ctypes
from typing import Any

import torch
from torch import Tensor

from dicot.nets.encoders.inception.compiled import address, compiled
from dicot.nets.encoders.inception.filter_bank import Spectral
from dicot.nets.encoders.inception.scratch import Scratch

_P, _N = ctypes.c_void_p, ctypes.c_long


class _Segment(ctypes.Structure):
    _fields_ = [("analysis", _P), ("first", _N), ("n_read", _N)]


class _Module(ctypes.Structure):
    _fields_ = [
        *((f"n_{name}", _N) for name in ("times", "source", "in", "narrow", "convolved", "pooled")),
        *((f"n_{name}", _N) for name in ("frequencies", "segments", "outputs")),
        *((name, _P) for name in ("narrow", "narrow_bias", "segments", "spectra", "constant", "synthesis")),
        *((name, _P) for name in ("pool", "pool_bias", "floor")),
    ]


class _Block(ctypes.Structure):
    _fields_ = [("modules", _Module * 3), ("residual", _P), ("zeros", _P)]


class _Network(ctypes.Structure):
    _fields_ = [
        *((name, _N) for name in ("n_times", "n_channels", "n_entry", "joint")),
        *((name, _P) for name in ("entry", "entry_bias")),
        ("blocks", _Block * 2),
    ]


class _Room(ctypes.Structure):
    _fields_ = [
        (name, _P) for name in ("source", "entry", "features", "between", "narrowed", "spectrum", "product", "largest")
    ]


def library() -> ctypes.CDLL | None:
    """Load the compiled functions, or return None where they cannot be compiled."""
    return compiled("dicot.nets.encoders.inception", "single.c")


def single_network(frozen: Any) -> "SingleNetwork | None":
    """Return a `FrozenInception` as one function of one case, or None where there is none for it."""
    like = frozen.entry.weight
    plain = like.device.type == "cpu" and like.dtype == torch.float32
    if not plain or not isinstance(frozen.block0.first.bank, Spectral) or library() is None:
        return None
    return SingleNetwork(frozen)


class SingleNetwork:
    """A `FrozenInception` for one case."""

    def __init__(self, frozen: Any) -> None:
        self.n_times, self.dim = frozen.n_times, frozen.dim
        n_channels, n_entry = frozen.entry.weight.shape
        self.kept: list[object] = []  # what C reads beside the tensors of `frozen`, which this belongs to
        blocks = (_Block * 2)(*(self._block(block) for block in (frozen.block0, frozen.block1)))
        entry = (address(part).value for part in frozen.entry)
        self.network = _Network(self.n_times, n_channels, n_entry, frozen.joint, *entry, blocks)
        first = blocks[0].modules[0]
        n_rows = first.n_frequencies * 2 * first.n_segments
        widths = (n_channels, n_entry, self.dim, self.dim, first.n_narrow)
        self.sizes = (
            *(self.n_times * width for width in widths),
            n_rows * 2 * first.n_narrow,
            n_rows * first.n_convolved,
            self.n_times * max(n_entry, self.dim),
        )
        loaded = library()
        assert loaded is not None
        self.function = loaded.network

    def _block(self, block: Any) -> _Block:
        modules = (_Module * 3)(*(self._module(module) for module in (block.first, block.second, block.third)))
        zeros = torch.zeros_like(block.residual[0])
        self.kept.append(zeros)
        return _Block(modules, address(block.residual).value, address(zeros).value)

    def _module(self, module: Any) -> _Module:
        bank: Spectral = module.bank
        parts = [_Segment(part.analysis.data_ptr(), part.reads.start, part.analysis.shape[1]) for part in bank.segments]
        segments = (_Segment * len(parts))(*parts)
        floor = torch.cat([module.floor, module.pool_floor])
        self.kept += [segments, floor]
        n_source, n_narrow = module.narrow.weight.shape
        n_in, n_pooled = module.pool.weight.shape
        n_freq, _, n_convolved = bank.spectra.shape
        sizes = (self.n_times, n_source, n_in, n_narrow, n_convolved, n_pooled)
        before, behind = (*module.narrow,), (bank.spectra, bank.constant, bank.synthesis, *module.pool, floor)
        weights = (*map(address, before), ctypes.cast(segments, _P), *map(address, behind))
        lengths = (n_freq, len(segments), len(bank.synthesis))
        return _Module(*sizes, *lengths, *(place.value for place in weights))

    def __call__(self, x: Tensor, scratch: Scratch) -> Tensor:
        """Compute the features of one case, (1, C, T) -> (1, F, T)."""
        x, y = x.contiguous(), x.new_empty(self.n_times, 1, self.dim)
        memory, places = scratch.take("single", sum(self.sizes)).data_ptr(), []
        for size in self.sizes:
            places.append(memory)
            memory += size * x.itemsize
        arguments = (ctypes.byref(self.network), _Room(*places), address(x), address(y))
        self.function(*arguments, torch.get_num_threads())
        return y.permute(1, 2, 0)
