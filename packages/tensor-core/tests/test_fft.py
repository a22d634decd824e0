"""Fourier transforms beyond their records: long and awkward lengths, layouts, threads, modules, windows."""

import importlib
import warnings

import numpy as np
import pytest
from scipy.signal import windows

import taeda_tensor_core as t

RNG = np.random.default_rng(20260301)


def numbers(*shape, dtype=np.complex64):
    x = RNG.standard_normal(shape) + (1j * RNG.standard_normal(shape) if np.dtype(dtype).kind == "c" else 0)
    return x.astype(dtype)


def off(found, exact):
    return np.abs(found.numpy() - exact).max() / np.abs(exact).max()


@pytest.mark.parametrize("n", [1, 2, 3, 17, 64, 97, 100, 1009, 4096, 6561, 10007])
@pytest.mark.parametrize("lines", [1, 2, 7, 16, 70])
def test_lengths_and_lines(n, lines):
    """Powers, products of small primes, large primes, in any number side by side."""
    x = numbers(lines, n, dtype=np.complex128)
    assert off(t.fft.fft(t.from_numpy(x)), np.fft.fft(x)) < 1e-14 * np.log2(n + 2)
    back = t.fft.irfft(t.fft.rfft(t.from_numpy(x.real.copy())), n)
    assert off(back, x.real) < 1e-14 * np.log2(n + 2)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.float64])
def test_layouts(dtype):
    """Lines across memory, with gaps, backwards and repeated."""
    x = numbers(6, 40, 18, dtype=dtype)
    whole = t.from_numpy(x)
    tolerance = 1e-5 if dtype != np.float64 else 1e-13
    views = (
        (whole, x),
        (whole[:, ::2], x[:, ::2]),
        (whole[::-1, :, 1:], x[::-1, :, 1:]),
        (whole.transpose(0, 2), x.T),
        (whole[:1].expand(4, -1, -1), np.repeat(x[:1], 4, 0)),
    )
    for view, same in views:
        for dim in range(3):
            exact = np.fft.fft(same.astype(np.complex128), axis=dim)
            assert off(t.fft.fft(view, dim=dim), exact) < tolerance
            out = t.empty(*view.shape[::-1], dtype=t.fft.fft(view).dtype).transpose(0, 2)
            t.fft.fft(view, dim=dim, out=out)
            assert off(out, exact) < tolerance


def test_in_place_through_out():
    x = numbers(5, 33)
    tensor = t.from_numpy(x.copy())
    t.fft.fft(tensor, out=tensor)
    assert off(tensor, np.fft.fft(x)) < 1e-6


@pytest.mark.parametrize("name", ["fft", "rfft", "irfft"])
def test_threads_give_the_same_bits(name):
    x = t.from_numpy(numbers(300, 257, dtype=np.float32 if name == "rfft" else np.complex64))
    before = t.get_num_threads()
    found = []
    try:
        for threads in (1, 2):
            t.set_num_threads(threads)
            found.append(getattr(t.fft, name)(x).numpy())
    finally:
        t.set_num_threads(before)
    assert np.array_equal(*found)


def test_stft_and_back():
    x = t.from_numpy(numbers(2, 1000, dtype=np.float64))
    window = t.hann_window(64, dtype=t.float64)
    spectrum = t.stft(x, 64, 16, window=window, return_complex=True)
    assert spectrum.shape == (2, 33, 63)
    assert off(t.istft(spectrum, 64, 16, window=window, length=1000), x.numpy()) < 1e-14
    with pytest.raises(RuntimeError, match="window"):
        t.istft(spectrum, 64, 64, window=window, center=False)


def test_modules():
    for name in ("fft", "special", "signal", "signal.windows"):
        module = importlib.import_module(f"taeda_tensor_core.{name}")
        assert module is not None
    assert t.signal.windows.hann is importlib.import_module("taeda_tensor_core.signal.windows").hann


@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("m", [0, 1, 2, 7, 16])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        *((name, {}) for name in ("bartlett", "blackman", "cosine", "hamming", "hann", "nuttall")),
        ("exponential", {"tau": 3.0}),
        ("gaussian", {"std": 2.5}),
        ("general_cosine", {"a": [0.5, 0.3, 0.2]}),
        ("general_hamming", {"alpha": 0.7}),
        ("kaiser", {"beta": 8.0}),
    ],
)
def test_windows(name, arguments, m, sym):
    found = getattr(t.signal.windows, name)(m, sym=sym, dtype=t.float64, **arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact = getattr(windows, name)(m, sym=sym, **arguments)
    assert found.shape == (m,)
    if sym:
        assert found.tolist() == found.flip(0).tolist()
    np.testing.assert_allclose(found.numpy(), exact, rtol=1e-13, atol=1e-15)
    assert getattr(t.signal.windows, name)(m, **arguments, requires_grad=False).dtype == t.float32
    for count in (t.tensor(m), np.int64(m)):
        counted = getattr(t.signal.windows, name)(count, sym=sym, dtype=t.float64, **arguments)
        assert counted.tolist() == found.tolist()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda w: w.hann(-1), ValueError, "hann.*-1"),
        (lambda w: w.hann(4, dtype=t.int64), ValueError, "hann.*int64"),
        (lambda w: w.hann(4, layout="sparse"), ValueError, "layout"),
        (lambda w: w.hann(4.0), TypeError, "float"),
        (lambda w: w.hann(t.tensor(4.0)), TypeError, "'M' must be an int, found Tensor"),
        (lambda w: w.exponential(4, tau=0), ValueError, "tau"),
        (lambda w: w.exponential(4, center=1.0), ValueError, "center"),
        (lambda w: w.gaussian(4, std=-1), ValueError, "std"),
        (lambda w: w.kaiser(4, beta=-1), ValueError, "beta"),
        (lambda w: w.general_cosine(4, a=[]), ValueError, "empty"),
        (lambda w: w.general_cosine(4, a=3), TypeError, "int"),
    ],
)
def test_wrong_windows(call, error, words):
    with pytest.raises(error, match=words):
        call(t.signal.windows)
