"""Sound files by scipy: .wav with whole numbers of 8 to 32 bits or floating point numbers of 32 or 64."""

import warnings
from pathlib import Path

import numpy as np

from dicot.core.errors import InputError
from dicot.data.policies import FloatArray
from dicot.data.reading import Reading
from dicot.data.recording import Parts, signals


def read_wav(path: Path, reading: Reading) -> Parts:
    """Read the channels of a sound: whole numbers as shares of the largest, other numbers as they are."""
    from scipy.io import wavfile

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Chunk .* not understood", wavfile.WavFileWarning)
            warnings.filterwarnings("error", category=wavfile.WavFileWarning)  # such as a file that ends too early
            rate, stored = wavfile.read(path)
    except (ValueError, wavfile.WavFileWarning) as error:
        raise InputError(
            f"It cannot be read as sound ({error}). Write it again, for example by: "
            "ffmpeg -i IN.wav -c:a pcm_f32le OUT.wav"
        ) from error
    values: FloatArray = stored.reshape(len(stored), -1).T
    if stored.dtype == np.uint8:  # the only width without a sign
        values = (values.astype(np.float32) - 128) / 128
    elif stored.dtype.kind == "i":  # 24 bits come as the high ones of 32
        values = (values / -float(np.iinfo(stored.dtype).min)).astype(np.float32)
    return signals({f"channel {i}": row for i, row in enumerate(values)}, reading, rate=float(rate))
