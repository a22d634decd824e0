"""Random streams of data sets: for each batch the same, whoever reads it.

Note [One stream for any number of workers]. An epoch takes one number from every source of randomness that a data set
may draw from: Python's and NumPy's global generators, the tensors' default one, and generator objects found in the
data set. Before a batch is read, each source is seeded with its number and that of the batch. So samples depend neither
on the number of workers nor on what was read before, and they follow from whatever the program has seeded.

Two things that the program says stand above that, as they do in PyTorch. Where the loader has a generator, the numbers
of the process-wide sources of worker processes follow from it. And what a worker's initialiser seeds, has its number
from the worker, whose own stream it then is.

Where the default generator is an mt19937, whose numbers are PyTorch's, nothing is seeded for a batch, as PyTorch seeds
nothing: without workers batches draw from the program's streams, and worker processes from streams that they seed once,
when they begin (see `seed_worker`).
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.random  # at its first use in a worker another thread could have begun with it when the worker was forked

from taeda_data.parts import DEPTH, parts_of
from taeda_registry.slots import tensor


class Source(NamedTuple):
    """One generator: how to take a number from it, to seed it, to keep and to bring back its state."""

    draw: Callable[[], int]
    seed: Callable[[int], Any]
    save: Callable[[], Any]
    restore: Callable[[Any], Any]

    def draw_again(self) -> int:
        """The number that would be drawn next."""
        state = self.save()
        number = self.draw()
        self.restore(state)
        return number


def draw_seed(generator: Any) -> int:
    """A seed from a tensor generator; None is the default one. From an mt19937 it is the seed that PyTorch draws."""
    place = on(device_of(generator))
    if has_pytorchs_streams(generator):
        return int(tensor.empty((), dtype=tensor.int64, **place).random_(generator=generator).item())
    drawn = tensor.randint(0, 1 << 62, (1,), generator=generator, dtype=tensor.int64, **place)
    return int(drawn.item())


def on(device: Any) -> dict[str, Any]:
    """Arguments of functions that make tensors, for this device whatever the program's default device is."""
    return {"device": device} if hasattr(tensor, "device") else {}


def device_of(generator: Any) -> Any:
    """The device on which a generator draws."""
    return getattr(generator, "device", "cpu")


def permutation(n: int, generator: Any) -> list[int]:
    """The numbers below `n` in random order."""
    return tensor.randperm(n, generator=generator, **on(device_of(generator))).tolist()


class _PythonWords:
    """State of one of Python's generators: an index, 624 words, and a normal number that may be left over from a pair.

    Python's own way makes a tuple of 625 numbers and reads it again, for which a batch of small samples could be read.
    So the words are copied where they lie, which is looked up once and compared with what Python says.
    """

    def __init__(self, source: random.Random) -> None:
        self._source, self._size = source, 625 * 4
        # After a reference count and a type; a build where that is different does not pass the comparison.
        self._address = id(source) + object.__basicsize__
        # Classes derived from it say themselves what their state is.
        self.found = type(source) is random.Random and self._are_there()

    def _are_there(self) -> bool:
        if random.Random.__basicsize__ < object.__basicsize__ + self._size:
            return False
        _, words, _ = self._source.getstate()
        expected = np.array(words[-1:] + words[:-1], dtype=np.uint32).tobytes()
        return ctypes.string_at(self._address, self._size) == expected

    def save(self) -> Any:
        return ctypes.string_at(self._address, self._size), self._source.gauss_next  # type: ignore[attr-defined]

    def restore(self, state: Any) -> None:
        words, self._source.gauss_next = state  # type: ignore[attr-defined]
        ctypes.memmove(self._address, words, self._size)


def _python(source: random.Random) -> Source:
    words = _PythonWords(source)
    keep: Any = words if words.found else None
    save, restore = (keep.save, keep.restore) if keep else (source.getstate, source.setstate)
    return Source(lambda: source.getrandbits(62), source.seed, save, restore)


@functools.cache
def _global_python() -> Source:
    return _python(random.random.__self__)  # type: ignore[attr-defined]


def _legacy_numpy(source: Any) -> Source:
    return Source(
        lambda: int(source.randint(0, 1 << 62, dtype=np.int64)),
        lambda number: source.seed(number & 0xFFFFFFFF),
        source.get_state,
        source.set_state,
    )


class _NumpyGlobal:
    """State of NumPy's global generator: 625 words and a normal number that may be left over from a pair.

    NumPy's own way takes 100 us, element by element, for which a hundred small samples could be read. So the words are
    copied where they lie. Whether a number is left over shows when one is drawn: the words stay the same.
    """

    def __init__(self) -> None:
        self._known: Any = None  # the bit generator whose words were found
        self._address, self._size = 0, 625 * 4

    def _find(self) -> bool:
        bits = np.random.get_bit_generator()
        if bits is not self._known:
            if type(bits) is not np.random.MT19937:
                return False
            inner = bits.state["state"]
            expected = np.append(inner["key"], np.uint32(inner["pos"])).astype(np.uint32).tobytes()
            self._address = bits.ctypes.state_address
            if ctypes.string_at(self._address, self._size) != expected:
                return False
            self._known = bits
        return True

    def save(self) -> Any:
        if not self._find():
            return np.random.get_state(legacy=False)  # noqa: NPY002
        words = ctypes.string_at(self._address, self._size)
        left = np.random.standard_normal()  # noqa: NPY002
        if ctypes.string_at(self._address, self._size) == words:
            state = np.random.get_state(legacy=False)  # noqa: NPY002
            state["has_gauss"], state["gauss"] = 1, left
            return state
        ctypes.memmove(self._address, words, self._size)
        return self._known, words

    def restore(self, state: Any) -> None:
        if isinstance(state, dict):
            np.random.set_state(state)  # noqa: NPY002
            return
        bits, words = state
        np.random.set_bit_generator(bits)  # nothing is left over
        ctypes.memmove(bits.ctypes.state_address, words, self._size)


