"""EDF and EDF+ files that the tests write byte by byte."""

from pathlib import Path

import numpy as np
import pytest
from tests.signal_files import annotation_track, write_edf, write_hypnogram

from bench.paper.raw.annotations import Annotation, read_edf_annotations
from dicot.core.errors import InputError
from dicot.data.edf import read_edf_header, read_edf_signal

SLOW, FAST = np.array([-2048, 2047, 0]), np.arange(-6, 6)


def two_rates(folder: Path) -> Path:
    """Three records of 2 s: one value a record, and four."""
    ranges = (-200.0, 200.0, -2048, 2047), (-6.0, 5.0, -6, 5)
    return write_edf(folder / "night.edf", {"Temp": (SLOW, 1, ranges[0]), "EEG Fpz-Cz": (FAST, 4, ranges[1])}, 2)


def test_signals_have_their_own_rates_and_units(tmp_path: Path) -> None:
    path = two_rates(tmp_path)
    eeg = read_edf_signal(path, "EEG Fpz-Cz")
    assert eeg.values.dtype == np.float32
    np.testing.assert_array_equal(eeg.values, FAST)  # ranges are equal: stored numbers are the values
    assert (eeg.rate, eeg.unit) == (2.0, "uV")
    slow = read_edf_signal(path, "Temp")
    np.testing.assert_allclose(slow.values, [-200, 200, -200 + 2048 * 400 / 4095], rtol=1e-6)
    assert slow.rate == 0.5
    header = read_edf_header(path)
    assert (header.start, header.n_records, header.seconds_per_record) == ("24.04.89 16.13.00", 3, 2.0)
    assert [channel.label for channel in header.channels] == ["Temp", "EEG Fpz-Cz"]


def test_an_inverted_range_turns_the_sign(tmp_path: Path) -> None:
    path = write_edf(tmp_path / "a.edf", {"EEG": (np.array([-10, 10]), 1, (5.0, -5.0, -10, 10))})
    assert read_edf_signal(path, "EEG").values.tolist() == [5, -5]


def test_a_count_of_records_that_was_never_filled_in(tmp_path: Path) -> None:
    path = write_edf(tmp_path / "a.edf", {"EEG": (FAST, 4, (-6, 5, -6, 5))}, n_records=-1)
    assert len(read_edf_signal(path, "EEG").values) == 12


def test_annotations_of_a_hypnogram(tmp_path: Path) -> None:
    stages = [(0, 30630, "Sleep stage W"), (30630, 120, "Sleep stage 1"), (30750.5, 0.25, "Movement time")]
    assert read_edf_annotations(write_hypnogram(tmp_path / "h.edf", stages)) == [Annotation(*stage) for stage in stages]


def test_annotations_beside_signals_over_several_records(tmp_path: Path) -> None:
    lists = [
        [b"+0\x14\x14", b"-1.5\x14before\x14"],
        [b"+1\x14\x14"],
        [b"+2\x14\x14", "+2.5\x151\x14Tür\x14zu\x14".encode()],
    ]
    tracks = {"EEG": (FAST, 4, (-6, 5, -6, 5)), "EDF Annotations": annotation_track(lists, 40)}
    path = write_edf(tmp_path / "a.edf", tracks, reserved="EDF+C")
    assert read_edf_annotations(path) == [
        Annotation(-1.5, 0, "before"),
        Annotation(2.5, 1, "Tür"),
        Annotation(2.5, 1, "zu"),
    ]
    np.testing.assert_array_equal(read_edf_signal(path, "EEG").values, FAST)


def test_unknown_and_ambiguous_labels(tmp_path: Path) -> None:
    path = two_rates(tmp_path)
    with pytest.raises(InputError, match=r"night\.edf.*'EEG FpzCz'.*'EEG Fpz-Cz'"):
        read_edf_signal(path, "EEG FpzCz")
    with pytest.raises(InputError, match="EDF Annotations"):
        read_edf_annotations(path)
    path.write_bytes(path.read_bytes().replace(b"Temp            ", b"EEG Fpz-Cz      "))
    with pytest.raises(InputError, match="2 signals.*'EEG Fpz-Cz'"):
        read_edf_signal(path, "EEG Fpz-Cz")


def patched(path: Path, at: int, value: str, width: int = 8) -> Path:
    raw = bytearray(path.read_bytes())
    raw[at : at + width] = value.encode().ljust(width)
    path.write_bytes(raw)
    return path


# Where the fields of the first of two signals begin.
PHYSICAL_MIN, PHYSICAL_MAX, DIGITAL_MIN, N_PER_RECORD = (256 + 2 * n for n in (104, 112, 120, 216))


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (N_PER_RECORD, "-1"),
        (PHYSICAL_MIN, "nan"),
        (PHYSICAL_MAX, "-200"),
        (DIGITAL_MIN, "2048"),
        (244, "nan"),
        (252, "0"),
    ],
)
def test_headers_that_no_recording_has(tmp_path: Path, at: int, value: str) -> None:
    path = patched(two_rates(tmp_path), at, value, 4 if at == 252 else 8)
    with pytest.raises(InputError, match=r"night\.edf"):
        read_edf_signal(path, "Temp")


def test_numbers_that_pyedflib_misreads(tmp_path: Path) -> None:
    path = patched(two_rates(tmp_path), 244, "1e2")
    assert read_edf_signal(path, "Temp").rate == 0.01
    path = patched(two_rates(tmp_path), PHYSICAL_MAX, "1e30")
    assert read_edf_signal(path, "Temp").values[1] == np.float32(1e30)
