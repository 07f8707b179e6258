"""The encoder of the box, levels beside it, vectors of one length, and models that hold them."""

import json
import shutil
import socket

import numpy as np
import pytest
import torch

from dicot import TimeSeriesEmbedder
from dicot.core.errors import InputError
from dicot.judge.evaluation.contenders import flat
from dicot.model.box import BOX
from dicot.model.embedding import MIXED, embed, fit_composition
from dicot.model.presets import INSTANT
from dicot.model.vector.compression import Compression
from dicot.model.vector.levels import Levels
from dicot.model.vector.module import LEVELS_COUNT
from dicot.model.vector.poolings import pooled_dim
from dicot.nets.encoders import Universal

QUIET = {"random_state": 1, "device": "cpu", "verbose": False}


def walks(n: int, n_channels: int, n_times: int, seed: int = 0) -> np.ndarray:
    """Random walks on a grid, so that a large offset added to them is exact."""
    walk = np.random.default_rng(seed).normal(size=(n, n_channels, n_times)).cumsum(axis=2)
    return (np.round(walk * 16) / 16).astype(np.float32)


def universal(n_channels: int, dim: int = 24) -> Universal:
    """Weights of a seed, and BatchNorm that has seen something."""
    torch.manual_seed(0)
    encoder = Universal(1, dim)
    with torch.no_grad():
        for _ in range(20):
            encoder.train().embed(torch.from_numpy(walks(8, 1, 100)))
    made = Universal(n_channels, dim)
    made.load_state_dict(encoder.state_dict())
    return made.eval()


def vectors(encoder: Universal, x: np.ndarray, **options) -> np.ndarray:
    return embed(encoder, x, pooling="own", device="cpu", **options)


def instant(**settings) -> TimeSeriesEmbedder:
    return TimeSeriesEmbedder(preset="instant", **{**QUIET, **settings})


@pytest.fixture(scope="module")
def base() -> TimeSeriesEmbedder:
    return TimeSeriesEmbedder.from_pretrained("dicot-base", device="cpu")


@pytest.mark.parametrize("n_channels", [0, 3, 12])
def test_a_vector_does_not_depend_on_its_company(n_channels):
    encoder, x = universal(n_channels), walks(9, n_channels or 3, 70)
    x[4] = 5.0
    z = vectors(encoder, x)
    assert z.shape == (9, encoder.embed_dim) and len(np.unique(z, axis=0)) == 9
    for rows in ([4], [5, 2], np.random.default_rng(1).permutation(9)):
        for batch_size in (1, 4, 1024):
            np.testing.assert_allclose(vectors(encoder, x[rows], batch_size=batch_size), z[rows], atol=2e-6)


def test_a_long_case_is_looked_at_as_a_whole_and_closely():
    encoder, x = universal(2), walks(3, 2, 2000)
    whole = vectors(
        encoder, np.stack([[np.interp(np.linspace(0, 1999, 512), np.arange(2000), c) for c in one] for one in x])
    )
    close = [vectors(encoder, x[..., start : start + 512]) for start in (0, 496, 992, 1488)]
    np.testing.assert_allclose(vectors(encoder, x), (whole + np.mean(close, axis=0)) / 2, atol=1e-4)


