"""The promises of every registry, as functions of an entry: whoever registers something keeps them.

A promise takes the entry's name and the entry. `test_registries.py` asks every entry, `test_toys.py` some toys.
"""

import inspect
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone

from bench.suites import SUITES
from dicot.core.errors import InputError, MissingDataError
from dicot.data import Windows
from dicot.data.datasets import DATASETS, DataSet, load
from dicot.judge.classical import CLASSICAL, Classical
from dicot.judge.protocols import PROTOCOLS, Protocol
from dicot.methods import METHODS, Batch, Method, build_method
from dicot.model.controls import CONTROLS
from dicot.model.embedding import POOLINGS, Pooling, embed
from dicot.model.estimator import TimeSeriesEmbedder
from dicot.model.presets import PRESETS, Preset
from dicot.nets.encoders import ENCODERS, FCN, Encoder, InceptionTime, Universal, build_encoder, encoder_name
from dicot.train import Recipe, pretrain
from dicot.train.batches import plan_generator
from tests.commands import bench
from tests.conftest import make_waves
from tests.contracts.toys import Stack
from tests.protocols.contract import CHECKS

Promise = Callable[[str, Any], None]
REGISTRIES: dict[str, Mapping[str, Any]] = {
    "methods": METHODS,
    "encoders": ENCODERS,
    "protocols": PROTOCOLS,
    "classical": CLASSICAL,
    "controls": CONTROLS,
    "poolings": POOLINGS,
    "presets": PRESETS,
    "datasets": DATASETS,
    "suites": SUITES,
}
PROMISES: dict[str, list[Promise]] = {registry: [] for registry in REGISTRIES}


SLOW: set[Promise] = set()


def promised_by(registry: str, *, slow: bool = False) -> Callable[[Promise], Promise]:
    """Add a function to the promises of a registry; `make test-fast` leaves the slow ones out."""

    def add(promise: Promise) -> Promise:
        PROMISES[registry].append(promise)
        if slow:
            SLOW.add(promise)
        return promise

    return add


def one_line(text: str | None) -> bool:
    """Whether a listing can show the text."""
    return bool(text) and "\n" not in str(text)


# Methods


# Methods whose loss may rise at first for a reason of their own.
NO_DESCENT = {
    "cost": "the queue starts with random vectors, easy to tell from a key; 32 steps replace them by real, harder keys",
}


def make(kind: type[Method], n_channels: int = 2, encoder: type[Encoder] = InceptionTime) -> Method:
    torch.manual_seed(0)
    return kind(encoder(n_channels, dim=16))


def first_batch(method: Method) -> Batch:
    waves = make_waves()
    y = torch.from_numpy(waves.y[:8]) if method.needs_labels else None
    return Batch(torch.from_numpy(waves.x[:8]), torch.arange(8), y)


def loss_of(method: Method, batch: Batch) -> torch.Tensor:
    torch.manual_seed(3)
    return method.loss(batch, method.plan(tuple(batch.x.shape), plan_generator(0, 0)))


@promised_by("methods")
def loss_and_every_gradient_are_finite(name: str, kind: type[Method]) -> None:
    method = make(kind)
    method.prepare(make_waves())
    loss = loss_of(method, first_batch(method))
    assert loss.shape == () and torch.isfinite(loss)
    loss.backward()
    for group in method.param_groups():
        for parameter in group["params"]:
            assert parameter.grad is not None and torch.isfinite(parameter.grad).all()


@promised_by("methods")
def plans_are_hashable_and_fixed_by_the_generator(name: str, kind: type[Method]) -> None:
    method = make(kind)
    method.prepare(make_waves())
    plans = [[method.plan((8, 2, 32), plan_generator(1, step)) for step in range(20)] for _ in range(2)]
    assert plans[0] == plans[1]
    assert {hash(plan) for plan in plans[0]}


