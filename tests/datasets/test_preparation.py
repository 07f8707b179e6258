"""What all prepared sets share: settings, warnings, resuming."""

import os
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dicot.core.errors import InputError, MissingDataError
from dicot.data import Windows
from dicot.data.datasets import DATASETS
from dicot.data.datasets.preparation import PreparedSet, Sizes, SizeWarning, Workspace, raw_files, read_each
from dicot.data.datasets.prepared import PreparedParts, load_prepared
from dicot.data.policies import Array


def read_parts(raw: Path, workspace: Workspace) -> PreparedParts:
    """One window per file; the last file tests."""
    parts = [arrays["x"] for arrays in read_each(raw_files(raw, "*.txt", "texts"), read, workspace)]
    x = np.stack(parts).astype(np.float32) * workspace.settings["factor"]
    rows = np.arange(len(x))
    every = Windows(x[:, None], rows % 2, rows, "toy")
    return PreparedParts(every.subset(slice(-1)), every.subset(slice(-1, None)), ("even", "odd"), 5, ("made up",))


def read(path: Path) -> dict[str, Array]:
    return {"x": np.loadtxt(path)}


TOY = PreparedSet(
    "toy", "https://a", "free", "nobody", "files.", read_parts, Sizes(3, 1, 1, 4, 2), settings={"factor": (1, 2)}
)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    (tmp_path / "raw").mkdir()
    for number in range(4):
        (tmp_path / "raw" / f"{number}.txt").write_text(f"{number} 1 2 3")
    return tmp_path / "raw"


def test_the_card_says_all(raw: Path, tmp_path: Path) -> None:
    told: list[tuple[float, str]] = []
    card = TOY.prepare(raw, out=tmp_path, settings={"factor": 2}, on_progress=lambda *what: told.append(what))
    assert told == [(0, "0.txt"), (0.25, "1.txt"), (0.5, "2.txt"), (0.75, "3.txt"), (1, "")]
    sizes = (card.n_train, card.n_test, card.n_channels, card.n_times, card.n_classes, card.stride)
    assert sizes == (3, 1, 1, 4, 2, 5)
    assert (card.family, card.source, card.licence, card.citation) == ("large", "https://a", "free", "nobody")
    assert (card.labels, card.settings, card.notes) == (("even", "odd"), {"factor": 2}, ("made up",))
    assert card.fingerprint and card.version
    assert load_prepared(tmp_path / "large" / "toy").train.x[2].tolist() == [[4, 2, 4, 6]]


def test_other_sizes_warn_and_stay_on_the_card(raw: Path, tmp_path: Path) -> None:
    (raw / "0.txt").unlink()
    with pytest.warns(SizeWarning, match="toy.*2 training cases instead of 3"):
        card = TOY.prepare(raw, out=tmp_path)
    assert any("2 training cases" in note for note in card.notes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # with another setting no sizes are known
        TOY.prepare(raw, out=tmp_path, settings={"factor": 2})


def test_a_group_in_both_parts_is_refused_unless_it_is_known(raw: Path, tmp_path: Path) -> None:
    def one_person(folder: Path, workspace: Workspace) -> PreparedParts:
        good = read_parts(folder, workspace)
        train, test = (replace(part, group=np.zeros(len(part), int)) for part in (good.train, good.test))
        return replace(good, train=train, test=test)

    with pytest.raises(InputError, match=r"\[.*0.*\]"):
        replace(TOY, read=one_person).prepare(raw, out=tmp_path)
    card = replace(TOY, read=one_person, shared_groups=True).prepare(raw, out=tmp_path)
    assert "Training and test windows come from the same groups." in card.notes


def test_settings_are_checked(raw: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="factor.*1, 2.*3"):
        TOY.prepare(raw, out=tmp_path, settings={"factor": 3})
    with pytest.raises(InputError, match="'fact'.*'factor'"):
        TOY.prepare(raw, out=tmp_path, settings={"fact": 1})
    with pytest.raises(InputError, match="nowhere.*https://a"):
        TOY.prepare(tmp_path / "nowhere", out=tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingDataError, match=r"empty.*\*\.txt.*texts"):
        TOY.prepare(tmp_path / "empty", out=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file/large"):
        TOY.prepare(raw, out=tmp_path / "file")


def test_a_killed_run_goes_on_with_the_files_it_has_read(raw: Path, tmp_path: Path) -> None:
    seen: list[str] = []

    def counting(deadly: Iterable[str]) -> PreparedSet:
        def read_some(path: Path) -> dict[str, Array]:
            if path.name in deadly:
                raise KeyboardInterrupt
            seen.append(path.name)
            return read(path)

        def run(folder: Path, workspace: Workspace) -> PreparedParts:
            list(read_each(raw_files(folder, "*.txt", "texts"), read_some, workspace))
            return read_parts(folder, workspace)

        return replace(TOY, read=run)

    with pytest.raises(KeyboardInterrupt):
        counting(["2.txt"]).prepare(raw, out=tmp_path)
    assert not (tmp_path / "large" / "toy").exists()
    assert len(list((tmp_path / "large" / "toy.partial").iterdir())) == 2
    (raw / "1.txt").write_text("9 9 9 9.5")  # changed in between, so it is read again
    counting([]).prepare(raw, out=tmp_path)
    assert seen == ["0.txt", "1.txt", "1.txt", "2.txt", "3.txt"]
    assert load_prepared(tmp_path / "large" / "toy").train.x[1].tolist() == [[9, 9, 9, 9.5]]
    assert [path.name for path in (tmp_path / "large").iterdir()] == ["toy"]


def test_a_saved_part_is_read_again_when_any_of_its_files_changed_or_it_is_damaged(raw: Path, tmp_path: Path) -> None:
    files, seen = [raw / "0.txt"], []

    def joined(path: Path) -> dict[str, Array]:
        seen.append(path.name)
        return {"x": np.loadtxt(path) + np.loadtxt(raw / "1.txt")}

    def run() -> list[float]:
        beside = {"beside": lambda path: [raw / "1.txt"]}
        (arrays,) = read_each(files, joined, Workspace({}, tmp_path / "partial"), **beside)  # type: ignore[arg-type]
        return list(arrays["x"])

    assert run() == run() == [1, 2, 4, 6] and seen == ["0.txt"]
    os.utime(raw / "1.txt", ns=(0, 0))
    (raw / "1.txt").write_text("2 1 2 3")
    os.utime(raw / "1.txt", ns=(0, 0))  # as long as before, and as old
    assert run() == [2, 2, 4, 6]
    for copy in (tmp_path / "partial").iterdir():
        copy.write_bytes(copy.read_bytes()[:-30])
    assert run() == [2, 2, 4, 6]
    (raw / "1.txt").unlink()
    with pytest.raises(InputError, match=r"1\.txt"):
        run()


PREPARED = [one for one in DATASETS.values() if isinstance(one, PreparedSet)]


@pytest.mark.parametrize("dataset", PREPARED, ids=lambda one: one.name)
def test_every_prepared_set_is_documented(dataset: PreparedSet) -> None:
    assert dataset.name == dataset.name.lower() and "." not in dataset.name
    assert dataset.source.startswith("http")
    assert dataset.licence and dataset.citation and dataset.download.endswith(".")
    assert len(dataset.transfer_channels) in (0, 3) and len(dataset.paper_transfer_channels) in (0, 3)
    for allowed in dataset.settings.values():
        assert len(allowed) > 1