def test_prepared_weights_give_what_the_definition_gives():
    encoder, x = universal(3), walks(5, 3, 300)
    with torch.no_grad():
        defined = encoder.embed(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(vectors(encoder, x), defined, atol=2e-5)


@pytest.mark.parametrize(("factor", "offset"), [(1000.0, 0.0), (0.01, 3.0), (1.0, 1e6), (4.0, -2e5)])
@pytest.mark.parametrize("n_times", [40, 256, 700])
def test_units_do_not_count_but_in_the_levels(factor, offset, n_times):
    encoder, x = universal(2), walks(4, 2, n_times)
    other = (factor * x.astype(np.float64) + offset).astype(np.float32)
    apart = np.abs(vectors(encoder, other) - vectors(encoder, x)).max()
    assert apart < (1e-3 if factor == 0.01 else 1e-4), apart  # 0.01 x is rounded, and so is its difference
    levels = Levels(2)
    a, b = (levels(torch.from_numpy(one)).unflatten(1, (2, 6)) for one in (x, other))
    for column, wanted in enumerate([*(factor * a[..., :3] + offset).unbind(-1), factor * a[..., 3]]):
        torch.testing.assert_close(b[..., column], wanted, rtol=1e-6, atol=1e-2 * factor)
    if abs(offset) < 1e4:  # beyond, deviations reach the size of rounding, which is added to them
        logs = a[..., 4:] + torch.tensor([np.log(factor), 0.0]).float()
        torch.testing.assert_close(b[..., 4:], logs, rtol=0, atol=2e-3)


@pytest.mark.parametrize("n_times", [40, 256, 700])
def test_a_faint_signal_keeps_its_shape(n_times):
    encoder, x = universal(2), walks(4, 2, n_times)
    faint = x * np.float32(2.0**-110)
    np.testing.assert_array_equal(vectors(encoder, faint), vectors(encoder, x))
    a, b = (Levels(2)(torch.from_numpy(one)).unflatten(1, (2, 6))[..., 4:] for one in (x, faint))
    torch.testing.assert_close(b, a - torch.tensor([110 * np.log(2), 0.0]).float(), rtol=0, atol=2e-3)


def test_the_order_of_channels_counts_only_where_they_stand_side_by_side():
    x, order = walks(4, 3, 90), [2, 0, 1]
    side_by_side = vectors(universal(3), x).reshape(4, 3, -1)
    swapped = vectors(universal(3), x[:, order]).reshape(4, 3, -1)
    np.testing.assert_allclose(swapped, side_by_side[:, order], atol=2e-6)
    assert np.abs(side_by_side[:, 0] - side_by_side[:, 1]).max() > 0.1
    anyhow = universal(0)
    np.testing.assert_allclose(vectors(anyhow, x[:, order]), vectors(anyhow, x), atol=2e-6)
    levels = Levels(0)
    torch.testing.assert_close(*(levels(torch.from_numpy(one)) for one in (x, x[:, order])))
    mean, deviation = side_by_side.mean(axis=1), np.sqrt(side_by_side.var(axis=1) + 1e-5)
    np.testing.assert_allclose(vectors(anyhow, x), np.concatenate([mean, deviation], axis=1), atol=1e-5)


@pytest.mark.parametrize("n_channels", [0, 2, 9])
@pytest.mark.parametrize("n_times", [1, 2, 3, 50])
def test_whatever_comes_is_finite(n_channels, n_times):
    encoder, levels = universal(n_channels), [Levels(n_channels), Levels(n_channels, squashed=True)]
    x = walks(6, n_channels or 2, n_times)
    x[1], x[2, 0], x[3] = 0.0, 1e6, 1e6 + 0.0625 * (np.arange(n_times) % 2)
    x[4] = np.linspace(-1, 1, n_times, dtype=np.float32)
    x[5] *= 1e-30
    parts = [torch.from_numpy(vectors(encoder, x)), *(one(torch.from_numpy(x)) for one in levels)]
    assert all(part.isfinite().all() for part in parts)
    flat = vectors(encoder, np.stack([np.full_like(x[0], value) for value in (0.0, 3.3, -1e6)]))
    np.testing.assert_array_equal(flat[1:], flat[[0, 0]])  # constants have levels, no shape
    encoder.train()
    gradient = torch.autograd.grad(encoder.embed(torch.from_numpy(x)).sum(), list(encoder.parameters()))
    assert all(one.isfinite().all() for one in gradient)


def test_512_numbers_of_five_cases_have_the_distances_of_their_parts():
    encoder, x = universal(2), walks(5, 2, 60)
    how = {"pooling": "own", "bank": "small", "levels": True, "seed": 1, "device": "cpu"}
    plain, short = (fit_composition(encoder, x, **how, **more) for more in ({}, {"length": 512}))
    whole, z = (vectors(encoder, x, composer=one).astype(np.float64) for one in (plain, short))
    assert z.shape == (5, 512) and short.compression.n_components == 512
    assert short.compression.weight.shape[1] == 4, "a file does not grow with numbers that say nothing more"
    np.testing.assert_allclose(np.sqrt((z**2).mean()), 1, atol=1e-3)
    sizes = [encoder.embed_dim, MIXED["small"][0], plain.contests.n_features, 12]
    assert plain.sizes(pooled_dim(encoder, "own")) == list(zip(sizes, (1.0, 1.0, 1.0, LEVELS_COUNT), strict=True))
    weighed = []
    for own, (_, weight) in zip(np.split(whole, np.cumsum(sizes)[:-1], axis=1), plain.sizes(sizes[0]), strict=True):
        varied = own.std(axis=0) > 3e-7 * np.abs(own.mean(axis=0))
        standard = (own[:, varied] - own[:, varied].mean(axis=0)) / own[:, varied].std(axis=0)
        weighed.append(weight * standard / np.sqrt(varied.sum()))
    wanted, got = (np.linalg.norm(v[:, None] - v, axis=2) for v in (np.concatenate(weighed, axis=1), z))
    pairs = np.triu_indices(5, 1)
    np.testing.assert_allclose(got[pairs] / got[pairs].mean(), wanted[pairs] / wanted[pairs].mean(), rtol=1e-3)
    fewer = Compression.fit(whole, 512)
    assert fewer.n_components == 4, "without `exactly` there are never more components than cases allow"


@pytest.mark.parametrize("n_channels", [2, 9])
def test_levels_that_are_only_rounding_play_no_part(n_channels):
    x = walks(30, n_channels, 60)
    scaled = instant(prepare={"scale": "case"}).fit(x)
    n = scaled.composition_.levels.n_features
    kept = scaled.composition_.compression.weight[-n:].abs().amax(dim=1).reshape(-1, 6) > 0
    assert kept[0].tolist() == [False, True, True, True, False, True], "a z-scored case has no mean and no deviation"
    raw = instant().fit(x * np.float32(1e-12))
    assert (raw.composition_.compression.weight[-n:].abs().amax(dim=1) > 0).all(), "small units are no rounding"


def test_a_fit_of_few_cases_gives_all_numbers_and_takes_new_lengths():
    model = instant().fit(walks(5, 2, 60))
    assert model.history_.loss == [] and model.transform(walks(3, 2, 60)).shape == (3, INSTANT.features["length"])
    assert np.isfinite(model.transform(walks(2, 2, 7))).all()
    with pytest.raises(InputError, match="universal with dim=192. Leave out encoder and dim"):
        instant(dim=8).fit(walks(5, 2, 60))


def test_the_box_needs_no_fit_and_no_network(monkeypatch):
    def refuse(*_):
        raise OSError("no network")

    monkeypatch.setattr(socket, "socket", refuse)
    model = TimeSeriesEmbedder.from_pretrained("dicot-base", device="cpu")
    for shape in ((1, 1, 1), (3, 1, 24), (2, 7, 300), (2, 40, 900)):
        z = model.transform(walks(*shape))
        assert z.shape == (shape[0], 512) and np.isfinite(z).all()
    several = [walks(1, 2, n)[0] for n in (20, 300, 20)]
    np.testing.assert_allclose(model.transform(several)[1], model.transform(several[1][None])[0], atol=1e-5)


def test_a_folder_of_ones_own_wins_over_a_name_of_the_box(tmp_path, monkeypatch, waves):
    mine = TimeSeriesEmbedder("calibrated", dim=8, **QUIET).fit(waves)
    mine.save_pretrained(tmp_path / "dicot-base")
    monkeypatch.chdir(tmp_path)
    assert np.array_equal(TimeSeriesEmbedder.from_pretrained("dicot-base").transform(waves.x), mine.transform(waves.x))
    shutil.rmtree(tmp_path / "dicot-base")
    assert TimeSeriesEmbedder.from_pretrained("dicot-base").transform(waves.x).shape == (len(waves), 512)


@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_half_the_bits_are_kept_only_where_they_are_enough(offset, tmp_path):
    x = walks(20, 2, 60) + np.float32(offset)
    model = instant().fit(x)
    whole, half = (model.save_pretrained(tmp_path / str(bits), half=bits == 16) for bits in (32, 16))
    z, again = (TimeSeriesEmbedder.from_pretrained(folder, device="cpu").transform(x) for folder in (whole, half))
    assert np.array_equal(z, model.transform(x))
    assert (np.linalg.norm(again - z, axis=1) / np.linalg.norm(z, axis=1)).max() < 0.01
    sizes = [(folder / "model.safetensors").stat().st_size for folder in (whole, half)]
    assert sizes[1] < (0.52 if offset == 0 else 1.0) * sizes[0], sizes


def test_a_fit_starts_from_a_universal_model_of_ones_own(base):
    x = walks(10, 3, 40)
    own = TimeSeriesEmbedder("across", encoder="universal", dim=16, steps=1, **QUIET).fit(x[:, :1])
    model = instant(dim=16).fit(x, initial=own)
    for name, weight in own.encoder_.state_dict().items():
        assert torch.equal(model.encoder_.state_dict()[name], weight), name
    assert model.encoder_.n_channels == 3 and model.origin_["initial"]
    from_box = instant().fit(x)
    assert np.array_equal(from_box.transform(x), instant().fit(x, initial=base).transform(x))
    assert np.array_equal(from_box.transform(x), instant().fit(x, initial=BOX["dicot-base"]).transform(x))


def test_a_model_that_was_saved_before_there_were_levels_loads(tmp_path, waves):
    model = TimeSeriesEmbedder("calibrated", dim=8, features={"bank": 84, "n_components": 5}, **QUIET).fit(waves)
    path = model.save_pretrained(tmp_path / "old") / "config.json"
    config = json.loads(path.read_text())
    config["estimator"] = flat(config["estimator"])
    for name in ("levels", "length", "box"):
        assert not config["chosen"].pop(name) and config["estimator"].pop(name) is None
    del config["sha256"]
    path.write_text(json.dumps(config))
    old = TimeSeriesEmbedder.from_pretrained(tmp_path / "old", device="cpu")
    assert old.features_ == model.features_ and np.array_equal(old.transform(waves.x), model.transform(waves.x))
