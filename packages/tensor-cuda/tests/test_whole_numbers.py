"""Whole numbers beyond what floating ones hold: pooling, folding and counting, against NumPy."""

from __future__ import annotations

import device_programs as programs

HEAD = (
    programs.compared(0.0)
    + """
from numpy.lib.stride_tricks import sliding_window_view

def same(found, expected):
    global tried
    tried += 1
    found = found.cpu().numpy()
    assert found.dtype == expected.dtype and found.shape == expected.shape, (found.dtype, expected.dtype)
    assert (found == expected).all(), (found, expected)

def windows(x, size, step, padding, fill):
    "(..., rows, columns, size * size)"
    sides = [(0, 0)] * (x.ndim - 2) + [(padding, padding)] * 2
    seen = sliding_window_view(np.pad(x, sides, constant_values=fill), (size, size), (-2, -1))
    return seen[..., ::step, ::step, :, :].reshape(*seen[..., ::step, ::step, 0, 0].shape, size * size)

def some(dtype, *shape):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)

KINDS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
"""
)


def run(program: str, least: int, seed: int = 1) -> None:
    programs.check(program, HEAD, least, seed)


def test_means_of_windows_are_cut_off() -> None:
    run(
        """
        for shape in ((2, 3, 7, 6), (3, 5, 5)):
            x = rng.integers(-1 << 58, 1 << 58, shape)
            for size, step, padding in ((2, 2, 0), (3, 2, 1), (3, 1, 0)):
                sums = windows(x, size, step, padding, 0).sum(-1)
                same(tc.ops.avg_pool2d(there(x), [size], [step], [padding]),
                     np.sign(sums) * (abs(sums) // size**2))
                count = windows(np.ones_like(x), size, step, padding, 0).sum(-1)
                same(tc.ops.avg_pool2d(there(x), [size], [step], [padding], count_include_pad=False),
                     np.sign(sums) * (abs(sums) // count))
            last = there(x if x.ndim == 4 else x[None]).contiguous(memory_format=tc.channels_last)
            sums = windows(last.cpu().numpy(), 2, 2, 0, 0).sum(-1)
            same(tc.ops.avg_pool2d(last, [2]), np.sign(sums) * (abs(sums) // 4))
        """,
        least=14,
    )


def test_maxima_of_windows() -> None:
    run(
        """
        for dtype in KINDS:
            for channels in (3, 4):
                x = some(dtype, 2, channels, 7, 6)
                for size, step, padding in ((2, 2, 0), (3, 2, 1)):
                    expected = windows(x, size, step, padding, np.iinfo(dtype).min).max(-1)
                    for given in (there(x), there(x).contiguous(memory_format=tc.channels_last)):
                        found, places = tc.ops.max_pool2d_with_indices(given, [size], [step], [padding])
                        same(found, expected)
                        flat = x.reshape(2, channels, -1)
                        taken = np.take_along_axis(flat, places.cpu().numpy().reshape(2, channels, -1), 2)
                        same(there(taken.reshape(expected.shape)), expected)
                        same(tc.ops.max_pool2d(given, [size], [step], [padding]), expected)
                whole = tc.ops.adaptive_max_pool2d(there(x), [1, 1])
                same((whole if isinstance(whole, tc.Tensor) else whole[0]), x.max((2, 3), keepdims=True))
        """,
        least=100,
    )


def test_folds_add_up_every_digit() -> None:
    run(
        """
        for dtype in KINDS:
            x = some(dtype, 2, 3 * 4, 20)  # windows of 2 x 2 of (5, 6), a step apart
            expected = np.zeros((2, 3, 5, 6), dtype)
            parts = x.reshape(2, 3, 2, 2, 4, 5)
            for i in range(2):
                for j in range(2):
                    expected[:, :, i : i + 4, j : j + 5] += parts[:, :, i, j]
            same(tc.ops.col2im(there(x), [5, 6], [2, 2], [1, 1], [0, 0], [1, 1]), expected)
        """,
        least=8,
    )


def test_counts_and_distinct_numbers() -> None:
    run(
        """
        at = rng.integers(0, 5, 40)
        for dtype, sums in ((tc.float16, "float64"), (tc.bfloat16, "float64"), (tc.float32, "float32"),
                            (tc.float64, "float64"), (tc.int32, "float64")):
            weights = there(np.arange(40) % 7).to(dtype)
            same(tc.ops.bincount(there(at), weights), np.bincount(at, np.arange(40) % 7).astype(sums))
            same(tc.ops.bincount(there(at[:0]), weights[:0], 3), np.zeros(3, np.int64))
        for n in (0, 2):
            for device in ("cpu", "cuda"):
                try:
                    tc.ops.unique_all(tc.ones(n, dtype=tc.complex64).to(device))
                except NotImplementedError as error:
                    assert "unique_all: argument 'self' has dtype complex64" in str(error), error
                    tried += 1
        """,
        least=14,
    )
