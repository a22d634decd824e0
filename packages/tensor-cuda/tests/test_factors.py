"""Factors of matrices: on the simulated driver, beside NumPy and the cpu, and by a library made for the test."""

from __future__ import annotations

from pathlib import Path

import device_programs as programs
import pytest
import stand_ins
import test_real_driver as real

HEAD = """
import itertools
import numpy as np
import taeda_tensor_core as tc, taeda_tensor_cuda as cuda
from taeda_tensor_cuda._library import call
tc.manual_seed(SEED)
ops, linalg, tried = tc.ops, tc.linalg, 0
DTYPES = (tc.float32, tc.float64, tc.complex64, tc.complex128)
BATCHES = ((), (1,), (3,), (2, 3))

def near(found, expected, *what):
    global tried
    tried += 1
    found, expected = found.cpu().numpy(), np.asarray(expected)
    assert found.shape == expected.shape, (what, found.shape, expected.shape)
    bound = 2e-3 if found.dtype in (np.float32, np.complex64) else 1e-9
    assert np.allclose(found, expected, rtol=bound, atol=bound), (what, np.abs(found - expected).max())

def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))

def layouts(*shape, dtype):
    "Matrices of one shape as they may lie."
    *batch, n, m = shape
    yield "rows", tc.randn(*shape, dtype=dtype)
    yield "columns", tc.randn(*batch, m, n, dtype=dtype).transpose(-1, -2)
    yield "part", tc.randn(*batch, n + 1, m + 3, dtype=dtype)[..., 1:, 1 : m + 1]
    yield "apart", tc.randn(*batch, n, 2 * m, dtype=dtype)[..., ::2]
    if batch:
        yield "expanded", tc.randn(n, m, dtype=dtype).expand(*shape)

def orthonormal(x, *what):
    "Whether the columns are."
    size = x.shape[-1]
    near(tc.from_numpy(adjoint(x) @ x), np.broadcast_to(np.eye(size), (*x.shape[:-2], size, size)), *what)

def error_of(function):
    try:
        function()
    except Exception as error:
        return type(error).__name__, str(error)
    raise AssertionError("no error")
"""


def run(program: str, seed: int = 1, least: int = 1, **environment: str) -> None:
    programs.check(program, HEAD, least, seed, **environment)


@pytest.mark.parametrize("libraries", ["", "none"])
def test_matrices_are_put_together_from_their_factors(libraries: str) -> None:
    run(
        """
        for dtype, batch, (m, n) in itertools.product(DTYPES, BATCHES, ((1, 1), (4, 4), (5, 3), (3, 5))):
            for name, x in layouts(*batch, m, n, dtype=dtype):
                there, plain, k = x.to("cuda"), x.numpy(), min(m, n)
                for mode in ("reduced", "complete", "r"):
                    q, r = (t.cpu().numpy() for t in linalg.qr(there, mode))
                    if mode == "r":
                        near(tc.from_numpy(np.abs(r)), np.abs(np.linalg.qr(plain, "r")), "r", name)
                        continue
                    near(tc.from_numpy(q @ r), plain, mode, name)
                    orthonormal(q, mode, name)
                    assert np.array_equal(np.triu(r), r)
                for full in (False, True):
                    u, s, vh = (t.cpu().numpy() for t in linalg.svd(there, full))
                    near(tc.from_numpy(s), np.linalg.svd(plain, compute_uv=False), "singular values", name)
                    near(tc.from_numpy((u[..., :k] * s[..., None, :]) @ vh[..., :k, :]), plain, "svd", name)
                    orthonormal(u, "U", name)
                    orthonormal(adjoint(vh), "V", name)
                near(linalg.svdvals(there), np.linalg.svd(plain, compute_uv=False), "svdvals", name)
                p, l, u = (t.cpu().numpy() for t in linalg.lu(there))
                near(tc.from_numpy(p @ l @ u), plain, "lu", name)
                assert np.array_equal(there.cpu().numpy(), plain)
                if m != n:
                    continue
                definite = x @ x.mH + tc.eye(n, dtype=dtype)
                for upper in (False, True):
                    # What is not read may hold anything.
                    unread = (tc.tril if upper else tc.triu)(tc.full((n, n), 9.0).to(dtype), -1 if upper else 1)
                    given, pair = (definite + unread).to("cuda"), definite.numpy()
                    factor = linalg.cholesky(given, upper=upper).cpu().numpy()
                    product = adjoint(factor) @ factor if upper else factor @ adjoint(factor)
                    near(tc.from_numpy(product), pair, "cholesky")
                    assert np.array_equal((np.triu if upper else np.tril)(factor), factor)
                    values, vectors = linalg.eigh(given, "U" if upper else "L")
                    near(values, np.linalg.eigvalsh(pair), "eigenvalues")
                    near(linalg.eigvalsh(given, "U" if upper else "L"), np.linalg.eigvalsh(pair), "eigenvalues alone")
                    v = vectors.cpu().numpy()
                    near(tc.from_numpy(pair @ v), v * values.cpu().numpy()[..., None, :], "eigenvectors")
                    orthonormal(v, "eigenvectors", name)
        """,
        least=2000,
        TAEDA_CUDA_LIBRARIES=libraries,
    )