@promised_by("methods", slow=True)
def same_seed_same_weights_and_they_move(name: str, kind: type[Method]) -> None:
    histories, weights = [], []
    for _ in range(2):
        method = make(kind)
        before = [p.clone() for p in method.encoder.parameters()]
        histories.append(pretrain(method, make_waves(), Recipe(4, 8), seed=7, device="cpu"))
        weights.append([p.detach() for p in method.trained_encoder().parameters()])
        assert any(not torch.equal(a, b) for a, b in zip(before, method.encoder.parameters(), strict=True))
    assert histories[0].loss == histories[1].loss
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))


@promised_by("methods")
def labels_are_not_seen_unless_needed(name: str, kind: type[Method]) -> None:
    waves = make_waves()
    if kind.needs_labels:
        with pytest.raises(InputError, match="labels"):
            pretrain(make(kind), Windows(waves.x), Recipe(1, 8), seed=0, device="cpu")
        return
    poisoned = Windows(waves.x, np.full(len(waves), "poison"), name=waves.name)
    losses = [pretrain(make(kind), data, Recipe(2, 8), seed=1, device="cpu").loss for data in (waves, poisoned)]
    assert losses[0] == losses[1]


@promised_by("methods", slow=True)
def state_dict_holds_everything(name: str, kind: type[Method]) -> None:
    method, other = make(kind), make(kind)
    pretrain(method, make_waves(), Recipe(3, 8), seed=1, device="cpu")
    other.prepare(make_waves())
    other.load_state_dict(method.state_dict())
    batch = first_batch(method)
    method.eval(), other.eval()
    assert torch.equal(loss_of(method, batch), loss_of(other, batch))


@promised_by("methods")
def thirty_steps_lower_the_loss(name: str, kind: type[Method]) -> None:
    if name in NO_DESCENT:
        pytest.skip(NO_DESCENT[name])
    loss = pretrain(make(kind, encoder=Stack), make_waves(), Recipe(30, 8, lr=1e-3), seed=2, device="cpu").loss
    assert np.mean(loss[-8:]) < np.mean(loss[:8])


@promised_by("methods")
def callers_random_state_is_untouched(name: str, kind: type[Method]) -> None:
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    states = torch.get_rng_state(), np.random.get_state()[1]  # noqa: NPY002
    method = make(kind)
    torch.set_rng_state(states[0])
    pretrain(method, make_waves(), Recipe(2, 8), seed=1, device="cpu")
    assert torch.equal(torch.get_rng_state(), states[0])
    assert np.array_equal(np.random.get_state()[1], states[1])  # noqa: NPY002


@promised_by("methods", slow=True)
def extreme_shapes_train(name: str, kind: type[Method]) -> None:
    rng = np.random.default_rng(0)
    for n_channels, n_times, batch in ((1, 8, 2), (64, 8, 2), (1, 50, 3)):
        x = rng.normal(size=(4, n_channels, n_times)).astype(np.float32)
        x[0] = 1.0  # a constant case
        history = pretrain(make(kind, n_channels), Windows(x, np.arange(4) % 2), Recipe(2, batch), seed=0, device="cpu")
        assert np.isfinite(history.loss).all()


@promised_by("methods")
def method_says_what_it_is(name: str, kind: type[Method]) -> None:
    assert all(one_line(text) for text in (kind.summary, kind.paper, kind.complexity))


@promised_by("methods")
def settings_make_an_equal_method(name: str, kind: type[Method]) -> None:
    method = make(kind)
    again = build_method(name, make(kind).encoder, method.settings())
    assert again.settings() == method.settings() and type(again) is kind
    assert set(method.settings()) == set(inspect.signature(kind).parameters) - {"encoder"}


@promised_by("methods")
def unknown_settings_are_refused(name: str, kind: type[Method]) -> None:
    with pytest.raises(InputError, match="no_such_setting"):
        build_method(name, FCN(1, dim=8), {"no_such_setting": 1})


# Encoders


def make_encoder(kind: type[Encoder], n_channels: int = 2) -> Encoder:
    torch.manual_seed(0)
    return kind(n_channels=n_channels, dim=16)


