"""ECG from small records in the format of the atrial fibrillation database."""

from pathlib import Path

import numpy as np
import pytest
from tests.signal_files import write_marks, write_wfdb

from bench.paper.raw import prepare_by_name
from bench.paper.raw.physiology import RECORDS, all_starts, chunk_starts
from dicot.core.errors import InputError, MissingDataError
from dicot.data import Split
from dicot.data.datasets import load

SHORTEST = 72 * 2500 + 100
FIRST = 40  # sample of the first rhythm in every record
RHYTHM = 28
AFIB, AFL, J, N = range(4)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """23 records, all but one longer than the shortest; half of each is atrial fibrillation."""
    folder = tmp_path_factory.mktemp("afdb")
    rng = np.random.default_rng(0)
    for number, record in enumerate(RECORDS):
        n_times = FIRST + SHORTEST + (3000 if number != 7 else 0)
        stored = rng.integers(-300, 300, (n_times, 2)) + np.array([10 * number, -200])
        write_wfdb(folder / record, stored)
        half = FIRST + SHORTEST // 2
        write_marks(folder / f"{record}.atr", [(FIRST, RHYTHM, "(N"), (half, RHYTHM, "(AFIB")])
    (folder / "00735.hea").write_text("00735 0 250 9661440\n")  # has annotations only
    return folder


def signals(raw: Path, number: int) -> np.ndarray:
    """The record in millivolts as the fixture drew it, from the first rhythm on and cut: (2, SHORTEST)."""
    packed = np.frombuffer((raw / f"{RECORDS[number]}.dat").read_bytes(), np.uint8).reshape(-1, 3).astype(int)
    pairs = np.stack([packed[:, 0] + (packed[:, 1] % 16) * 256, packed[:, 2] + (packed[:, 1] // 16) * 256], 1)
    return np.where(pairs > 2047, pairs - 4096, pairs)[FIRST : FIRST + SHORTEST].T / 200


def scaled(raw: Path, number: int) -> np.ndarray:
    """The same in units of the training records."""
    train = np.concatenate([signals(raw, i) for i in range(5, 23)], axis=1)
    return (signals(raw, number) - train.mean(1, keepdims=True)) / train.std(1, keepdims=True)


@pytest.fixture(scope="module")
def chunks(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> Split:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DICOT_DATA", str(tmp_path_factory.mktemp("data")))
        card = prepare_by_name("ecg", raw)
        assert any("draws a window at random" in note for note in card.notes)
        return load("ecg")


def test_windows_begin_in_the_middle_of_chunks() -> None:
    n_times = 8_324_000  # about that of the real records
    starts = chunk_starts(n_times)
    size = n_times // 72
    assert len(starts) == 72
    assert starts[:71].tolist() == [i * size + size // 2 - 1250 for i in range(71)]
    assert starts[71] == 71 * size + (n_times - 71 * size) // 2 - 1250
    assert len(all_starts(n_times)) == 3329  # 18 * 3329 = 59,922 and 5 * 3329 = 16,645, as the paper counts
    assert all_starts(5000).tolist() == [0, 2500]


def test_records_groups_and_labels(chunks: Split) -> None:
    assert chunks.test is not None
    assert (chunks.train.x.shape, chunks.test.x.shape) == ((1296, 2, 2500), (360, 2, 2500))
    assert chunks.test.group.tolist() == np.repeat(RECORDS[:5], 72).tolist()  # type: ignore[union-attr]
    assert chunks.train.group.tolist() == np.repeat(RECORDS[5:], 72).tolist()  # type: ignore[union-attr]
    assert chunks.train.y.reshape(18, 72).tolist() == [[N] * 36 + [AFIB] * 36] * 18  # type: ignore[union-attr]


def test_values_are_scaled_by_training_records(raw: Path, chunks: Split) -> None:
    assert chunks.test is not None
    starts = chunk_starts(SHORTEST)
    for part, row, record, window in ((chunks.test, 72, 1, 0), (chunks.train, 18 * 72 - 1, 22, 71)):
        expected = scaled(raw, record)[:, starts[window] : starts[window] + 2500]
        np.testing.assert_allclose(part.x[row], expected, atol=1e-5)


def test_training_draws_from_whole_chunks(raw: Path, chunks: Split) -> None:
    size = SHORTEST // 72
    assert chunks.train.segments is not None and chunks.test is not None and chunks.test.segments is None
    assert chunks.train.segments.shape == (1296, 2, size) and isinstance(chunks.train.segments, np.memmap)
    for row, record, chunk in ((0, 5, 0), (18 * 72 - 1, 22, 71)):
        expected = scaled(raw, record)[:, chunk * size : (chunk + 1) * size]
        np.testing.assert_allclose(chunks.train.segments[row], expected, atol=1e-5)
    middle = size // 2 - 1250
    np.testing.assert_array_equal(chunks.train.x[:71], chunks.train.segments[:71, :, middle : middle + 2500])


def link(raw: Path, folder: Path) -> None:
    """The records in a folder where single files can be replaced."""
    folder.mkdir(exist_ok=True)
    for path in raw.iterdir():
        (folder / path.name).symlink_to(path)


def replace_marks(folder: Path, marks: list[tuple[int, int, str]], record: str = "04015") -> None:
    (folder / f"{record}.atr").unlink()
    write_marks(folder / f"{record}.atr", marks)


def test_records_that_cannot_be_used(raw: Path, tmp_path: Path) -> None:
    folder = tmp_path / "raw"
    folder.mkdir()
    with pytest.raises(MissingDataError, match=r"04015\.hea.*23 records"):
        prepare_by_name("ecg", folder, out=tmp_path)
    link(raw, folder)
    replace_marks(folder, [(0, RHYTHM, "(B")])
    with pytest.raises(InputError, match=r"04015\.atr.*AFIB, AFL, J, N"):
        prepare_by_name("ecg", folder, out=tmp_path)
    replace_marks(folder, [(9, 1, "")])
    with pytest.raises(InputError, match=r"04015\.atr"):
        prepare_by_name("ecg", folder, out=tmp_path)
    replace_marks(folder, [(100, RHYTHM, "(J"), (5000, RHYTHM, "(AFL")])
    (folder / "04015.dat").unlink()
    write_wfdb(folder / "spare", np.full((SHORTEST + 100, 2), -2048))
    (folder / "spare.dat").rename(folder / "04015.dat")
    (folder / "04015.hea").unlink()
    (folder / "04015.hea").write_text((folder / "spare.hea").read_text().replace("spare", "04015"))
    with pytest.raises(InputError, match=r"04015\.dat"):
        prepare_by_name("ecg", folder, out=tmp_path)
    replace_marks(folder, [(2000, RHYTHM, "(J")])
    with pytest.raises(InputError, match=f"{SHORTEST - 1900}.*180000"):
        prepare_by_name("ecg", folder, out=tmp_path)