@pytest.mark.parametrize("libraries", ["", "none"])
def test_systems_are_solved_from_both_sides(libraries: str) -> None:
    run(
        """
        for dtype, batch, left, adjoints in itertools.product(DTYPES, BATCHES, (True, False), (True, False)):
            for (name, a), sides in itertools.product(layouts(*batch, 4, 4, dtype=dtype), ((), batch, (5, *batch))):
                b = tc.randn(*sides, *((4, 2) if left else (2, 4)), dtype=dtype)
                taken = adjoint(a.numpy()) if adjoints else a.numpy()
                wanted = np.linalg.solve(taken, b.numpy()) if left else b.numpy() @ np.linalg.inv(taken)
                factors = linalg.lu_factor(a.to("cuda"))
                found = linalg.lu_solve(*factors, b.to("cuda"), left=left, adjoint=adjoints)
                near(found, wanted, name, left, adjoints)
                if left and not adjoints:
                    vector = tc.randn(*batch, 4, dtype=dtype)
                    expected = np.linalg.solve(a.numpy(), vector.numpy()[..., None])[..., 0]
                    near(linalg.solve(a.to("cuda"), vector.to("cuda")), expected, "vector", name)
                if not adjoints:
                    near(linalg.solve(a.to("cuda"), b.to("cuda"), left=left), wanted, "solve", name)
            near(linalg.inv(a.to("cuda")), np.linalg.inv(a.numpy()), "inverse")
            near(linalg.det(a.to("cuda")), np.linalg.det(a.numpy()), "determinant")
            sign, logarithm = linalg.slogdet(a.to("cuda"))
            near(sign, np.linalg.slogdet(a.numpy())[0], "sign")
            near(logarithm, np.linalg.slogdet(a.numpy())[1], "logarithm")
        """,
        least=500,
        TAEDA_CUDA_LIBRARIES=libraries,
    )


