"""The Mersenne twister's numbers are those of PyTorch's cpu, number for number, and its states go both ways."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import taeda

SEEDS = (0, 42, 2**40 + 7)


@pytest.fixture(autouse=True)
def twister() -> Iterator[None]:
    taeda.random.set_engine("mt19937")
    yield
    taeda.random.set_engine("philox")


def both(program: Callable[[Any], Any], seed: int) -> tuple[Any, Any]:
    found = []
    for library in (taeda, torch):
        library.manual_seed(seed)
        found.append(program(library))
        # What follows starts at the same place of the stream.
        found[-1] = [*found[-1]] if isinstance(found[-1], tuple) else [found[-1]]
        found[-1].append(library.randint(1 << 20, (3,)))
    return found[0], found[1]


def same(program: Callable[[Any], Any], seed: int, tolerance: float = 0.0) -> None:
    for mine, theirs in zip(*both(program, seed), strict=True):
        assert str(mine.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2]
        np.testing.assert_allclose(
            mine.detach().to(taeda.float64).numpy(),
            theirs.detach().double().numpy(),
            rtol=tolerance,
            atol=tolerance,
        )


FLOATS = ("float32", "float64")
EXACT = {
    "rand": lambda t: (t.rand(7), t.rand(3, 1100)),
    "rand of float64": lambda t: t.rand(1030, dtype=t.float64),
    "rand of halves": lambda t: (t.rand(40, dtype=t.float16), t.rand(40, dtype=t.bfloat16)),
    "rand of complex numbers": lambda t: t.view_as_real(t.rand(5, dtype=t.complex64)),
    "uniform_": lambda t: (t.empty(300).uniform_(-0.3, 0.7), t.empty(30, dtype=t.float64).uniform_(-3, 5)),
    "uniform_ of a transposed tensor": lambda t: t.empty(5, 7).t().uniform_(),
    "uniform_ of channels last": lambda t: t.empty(2, 3, 4, 5, memory_format=t.channels_last).uniform_(),
    "uniform_ of every second": lambda t: t.zeros(20)[::2].uniform_(),
    "randint": lambda t: (t.randint(10, (1000,)), t.randint(-5, 9, (30,), dtype=t.int32)),
    "randint of large ranges": lambda t: (t.randint(1 << 28, (9,)), t.randint(-(1 << 40), 1 << 41, (9,))),
    "randint as other dtypes": lambda t: (
        t.randint(9, (9,), dtype=t.float32),
        t.randint(200, (9,), dtype=t.uint8),
    ),
    "random_": lambda t: tuple(
        t.empty(9, dtype=getattr(t, name)).random_()
        for name in ("int64", "int32", "int16", "int8", "uint8", "float32", "float64", "float16", "bfloat16")
    ),
    "random_ from": lambda t: tuple(
        t.empty(9, dtype=getattr(t, name)).random_(low, None)
        for name in ("int64", "int32", "int16", "int8", "uint8", "float32", "float64", "float16", "bfloat16")
        for low in (0, 3, 100, *(() if name == "uint8" else (-5,)))
    ),
    "random_ from the least": lambda t: (
        t.empty(9, dtype=t.int64).random_(-(2**63), None),
        t.empty(9, dtype=t.int32).random_(-(2**31), None),
    ),
    "random_ of bool": lambda t: t.empty(70, dtype=t.bool).random_().long(),
    "random_ to": lambda t: (t.empty(9).random_(100), t.empty(9, dtype=t.int64).random_(5, 1 << 35)),
    "randperm": lambda t: (t.randperm(0), t.randperm(1), t.randperm(2), t.randperm(1000)),
    "bernoulli_": lambda t: (t.empty(1000).bernoulli_(0.3), t.empty(9, dtype=t.int64).bernoulli_()),
    "bernoulli": lambda t: (
        t.bernoulli(t.full((50,), 0.3)),
        t.bernoulli(t.full((50,), 0.3, dtype=t.float64)),
    ),
    "bernoulli_ by a tensor": lambda t: t.zeros(3, 40).bernoulli_(t.linspace(0, 1, 40)),
    "geometric_": lambda t: t.empty(300).geometric_(0.3),
    "poisson": lambda t: t.poisson(t.tensor([0.0, 0.5, 3.0, 9.0, 11.0, 1000.0] * 5)),
    "binomial": lambda t: (
        t.binomial(t.tensor([0.0, 3.0, 9.0, 60.0, 500.0] * 9), t.tensor([0.3, 0.5, 1.0, 0.8, 0.1] * 9)),
        t.distributions.Binomial(70, t.tensor([0.0, 0.4, 1.0], dtype=t.float64)).sample((9,)),
    ),
    "multinomial": lambda t: (
        t.multinomial(t.arange(1.0, 9.0), 1),
        t.multinomial(t.arange(1.0, 9.0), 5),
        t.multinomial(t.arange(1.0, 9.0), 50, replacement=True),
        t.multinomial(t.ones(3, 4, dtype=t.float64), 3),
    ),
    "dropout": lambda t: t.nn.functional.dropout(t.ones(40, 30), 0.25),
    "dropout of features": lambda t: (
        t.nn.functional.dropout1d(t.ones(5, 7, 3), 0.25),
        t.nn.functional.dropout2d(t.ones(5, 7, 3, 2), 0.5),
        t.nn.functional.dropout3d(t.ones(7, 3, 2, 2), 0.5),
    ),
    "choice of a generator": lambda t: t.rand(5, generator=t.Generator().manual_seed(3)),
    "unseeded generator": lambda t: t.rand(5, generator=t.Generator()),
}
# Logarithms, sines and cosines are computed otherwise.
CLOSE = {
    "randn": lambda t: (t.randn(3), t.randn(16), t.randn(1000), t.randn(2)),
    "randn of float64": lambda t: (t.randn(1, dtype=t.float64), t.randn(37, dtype=t.float64)),
    # A hundredth of what tells float16 numbers of this size apart.
    "randn of halves": lambda t: t.randn(33, dtype=t.float16).float().mul(0.0005),
    "randn of complex numbers": lambda t: t.view_as_real(t.randn(33, dtype=t.complex64)),
    "normal_ of a transposed tensor": lambda t: t.empty(5, 7).t().normal_(2.0, 0.5),
    "normal": lambda t: (
        t.normal(1.0, 0.5, (40,)),
        t.normal(t.arange(40.0), t.ones(40)),
        t.normal(t.zeros(3), 2.0),
    ),
    "exponential_": lambda t: (t.empty(300).exponential_(2.0), t.empty(9, dtype=t.float64).exponential_()),
    "alpha_dropout": lambda t: (
        t.nn.functional.alpha_dropout(t.ones(40, 30), 0.25, True),
        t.nn.functional.feature_alpha_dropout(t.ones(9, 7, 2), 0.5, True),
    ),
    "gamma": lambda t: (
        t._standard_gamma(t.tensor([0.0, 0.2, 0.9, 1.0, 2.5, 40.0] * 5)),
        t.distributions.Gamma(t.full((20,), 2.5, dtype=t.float64), 3.0).sample(),
        t.distributions.Chi2(t.tensor([1.0, 7.0])).sample((9,)),
    ),
    "Cauchy and von Mises distributions": lambda t: (
        t.distributions.Cauchy(t.tensor([1.0, 2.0]), 3.0).sample((9,)).clamp(-1, 1),
        t.distributions.HalfCauchy(t.ones(2, dtype=t.float64)).sample((9,)).clamp(-1, 1),
        t.distributions.VonMises(t.tensor([0.0, 1.0]), t.tensor([0.5, 7.0])).sample((9,)),
    ),
    "made of gammas": lambda t: (
        t.distributions.Dirichlet(t.tensor([[0.3, 1.0, 4.0], [1.0, 1.0, 1.0]])).sample((9,)),
        t.distributions.Beta(0.5, t.tensor([0.5, 3.0])).sample((9,)),
        t.distributions.StudentT(t.tensor([1.0, 5.0])).sample((9,)).clamp(-1, 1),
        t.distributions.LKJCholesky(3, 0.7).sample((4,)),
    ),
    "scrambled Sobol points": lambda t: (
        t.quasirandom.SobolEngine(3, scramble=True).draw(20),
        t.quasirandom.SobolEngine(5, scramble=True, seed=4).draw(9, dtype=t.float64),
    ),
    "cauchy_": lambda t: t.empty(300).cauchy_().clamp(-1, 1),
    "trunc_normal_": lambda t: (
        t.nn.init.trunc_normal_(t.empty(20, 30), std=0.02),
        t.nn.init.trunc_normal_(t.empty(20, 30)),
        t.nn.init.trunc_normal_(t.empty(20, 30, dtype=t.float64), 0.5, 1.0, 1.5, 3.0),
    ),
    "orthogonal_": lambda t: (
        t.nn.init.orthogonal_(t.empty(3, 5, dtype=t.float64)),
        t.nn.init.orthogonal_(t.empty(6, 2, 2, dtype=t.float64)),
        t.nn.init.orthogonal_(t.empty(2, 3, 3, dtype=t.float64), 0.5),
    ),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", EXACT)
def test_numbers(name: str, seed: int) -> None:
    same(EXACT[name], seed)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CLOSE)
def test_numbers_by_functions(name: str, seed: int) -> None:
    same(CLOSE[name], seed, 3e-6)


LAYERS = {
    "Linear": lambda nn: nn.Linear(7, 5),
    "Conv2d": lambda nn: nn.Conv2d(3, 8, 3),
    "ConvTranspose1d": lambda nn: nn.ConvTranspose1d(3, 8, 3),
    "Embedding": lambda nn: nn.Embedding(9, 4, padding_idx=0),
    "EmbeddingBag": lambda nn: nn.EmbeddingBag(9, 4),
    "Bilinear": lambda nn: nn.Bilinear(3, 4, 5),
    "LSTM": lambda nn: nn.LSTM(3, 5, num_layers=2, bidirectional=True),
    "GRUCell": lambda nn: nn.GRUCell(3, 5),
    "MultiheadAttention": lambda nn: nn.MultiheadAttention(8, 2, kdim=3, vdim=5),
    "Transformer": lambda nn: nn.Transformer(8, 2, 1, 2, 16, batch_first=True),
    "TransformerEncoder": lambda nn: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2
    ),
    "weight_norm": lambda nn: nn.utils.parametrizations.weight_norm(nn.Linear(3, 4)),
    "spectral_norm": lambda nn: nn.utils.parametrizations.spectral_norm(nn.Linear(30, 40)),
    "LazyLinear": lambda nn: nn.Sequential(nn.LazyLinear(4)),
    "Linear in place": lambda nn: nn.Linear(1, 1),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_begin_with_the_same_weights(name: str) -> None:
    def program(library: Any) -> Any:
        layer = LAYERS[name](library.nn)
        if name == "LazyLinear":
            layer(library.ones(2, 6))
        return tuple(layer.state_dict().values())

    same(program, 11, 3e-6)


def test_training_with_shuffled_batches_and_dropout() -> None:
    """The losses of a whole program: initial weights, order of samples, dropout."""

    def program(library: Any) -> Any:
        nn, data = library.nn, library.utils.data
        x, y = library.rand(64, 10), library.randint(3, (64,))
        train, _held_out = data.random_split(data.TensorDataset(x, y), [48, 16])
        model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 3))
        optimizer = library.optim.Adam(model.parameters(), lr=1e-2)
        losses = []
        for _epoch in range(3):
            for inputs, labels in data.DataLoader(train, batch_size=16, shuffle=True):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(inputs), labels)
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
        return library.stack(losses)

    same(program, 5, 1e-5)


def test_training_with_dropout_behind_convolutions() -> None:
    """Masks are drawn in the order of memory, which convolutions keep."""

    def program(library: Any) -> Any:
        nn = library.nn
        model = nn.Sequential(
            nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.BatchNorm2d(32), nn.MaxPool2d(2),
            nn.Dropout(0.25), nn.Flatten(), nn.Linear(1152, 5),
        )  # fmt: skip
        optimizer = library.optim.SGD(model.parameters(), lr=0.1)
        x, y = library.rand(16, 3, 16, 16), library.randint(5, (16,))
        losses = []
        for _step in range(3):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return (*losses, library.rand_like(model[0](x)), library.rand_like(model[2](model[0](x))))

    same(program, 5, 1e-4)


def test_dropout_behind_convolutions_and_normalisation_of_turned_sequences() -> None:
    """Whose results lie row by row, and turned back column by column."""

    def program(library: Any) -> Any:
        nn = library.nn
        wide, narrow = nn.Conv1d(64, 128, 3, padding=1), nn.ConvTranspose1d(128, 64, 3, padding=1)
        norm, drop = nn.BatchNorm1d(64), nn.Dropout(0.25)
        x = library.rand(4, 20, 64)
        hidden = drop(nn.functional.relu(wide(x.transpose(1, 2))).transpose(1, 2))
        y = drop(narrow(hidden.transpose(1, 2)).transpose(1, 2))
        z = drop(norm((x + y).transpose(1, 2)).transpose(1, 2))
        z.square().mean().backward()
        return hidden, y, z, wide.weight.grad, narrow.bias.grad

    same(program, 5, 1e-4)


def test_samples_and_batches_that_are_drawn_as_they_are_read() -> None:
    """Augmentation in the data set, noise in the collate function, and what a program draws between batches."""

    def program(library: Any) -> Any:
        data = library.utils.data

        class Augmented(data.Dataset):
            def __len__(self) -> int:
                return 10

            def __getitem__(self, index: int) -> Any:
                shown = library.arange(6.0).roll(int(library.randint(6, (1,))))
                return shown.flip(0) if library.rand(1) < 0.5 else shown

        def noisy(rows: Any) -> Any:
            return library.stack(rows) + library.randn(len(rows), 6)

        def batches() -> Any:
            for batch in data.DataLoader(Augmented(), 4, shuffle=True, collate_fn=noisy):
                yield batch * library.rand(1)

        return library.cat([*batches(), *batches()])

    same(program, 5, 1e-6)


def _seeds_its_own(worker: int) -> None:
    random.seed(worker)
    np.random.seed(worker + 3)


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("init", [None, _seeds_its_own], ids=["", "initialised"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": True, "batch_size": 2},
        {"shuffle": True, "batch_size": 2, "persistent_workers": True},
        {"batch_size": 3, "own": True},
    ],
    ids=str,
)
def test_worker_processes_draw_the_same(options: dict[str, Any], init: Any) -> None:
    def program(library: Any) -> Any:
        class Drawn(library.utils.data.Dataset):  # type: ignore[misc]
            def __len__(self) -> int:
                return 7

            def __getitem__(self, index: int) -> Any:
                return index, library.rand(1), random.random(), np.random.rand()

        given = {name: value for name, value in options.items() if name != "own"}
        if "own" in options:
            given["generator"] = library.Generator().manual_seed(5)
        loader = library.utils.data.DataLoader(Drawn(), num_workers=2, worker_init_fn=init, **given)
        batches = [*loader, *loader]
        return library.cat([part.flatten().double() for batch in batches for part in batch])

    same(program, 11)


def test_weighted_samples() -> None:
    def program(library: Any) -> Any:
        data = library.utils.data
        weighted = data.WeightedRandomSampler([0.1, 0.9, 0.4, 0.7], 20)
        drawn = data.RandomSampler(range(10), replacement=True, num_samples=70)
        subset = data.SubsetRandomSampler([3, 5, 7, 9])
        given = data.RandomSampler(range(6), generator=library.Generator().manual_seed(2))
        orders = [weighted, drawn, subset, given, given]
        return tuple(library.tensor(list(sampler)) for sampler in orders)

    same(program, 9)


@pytest.mark.parametrize("numbers", [0, 1, 623, 624, 700])
def test_states_go_both_ways(numbers: int) -> None:
    torch.manual_seed(3)
    torch.randint(9, (numbers,))
    torch.randn(1)  # which leaves a second one behind
    taeda.set_rng_state(taeda.from_numpy(torch.get_rng_state().numpy()))
    assert bytes(taeda.get_rng_state().numpy())[:8] == bytes(torch.get_rng_state().numpy())[:8]
    np.testing.assert_allclose(taeda.randn(20).numpy(), torch.randn(20).numpy(), rtol=1e-5, atol=1e-6)
    taeda.randn(1), torch.randn(1)
    torch.set_rng_state(torch.from_numpy(taeda.get_rng_state().numpy()))
    np.testing.assert_allclose(taeda.randn(3).numpy(), torch.randn(3).numpy(), rtol=1e-5, atol=1e-6)


def _trained_as_quantized(library: Any, kind: str) -> Any:
    from importlib import import_module

    nn, quantization = library.nn, import_module(f"{library.__name__}.ao.quantization")
    fx = import_module(f"{library.__name__}.ao.quantization.quantize_fx")
    layers = [nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 4), nn.ReLU()]
    net, x = nn.Sequential(*layers), library.ones(2, 2, 4, 4)
    if kind == "dynamic":
        return quantization.quantize_dynamic(nn.Sequential(nn.Linear(3, 2), nn.LSTM(2, 3)))
    if kind == "fx":
        made = fx.prepare_qat_fx(net.train(), quantization.get_default_qat_qconfig_mapping("fbgemm"), (x,))
        made(x)
        return fx.convert_fx(made.eval())
    if kind == "static fx":
        made = fx.prepare_fx(net.eval(), quantization.get_default_qconfig_mapping("fbgemm"), (x,))
        made(x)
        return fx.convert_fx(made)
    net = nn.Sequential(quantization.QuantStub(), *layers, quantization.DeQuantStub()).train()
    net.qconfig = quantization.get_default_qat_qconfig("fbgemm")
    made = quantization.prepare_qat(quantization.fuse_modules_qat(net, [["1", "2", "3"], ["5", "6"]]))
    made(x)
    return quantization.convert(made.eval())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["eager", "fx", "static fx", "dynamic"])
def test_quantizing_draws_what_new_layers_draw(kind):
    def program(library: Any) -> Any:
        _trained_as_quantized(library, kind)
        return library.rand(4)

    same(program, 3)
