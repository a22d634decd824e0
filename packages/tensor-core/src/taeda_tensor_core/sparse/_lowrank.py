"""Low-rank decompositions of sparse matrices, which take products alone and never make them dense."""

from __future__ import annotations

from typing import Any

import taeda_tensor_core as core
from taeda_tensor_core._lowrank import checked_rank, searched_pairs
from taeda_tensor_core.sparse._tensor import sparse

Tensor = core.Tensor


class _Shifted:
    """A - M for a sparse A, as what multiplies dense matrices; M has one row, as many as A, or is missing."""

    def __init__(self, matrix: Any, shift: Tensor | None) -> None:
        self.matrix, self.turned, self.shift = matrix, matrix.t(), shift

    def times(self, x: Tensor) -> Tensor:
        product = self.matrix @ x
        return product if self.shift is None else product - self.shift @ x

    def adjoint_times(self, y: Tensor) -> Tensor:
        product = (self.turned @ y.conj()).conj()
        if self.shift is None:
            return product
        return product - self.shift.mH @ (y if self.shift.shape[0] == y.shape[0] else y.sum(0, keepdim=True))


@sparse("svd_lowrank")
def _svd_lowrank(
    A: Any, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, ...]:
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    shifted = _Shifted(A, M)
    times, adjoint = shifted.times, shifted.adjoint_times
    rows, columns = A.shape
    wide = rows < columns
    if wide:
        times, adjoint = adjoint, times
    qr = core.linalg.qr
    basis = qr(times(core.randn((min(rows, columns), q), dtype=A.dtype, device=A.device))).Q
    for _ in range(niter):
        basis = qr(times(qr(adjoint(basis)).Q)).Q
    u, s, vh = core.linalg.svd(adjoint(basis).mH, full_matrices=False)
    left, right = basis @ u, vh.mH
    return (right, s, left) if wide else (left, s, right)


@sparse("pca_lowrank")
def _pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, ...]:
    if A.dim() != 2:
        raise ValueError(f"pca_lowrank: found a sparse tensor of shape {tuple(A.shape)}, expected a matrix")
    q = checked_rank(A, q, niter)
    mean = A.sum(0).to_dense().unsqueeze(0) / A.shape[0] if center else None
    return _svd_lowrank(A, q, niter, mean)


@sparse("lobpcg")
def _lobpcg(
    A: Any, k: int | None = None, B: Any = None, X: Tensor | None = None, n: int | None = None, iK: Any = None,
    niter: int | None = None, tol: float | None = None, largest: bool | None = None, method: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    if A.dim() != 2:
        raise ValueError(f"lobpcg: found a sparse tensor of shape {tuple(A.shape)}, expected a matrix")
    return searched_pairs(A, k, B, X, n, iK, niter, tol, largest, method)