def test_many_small_matrices_are_factored_and_solved_at_once() -> None:
    run(
        """
        kind = tc.get_device_module("cuda")
        for dtype, (m, n) in itertools.product(DTYPES, ((1, 1), (3, 3), (5, 3), (3, 5), (31, 32), (32, 32), (33, 33))):
            a = tc.randn(7, m, n, dtype=dtype)
            LU, pivots = tc.linalg.lu_factor(a.to("cuda"))
            exact, rows = tc.linalg.lu_factor(a)
            near(LU, exact.numpy(), "factors", dtype, m, n)
            assert pivots.dtype == tc.int32 and tc.equal(pivots.cpu(), rows)
            if m != n:
                continue
            for sides, left, adjoint in itertools.product((1, 4, 200), (False, True), (False, True)):
                b = tc.randn(7, n, sides, dtype=dtype)
                b = b if left else b.transpose(-1, -2)
                for count in (7, 1):
                    given = LU[:count], pivots[:count]
                    x = tc.linalg.lu_solve(*given, b.to("cuda"), left=left, adjoint=adjoint).cpu().numpy()
                    matrix = a[:count].numpy()
                    matrix = np.conj(np.swapaxes(matrix, -1, -2)) if adjoint else matrix
                    near(tc.from_numpy(matrix @ x if left else x @ matrix), b.numpy(), dtype, n, sides, left, adjoint)
        # One without an inverse, among others.
        a = tc.randn(4, 3, 3, dtype=tc.float64)
        a[2] = tc.tensor([[1.0, 2, 3], [2, 4, 6], [0, 0, 1]])
        infos = tc.linalg.inv_ex(a.to("cuda"))[1].cpu()
        assert infos.tolist() == tc.linalg.inv_ex(a)[1].tolist() == [0, 0, 2, 0], infos
        many = tc.randn(1000, 4, 4, device="cuda") + tc.eye(4, device="cuda") * 4
        start, end = (kind.Event(enable_timing=True) for _ in range(2))
        start.record()
        tc.linalg.inv_ex(many)
        end.record()
        end.synchronize()
        assert start.elapsed_time(end) * 1000 / 2 < 20, start.elapsed_time(end)
        """,
        least=400,
    )


def test_functions_of_matrices_stay_on_the_device() -> None:
    """Exponentials by products; pseudo-inverses and least squares by factors: no operand is copied to the host."""
    run(
        """
        def exponential(a):
            "By eigenvectors in twice the precision that is asked for: those of random matrices are well apart."
            values, vectors = np.linalg.eig(a.astype(complex))
            return vectors * np.exp(values)[..., None, :] @ np.linalg.inv(vectors)
        for dtype, batch, n in itertools.product(DTYPES, BATCHES, (1, 4, 9)):
            for size in (1e-3, 1.0, 6.0):
                x = tc.randn(*batch, n, n, dtype=dtype) * (size / n)
                made, expected = linalg.matrix_exp(x.to("cuda")), exponential(x.numpy())
                near(made, expected if dtype.is_complex else expected.real, "exp", dtype, size)
        assert linalg.matrix_exp(tc.empty(0, 3, 3, device="cuda")).shape == (0, 3, 3)
        assert linalg.matrix_exp(tc.tensor([[np.nan]], device="cuda")).isnan().item()
        for dtype, batch, (m, n) in itertools.product(DTYPES, BATCHES, ((4, 4), (6, 3), (3, 6), (1, 1))):
            a, b = tc.randn(*batch, m, n, dtype=dtype), tc.randn(*batch, m, 2, dtype=dtype)
            there, sides, plain = a.to("cuda"), b.to("cuda"), a.numpy()
            near(linalg.pinv(there), np.linalg.pinv(plain), "pinv")
            best = np.linalg.pinv(plain) @ b.numpy()
            squares = (np.abs(plain @ best - b.numpy()) ** 2).sum(-2)
            for driver in (None, "gels", "gelsy", "gelsd", "gelss"):
                x, left, rank, values = linalg.lstsq(there, sides, driver=driver)
                near(x, best, driver)
                tall = m > n and driver in ("gels", "gelsd", "gelss")
                near(left, squares if tall else np.zeros(0), driver, "residuals")
                assert rank.tolist() == ([] if driver == "gels" else np.full(batch, min(m, n)).tolist())
                spectrum = np.linalg.svd(plain, compute_uv=False)
                near(values, spectrum if driver in ("gelsd", "gelss") else np.zeros(0), driver, "values")
        low = tc.tensor([[1.0, 2.0], [2.0, 4.0], [0.0, 0.0]], dtype=tc.float64)
        side = tc.randn(3, dtype=tc.float64)
        found = linalg.lstsq(low.to("cuda"), side.to("cuda"), driver="gelsd")
        near(found.solution, np.linalg.lstsq(low.numpy(), side.numpy(), rcond=None)[0])
        assert found.rank.item() == 1 and found.residuals.numel() == 0
        for bad in (tc.eye(3, 1).expand(3, 2) * tc.tensor([1.0, 0.0]), tc.tensor([[np.nan, 1.0]])):
            of = [error_of(lambda: linalg.lstsq(t, t[:, :1], driver="gels")) for t in (bad, bad.to("cuda"))]
            assert of[0] == of[1] and of[0][0] == "LinAlgError", of
        """,
        least=700,
    )