@promised_by("encoders")
def length_is_kept(name: str, kind: type[Encoder]) -> None:
    encoder = make_encoder(kind)
    for n_times in (1, 2, 4, 5, 9, 40, 101):
        x = torch.randn(3, 2, n_times)
        assert encoder.train()(x).shape == (3, 16, n_times)
        z = encoder.eval().embed(x)
        assert z.shape == (3, encoder.embed_dim)
        if kind.embed is Encoder.embed:
            assert torch.equal(z, encoder(x).mean(-1))


@promised_by("encoders")
def every_parameter_gets_a_gradient(name: str, kind: type[Encoder]) -> None:
    for n_times in (4, 30):
        encoder = make_encoder(kind)
        encoder.embed(torch.randn(4, 2, n_times)).square().mean().backward()
        for label, parameter in encoder.named_parameters():
            assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), label


@promised_by("encoders")
def keep_blanks_time_steps(name: str, kind: type[Encoder]) -> None:
    encoder = make_encoder(kind).eval()
    x = torch.randn(2, 2, 200)
    keep = torch.ones(2, 200, dtype=torch.bool)
    assert torch.equal(encoder(x, keep), encoder(x))
    keep[0, 100:] = False
    h, unmasked = encoder(x, keep), encoder(x)
    assert torch.equal(h[1], unmasked[1])
    assert not torch.equal(h[0, :, 150], unmasked[0, :, 150])
    changed = x.clone()
    changed[0, :, 100:] += 5
    assert torch.equal(encoder(changed, keep), h), "what is blanked has no influence any more"


@promised_by("encoders")
def every_layer_has_features(name: str, kind: type[Encoder]) -> None:
    encoder = make_encoder(kind).eval()
    x = torch.randn(3, 2, 20)
    layers = encoder.features(x)
    assert all(h.ndim == 3 and len(h) == 3 for h in layers.values())
    assert encoder.layer_dims() == {layer: h.shape[1] for layer, h in layers.items()}
    torch.testing.assert_close(list(layers.values())[-1], encoder(x), rtol=1e-4, atol=1e-5)


@promised_by("encoders")
def plain_path_gives_the_same_and_calls_hooks(name: str, kind: type[Encoder]) -> None:
    encoder = make_encoder(kind)
    x = make_waves().x
    fast = {pooling: embed(encoder, x, pooling=pooling, device="cpu") for pooling in ("mean", "own")}
    encoder.plain = True
    for pooling, z in fast.items():
        np.testing.assert_allclose(embed(encoder, x, pooling=pooling, device="cpu"), z, rtol=1e-3, atol=1e-5)
    encoder.plain = False
    called = []
    inner = next(module for module in encoder.modules() if not list(module.children()))
    inner.register_forward_hook(lambda *_: called.append(1))
    for pooling in fast:
        called.clear()
        embed(encoder, x, pooling=pooling, device="cpu")
        assert called, pooling


@promised_by("encoders")
def fresh_has_the_same_shape_and_other_weights(name: str, kind: type[Encoder]) -> None:
    encoder = make_encoder(kind)
    other = encoder.fresh()
    assert type(other) is type(encoder)
    pairs = list(zip(encoder.state_dict().values(), other.state_dict().values(), strict=True))
    assert all(a.shape == b.shape for a, b in pairs)
    assert any(not torch.equal(a, b) for a, b in pairs)
    assert encoder_name(other) == name


@promised_by("encoders")
def config_holds_every_argument(name: str, kind: type[Encoder]) -> None:
    encoder = make_encoder(kind)
    assert set(encoder.config()) == set(inspect.signature(kind).parameters)
    again = build_encoder(name, encoder.config())
    again.load_state_dict(encoder.state_dict())
    x = torch.randn(2, 2, 20)
    assert torch.equal(again.eval()(x), encoder.eval()(x))


