"""Products of matrices by NVIDIA's library, which the simulated driver computes by BLAS's definition."""

from __future__ import annotations

import device_programs as programs
import pytest

HEAD = """
import taeda_tensor_core as tc, taeda_tensor_cuda as cuda
from taeda_tensor_cuda._library import call
F = tc.ops
"""
LAYOUTS = """
import itertools
def layouts(sizes, dtype):
    "The same kind of matrix as it may lie: rows, columns, parts of larger ones, apart, expanded."
    *batch, n, m = sizes
    kind = dict(dtype=dtype)
    def some(*shape):
        x = tc.randn(*shape, dtype=tc.complex128 if dtype.is_complex else tc.float64)
        return x.to(dtype)
    yield "rows", some(*sizes)
    yield "columns", some(*batch, m, n).transpose(-1, -2)
    yield "part of rows", some(*batch, n, m + 3)[..., 1 : m + 1]
    yield "part of columns", some(*batch, m, n + 2).transpose(-1, -2)[..., 1 : n + 1, :]
    yield "apart", some(*batch, n, 2 * m)[..., ::2]
    yield "one row", some(*batch, 1, m).expand(*sizes)
"""


def run(program: str, **environment: str) -> list[str]:
    return programs.run(program, HEAD, **environment).splitlines()


@pytest.mark.parametrize("libraries", ["", "none"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64", "complex128"])
def test_every_layout_gives_the_product_of_the_cpu(dtype: str, libraries: str) -> None:
    shown = run(
        LAYOUTS
        + f"""
tc.manual_seed(7)
dtype = tc.{dtype}
bound = {{2: 2e-2, 4: 1e-5, 8: 1e-12 if dtype == tc.float64 else 1e-5, 16: 1e-12}}[dtype.itemsize]
tried = 0
for n, k, m in [(3, 4, 5), (1, 4, 5), (3, 1, 5), (3, 4, 1), (1, 1, 1), (2, 0, 3)]:
    for batch in [(), (2,), (1,)]:
        name = "bmm" if batch else "mm"
        for (la, a), (lb, b) in itertools.product(layouts((*batch, n, k), dtype), layouts((*batch, k, m), dtype)):
            expected = getattr(F, name)(a, b)
            found = getattr(F, name)(a.to("cuda"), b.to("cuda")).cpu()
            base = tc.randn(n, m, dtype=tc.complex128 if dtype.is_complex else tc.float64).to(dtype)
            add = tc.baddbmm if batch else tc.addmm
            base = base if batch else base[0]
            added = add(base, a, b, beta=0.5, alpha=2)
            ours = add(base.to("cuda"), a.to("cuda"), b.to("cuda"), beta=0.5, alpha=2).cpu()
            for left, right in [(found, expected), (ours, added)]:
                assert left.shape == right.shape and left.dtype == right.dtype, (la, lb)
                error = (left.to(tc.complex128) - right.to(tc.complex128)).abs()
                assert not error.numel() or error.max() <= bound * 10, (n, k, m, la, lb, error.max())
            tried += 1
print(tried)
""",
        TAEDA_CUDA_LIBRARIES=libraries,
    )
    assert shown == [str(6 * 3 * 36)]


def test_results_that_lie_otherwise_are_filled_and_bases_kept() -> None:
    shown = run(
        """
        tc.manual_seed(3)
        a, b, base = tc.randn(4, 6), tc.randn(6, 5), tc.randn(4, 5)
        d = [t.to("cuda") for t in (a, b, base)]
        whole = tc.zeros(4, 10).to("cuda")
        for out in (tc.zeros(5, 4).to("cuda").t(), whole[:, ::2], whole[:, 2:7]):
            tc.mm(d[0], d[1], out=out)
            print(tc.allclose(out.cpu(), a @ b, atol=1e-5))
            tc.addmm(d[2], d[0], d[1], beta=3, out=out)
            print(tc.allclose(out.cpu(), tc.addmm(base, a, b, beta=3), atol=1e-5))
        print(tc.equal(d[2].cpu(), base))
        turned = tc.as_strided(tc.zeros(24).to("cuda"), (2, 3, 4), (-12, 4, 1), 12)
        tc.bmm(tc.stack([d[0][:3], d[0][1:]]), tc.stack([d[1][:, :4], d[1][:, 1:]]), out=turned)
        print(tc.allclose(turned.cpu(), tc.stack([a[:3] @ b[:, :4], a[1:] @ b[:, 1:]]), atol=1e-5))
        same = d[2].clone()
        same.addmm_(d[0], d[1], alpha=0.5)
        print(tc.allclose(same.cpu(), base + 0.5 * (a @ b), atol=1e-5))
        poisoned = tc.full((4, 5), float("nan")).to("cuda")
        print(tc.addmm(poisoned, d[0], d[1], beta=0).cpu().isfinite().all().item())
        """
    )
    assert shown == ["True"] * 10


def test_whole_numbers_go_to_the_backends_own_kernels() -> None:
    shown = run(
        """
        a, b = tc.arange(6).reshape(2, 3), tc.arange(12).reshape(3, 4)
        print(tc.equal((a.to("cuda") @ b.to("cuda")).cpu(), a @ b), cuda.libraries()["cublas"]["found"])
        """
    )
    assert shown == ["True True"]


def test_a_product_that_is_refused_names_the_operator() -> None:
    shown = run(
        """
        x = tc.ones(2, 2, device="cuda")
        call(None, "fail", b"product", 1)
        try:
            tc.mm(x, x)
        except RuntimeError as error:
            print(error)
        print(tc.mm(x, x).cpu().tolist())
        """
    )
    assert (
        shown[0].startswith("mm: cuda: product: unspecified failure")
        and shown[1] == "[[2.0, 2.0], [2.0, 2.0]]"
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_without_the_library_go_by_tiles_of_tensor_cores(dtype: str) -> None:
    shown = run(
        LAYOUTS
        + f"""
import numpy as np
tc.manual_seed(5)
dtype = tc.{dtype}
step = 2.0**-8 if dtype == tc.bfloat16 else 2.0**-11
tried = 0
def numbers(t):
    return t.cpu().to(tc.float64).numpy()
for n, k, m in [(16, 16, 8), (130, 72, 140), (128, 64, 128), (1, 200, 3), (5, 129, 260)]:
    for (la, a), (lb, b) in zip(layouts((2, n, k), dtype), list(layouts((2, k, m), dtype))[::-1]):
        found = numbers(F.bmm(a.to("cuda"), b.to("cuda")))
        x, y = numbers(a), numbers(b)
        bound = 1e-6 * k * (abs(x) @ abs(y))
        assert (abs(found - x @ y) <= step * abs(x @ y) + bound).all(), (n, k, m, la, lb)
        base = tc.randn(n, m).to(dtype)
        added = numbers(tc.addmm(base.to("cuda"), a[0].to("cuda"), b[0].to("cuda"), beta=0.5, alpha=-2))
        expected = 0.5 * numbers(base) - 2 * (x @ y)[0]
        assert (abs(added - expected) <= step * abs(expected) + 2 * bound[0] + 1e-6).all(), (n, k, m, la, lb)
        tried += 1
a, b = (tc.randint(-8, 9, shape).to(dtype) for shape in ((33, 40), (40, 17)))
print(tried, (numbers(F.mm(a.to("cuda"), b.to("cuda"))) == numbers((a.float() @ b.float()).to(dtype))).all())
""",
        TAEDA_CUDA_LIBRARIES="none",
    )
    assert shown == ["30 True"]