@pytest.mark.parametrize("libraries", ["", "none"])
def test_triangular_systems_are_solved_from_both_sides(libraries: str) -> None:
    run(
        """
        for dtype, batch in itertools.product(DTYPES, BATCHES):
            for n, k in ((1, 3), (5, 2), (32, 1), (33, 4), (70, 130)):
                if n > 33 and (batch or dtype in (tc.float32, tc.complex64)):
                    continue
                for way, given in layouts(*batch, n, n, dtype=dtype):
                    for upper, left, ones in itertools.product((False, True), repeat=3):
                        if n == 70 and way not in ("rows", "columns"):
                            continue
                        # Rows far from each other, and in the other triangle what must not be read.
                        diagonal = tc.eye(n, dtype=dtype) * (4 + n)
                        a = (given * (1 / n) + diagonal if not ones else given * (1 / n)).clone()
                        a = a.transpose(-1, -2).contiguous().transpose(-1, -2) if way == "columns" else a
                        part = np.triu if upper else np.tril
                        exact = part(a.numpy())
                        if ones:
                            exact = (exact - exact * np.eye(n) + np.eye(n)).astype(exact.dtype)
                        odd = tc.from_numpy(np.where(part(np.ones((n, n))), 0, np.nan).astype(a.numpy().dtype))
                        spoiled = a + odd
                        b = tc.randn(*batch, n, k, dtype=dtype)
                        b = b if left else b.transpose(-1, -2)
                        x = linalg.solve_triangular(spoiled.to("cuda"), b.to("cuda"), upper=upper, left=left,
                                                    unitriangular=ones)
                        back = exact @ x.cpu().numpy() if left else x.cpu().numpy() @ exact
                        near(tc.from_numpy(back), b.numpy(), dtype, batch, n, way, upper, left, ones)
        a = tc.randn(2, 1, 6, 6, dtype=tc.float64) + tc.eye(6, dtype=tc.float64) * 6
        b = tc.randn(3, 6, 2, dtype=tc.float64)
        x = linalg.solve_triangular(a.to("cuda"), b.to("cuda"), upper=False)
        near(x, np.linalg.solve(np.tril(a.numpy()), np.broadcast_to(b.numpy(), (2, 3, 6, 2))))
        into = tc.empty(2, 3, 2, 6, dtype=tc.float64, device="cuda").transpose(2, 3)
        for out in (into, tc.empty(2, 3, 6, 4, dtype=tc.float64, device="cuda")[..., ::2], tc.empty_like(x)):
            linalg.solve_triangular(a.to("cuda"), b.to("cuda"), upper=False, out=out)
            near(out, x.cpu().numpy())
        empty = linalg.solve_triangular(tc.zeros(0, 0, device="cuda"), tc.zeros(0, 3, device="cuda"), upper=True)
        near(empty, np.zeros((0, 3)))
        """,
        least=400,
        TAEDA_CUDA_LIBRARIES=libraries,
    )


