"""Behaviour of random numbers on a device: moments, seeds, and what depends on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from taeda_registry.slots import tensor
from taeda_testing.conformance.checks import Suite, array_of, close, equal, true
from taeda_testing.suites.device import put

suite = Suite("chance")
CHECKS = suite.checks


def _moments(call: str, found: Any, mean: float, deviation: float) -> None:
    """Sample mean within five standard errors."""
    values = array_of(found).astype(np.float64).ravel()
    close(f"mean of {call}", values.mean(), mean, 0, 5 * deviation / values.size**0.5 + 1e-6)


def _generator(device: str) -> Any:
    return tensor.Generator(device).manual_seed(7)


def _repeats(call: str, draw: Callable[[Any], Any], device: str) -> Any:
    """The draw of a seeded generator, which must be the same a second time and another one after it."""
    source = _generator(device)
    first, again, other = draw(source), draw(_generator(device)), draw(source)
    close(f"{call} from an equal generator", again, array_of(first), 0, 0)
    true(f"{call} a second time", not np.array_equal(array_of(first), array_of(other)), "other values")
    return first


@suite.check(needs=["random"])
def uniform_and_normal(device: str) -> None:
    """`uniform_` and `normal_` have the right bounds and moments, and repeat with the seed."""

    def uniform(source: Any) -> Any:
        return tensor.empty(4000, device=device).uniform_(-1, 3, generator=source)

    found = _repeats("uniform_(-1, 3)", uniform, device)
    values = array_of(found)
    true("bounds of uniform_(-1, 3)", values.min() >= -1 and values.max() < 3, "values in [-1, 3)")
    _moments("uniform_(-1, 3)", found, 1, 4 / 12**0.5)

    def normal(source: Any) -> Any:
        return tensor.empty(4000, device=device).normal_(2, 3, generator=source)

    found = _repeats("normal_(2, 3)", normal, device)
    _moments("normal_(2, 3)", found, 2, 3)
    close("deviation of normal_(2, 3)", array_of(found).std(), 3, 0.1)

    def log_normal(source: Any) -> Any:
        return tensor.empty(4000, device=device).log_normal_(0.5, 0.25, generator=source)

    found = _repeats("log_normal_(0.5, 0.25)", log_normal, device)
    logarithms = np.log(array_of(found))
    _moments("log(log_normal_(0.5, 0.25))", logarithms, 0.5, 0.25)
    close("deviation of log(log_normal_(0.5, 0.25))", logarithms.std(), 0.25, 0.1)


@suite.check(needs=["random"])
def random_tensors(device: str) -> None:
    """`rand`, `randn`, `randint`, `normal` and their relatives make the right shape on the device, and repeat."""
    like = tensor.empty(40, 100, device=device)
    means = put(np.float32([[-5], [5]]), device)
    made = {
        "rand(40, 100)": (lambda g: tensor.rand(40, 100, generator=g, device=device), 0.5, 0.29),
        "randn(40, 100)": (lambda g: tensor.randn(40, 100, generator=g, device=device), 0, 1),
        "randint(-2, 3, (4000,))": (lambda g: tensor.randint(-2, 3, (4000,), generator=g, device=device), 0, 1.42),
        "normal(2, 3, (4000,))": (lambda g: tensor.normal(2.0, 3.0, (4000,), generator=g, device=device), 2, 3),
        "normal([[-5], [5]], ones(2000))": (
            lambda g: tensor.normal(means, tensor.ones(2000, device=device), generator=g) - means, 0, 1
        ),
    }  # fmt: skip
    for call, (draw, mean, deviation) in made.items():
        found = _repeats(call, draw, device)
        equal(f"number of elements of {call}", found.numel(), 4000)
        equal(f"device of {call}", str(found.device), str(like.device))
        _moments(call, found, mean, deviation)
        close(f"deviation of {call}", array_of(found).std(), deviation, 0.1)
    alike = {
        "rand_like(x)": (tensor.rand_like, 0.5, 0.29),
        "randn_like(x)": (tensor.randn_like, 0, 1),
        "randint_like(x, 0, 3)": (lambda x: tensor.randint_like(x, 0, 3), 1, 0.82),
    }
    for call, (draw, mean, deviation) in alike.items():
        tensor.manual_seed(7)
        found = draw(like)
        tensor.manual_seed(7)
        close(f"{call} after an equal seed", draw(like), array_of(found), 0, 0)
        equal(f"shape, dtype and device of {call}", (found.shape, found.dtype, str(found.device)),
              (like.shape, like.dtype, str(like.device)))  # fmt: skip
        _moments(call, found, mean, deviation)
        close(f"deviation of {call}", array_of(found).std(), deviation, 0.1)


@suite.check(needs=["random"])
def permutations(device: str) -> None:
    """`randperm` has every number once, in an order that repeats with the seed; first numbers are uniform."""
    found = _repeats("randperm(50)", lambda g: tensor.randperm(50, generator=g, device=device), device)
    equal("sorted randperm(50)", sorted(array_of(found).tolist()), list(range(50)))
    source = _generator(device)
    firsts = [int(tensor.randperm(3, generator=source, device=device)[0]) for _ in range(300)]
    close("shares of the first of randperm(3)", np.bincount(firsts, minlength=3) / 300, [1 / 3] * 3, 0, 0.12)


@suite.check(needs=["random"])
def random_integers(device: str) -> None:
    """`random_` and `randint` draw every value of the range and none outside."""

    def draw(source: Any) -> Any:
        return tensor.empty(2000, dtype=tensor.int64, device=device).random_(3, 8, generator=source)

    found = _repeats("random_(3, 8)", draw, device)
    equal("values of random_(3, 8)", sorted(set(array_of(found).tolist())), [3, 4, 5, 6, 7])


@suite.check(needs=["random"])
def bernoulli_and_geometric(device: str) -> None:
    """`bernoulli_` and `geometric_` have the right support and mean."""
    ones = _repeats(
        "bernoulli_(0.3)", lambda g: tensor.empty(4000, device=device).bernoulli_(0.3, generator=g), device
    )
    equal("values of bernoulli_(0.3)", sorted(set(array_of(ones).tolist())), [0.0, 1.0])
    _moments("bernoulli_(0.3)", ones, 0.3, 0.46)
    chances = put(np.float32([[0.0], [0.25], [1.0]]), device).expand(3, 4000)
    drawn = array_of(_repeats("bernoulli(chances)", lambda g: tensor.bernoulli(chances, generator=g), device))
    close("means of bernoulli([[0], [0.25], [1]])", drawn.mean(1), [0, 0.25, 1], 0, 0.04)
    counted = _repeats("bernoulli(x, 0.75)", lambda g: tensor.bernoulli(ones, 0.75, generator=g), device)
    _moments("bernoulli(x, 0.75)", counted, 0.75, 0.43)
    counts = _repeats(
        "geometric_(0.5)", lambda g: tensor.empty(4000, device=device).geometric_(0.5, generator=g), device
    )
    true("least of geometric_(0.5)", array_of(counts).min() == 1, "1")
    _moments("geometric_(0.5)", counts, 2, 1.42)


@suite.check(needs=["random"])
def cauchy_and_exponential(device: str) -> None:
    """`exponential_` has the right mean, `cauchy_` the right median and quartiles."""
    found = _repeats(
        "exponential_(2)", lambda g: tensor.empty(4000, device=device).exponential_(2, generator=g), device
    )
    true("least of exponential_(2)", array_of(found).min() >= 0, "no negative value")
    _moments("exponential_(2)", found, 0.5, 0.5)
    wide = _repeats(
        "cauchy_(1, 2)", lambda g: tensor.empty(4000, device=device).cauchy_(1, 2, generator=g), device
    )
    close("quartiles of cauchy_(1, 2)", np.quantile(array_of(wide), [0.25, 0.5, 0.75]), [-1, 1, 3], 0, 0.4)


@suite.check(needs=["random"])
def poisson(device: str) -> None:
    """`poisson` draws whole numbers with the given mean."""
    rates = put(np.full(4000, 4, np.float32), device)
    found = _repeats("poisson(4)", lambda g: tensor.poisson(rates, generator=g), device)
    values = array_of(found)
    true("values of poisson(4)", (values == np.round(values)).all() and values.min() >= 0, "whole numbers")
    _moments("poisson(4)", found, 4, 2)


@suite.check(needs=["random"])
def multinomial(device: str) -> None:
    """`multinomial` draws by weight, and without replacement never the same twice."""
    weights = put(np.float32([1, 0, 3]), device)
    found = _repeats(
        "multinomial([1, 0, 3], 4000, True)",
        lambda g: tensor.multinomial(weights, 4000, True, generator=g),
        device,
    )
    shares = np.bincount(array_of(found), minlength=3) / 4000
    close("shares of multinomial([1, 0, 3])", shares, [0.25, 0, 0.75], 0, 0.04)
    drawn = array_of(tensor.multinomial(weights, 2, False, generator=_generator(device)))
    equal("multinomial([1, 0, 3], 2, False)", sorted(drawn.tolist()), [0, 2])


@suite.check(needs=["random", "gradients"])
def dropout(device: str) -> None:
    """Dropout zeroes the given share, rescales the rest, and its gradient has the same mask."""
    x = put(np.ones(4000, np.float32), device, grad=True)
    out = tensor.dropout(x, 0.25, True)
    values = array_of(out)
    close("values of dropout(ones, 0.25)", np.unique(values), [0, 1 / 0.75])
    close("share of zeros in dropout(ones, 0.25)", (values == 0).mean(), 0.25, 0, 0.05)
    out.sum().backward()
    close("gradient of dropout(ones, 0.25)", x.grad, values)
    close("dropout while not training", tensor.dropout(x, 0.25, False), np.ones(4000))
    y = put(np.ones(4000, np.float32), device)
    true("dropout_(y, 0.25)", tensor.dropout_(y, 0.25, True) is y, "y itself")
    close("values of dropout_(y, 0.25)", np.unique(array_of(y)), [0, 1 / 0.75])


@suite.check(needs=["random", "gradients"])
def random_slopes(device: str) -> None:
    """`rrelu` in training scales each negative element by a slope of its own, and its gradient has the same slopes."""
    x = put(np.full(4000, -2, np.float32), device, grad=True)
    out = _repeats("rrelu(x, 0.2, 0.6, True)", lambda g: tensor.rrelu(x, 0.2, 0.6, True, generator=g), device)
    slopes = array_of(out) / -2
    true(
        "slopes of rrelu(x, 0.2, 0.6, True)",
        slopes.min() >= 0.2 and slopes.max() <= 0.6,
        "slopes in [0.2, 0.6]",
    )
    _moments("slopes of rrelu(x, 0.2, 0.6, True)", slopes, 0.4, 0.12)
    out.sum().backward()
    close("gradient of rrelu(x, 0.2, 0.6, True)", x.grad, slopes)
