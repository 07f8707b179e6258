"""Sound files: .wav with whole numbers, read by the standard library."""

import wave
from pathlib import Path

import numpy as np

from dicot.data.policies import FloatArray
from dicot.errors import InputError


def read_wav(path: Path) -> tuple[FloatArray, float]:
    """Return the values (C, T) between -1 and 1, and the rate in Hz."""
    try:
        with wave.open(str(path), "rb") as file:
            n_channels, width, rate, n_times = file.getparams()[:4]
            raw = file.readframes(n_times)
    except (wave.Error, EOFError) as error:
        raise InputError(
            f"{path} cannot be read as .wav ({error or 'it ends too early'}). Only whole numbers (PCM) are read; "
            "convert it, for example by: ffmpeg -i IN.wav -c:a pcm_s16le OUT.wav"
        ) from error
    if len(raw) != n_times * n_channels * width or not n_times:
        raise InputError(
            f"{path} holds {len(raw)} bytes of sound; its header announces {n_times} time steps of {n_channels} "
            f"channel(s) with {width} bytes each. It is empty or truncated; write or fetch it again."
        )
    return _numbers(raw, width).reshape(n_times, n_channels).T.copy(), float(rate)


def _numbers(raw: bytes, width: int) -> FloatArray:
    """Return stored numbers as shares of the largest."""
    if width == 1:  # the only width without a sign
        return (np.frombuffer(raw, np.uint8).astype(np.float32) - 128) / 128
    # The bytes of any width as the high ones of 32 bits: 24 bits have no type of their own.
    padded = np.zeros((len(raw) // width, 4), np.uint8)
    padded[:, 4 - width :] = np.frombuffer(raw, np.uint8).reshape(-1, width)
    return (padded.view("<i4")[:, 0] / np.float64(1 << 31)).astype(np.float32)