def test_results_go_where_the_call_wants_them() -> None:
    run(
        """
        x = tc.randn(2, 3, 3, dtype=tc.float64)
        x = x @ x.mT + tc.eye(3, dtype=tc.float64)
        there = x.to("cuda")
        whole = tc.zeros(2, 3, 6, dtype=tc.float64, device="cuda")
        for into in (whole[..., ::2], whole[..., :3], tc.zeros(2, 3, 3, dtype=tc.float64, device="cuda")):
            linalg.cholesky(there, out=into)
            near(into, np.linalg.cholesky(x.numpy()), into.stride())
        same = there.clone()
        linalg.cholesky(same, out=same)
        near(same, np.linalg.cholesky(x.numpy()), "in place")
        values = tc.zeros(2, 6, dtype=tc.float64, device="cuda")[:, 1::2]
        linalg.eigvalsh(there, out=values)
        near(values, np.linalg.eigvalsh(x.numpy()), "values")
        for empty in (tc.zeros(0, 3, 3), tc.zeros(2, 0, 0)):
            near(linalg.cholesky(empty.to("cuda")), linalg.cholesky(empty).numpy(), "empty")
            near(linalg.svdvals(empty.to("cuda")), linalg.svdvals(empty).numpy(), "empty")
            near(linalg.det(empty.to("cuda")), linalg.det(empty).numpy(), "empty")
            near(linalg.qr(empty.to("cuda"))[1], linalg.qr(empty)[1].numpy(), "empty")
        """,
        least=10,
    )


def test_matrices_without_factors_are_refused_as_on_the_cpu() -> None:
    run(
        """
        bad = tc.eye(3).expand(2, 3, 3).contiguous()
        bad[1, 2, 2] = -1
        hole = tc.tensor([[1.0, 2.0], [2.0, 4.0]])
        hollow = tc.full((2, 2), float("nan"))
        for function, x in [
            (linalg.cholesky, bad), (linalg.cholesky, bad[1]), (linalg.inv, hole), (linalg.eigh, hollow),
            (linalg.svd, hollow), (linalg.eigvalsh, tc.stack([hole, hollow])), (linalg.cholesky, hollow),
            (lambda t: linalg.solve(t, t), hole), (lambda t: linalg.lu_factor_ex(t, check_errors=True), hole),
        ]:
            kind, text = error_of(lambda: function(x))
            assert error_of(lambda: function(x.to("cuda"))) == (kind, text), (function, text)
            assert kind == "LinAlgError", kind
            tried += 1
        near(linalg.cholesky_ex(bad.to("cuda"))[1], [0, 3], "info")
        near(linalg.lu_factor_ex(hole.to("cuda"))[2], 2, "info")
        factors, pivots = linalg.lu_factor(tc.eye(2).to("cuda"))
        kind, text = error_of(lambda: linalg.lu_solve(factors, pivots + 5, factors).cpu())
        assert kind == "RuntimeError" and "linalg_lu_solve: argument 'pivots' has" in text, (kind, text)
        kind, text = error_of(lambda: linalg.svd(hole.to("cuda"), driver="fastest"))
        assert kind == "RuntimeError" and "argument 'driver' is 'fastest'" in text, text
        near(linalg.svd(hole.to("cuda"), driver="gesvd")[1], np.linalg.svd(hole.numpy())[1], "driver")
        """,
        least=12,
    )


def test_factors_use_nvidias_library_and_say_what_fails() -> None:
    run(
        """
        x = tc.eye(3, device="cuda")
        assert cuda.libraries()["cusolver"]["found"]
        solve = lambda t: linalg.solve(t, t)
        for function in (
            linalg.cholesky, linalg.lu_factor, linalg.qr, linalg.eigh, linalg.svd, tc.geqrf, linalg.inv, linalg.det,
            linalg.slogdet, solve,
        ):
            call(None, "fail", b"factor", 1)
            kind, text = error_of(lambda: function(x))
            assert kind == "RuntimeError" and ": cuda: factors: unspecified failure" in text, text
            tried += 1
        """,
        least=10,
    )


