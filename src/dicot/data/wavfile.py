"""Sound files: .wav with whole numbers, read by the standard library."""

import io
import wave
from pathlib import Path

import numpy as np

from dicot.data.policies import FloatArray
from dicot.errors import InputError

_FORM = 16  # bytes of the chunk "fmt " that say how the sound is stored


def read_wav(path: Path) -> tuple[FloatArray, float]:
    """Return the values (C, T) between -1 and 1, and the rate in Hz."""
    try:
        announced, step = _announced(path)
        with wave.open(str(path), "rb") as file:
            n_channels, width, rate, n_times = file.getparams()[:4]
            # Before it is read: wave takes memory for all that is announced.
            raw = file.readframes(n_times) if announced <= path.stat().st_size else b""
    except (wave.Error, EOFError) as error:
        raise InputError(
            f"{path} cannot be read as .wav ({error or 'it ends too early'}). Only whole numbers (PCM) are read; "
            "convert it, for example by: ffmpeg -i IN.wav -c:a pcm_s16le OUT.wav"
        ) from error
    if len(raw) != announced or step != n_channels * width or not n_times or not rate:
        raise InputError(
            f"{path} holds {len(raw)} bytes of sound; its header announces {announced}, with {step} for each time step "
            f"of {n_channels} channel(s) with {width} bytes each at {rate} Hz. It is empty, truncated or damaged; "
            "write or fetch it again."
        )
    return _numbers(raw, width).reshape(n_times, n_channels).T.copy(), float(rate)


def _announced(path: Path) -> tuple[int, int]:
    """Return the bytes of sound and of a time step that the header announces; wave drops what does not fit these."""
    step = 0
    with path.open("rb") as file:
        file.seek(12)
        while len(head := file.read(8)) == 8:
            size = int.from_bytes(head[4:], "little")
            if head[:4] == b"data":
                return size, step
            start = file.tell()
            if head[:4] == b"fmt ":
                step = int.from_bytes(file.read(_FORM)[12:14], "little")
            file.seek(start + size + size % 2, io.SEEK_SET)
    raise EOFError


def _numbers(raw: bytes, width: int) -> FloatArray:
    """Return stored numbers as shares of the largest."""
    if width == 1:  # the only width without a sign
        return (np.frombuffer(raw, np.uint8).astype(np.float32) - 128) / 128
    # The bytes of any width as the high ones of 32 bits: 24 bits have no type of their own.
    padded = np.zeros((len(raw) // width, 4), np.uint8)
    padded[:, 4 - width :] = np.frombuffer(raw, np.uint8).reshape(-1, width)
    return (padded.view("<i4")[:, 0] / np.float64(1 << 31)).astype(np.float32)