_numpy_global = _NumpyGlobal()


def _global_numpy() -> Source:
    source = _legacy_numpy(np.random)
    return Source(source.draw, source.seed, _numpy_global.save, _numpy_global.restore)


def _numpy(source: np.random.Generator) -> Source:
    bits = source.bit_generator

    def restore(state: Any) -> None:
        bits.state = state

    return Source(
        lambda: int(source.integers(1 << 62)),
        lambda number: restore(type(bits)(number).state),  # type: ignore[call-arg]
        lambda: bits.state,
        restore,
    )


def _tensors(source: Any) -> Source:
    return Source(lambda: draw_seed(source), source.manual_seed, source.get_state, source.set_state)


def _default() -> Source:
    keep = getattr(tensor, "get_rng_state", lambda: None)
    bring_back = getattr(tensor, "set_rng_state", lambda state: None)
    return Source(lambda: draw_seed(None), tensor.manual_seed, keep, bring_back)


def _objects(value: Any, depth: int, seen: set[int]) -> Iterator[Any]:
    """Generators reached from an object by attributes and items, each once, in a fixed order."""
    if id(value) in seen or depth < 0:
        return
    seen.add(id(value))
    if isinstance(value, (random.Random, np.random.RandomState, np.random.Generator, tensor.Generator)):
        yield value
        return
    if isinstance(value, (str, bytes, int, float, np.ndarray, tensor.Tensor, type)) or callable(
        getattr(value, "__next__", None)
    ):
        return
    for item in parts_of(value):
        yield from _objects(item, depth - 1, seen)


def _globals(value: Any) -> Iterator[Any]:
    """Generators among the names of the modules that define a data set's classes and functions."""
    names = [cls.__module__ for cls in type(value).__mro__] + [getattr(value, "__module__", None)]
    own = __name__.partition(".")[0]
    for name in dict.fromkeys(names):
        module = sys.modules.get(name or "")
        if (
            module is None
            or name in ("builtins", "typing", "random")
            or getattr(module, "__name__", name).partition(".")[0] in (own, "numpy")
        ):
            continue
        for item in list(vars(module).values()):
            if isinstance(
                item, (random.Random, np.random.RandomState, np.random.Generator, tensor.Generator)
            ):
                yield item


def _untouched() -> Source:
    return Source(lambda: 0, lambda number: None, lambda: None, lambda state: None)


def sources(*readers: Any, excluded: tuple[Any, ...] = ()) -> list[Source]:
    """The sources that a data set and a collate function may draw from, in a fixed order.

    Args:
        *readers: the data set, the collate function.
        excluded: generators that belong to the loader; they keep their places and are let alone.
    """
    seen: set[int] = set()
    found = [_global_python(), _global_numpy(), _default()]
    objects = [item for reader in readers for item in _objects(reader, DEPTH, seen)]
    for item in (item for reader in readers for item in _globals(reader)):
        if id(item) not in seen:
            seen.add(id(item))
            objects.append(item)
    for item in objects:
        if any(item is other for other in excluded):
            found.append(_untouched())
        elif isinstance(item, random.Random):
            found.append(_python(item))
        elif isinstance(item, np.random.RandomState):
            found.append(_legacy_numpy(item))
        elif isinstance(item, np.random.Generator):
            found.append(_numpy(item))
        else:
            found.append(_tensors(item))
    return found


PROCESS_WIDE = 3  # Python's, NumPy's and the tensors' default generator, which stand first among the sources


def following(seed: int, numbers: list[int]) -> list[int]:
    """The numbers, of which those of the process-wide sources follow from a seed."""
    own = random.Random(seed)
    return [own.getrandbits(62) for _ in range(PROCESS_WIDE)] + numbers[PROCESS_WIDE:]


def has_pytorchs_streams(generator: Any = None) -> bool:
    """Whether the generator (None: the default one) is an mt19937, whose numbers are PyTorch's."""
    # which not all providers have
    default = getattr(getattr(tensor, "random", None), "default_generator", None)
    return getattr(default if generator is None else generator, "engine", None) == "mt19937"


def seed_worker(seed: int, worker: int) -> None:
    """Seed the process-wide sources of a worker process as PyTorch does, from the first epoch's seed."""
    from taeda_data._utils import worker as with_names

    engines = getattr(tensor, "random", None)
    if (
        engines is not None and not has_pytorchs_streams()
    ):  # a process that did not inherit the program's choice
        engines.set_engine("mt19937")
    random.seed(seed + worker)
    tensor.manual_seed(seed + worker)
    np.random.seed(with_names._generate_state(seed, worker))  # noqa: NPY002


class Touched:
    """Which sources are seeded, or drawn from, between its making and `numbers`."""

    def __init__(self, found: list[Source]) -> None:
        self._found = found
        self._before = [source.draw_again() for source in found]

    def numbers(self) -> dict[int, int]:
        """A number from each of them, by its place."""
        after = [source.draw_again() for source in self._found]
        return {i: now for i, (was, now) in enumerate(zip(self._before, after, strict=True)) if was != now}


def seed_all(found: list[Source], numbers: list[int], batch: Any) -> None:
    """Seed each source for a batch."""
    digest = hashlib.blake2b(repr(batch).encode(), digest_size=8).digest()
    key = int.from_bytes(digest, "little") >> 2
    for source, number in zip(found, numbers, strict=False):
        source.seed(number ^ key)