# Each call is printed with what it is given; matrices are left as they are, and `info` becomes 0.
CUSOLVER = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define SAY(...) (printf(__VA_ARGS__), fflush(stdout), 0)
struct handle { void* stream; };
static int status(const char* what) { const char* e = getenv("FAKE_SOLVER"); return e && !strcmp(e, what) ? 7 : 0; }
int cusolverGetVersion(int* v) { return *v = 12041, 0; }
int cusolverDnCreate(struct handle** h) { return *h = calloc(1, 8), status("create"); }
int cusolverDnDestroy(void* h) { return 0; }
int cusolverDnSetStream(struct handle* h, void* s) { return h->stream = s, 0; }
int cusolverDnCreateParams(void** p) { return *p = "parameters", 0; }
static int sizes(const char* p, size_t* d, size_t* h) { return *d = 512, *h = 64, strcmp(p, "parameters"); }
// A workspace of the device, and one of the host, are there to be written.
static int worked(struct handle* h, void* d, size_t n, void* w, size_t k, int* info) {
  if (n != 512 || k != 64 || !d || !w) return 31;
  memset(d, 7, n), memset(w, 7, k);
  return *info = 0, SAY(h->stream ? ", in a stream\n" : "\n"), status("run");
}
#ifndef OLD
int cusolverDnXpotrf_bufferSize(void* h, void* p, int u, int64_t n, int t, void* a, int64_t ld, int c, size_t* d,
                                size_t* w) { return sizes(p, d, w); }
int cusolverDnXpotrf(void* h, void* p, int u, int64_t n, int t, void* a, int64_t ld, int c, void* d, size_t ds, void* w,
                     size_t ws, int* info) {
  SAY("potrf %d of %lld, ld %lld, %d in %d", u, (long long)n, (long long)ld, t, c);
  return worked(h, d, ds, w, ws, info);
}
#endif
int cusolverDnXgetrf_bufferSize(void* h, void* p, int64_t m, int64_t n, int t, void* a, int64_t ld, int c, size_t* d,
                                size_t* w) { return sizes(p, d, w); }
int cusolverDnXgetrf(void* h, void* p, int64_t m, int64_t n, int t, void* a, int64_t ld, int64_t* pivots, int c,
                     void* d, size_t ds, void* w, size_t ws, int* info) {
  for (int i = 0; i < m && i < n; ++i) pivots[i] = i + 1;
  SAY("getrf %lld x %lld, ld %lld, %d", (long long)m, (long long)n, (long long)ld, t);
  return worked(h, d, ds, w, ws, info);
}
int cusolverDnXgetrs(void* h, void* p, int op, int64_t n, int64_t k, int t, void* a, int64_t ld, int64_t* pivots, int u,
                     void* b, int64_t ldb, int* info) {
  return SAY("getrs %d of %lld, %lld sides, ld %lld %lld\n", op, (long long)n, (long long)k, (long long)ld,
             (long long)ldb);
}
int cusolverDnXgeqrf_bufferSize(void* h, void* p, int64_t m, int64_t n, int t, void* a, int64_t ld, int u, void* tau,
                                int c, size_t* d, size_t* w) { return sizes(p, d, w); }
int cusolverDnXgeqrf(void* h, void* p, int64_t m, int64_t n, int t, void* a, int64_t ld, int u, void* tau, int c,
                     void* d, size_t ds, void* w, size_t ws, int* info) {
  SAY("geqrf %lld x %lld, %d", (long long)m, (long long)n, t);
  return worked(h, d, ds, w, ws, info);
}
int cusolverDnXsyevd_bufferSize(void* h, void* p, int j, int u, int64_t n, int t, void* a, int64_t ld, int r, void* x,
                                int c, size_t* d, size_t* w) { return sizes(p, d, w); }
