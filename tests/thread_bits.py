"""Prints a digest of each computation under a number of threads: the child of test_thread_bits.

python tests/thread_bits.py THREADS
"""

from __future__ import annotations

import hashlib
import itertools
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator

import numpy as np

import taeda as t
from taeda_testing import all_records
from taeda_testing.record import OpRecord, Sample
from taeda_testing.runner import differentiated, function_of, to_tensors

F = t.nn.functional
DTYPES = (t.float32, t.float64, t.bfloat16)


def digest(tensors: list[t.Tensor]) -> str:
    """Of the bytes of all tensors."""
    made = hashlib.sha256()
    for tensor in tensors:
        if tensor is not None:
            made.update(tensor.detach().contiguous().view(-1).view(t.uint8).numpy().tobytes())
    return made.hexdigest()[:16]


def values(rng: np.random.Generator, *shape: int, dtype: t.dtype = t.float32) -> t.Tensor:
    """A leaf of normal numbers."""
    return t.from_numpy(rng.standard_normal(shape)).to(dtype).requires_grad_()


def with_gradients(function: Callable, *leaves: t.Tensor) -> str:
    """Digest of the result and of all gradients."""
    found = function(*leaves)
    while isinstance(found, tuple):
        found = found[0]
    found.backward(t.cos(t.arange(found.numel(), dtype=t.float64)).reshape(found.shape).to(found.dtype))
    return digest([found, *(leaf.grad for leaf in leaves)])


# Large enough to be cut: (name, function, shapes of its leaves).
LARGE: list[tuple[str, Callable, list[tuple[int, ...]]]] = [
    ("conv2d 3x3", lambda x, w, b: F.conv2d(x, w, b, padding=1), [(4, 32, 40, 40), (48, 32, 3, 3), (48,)]),
    ("conv2d 1x1", F.conv2d, [(4, 64, 30, 30), (32, 64, 1, 1), (32,)]),
    ("conv2d strided", lambda x, w: F.conv2d(x, w, stride=2, padding=3), [(2, 3, 96, 96), (32, 3, 7, 7)]),
    ("conv2d grouped", lambda x, w: F.conv2d(x, w, padding=1, groups=4), [(4, 32, 33, 33), (32, 8, 3, 3)]),
    ("conv2d depthwise", lambda x, w: F.conv2d(x, w, padding=1, groups=64), [(4, 64, 33, 33), (64, 1, 3, 3)]),
    ("conv2d dilated", lambda x, w: F.conv2d(x, w, dilation=2), [(2, 16, 50, 50), (24, 16, 3, 3)]),
    ("conv2d of one image", lambda x, w: F.conv2d(x, w, padding=1), [(1, 64, 56, 56), (64, 64, 3, 3)]),
    ("conv2d of many small", lambda x, w: F.conv2d(x, w, padding=1), [(64, 32, 7, 7), (64, 32, 3, 3)]),
    ("conv1d", lambda x, w, b: F.conv1d(x, w, b, padding=2), [(8, 32, 500), (48, 32, 5), (48,)]),
    ("conv_transpose2d", lambda x, w: F.conv_transpose2d(x, w, stride=2), [(4, 32, 20, 20), (32, 24, 3, 3)]),
    ("conv_transpose1d", lambda x, w: F.conv_transpose1d(x, w, stride=2), [(4, 32, 300), (32, 24, 3)]),
    ("linear", F.linear, [(700, 300), (200, 300), (200,)]),
    ("linear, long batch", F.linear, [(20000, 20), (30, 20), (30,)]),
    ("bmm", t.bmm, [(20, 70, 90), (20, 90, 50)]),
    ("matmul, long inner", t.matmul, [(20, 60000), (60000, 30)]),
    ("mv", t.mv, [(3000, 500), (500,)]),
    ("dot", t.dot, [(500000,), (500000,)]),
    ("attention", F.scaled_dot_product_attention, [(4, 8, 60, 32), (4, 8, 60, 32), (4, 8, 60, 32)]),
    ("batch_norm", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), [(8, 32, 40, 40), (32,), (32,)]),
    ("batch_norm of rows", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), [(9000, 32), (32,), (32,)]),
    ("layer_norm", lambda x, w, b: F.layer_norm(x, (300,), w, b), [(700, 300), (300,), (300,)]),
    ("group_norm", lambda x, w, b: F.group_norm(x, 4, w, b), [(8, 32, 40, 40), (32,), (32,)]),
    ("cross_entropy", lambda x: F.cross_entropy(x, t.arange(2000) % 100), [(2000, 100)]),
    ("mse_loss", F.mse_loss, [(300000,), (300000,)]),
    ("softmax of columns", lambda x: x.softmax(0), [(900, 300)]),
    ("embedding", lambda w: F.embedding(t.arange(9000) % 7, w), [(7, 64)]),
    ("max_pool2d", lambda x: F.max_pool2d(x, 3, 2), [(8, 32, 40, 40)]),
    ("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2), [(8, 32, 40, 40)]),
    ("sum", lambda x: x.sum(), [(1000, 700)]),
    ("sums over the outer dimensions", lambda x: x.sum((0, 2)), [(100, 70, 90)]),
    ("var", lambda x: x.var(), [(1000, 700)]),
    ("cumsum", lambda x: x.cumsum(1), [(100, 7000)]),
]  # fmt: skip


