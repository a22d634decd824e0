"""Rules of vmap: products of matrices, and linear algebra."""

from __future__ import annotations

from typing import Any

from taeda.func._batching import rule
from taeda.func._levels import Batching
from taeda.func._rules import padded
from taeda_registry.slots import tensor


def _either(level: Batching, value: Any) -> Any:
    """The tensor of the batch, or the one that all examples share: products broadcast it."""
    found = level.whole(value)
    return value if found is None else found


@rule("mm", "bmm")
def _product(level: Batching, op: Any, self: Any, mat2: Any) -> Any:
    return tensor.matmul(_either(level, self), _either(level, mat2))


@rule("mv")
def _times_vector(level: Batching, op: Any, self: Any, vec: Any) -> Any:
    return tensor.matmul(_either(level, self), _either(level, vec).unsqueeze(-1)).squeeze(-1)


@rule("dot")
def _dot(level: Batching, op: Any, self: Any, other: Any) -> Any:
    return (_either(level, self) * _either(level, other)).sum(-1)


def _plus(level: Batching, self: Any, product: Any, dims: int, beta: Any, alpha: Any) -> Any:
    """beta * self + alpha * product, where a beta of 0 leaves out even what is not finite."""
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    found = level.whole(self)
    first = self if found is None else padded(found, dims)
    return product + (first if beta == 1 else first * beta)


@rule("addmm")
def _addmm(
    level: Batching, op: Any, self: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1
) -> Any:
    return _batched(level, _plus(level, self, _product(level, op, mat1, mat2), 2, beta, alpha), 2)


@rule("addmv")
def _addmv(level: Batching, op: Any, self: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return _batched(level, _plus(level, self, _times_vector(level, op, mat, vec), 1, beta, alpha), 1)


@rule("baddbmm")
def _baddbmm(
    level: Batching, op: Any, self: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1
) -> Any:
    return _batched(level, _plus(level, self, _product(level, op, batch1, batch2), 3, beta, alpha), 3)


def _batched(level: Batching, made: Any, dims: int) -> Any:
    """A result that has no batch where the part with one counts nothing (beta = 0)."""
    return made if made.dim() > dims else made.expand(level.size, *made.shape)


@rule("linear")
def _linear(level: Batching, op: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    x, w = level.whole(input), level.whole(weight)
    b = None if bias is None else level.whole(bias)
    if w is None and b is None:
        return op(x, weight, bias)
    x, w = level.expanded(input), level.expanded(weight)
    rows = x.reshape(level.size, -1, x.shape[-1])
    made = tensor.matmul(rows, w.transpose(-1, -2))
    made = made.reshape(*x.shape[:-1], w.shape[1])
    if bias is None:
        return made
    return made + (bias if b is None else padded(b, made.dim() - 1))


@rule("linear_backward")
def _linear_backward(
    level: Batching, op: Any, grad: Any, input: Any, weight: Any, output_mask: int = 7
) -> Any:
    g, x, w = (level.expanded(t) for t in (grad, input, weight))
    rows = g.reshape(level.size, -1, g.shape[-1])
    of_input = tensor.matmul(rows, w).reshape(x.shape) if output_mask & 1 else None
    of_weight = None
    if output_mask & 2:
        of_weight = tensor.matmul(rows.transpose(-1, -2), x.reshape(level.size, -1, x.shape[-1]))
    return of_input, of_weight, rows.sum(1) if output_mask & 4 else None


# Linear algebra: matrices are the last two dimensions, whatever stands before them is a batch already.


@rule(
    "geqrf", "linalg_cholesky_ex", "linalg_ldl_factor_ex", "linalg_lu_factor_ex", "linalg_qr", "linalg_matrix_exp",
    "_linalg_det", "_linalg_slogdet", "linalg_inv_ex", "_linalg_eig", "_linalg_eigh", "_linalg_svd",
    "_pivots_to_permutation",
)  # fmt: skip
def _of_matrices(level: Batching, op: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    return op(level.whole(self), *args, **kwargs)


@rule("cdist_forward", "euclidean_dist")
def _distances(level: Batching, op: Any, x1: Any, x2: Any, *rest: Any) -> Any:
    a, b = level.expanded(x1), level.expanded(x2)
    if x1.dim() == 2:
        return op(a, b, *rest)
    made = op(a.flatten(0, -3), b.flatten(0, -3), *rest)
    return made.reshape(*a.shape[:-1], b.shape[-2])


@rule("_linalg_solve_ex", "linalg_solve_triangular", "linalg_lu_solve", "linalg_ldl_solve")
def _of_several(level: Batching, op: Any, *args: Any, **kwargs: Any) -> Any:
    operands = [a for a in args if isinstance(a, tensor.Tensor)]
    rest = args[len(operands) :]
    # A right side of one dimension less is a vector for each matrix, and stays so.
    vector = op.name == "_linalg_solve_ex" and operands[1].dim() == operands[0].dim() - 1
    dims = max(t.dim() for t in operands)
    wholes = [level.expanded(t) for t in operands]
    if (
        op.name == "_linalg_solve_ex" and operands[1].dim() == 1 < operands[0].dim() - 1
    ):  # one for all matrices
        vector, shape = True, operands[0].shape[:-1]
        wholes[1] = padded(wholes[1], len(shape)).expand(level.size, *shape)
    if not vector and op.name not in ("linalg_lu_solve", "linalg_ldl_solve"):
        wholes = [padded(t, dims) for t in wholes]
    elif any(t.dim() != operands[0].dim() for t in operands[2:]):
        return NotImplemented
    return op(*wholes, *rest, **kwargs)


@rule("cdist_backward")
def _cdist_backward(level: Batching, op: Any, grad: Any, x1: Any, x2: Any, p: float, distances: Any) -> Any:
    if not grad.dim() == x1.dim() == x2.dim():
        return NotImplemented
    wholes = (level.expanded(t) for t in (grad, x1, x2, distances))
    g, a, b, d = (t.reshape(-1, *t.shape[-2:]) for t in wholes)
    return op(g, a, b, p, d).reshape(level.size, *x1.shape)
