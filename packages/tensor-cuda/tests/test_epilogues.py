"""Products of matrices with what the library does to them before it stores them: biases, activations, slopes, sums."""

from __future__ import annotations

import ctypes
from itertools import product as all_of
from typing import Any

import device_programs as programs
import numpy as np
import pytest

from taeda_tensor_cuda.simulated import DriverError, Machine

# Numbers of the ABI, and of driver/product.h.
DTYPES = {"float16": 9, "bfloat16": 10, "float32": 11, "float64": 12, "complex64": 13}
NOTHING, RELU, GELU = range(3)
NO_VECTOR, BIAS, SUMS, SUMS_OF_A, SUMS_OF_B = range(5)
BOUND = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5, "float64": 1e-12, "complex64": 1e-5}


def rounded(x: np.ndarray, dtype: str) -> np.ndarray:
    """The nearest numbers of a type, as float64."""
    if dtype != "bfloat16":
        return x.astype(dtype).astype(np.float64)
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return (
        ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000)
        .astype(np.uint32)
        .view(np.float32)
        .astype(np.float64)
    )


def packed(x: np.ndarray, dtype: str) -> bytes:
    if dtype == "bfloat16":
        return (np.asarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes("F")
    return x.astype(dtype).tobytes("F")


def unpacked(data: bytes, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if dtype == "bfloat16":
        flat = (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
    else:
        flat = np.frombuffer(data, dtype)
    return flat.astype(np.float64).reshape(shape, order="F")


class Library:
    """Products on a machine; matrices are NumPy's, stored column by column."""

    def __init__(self, machine: Machine, dtype: str, result: str | None = None) -> None:
        self.machine, self.dtype, self.result = machine, dtype, result or dtype
        self.stream = machine.stream()

    def put(self, data: bytes, apart: int = 0) -> int:
        address = self.machine.allocate(len(data) + apart, self.stream) + apart
        self.machine.copy_in(address, data, len(data), self.stream)
        self.machine.synchronize()
        return address

    def get(self, address: int, nbytes: int) -> bytes:
        to = (ctypes.c_char * nbytes)()
        self.machine.copy_out(to, address, nbytes, self.stream)
        self.machine.synchronize()
        return bytes(to)

    def members(
        self, a: Any, b: Any, c: Any, sizes: tuple[int, int, int, int], epilogue: tuple[int, ...]
    ) -> list[int]:
        return [DTYPES[self.dtype], DTYPES[self.result], *sizes, *a, *b, *c, *epilogue]


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def gelu_slope(x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    return (gelu(x + step) - gelu(x - step)) / (2 * step)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("turned", list(all_of([False, True], repeat=2)))
def test_every_epilogue_gives_what_numpy_gives(
    machine: Machine, dtype: str, turned: tuple[bool, bool]
) -> None:
    rng = np.random.default_rng(5)
    library = Library(machine, dtype)
    m, n, k, ld = 24, 5, 7, 128
    a, b = rounded(rng.standard_normal((m, k)), dtype), rounded(rng.standard_normal((k, n)), dtype)
    c, v = rounded(rng.standard_normal((m, n)), dtype), rounded(rng.standard_normal(m), dtype)
    item = np.dtype(dtype if dtype != "bfloat16" else "float16").itemsize
    places = [library.put(packed(x.T if t else x, dtype)) for x, t in zip((a, b), turned, strict=True)]
    left, right = (
        (at, (x.shape[1] if t else x.shape[0]), 0, int(t))
        for at, x, t in zip(places, (a, b), turned, strict=True)
    )
    plain = 1.5 * (a @ b) - 0.5 * c
    kept_relu, kept_gelu = library.put(bytes(ld * n // 8)), library.put(bytes(ld * n * item))
    tried = 0

    def run(
        activation: int, backward: bool, role: int, kept: int, length: int
    ) -> tuple[np.ndarray, np.ndarray]:
        nonlocal tried
        tried += 1
        vector = (
            library.put(packed(v[:length] if role == BIAS else np.full(length, 7.0), dtype)) if role else 0
        )
        at = library.put(packed(c, dtype))
        epilogue = (activation, int(backward), role, vector, kept, ld if kept else 0)
        given = library.members(left, right, (at, m, 0, 0), (m, n, k, 1), epilogue)
        assert machine.can_finish(given) or not (activation or role)
        machine.multiply(given, (1.5, -0.5), library.stream)
        found = unpacked(library.get(at, m * n * item), (m, n), dtype)
        return found, unpacked(library.get(vector, length * item), (length,), dtype) if role else np.zeros(0)

    def near(found: np.ndarray, expected: np.ndarray) -> None:
        np.testing.assert_allclose(found, expected, rtol=BOUND[dtype], atol=BOUND[dtype] * 4)

    near(run(NOTHING, False, NO_VECTOR, 0, 0)[0], plain)
    activations = {NOTHING: lambda x: x, RELU: lambda x: np.maximum(x, 0)}
    wide = dtype == "float64"
    if not wide:
        activations[GELU] = gelu
    for activation, function in activations.items():
        for role, added in ((NO_VECTOR, 0.0), (BIAS, v[:, None])):
            near(run(activation, False, role, 0, m)[0], function(plain + added))
            if activation == NOTHING or wide:
                continue
            kept = kept_relu if activation == RELU else kept_gelu
            near(run(activation, False, role, kept, m)[0], function(plain + added))
            # The slope at what was kept, and the sums of its rows.
            slope = gelu_slope(plain + added) if activation == GELU else plain + added > 0
            near(run(activation, True, NO_VECTOR, kept, m)[0], plain * slope)
            found, sums = run(activation, True, SUMS, kept, m)
            near(found, plain * slope)
            near(sums / n, found.sum(1) / n)
    if not wide:
        for role, length, expected in ((SUMS_OF_A, m, a.sum(1)), (SUMS_OF_B, n, b.sum(0))):
            found, sums = run(NOTHING, False, role, 0, length)
            near(found, plain)
            near(sums, expected)
    assert tried == (5 if wide else 21)


def test_a_bias_of_float32_is_added_to_products_of_halves_in_batches(machine: Machine) -> None:
    rng = np.random.default_rng(6)
    library = Library(machine, "float16", "float32")
    m, n, k, batch = 4, 3, 2, 5
    a, b = (rounded(rng.standard_normal((batch, *shape)), "float16") for shape in ((m, k), (k, n)))
    v = rounded(rng.standard_normal(m), "float32")
    left, right = (library.put(b"".join(packed(x, "float16") for x in part)) for part in (a, b))
    to, bias = library.put(bytes(batch * m * n * 4)), library.put(packed(v, "float32"))
    given = library.members(
        (left, m, m * k, 0),
        (right, k, k * n, 0),
        (to, m, m * n, 0),
        (m, n, k, batch),
        (RELU, 0, BIAS, bias, 0, 0),
    )
    machine.multiply(given, (1.0, 0.0), library.stream)
    data = library.get(to, batch * m * n * 4)
    for i in range(batch):
        found = unpacked(data[i * m * n * 4 : (i + 1) * m * n * 4], (m, n), "float32")
        np.testing.assert_allclose(found, np.maximum(a[i] @ b[i] + v[:, None], 0), rtol=1e-6, atol=1e-6)


def test_what_the_library_lacks_is_refused(machine: Machine) -> None:
    def given(dtype: str, epilogue: tuple[int, ...], batch: int = 1) -> list[int]:
        library = Library(machine, dtype)
        at = library.put(bytes(1 << 12))
        return library.members((at, 4, 0, 0), (at, 4, 0, 0), (at, 4, 0, 0), (4, 4, 4, batch), epilogue)

    vector = Library(machine, "float32").put(bytes(1 << 12))
    lacking = [
        ("complex64", (NOTHING, 0, BIAS, vector, 0, 0)),
        ("float64", (GELU, 0, BIAS, vector, 0, 0)),
        ("float64", (RELU, 0, NO_VECTOR, 0, vector, 128)),
        ("float64", (NOTHING, 0, SUMS_OF_B, vector, 0, 0)),
        ("float32", (NOTHING, 0, SUMS, vector, 0, 0)),
        ("float32", (RELU, 0, SUMS_OF_A, vector, 0, 0)),
        ("float32", (RELU, 1, NO_VECTOR, 0, 0, 0)),
        ("float32", (GELU, 1, BIAS, vector, vector, 128)),
    ]
    for dtype, epilogue in lacking:
        members = given(dtype, epilogue)
        assert not machine.can_finish(members), (dtype, epilogue)
        with pytest.raises(DriverError, match="invalid argument"):
            machine.multiply(members, (1.0, 0.0), None)
    assert not machine.can_finish(given("float32", (RELU, 0, SUMS, vector, vector, 128), batch=2))
    misplaced = [
        (NOTHING, 0, BIAS, vector + 2, 0, 0),  # not at an element
        (NOTHING, 0, BIAS, 0, 0, 0),
        (RELU, 0, NO_VECTOR, vector, 0, 0),
        (RELU, 0, NO_VECTOR, 0, vector, 64),  # bits are kept in rows of 128
        (RELU, 0, NO_VECTOR, 0, vector + 8, 128),
        (GELU, 0, NO_VECTOR, 0, vector, 12),
        (GELU, 0, NO_VECTOR, 0, vector, 0),
    ]
    for epilogue in misplaced:
        with pytest.raises(DriverError, match="invalid argument"):
            machine.multiply(given("float32", epilogue), (1.0, 0.0), None)


HEAD = """
import itertools
import numpy as np
import taeda_tensor_core as tc
kind = tc.get_device_module("cuda")
tc.manual_seed(SEED)
tried = 0
"""
HEAD += programs.launches()
HEAD += """
def near(found, expected, dtype):
    global tried
    tried += 1
    bound = {2: 3e-2, 4: 1e-5, 8: 1e-12}[dtype.itemsize // (2 if dtype.is_complex else 1)]
    found = found.cpu().to(tc.complex128).numpy()
    np.testing.assert_allclose(found, expected, rtol=bound, atol=bound * 4)

def some(*shape, dtype):
    return tc.randn(*shape, dtype=tc.complex128 if dtype.is_complex else tc.float64).to(dtype)

def of(*tensors):
    return [t.to(tc.complex128).numpy() for t in tensors]
"""


@pytest.mark.parametrize("libraries", ["", "none"])
def test_biases_of_rows_are_added_by_the_product_itself(libraries: str) -> None:
    programs.check(
        f"""
        ONE = {not libraries}
        for dtype in (tc.float16, tc.bfloat16, tc.float32, tc.float64, tc.complex64):
            fused = ONE and not dtype.is_complex
            x, w, bias = some(4, 6, dtype=dtype), some(5, 6, dtype=dtype), some(5, dtype=dtype)
            X, W, B = of(x, w, bias)
            d = [t.to("cuda") for t in (x, w, bias)]
            near(tc.ops.linear(*d), X @ W.T + B, dtype)
            assert not ONE or launches(lambda: tc.ops.linear(*d)) == (1 if fused else 2), dtype
            near(tc.ops.linear(d[0].reshape(2, 2, 6), *d[1:]), (X @ W.T + B).reshape(2, 2, 5), dtype)
            for shape in ((5,), (1, 5)):
                base = d[2].reshape(shape)
                near(tc.addmm(base, d[0], d[1].t(), alpha=0.5), 0.5 * X @ W.T + B, dtype)
                assert not ONE or launches(lambda: tc.addmm(base, d[0], d[1].t(), alpha=0.5)) == (1 if fused else 2)
            # What is no bias of rows, or is scaled, goes the other way.
            near(tc.addmm(d[2], d[0], d[1].t(), beta=2), X @ W.T + 2 * B, dtype)
            near(tc.addmm(d[2][:4, None], d[0], d[1].t()), X @ W.T + B[:4, None], dtype)
            near(tc.addmm(d[2][:1], d[0], d[1].t()), X @ W.T + B[:1], dtype)
            wide = tc.stack([bias, bias], 1).to("cuda")[:, 1]
            near(tc.ops.linear(d[0], d[1], wide), X @ W.T + B, dtype)
            near(tc.ops.linear(d[0], d[1], d[2][1:][:1]), X @ W.T + B[1], dtype)
            # Batches.
            a, b = some(3, 4, 6, dtype=dtype), some(3, 6, 5, dtype=dtype)
            A, Y = of(a, b)
            near(tc.baddbmm(d[2], a.to("cuda"), b.to("cuda")), A @ Y + B, dtype)
            near(tc.baddbmm(d[2].expand(3, 1, 5), a.to("cuda"), b.to("cuda")), A @ Y + B, dtype)
            # In place, where the bias is the only row, and results that lie turned or apart.
            row = d[2].clone().reshape(1, 5)
            near(row.addmm_(d[0][:1], d[1].t()), X[:1] @ W.T + B, dtype)
            for out in (tc.zeros(5, 4, dtype=dtype).to("cuda").t(), tc.zeros(4, 10, dtype=dtype).to("cuda")[:, ::2]):
                near(tc.addmm(d[2], d[0], d[1].t(), out=out), X @ W.T + B, dtype)
            # A bias behind another element, which is not aligned for more than one.
            moved = tc.cat([bias[:1], bias]).to("cuda")[1:]
            near(tc.ops.linear(d[0], d[1], moved), X @ W.T + B, dtype)
        """,
        HEAD,
        70,
        TAEDA_CUDA_LIBRARIES=libraries,
    )


@pytest.mark.parametrize("libraries", ["", "none"])
def test_gradients_of_biases_come_with_the_weights_gradients(libraries: str) -> None:
    programs.check(
        f"""
        ONE = {not libraries}
        for dtype in (tc.float16, tc.bfloat16, tc.float32, tc.float64):
            for shape in ((4,), (2, 3), ()):
                x, w, g = some(*shape, 6, dtype=dtype), some(5, 6, dtype=dtype), some(*shape, 5, dtype=dtype)
                X, W, G = of(x, w, g)
                expected = [G @ W, G.reshape(-1, 5).T @ X.reshape(-1, 6), G.reshape(-1, 5).sum(0)]
                d = [t.to("cuda") for t in (g, x, w)]
                for mask in range(1, 8):
                    found = tc.ops.linear_backward(*d, mask)
                    for bit, (own, wanted) in enumerate(zip(found, expected)):
                        assert (own is not None) == bool(mask >> bit & 1)
                        if own is not None:
                            near(own, wanted, dtype)
                            assert own.dtype == dtype and own.shape == wanted.shape
                halves = dtype.itemsize == 2
                assert not ONE or not halves or launches(lambda: tc.ops.linear_backward(*d, 7)) == 2, dtype
            row = some(3, 6, dtype=dtype), some(6, dtype=dtype), some(3, dtype=dtype)
            found = tc.ops.linear_backward(*(t.to("cuda") for t in (row[2], row[0], row[1])), 7)
            near(found[2], of(row[2])[0].sum(), dtype)
        empty = tc.ops.linear_backward(
            tc.zeros(0, 5).half().to("cuda"), tc.zeros(0, 6).half().to("cuda"), tc.ones(5, 6).half().to("cuda"), 7)
        near(empty[1], np.zeros((5, 6)), tc.float16)
        near(empty[2], np.zeros(5), tc.float16)
        """,
        HEAD,
        150,
        TAEDA_CUDA_LIBRARIES=libraries,
    )
