"""Sound files: .wav with whole numbers of 8 to 32 bits or floating point numbers of 32 or 64."""

from pathlib import Path

import numpy as np

from dicot.core.errors import InputError
from dicot.data.policies import FloatArray

_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE  # how the numbers are stored; the last says it further behind
_WIDTHS = {_PCM: (1, 2, 3, 4), _FLOAT: (4, 8)}  # bytes of a number


def read_wav(path: Path) -> tuple[FloatArray, float]:
    """Return the values (C, T) and the rate in Hz: whole numbers between -1 and 1, other numbers as they are."""
    data = path.read_bytes()
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise InputError(f"{path} does not begin as a .wav does. It holds another format; write or fetch it again.")
    chunks: dict[bytes, tuple[int, bytes]] = {}  # with the size that is announced
    at = 12
    while at + 8 <= len(data) and b"data" not in chunks:
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        chunks[data[at : at + 4]] = size, data[at + 8 : at + 8 + size]
        at += 8 + size + size % 2
    (_, form), (announced, raw) = (chunks.get(name, (0, b"")) for name in (b"fmt ", b"data"))
    kind, n_channels, rate, _, step, bits = (
        int.from_bytes(form[start:end], "little")
        for start, end in ((0, 2), (2, 4), (4, 8), (8, 12), (12, 14), (14, 16))
    )
    kind = int.from_bytes(form[24:26], "little") if kind == _EXTENSIBLE else kind
    width = (bits + 7) // 8
    if len(form) >= 16 and width not in _WIDTHS.get(kind, ()):
        raise InputError(
            f"{path} holds sound of kind {kind} with {bits} bits; whole numbers (PCM) of 8 to 32 bits and floating "
            "point numbers of 32 or 64 are read. Convert it, for example by: ffmpeg -i IN.wav -c:a pcm_f32le OUT.wav"
        )
    if not raw or len(raw) != announced or not rate or not step or step != n_channels * width or len(raw) % step:
        raise InputError(
            f"{path} holds {len(raw)} bytes of sound; its header announces {announced}, with {step} for each time step "
            f"of {n_channels} channel(s) with {width} bytes each at {rate} Hz. It is empty, truncated or damaged; "
            "write or fetch it again."
        )
    values = np.frombuffer(raw, f"<f{width}") if kind == _FLOAT else _shares(raw, width)
    return np.ascontiguousarray(values.reshape(-1, n_channels).T), float(rate)


def _shares(raw: bytes, width: int) -> FloatArray:
    """Return whole numbers as shares of the largest."""
    if width == 1:  # the only width without a sign
        return (np.frombuffer(raw, np.uint8).astype(np.float32) - 128) / 128
    # The bytes of any width as the high ones of 32 bits: 24 bits have no type of their own.
    padded = np.zeros((len(raw) // width, 4), np.uint8)
    padded[:, 4 - width :] = np.frombuffer(raw, np.uint8).reshape(-1, width)
    return (padded.view("<i4")[:, 0] / np.float64(1 << 31)).astype(np.float32)