int cusolverDnXsyevd(void* h, void* p, int j, int u, int64_t n, int t, void* a, int64_t ld, int r, void* x, int c,
                     void* d, size_t ds, void* w, size_t ws, int* info) {
  memset(x, 0, n * (r ? 8 : 4));
  SAY("syevd %d %d of %lld, %d with %d", j, u, (long long)n, t, r);
  return worked(h, d, ds, w, ws, info);
}
int cusolverDnXsyevBatched_bufferSize(void* h, void* p, int j, int u, int64_t n, int t, void* a, int64_t ld, int r,
                                      void* x, int c, size_t* d, size_t* w, int64_t b) { return sizes(p, d, w); }
int cusolverDnXsyevBatched(void* h, void* p, int j, int u, int64_t n, int t, void* a, int64_t ld, int r, void* x, int c,
                           void* d, size_t ds, void* w, size_t ws, int* info, int64_t b) {
  memset(x, 0, b * n * (r ? 8 : 4)), memset(info, 0, 4 * b);
  SAY("syev %d %d of %lld x %lld", j, u, (long long)b, (long long)n);
  return worked(h, d, ds, w, ws, info);
}
int cusolverDnXgesvd_bufferSize(void* h, void* p, signed char l, signed char k, int64_t m, int64_t n, int t, void* a,
                                int64_t ld, int r, void* s, int tu, void* u, int64_t lu, int tv, void* v, int64_t lv,
                                int c, size_t* d, size_t* w) { return sizes(p, d, w); }
int cusolverDnXgesvd(void* h, void* p, signed char l, signed char k, int64_t m, int64_t n, int t, void* a, int64_t ld,
                     int r, void* s, int tu, void* u, int64_t lu, int tv, void* v, int64_t lv, int c, void* d,
                     size_t ds, void* w, size_t ws, int* info) {
  memset(s, 0, n * (r ? 8 : 4));
  SAY("gesvd %c%c %lld x %lld, ld %lld %lld %lld, %d vectors", l, k, (long long)m, (long long)n, (long long)ld,
      (long long)lu, (long long)lv, (u != 0) + (v != 0));
  return worked(h, d, ds, w, ws, info);
}
#define TYPED(T, ORGQR, NAME)                                                                                        \
  int cusolverDn##T##ORGQR##_bufferSize(void* h, int m, int n, int k, void* a, int ld, void* tau, int* e) {          \
    return *e = 32, 0;                                                                                               \
  }                                                                                                                  \
  int cusolverDn##T##ORGQR(void* h, int m, int n, int k, void* a, int ld, void* tau, void* w, int e, int* info) {    \
    return w && e == 32 ? *info = 0, SAY(#NAME " %d x %d by %d\n", m, n, k) : 31;                                    \
  }                                                                                                                  \
  int cusolverDn##T##potrfBatched(void* h, int u, int n, void** a, int ld, int* info, int b) {                       \
    return memset(info, 0, 4 * b), SAY(#T "potrf %d of %d x %d, ld %d\n", u, b, n, ld);                              \
  }
TYPED(S, orgqr, Sorgqr)
TYPED(D, orgqr, Dorgqr)
TYPED(C, ungqr, Cungqr)
TYPED(Z, ungqr, Zungqr)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory):
    """Makes a folder with a driver's library in it, and one in cuSOLVER's place."""

    def make(*options: str) -> Path:
        folder = stand_ins.build(tmp_path_factory.mktemp("cusolver"), {"libcuda.so.1": real.WHOLE})
        return stand_ins.build(folder, {"libcusolver.so.12": CUSOLVER}, *options)

    return make