def layers(rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Recurrent layers, whose parameters are their own."""
    for kind in ("LSTM", "GRU", "RNN"):
        t.manual_seed(5)
        layer = getattr(t.nn, kind)(48, 64, 2, bidirectional=True)
        x = values(rng, 30, 16, 48)
        yield kind, with_gradients(lambda x, *_, layer=layer: layer(x), x, *layer.parameters())


def long_rows(record: OpRecord) -> Iterator[Sample]:
    """Samples of one array, repeated along its last dimension until threads share the work."""
    rng = np.random.default_rng(zlib.crc32(record.name.encode()))
    for sample in itertools.islice(record.samples("float32", rng), 4):
        arrays = [a for a in sample.args if isinstance(a, np.ndarray)]
        first = sample.args[0] if sample.args else None
        # The gradient of cumprod with a zero among the factors is quadratic in the length.
        if (
            len(arrays) == 1
            and record.name not in ("cumprod", "prod")
            and isinstance(first, np.ndarray)
            and first.ndim
            and first.size
        ):
            repeats = max(1, 150_000 // first.size)
            yield Sample((np.concatenate([first] * repeats, -1), *sample.args[1:]), sample.kwargs)
        elif arrays:
            yield sample


def of_record(record: OpRecord) -> Iterator[tuple[str, str]]:
    """Values and gradients of the long samples; none where memory is left as it is found."""
    for i, sample in enumerate(long_rows(record) if record.values else ()):
        args = [to_tensors(value) for value in sample.args]
        places = differentiated(record, sample) if record.differentiable else []
        for place in places:
            place.of(args).requires_grad_()
        try:
            found = function_of(record)(*args, **{k: to_tensors(v) for k, v in sample.kwargs.items()})
        except Exception:  # the operator does not take the longer array
            continue
        results = [
            r for r in (found if isinstance(found, (list, tuple)) else [found]) if isinstance(r, t.Tensor)
        ]
        for r in results:
            if r.requires_grad:
                (r.abs() if r.is_complex() else r).sum().backward(retain_graph=True)
        yield (
            f"{record.family} {record.name} {i}",
            digest([*results, *(place.of(args).grad for place in places)]),
        )


def large(words: str = "") -> Iterator[tuple[str, str]]:
    """The large computations whose names begin with the words."""
    for name, function, shapes in LARGE:
        for dtype in DTYPES if name.startswith(words) else ():
            rng = np.random.default_rng(7)
            yield (
                f"{name}, {dtype}",
                with_gradients(function, *(values(rng, *s, dtype=dtype) for s in shapes)),
            )


def main(threads: int) -> None:
    warnings.simplefilter("ignore")
    t.set_num_threads(threads)
    for name, found in large():
        print(f"{name}\t{found}")
    t.use_deterministic_algorithms(True)
    for name, found in large("conv"):
        print(f"deterministic {name}\t{found}")
    t.use_deterministic_algorithms(False)
    for name, found in layers(np.random.default_rng(8)):
        print(f"{name}\t{found}")
    for record in all_records():
        if "float32" in record.dtypes and not record.creates and record.family != "random":
            for name, found in of_record(record):
                print(f"{name}\t{found}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