@promised_by("encoders")
def saved_encoder_comes_back(name: str, kind: type[Encoder]) -> None:
    waves = make_waves()
    model = TimeSeriesEmbedder(
        "dicot", encoder=name, dim=8, steps=1, recipe={"batch_size": 4}, device="cpu", random_state=1
    )
    model.fit(waves.x)
    with tempfile.TemporaryDirectory() as folder:
        again = TimeSeriesEmbedder.from_pretrained(model.save_pretrained(f"{folder}/model"), device="cpu")
    assert again.encoder_.config() == model.encoder_.config()
    assert np.array_equal(again.transform(waves.x), model.transform(waves.x))


@promised_by("encoders")
def wrong_input_is_refused(name: str, kind: type[Encoder]) -> None:
    with pytest.raises(InputError, match="\\(3, 1, 8\\)"):
        make_encoder(kind)(torch.randn(3, 1, 8))
    with pytest.raises(InputError, match="no_such_argument"):
        build_encoder(name, {"n_channels": 1, "no_such_argument": 3})
    with pytest.raises(InputError, match="n_channels"):
        make_encoder(kind, n_channels=kind.fewest_channels - 1)


@promised_by("encoders")
def encoder_says_what_it_is(name: str, kind: type[Encoder]) -> None:
    assert one_line((kind.__doc__ or "").splitlines()[0])


# Protocols


@promised_by("protocols")
def protocol_has_its_registered_name(name: str, protocol: Callable[[], Protocol]) -> None:
    assert protocol().name == name


def _promise(check: Callable[[Callable[[], Protocol]], None]) -> Promise:
    def promise(name: str, protocol: Callable[[], Protocol]) -> None:
        check(protocol)

    promise.__name__ = check.__name__
    return promise


for check in CHECKS:
    promised_by("protocols")(_promise(check))


# Classical baselines and controls


@promised_by("classical")
def rows_are_finite_and_independent(name: str, kind: type[Classical]) -> None:
    waves = make_waves()
    model = kind(random_state=3).fit(waves.x)
    z = model.transform(waves.x)
    assert z.ndim == 2 and len(z) == len(waves) and np.isfinite(z).all()
    np.testing.assert_allclose(model.transform(waves.x[5:6])[0], z[5], rtol=1e-6, atol=1e-6)
    again = kind(random_state=3).fit(waves.x).transform(waves.x)
    assert np.array_equal(again, z)
    assert np.array_equal(kind(random_state=4).fit(waves.x).transform(waves.x), z) != kind.random


@promised_by("classical")
def other_channels_are_refused(name: str, kind: type[Classical]) -> None:
    waves = make_waves()
    with pytest.raises(InputError, match="fit"):
        kind().transform(waves.x)
    with pytest.raises(InputError, match="1"):
        kind().fit(waves.x).transform(waves.x[:, :1])


@promised_by("classical")
def baseline_says_what_it_is(name: str, kind: type[Classical]) -> None:
    assert one_line((kind.__doc__ or "").splitlines()[0])


@promised_by("controls")
def weights_stay_as_initialised(name: str, control: Callable[..., None]) -> None:
    encoder, untouched = make_encoder(InceptionTime), make_encoder(InceptionTime)
    control(encoder, make_waves(), "cpu")
    assert not encoder.training
    for (label, ours), theirs in zip(encoder.named_parameters(), untouched.parameters(), strict=True):
        assert torch.equal(ours, theirs), label
    again = make_encoder(InceptionTime)
    control(again, make_waves(), "cpu")
    assert all(torch.equal(a, b) for a, b in zip(encoder.buffers(), again.buffers(), strict=True))
    with torch.no_grad():
        assert torch.isfinite(encoder.embed(torch.from_numpy(make_waves().x))).all()


@promised_by("controls")
def control_is_an_embedder_that_learns_nothing(name: str, control: Callable[..., None]) -> None:
    waves = make_waves()
    model = clone(TimeSeriesEmbedder(name, dim=8, device="cpu", random_state=1)).fit(waves.x)
    assert model.history_.loss == [] and model.transform(waves.x).shape == (len(waves), 8)
    assert one_line((control.__doc__ or "").splitlines()[0])


# Poolings


