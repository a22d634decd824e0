"""Decompositions in several steps: randomised low-rank ones, LOBPCG, and LU under its old name."""

from __future__ import annotations

from taeda_tensor_core import _C, _info
from taeda_tensor_core._C import Tensor
from taeda_tensor_core._info import finfo
from taeda_tensor_core._modes import no_grad
from taeda_tensor_core._overridable import overridable

__all__ = ["lobpcg", "lu", "pca_lowrank", "svd_lowrank"]

linalg = _C.linalg


def lu(
    A: Tensor, pivot: bool = True, get_infos: bool = False, out: tuple[Tensor, ...] | None = None
) -> tuple[Tensor, ...]:
    """linalg.lu_factor under its old name.

    Args:
        A: (..., m, n).
        pivot: True; anything else is refused on the cpu.
        get_infos: Also give, for each matrix, 0 or the number of the first zero on U's diagonal, else an error.
        out: Where to write the results.

    Returns: The factors in one matrix, the pivots, and with `get_infos` the numbers.
    """
    factor = linalg.lu_factor_ex if get_infos else linalg.lu_factor
    return tuple(factor(A, pivot=pivot) if out is None else factor(A, pivot=pivot, out=out))


def _range_of(A: Tensor, q: int, niter: int) -> Tensor:
    """Orthonormal columns that nearly span what the largest q singular vectors do."""
    found = linalg.qr(A @ _C.randn((A.shape[-1], q), dtype=A.dtype, device=A.device)).Q
    for _ in range(niter):
        found = linalg.qr(A @ linalg.qr(A.mH @ found).Q).Q
    return found


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The q largest singular values of a matrix of nearly that rank, with their vectors, by random projections.

    Args:
        A: (..., m, n), floating-point or complex.
        q: An upper bound of the rank.
        niter: How many times the projection is improved.
        M: What is subtracted from A first, such as its mean; it broadcasts to A's shape.

    Returns: U (..., m, q), S (..., q), V (..., n, q) with A - M near U diag(S) V^H.

    Source: Halko, Martinsson and Tropp, "Finding structure with randomness", 2009, algorithms 4.4 and 5.1.
    """
    whole = A if M is None else A - M.expand(A.shape)
    wide = whole.shape[-2] < whole.shape[-1]
    whole = whole.mH if wide else whole
    basis = _range_of(whole, 6 if q is None else q, 2 if niter is None else niter)
    u, s, vh = linalg.svd(basis.mH @ whole, full_matrices=False)
    left, right = basis @ u, vh.mH
    return (right, s, left) if wide else (left, s, right)


def checked_rank(A: Tensor, q: int | None, niter: int) -> int:
    """The number of principal components that are asked for; ValueError for one out of range, and for `niter`."""
    most = min(A.shape[-2:])
    q = min(6, most) if q is None else q
    if not 0 <= q <= most:
        raise ValueError(f"pca_lowrank: argument 'q' is {q}, expected a number from 0 to {most}")
    if niter < 0:
        raise ValueError(f"pca_lowrank: argument 'niter' is {niter}, expected a number that is not negative")
    return q


def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Principal components of rows of data, by svd_lowrank.

    Args:
        A: (..., m, n): m observations of n variables.
        q: Number of components; by default min(6, m, n).
        center: Whether the mean of the columns is taken off first.
        niter: How many times the projection is improved.

    Returns: U (..., m, q), S (..., q) and the principal directions V (..., n, q).

    Raises:
        ValueError: `q` or `niter` out of range.
    """
    q = checked_rank(A, q, niter)
    return svd_lowrank(A, q, niter, A.mean(-2, keepdim=True) if center else None)


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) eigenvalues of symmetric matrices, with vectors: A X = B X diag(E).

    Args:
        A: (..., m, m), symmetric.
        k: Number of pairs, by default that of X's columns, or 1; at most m / 3.
        B: (..., m, m), symmetric positive definite; the identity by default.
        X: (..., m, n), what to begin with, n >= k; random by default.
        n: Number of columns of a random X, by default k.
        iK: (..., m, m), a preconditioner, near the inverse of A.
        niter: Most steps; 1000 by default.
        tol: Relative size of the residuals at which the search ends; by default the root of the dtype's epsilon.
        largest: Whether the largest eigenvalues are wanted, as by default.
        method: "ortho" or "basic", which differ in PyTorch; every basis is made orthonormal here.

    Returns: E (..., k) and X (..., m, k). The gradient of E is exact at convergence; none comes by X.

    Raises:
        ValueError: more pairs than a third of the rows, or an unknown `method`.

    Source: Knyazev, "Toward the optimal preconditioned eigensolver: locally optimal block preconditioned conjugate
    gradient method", 2001.
    """
    return searched_pairs(A, k, B, X, n, iK, niter, tol, largest, method)


def searched_pairs(
    A: Tensor, k: int | None, B: Tensor | None, X: Tensor | None, n: int | None, iK: Tensor | None,
    niter: int | None, tol: float | None, largest: bool | None, method: str | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`lobpcg`, of sparse matrices too, which are only multiplied with."""
    if method not in (None, "ortho", "basic"):
        raise ValueError(f"lobpcg: argument 'method' is {method!r}, expected 'ortho' or 'basic'")
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    columns = X.shape[-1] if X is not None else k if n is None else n
    if m < 3 * columns:
        raise ValueError(
            f"lobpcg: argument 'A' has {m} rows, expected at least three times the {columns} pairs sought"
        )
    tol = finfo(A.dtype).eps ** 0.5 if tol is None else tol
    start = _C.randn((*A.shape[:-1], columns), dtype=A.dtype, device=A.device) if X is None else X
    steps = 1000 if niter is None else niter
    with no_grad():
        batch = A.shape[:-2]
        flat = [None if t is None else _flat(t.detach(), batch) for t in (A, B, start, iK)]
        found = [
            _search(*(None if t is None else t[i] for t in flat), k, steps, tol, largest is not False)
            for i in range(len(flat[0]))
        ]
        vectors = _C.stack(found).reshape(*A.shape[:-1], k)
    weighted = vectors if B is None else B @ vectors
    return (vectors * (A @ vectors)).sum(-2) / (vectors * weighted).sum(-2), vectors


