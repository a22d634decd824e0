"""Random programs of views and changes in place: every live tensor always shows what NumPy's aliasing says.

TAEDA_TEST_SEED chooses other programs; a failure prints the shortest program that shows it.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import taeda as t

hypothesis = pytest.importorskip("hypothesis", reason="these tests need hypothesis")
from hypothesis import HealthCheck, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from hypothesis.stateful import (  # noqa: E402
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

SEED = int(os.environ.get("TAEDA_TEST_SEED", "2019"))
MOST = 10


def overlaps(array: np.ndarray) -> bool:
    """Whether two elements may share memory, which forbids changing the array in place."""
    return any(step == 0 and size > 1 for step, size in zip(array.strides, array.shape, strict=True))


def writable(array: np.ndarray) -> np.ndarray:
    """The same view; NumPy makes some read-only that are views like any other here."""
    array.flags.writeable = True
    return array


class Aliasing(RuleBasedStateMachine):
    """Pairs of a tensor and an array that went through the same program."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs: list[tuple[t.Tensor, np.ndarray]] = []

    @initialize(
        shape=st.lists(st.integers(0, 4), max_size=3), dtype=st.sampled_from(["int32", "int64", "float64"])
    )
    def start(self, shape: list[int], dtype: str) -> None:
        self.dtype = dtype
        array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
        self.pairs = [(t.tensor(array), array)]

    def pick(self, data: st.DataObject) -> tuple[t.Tensor, np.ndarray]:
        return self.pairs[data.draw(st.integers(0, len(self.pairs) - 1))]

    def keep(self, x: t.Tensor, array: np.ndarray) -> None:
        assert tuple(x.shape) == array.shape
        if len(self.pairs) >= MOST:
            del self.pairs[1]
        self.pairs.append((x, array))

    def axis(self, data: st.DataObject, array: np.ndarray) -> int:
        return data.draw(st.integers(-array.ndim, array.ndim - 1))

    # Views

    @rule(data=st.data())
    def slice(self, data: st.DataObject) -> None:
        x, a = self.pick(data)
        cut = tuple(data.draw(st.slices(n)) for n in a.shape)
        self.keep(x[cut], a[(*cut, ...)])

    @rule(data=st.data())
    def reverse(self, data: st.DataObject) -> None:
        x, a = self.pick(data)
        cut = tuple(slice(None, None, data.draw(st.sampled_from([1, -1, -2]))) for _ in a.shape)
        self.keep(x[cut], a[(*cut, ...)])

    @rule(data=st.data())
    def select(self, data: st.DataObject) -> None:
        x, a = self.pick(data)
        if a.ndim and a.shape[0]:
            i = data.draw(st.integers(-a.shape[0], a.shape[0] - 1))
            self.keep(x[i], a[i, ...])

    @rule(data=st.data())
    def permute(self, data: st.DataObject) -> None:
        x, a = self.pick(data)
        order = data.draw(st.permutations(range(a.ndim)))
        self.keep(x.permute(tuple(order)), a.transpose(order))

    @rule(data=st.data())
    def new_axis(self, data: st.DataObject) -> None:
        x, a = self.pick(data)
        if a.ndim < 5:
            at = data.draw(st.integers(-a.ndim - 1, a.ndim))
            self.keep(x.unsqueeze(at), np.expand_dims(a, at))

    @rule(data=st.data())
    def squeeze(self, data: st.DataObject) -> None:
        x, a = self.pick(data)
        self.keep(x.squeeze(), a.squeeze())

    @rule(data=st.data())
    def reshape(self, data: st.DataObject) -> None:
        x, a = self.pick(data)
        if a.ndim >= 2 and data.draw(st.booleans()):
            sizes = (a.shape[0] * a.shape[1], *a.shape[2:])
        else:
            sizes = data.draw(st.sampled_from([(a.size,), (1, a.size), (a.size, 1), *splits(a.size)]))
        wanted = a.reshape(sizes)
        made = x.reshape(sizes)
        if wanted.size:
            shares = made.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
            assert shares == np.shares_memory(wanted, a), "only one of the two copied"
            if shares:
                assert tuple(x.view(sizes).shape) == sizes
        self.keep(made, wanted)

    @rule(data=st.data())
    def expand(self, data: st.DataObject) -> None:
        x, a = self.pick(data)
        if a.ndim < 4:
            sizes = tuple(3 if n == 1 else n for n in a.shape)
            sizes = (data.draw(st.integers(1, 2)), *sizes)
            self.keep(x.expand(sizes), np.lib.stride_tricks.as_strided(*broadcast(a, sizes)))

    @rule(data=st.data())
    def diagonal(self, data: st.DataObject) -> None:
        x, a = self.pick(data)
        if a.ndim >= 2:
            offset = data.draw(st.integers(-2, 2))
            one, two = data.draw(st.permutations(range(a.ndim)))[:2]
            self.keep(x.diagonal(offset, one, two), writable(a.diagonal(offset, one, two)))

    @rule(data=st.data())
    def unfold(self, data: st.DataObject) -> None:
        x, a = self.pick(data)
        if a.ndim and a.ndim < 5:
            at = self.axis(data, a) % a.ndim
            if a.shape[at] == 0:
                return
            size = data.draw(st.integers(1, a.shape[at]))
            windows = np.lib.stride_tricks.sliding_window_view(a, size, at, writeable=True)
            # Steps of at least the size: the windows do not overlap.
            cut = (slice(None),) * at + (slice(None, None, size),)
            self.keep(x.unfold(at, size, size), windows[(*cut, ...)])

    @rule(data=st.data())
    def narrow_and_split(self, data: st.DataObject) -> None:
        x, a = self.pick(data)
        if a.ndim:
            at = self.axis(data, a)
            parts = data.draw(st.integers(1, 3))
            for made, wanted in zip(x.tensor_split(parts, at), np.array_split(a, parts, at), strict=True):
                self.keep(made, wanted)

    @rule(data=st.data())
    def copy(self, data: st.DataObject) -> None:
        x, a = self.pick(data)
        # Left to itself `clone` keeps the order of dense elements, and `copy` that of the dimensions.
        self.keep(x.clone(memory_format=t.contiguous_format), a.copy())

    # Changes

    def change(self, data: st.DataObject) -> tuple[t.Tensor, np.ndarray] | None:
        x, a = self.pick(data)
        return None if overlaps(a) else (x, a)

    @rule(data=st.data(), number=st.integers(-3, 3))
    def change_by_number(self, data: st.DataObject, number: int) -> None:
        pair = self.change(data)
        if pair is None:
            return
        x, a = pair
        version = x._version
        which = data.draw(st.sampled_from(["add", "mul", "fill", "setitem", "clamp", "neg"]))
        if which == "add":
            x += number
            a += a.dtype.type(number)
        elif which == "mul":
            x.mul_(number)
            a *= a.dtype.type(number)
        elif which == "fill":
            x.fill_(number)
            a[...] = number
        elif which == "setitem":
            x[...] = number
            a[...] = number
        elif which == "clamp":
            x.clamp_(-5, 5)
            np.clip(a, -5, 5, out=a)
        else:
            x.neg_()
            np.negative(a, out=a)
        assert x._version > version

    @rule(data=st.data())
    def change_part(self, data: st.DataObject) -> None:
        pair = self.change(data)
        if pair is None:
            return
        x, a = pair
        cut = tuple(data.draw(st.slices(n)) for n in a.shape)
        number = data.draw(st.integers(-9, 9))
        x[cut] = number
        a[(*cut, ...)] = number

    @rule(data=st.data())
    def change_where(self, data: st.DataObject) -> None:
        pair = self.change(data)
        if pair is None:
            return
        x, a = pair
        x[x > 2] = 1
        a[a > 2] = 1

    @rule(data=st.data())
    def change_by_another(self, data: st.DataObject) -> None:
        """The other operand may show the same memory: NumPy's answer, or a refusal that changes nothing."""
        pair = self.change(data)
        if pair is None:
            return
        x, a = pair
        y, b = self.pick(data)
        try:
            fits = np.broadcast_shapes(a.shape, b.shape) == a.shape
        except ValueError:
            return
        if not fits:
            return
        adds = data.draw(st.booleans())
        try:
            if adds:
                x.add_(y)
            else:
                x.copy_(y)
        except RuntimeError as error:
            assert np.shares_memory(a, b), "refused although no memory is shared"
            assert "memory" in str(error) or "overlap" in str(error)
            return
        if adds:
            a += b
        else:
            a[...] = b.copy()

    @precondition(lambda self: any(overlaps(a) for _, a in self.pairs))
    @rule()
    def refuse_overlap(self) -> None:
        for x, a in self.pairs:
            if overlaps(a) and a.size:
                with pytest.raises(RuntimeError, match="add_"):
                    x.add_(1)

    @invariant()
    def all_agree(self) -> None:
        for x, a in self.pairs:
            assert tuple(x.shape) == a.shape
            np.testing.assert_array_equal(x.numpy(), a)


def splits(count: int) -> list[tuple[int, int]]:
    """The ways to arrange so many elements in a rectangle."""
    return [(n, count // n) for n in range(2, count) if count % n == 0]


def broadcast(
    array: np.ndarray, sizes: tuple[int, ...]
) -> tuple[np.ndarray, tuple[int, ...], tuple[int, ...]]:
    """What as_strided needs to show `array` in `sizes`."""
    lead = len(sizes) - array.ndim
    steps = [0] * lead + [
        0 if array.shape[d] == 1 and sizes[lead + d] != 1 else array.strides[d] for d in range(array.ndim)
    ]
    return array, sizes, tuple(steps)


def test_views_and_changes_agree_with_numpy():
    print(f"TAEDA_TEST_SEED={SEED}")
    limits = settings(
        max_examples=300,
        stateful_step_count=25,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    with np.errstate(all="ignore"):
        run_state_machine_as_test(hypothesis.seed(SEED)(Aliasing), settings=limits)