@promised_by("poolings")
def vectors_do_not_depend_on_their_company(name: str, pooling: Pooling) -> None:
    x = make_waves().x
    for kind in (InceptionTime, Universal, Stack):
        encoder = make_encoder(kind)
        z = embed(encoder, x, pooling=name, device="cpu")
        assert z.ndim == 2 and len(z) == len(x) and np.isfinite(z).all()
        for batch_size in (1, 5):
            again = embed(encoder, x[:7], pooling=name, device="cpu", batch_size=batch_size)
            np.testing.assert_allclose(again, z[:7], rtol=1e-5, atol=1e-6)


@promised_by("poolings")
def embedder_takes_the_pooling(name: str, pooling: Pooling) -> None:
    waves = make_waves()
    model = TimeSeriesEmbedder(
        "dicot", features={"pooling": name}, dim=8, steps=1, recipe={"batch_size": 4}, device="cpu", random_state=1
    )
    model.fit(waves.x)
    z = model.transform(waves.x)
    assert len(model.get_feature_names_out()) == z.shape[1]
    assert one_line(pooling.summary)


# Presets


@promised_by("presets")
def embedder_takes_the_preset_and_is_saved(name: str, preset: Preset) -> None:
    """Also where there are few short cases of one channel."""
    assert preset.name == name and one_line(preset.summary)
    n = max(20, preset.fewest)
    x = np.random.default_rng(3).normal(size=(n, 1, 24)).cumsum(axis=2).astype(np.float32)
    small = {} if preset.initial else {"dim": 8}  # an encoder in the box has its own
    model = TimeSeriesEmbedder(preset=name, **small, steps=1, device="cpu", random_state=1).fit(x)
    z = model.transform(x)
    assert len(z) == n and z.shape[1] <= 2048 and np.isfinite(z).all()
    np.testing.assert_allclose(model.transform(x[3:5]), z[3:5], rtol=1e-4, atol=1e-5)
    with tempfile.TemporaryDirectory() as folder:
        again = TimeSeriesEmbedder.from_pretrained(model.save_pretrained(folder), device="cpu")
        assert np.array_equal(again.transform(x), z) and again.features_ == model.features_


@promised_by("presets")
def preset_has_a_recipe_for_every_size(name: str, preset: Preset) -> None:
    for family in (None, "ucr", "uea", "large"):
        for n_cases in (2, 20, 1000, 10**6):
            for n_times in (1, 24, 3000, 10**6):
                recipe = preset.recipe(family, n_cases, n_times)
                assert recipe.steps > 0 and recipe.batch_size >= 2
    assert preset.digest() == PRESETS[name].digest()


# Data sets


@promised_by("datasets")
def data_set_is_here_or_says_how_to_get_it(name: str, dataset: DataSet) -> None:
    assert dataset.name == name and DATASETS[name.upper()] is dataset and DATASETS[name.lower()] is dataset
    if not dataset.is_here():
        with pytest.raises(MissingDataError, match=name):
            dataset.card()
        return
    card = dataset.card()
    assert card.name == name and one_line(card.source) and one_line(card.licence)
    split = load(name)
    assert split.name == name and split.train.y is not None and split.test is not None
    sizes = (card.n_train, card.n_test, card.n_channels, card.n_times, card.n_classes)
    shape = (len(split.train), len(split.test), *split.train.x.shape[1:], len(np.unique(split.train.y)))
    assert shape == sizes
    assert np.isfinite(split.train.x).all() and np.isfinite(split.test.x).all()
    assert load(name, channels=[0]).train.n_channels == 1
    assert dataset.check().fingerprint == dataset.check().fingerprint != ""


# Suites


@promised_by("suites")
def suite_plans_its_jobs_with_controls(name: str, suite: Callable[..., Any]) -> None:
    assert one_line((suite.__doc__ or "").splitlines()[0])
    said = bench("run", name, "--sets", "synthetic,ItalyPowerDemand", "--ledger", "none.sqlite", "--dry-run")
    assert "jobs" in said and all(control in said for control in CONTROLS)