def _flat(t: Tensor, batch: tuple[int, ...]) -> Tensor | list[Tensor]:
    """The matrices one after the other; of sparse ones there is one."""
    if t.layout is not _info.strided:
        return [t]
    return t.expand(*batch, *t.shape[-2:]).reshape(-1, *t.shape[-2:])


def _search(
    A: Tensor, B: Tensor | None, X: Tensor, iK: Tensor | None, k: int, niter: int, tol: float, largest: bool
) -> Tensor:
    """Eigenvectors of one matrix."""
    by_b = (lambda t: t) if B is None else (lambda t: B @ t)
    scale = A.norm()
    space, step = _orthonormal(X, by_b), None
    X = None
    for _ in range(max(1, niter)):
        values, turn = linalg.eigh(space.mT @ (A @ space))
        order = turn.flip(-1) if largest else turn
        chosen = order[:, : min(X.shape[-1] if X is not None else space.shape[-1], order.shape[-1])]
        values = (values.flip(-1) if largest else values)[: chosen.shape[-1]]
        before, X = X, space @ chosen
        residual = A @ X - by_b(X) * values
        if bool((linalg.vector_norm(residual, dim=0)[:k] <= tol * (scale + values[:k].abs())).all()):
            break
        if before is not None:
            step = X - before @ (before.mT @ by_b(X))
        parts = [X, residual if iK is None else iK @ residual, *([step] if step is not None else [])]
        space = _orthonormal(_C.cat(parts, -1), by_b)
    return X[:, :k]


def _orthonormal(S: Tensor, by_b: object) -> Tensor:
    """A basis of the columns' span, orthonormal in the product of B; directions that are hardly there are dropped."""
    for _ in range(2):
        S = S / linalg.vector_norm(S, dim=0).clamp_min(finfo(S.dtype).tiny)
        values, turn = linalg.eigh(S.mT @ by_b(S))
        kept = values > values[-1] * finfo(S.dtype).eps * S.shape[-1]
        S = S @ (turn[:, kept] / values[kept].sqrt())
    return S


overridable((lobpcg, lu, pca_lowrank, svd_lowrank))