def test_factors_go_to_cusolver(library) -> None:
    if not real.cuda.has_device_code():
        pytest.skip("built without nvcc, or with TAEDA_CUDA_ARCHITECTURES=none")
    shown = real.run(
        library(),
        """
def some(*shape, dtype=tc.float32):
    return tc.zeros(*shape, dtype=dtype, device="cuda")
linalg = tc.linalg
linalg.cholesky_ex(some(3, 3))
with tc.Stream("cuda"):
    linalg.cholesky_ex(some(3, 3, dtype=tc.float64), upper=True)
linalg.cholesky_ex(some(2, 5, 4, 4, dtype=tc.complex64))
lu = linalg.lu_factor_ex(some(2, 3, 35, dtype=tc.complex128))
lu = linalg.lu_factor_ex(some(3, 3))
linalg.lu_solve(*lu[:2], some(3, 2))
linalg.lu_solve(*lu[:2], some(2, 2, 3), left=False, adjoint=True)  # several of small ones: by kernels
linalg.lu_solve(*lu[:2], some(3, 2), adjoint=True)
linalg.qr(some(4, 3))
linalg.qr(some(4, 3, dtype=tc.complex128), "complete")
linalg.qr(some(2, 3, dtype=tc.float64), "r")
linalg.eigh(some(3, 3, dtype=tc.complex64))
linalg.eigvalsh(some(6, 3, 3), "U")
linalg.svd(some(5, 3))
linalg.svd(some(3, 5, dtype=tc.float64), full_matrices=False)
linalg.svdvals(some(5, 3))
linalg.solve_ex(some(2, 3, 3), some(2, 3))  # small: by kernels
linalg.solve_ex(some(2, 33, 33), some(2, 33))
linalg.inv_ex(some(3, 3))
print(cuda.libraries()["cusolver"])
""",
    )
    assert shown == [
        "potrf 0 of 3, ld 3, 0 in 0",
        "potrf 1 of 3, ld 3, 1 in 1, in a stream",
        "Cpotrf 0 of 10 x 4, ld 4",
        "getrf 3 x 35, ld 3, 5",
        "getrf 3 x 35, ld 3, 5",
        "getrf 3 x 3, ld 3, 0",
        "getrs 0 of 3, 2 sides, ld 3 3",
        "getrs 1 of 3, 2 sides, ld 3 3",
        "geqrf 4 x 3, 0",
        "Sorgqr 4 x 3 by 3",
        "geqrf 4 x 3, 5",
        "Zungqr 4 x 4 by 3",
        "geqrf 2 x 3, 1",
        "syevd 1 0 of 3, 4 with 0",
        "syev 0 1 of 6 x 3",
        "gesvd AA 5 x 3, ld 5 5 3, 2 vectors",
        "gesvd SS 5 x 3, ld 5 5 3, 2 vectors",
        "gesvd NN 5 x 3, ld 5 5 3, 0 vectors",
        "getrf 33 x 33, ld 33, 0",
        "getrf 33 x 33, ld 33, 0",
        "getrs 0 of 33, 1 sides, ld 33 33",
        "getrs 0 of 33, 1 sides, ld 33 33",
        "getrf 3 x 3, ld 3, 0",
        "getrs 0 of 3, 3 sides, ld 3 3",
        "{'found': True, 'text': 'libcusolver.so.12', 'version': 12041}",
    ]


def test_what_cusolver_says_is_passed_on(library) -> None:
    if not real.cuda.has_device_code():
        pytest.skip("built without nvcc, or with TAEDA_CUDA_ARCHITECTURES=none")
    program = """
x = tc.full((1, 1), 2.0).to("cuda")
try:
    print(tc.linalg.qr(x, "r")[1].cpu().tolist())
except RuntimeError as error:
    print(error)
"""
    folder = library()
    found = real.run(folder, program, FAKE_SOLVER="run")[-1]
    assert found == "linalg_qr: cuda: factors: cuSOLVER: CUSOLVER_STATUS_INTERNAL_ERROR"
    # Without the library, or what it needs, the host computes.
    assert real.run(folder, program, FAKE_SOLVER="create") == ["[[2.0]]"]
    shown = real.run(library("-DOLD"), program + "print(cuda.libraries()['cusolver']['text'])")
    lacks = "libcusolver.so.12 lacks cusolverDnXpotrf_bufferSize cusolverDnXpotrf"
    assert shown == ["[[2.0]]", lacks]
