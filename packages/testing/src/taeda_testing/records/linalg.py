"""Records of products and sums of products."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import pairwise

import numpy as np

from taeda_testing.arrays import random_array, widest
from taeda_testing.record import (
    COMPLEX,
    FLOATS,
    FLOATS_AND_COMPLEX,
    NUMBERS,
    ErrorSample,
    OpRecord,
    Sample,
)
from taeda_testing.sampling import Sampler
from taeda_testing.wrong import REFUSED, inner, misfit, zeros

_PAIRS = (((2, 3), (3, 4)), ((1, 1), (1, 1)), ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((40, 70), (70, 33)))

_MATMUL = (
    *_PAIRS,
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((4, 2, 3), (3, 5)),
    ((5, 1, 2, 3), (4, 3, 2)),
)

_DTYPES = ("int32", "int64", *FLOATS, *COMPLEX)

_TOLERANCE = {"rtol": {"float32": 1e-4, "complex64": 1e-4}, "atol": {"float32": 1e-3, "complex64": 1e-3}}


def _pairs(shapes):
    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for a, b in shapes:
            yield Sample((random_array(rng, a, dtype), random_array(rng, b, dtype)))

    return samples


def _record(name, reference, samples, dtypes=_DTYPES, **more):
    return OpRecord(
        name,
        reference,
        samples,
        dtypes,
        differentiable=True,
        out=True,
        **_TOLERANCE,
        **more,
    )


_LOOSE = {"rtol": {"float32": 1e-4, "complex64": 1e-4}, "atol": {"float32": 1e-3, "complex64": 1e-3}}


def _sums(*shapes: tuple[tuple[int, ...], ...]) -> Sampler:
    """Operands of a sum of a matrix and a product."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for operands in shapes:
            arrays = [random_array(rng, shape, dtype) for shape in operands]
            yield Sample((*arrays,))
            yield Sample((*arrays,), {"beta": 2, "alpha": 3})
            if np.dtype(dtype).kind == "c":
                yield Sample((*arrays,), {"beta": 0.5 - 1j, "alpha": 1 + 2j})

    return samples


def _added(x: np.ndarray, a: np.ndarray, b: np.ndarray, beta: int = 1, alpha: int = 1) -> np.ndarray:
    return np.asarray(beta * x + alpha * (a @ b)).astype(x.dtype)


_NEAR = {"rtol": {"float32": 1e-4, "complex64": 1e-4}, "atol": {"float32": 1e-4, "complex64": 1e-4}}


def _layer(name, reference, samples, namespace="", **more):
    return OpRecord(
        name,
        reference,
        samples,
        FLOATS_AND_COMPLEX,
        differentiable=True,
        namespace=namespace,
        **_NEAR,
        **more,
    )


def _linear(x, w, bias=None):
    return np.asarray(widest(x) @ w.T + (0 if bias is None else bias)).astype(x.dtype)


def _linear_backward(grad, x, w, output_mask=7):
    rows, inputs = (widest(np.reshape(a, (-1, a.shape[-1]))) for a in (grad, x))
    results = (np.asarray(grad @ w), rows.T @ inputs, rows.sum(0))
    return tuple(array.astype(x.dtype) for array in results)


def _lines(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for x, w in (
        ((3, 4), (5, 4)),
        ((4,), (2, 4)),
        ((2, 3, 4), (1, 4)),
        ((0, 4), (2, 4)),
        ((33, 70), (40, 70)),
    ):
        for bias in (None, random_array(rng, (w[0],), dtype)):
            yield Sample((random_array(rng, x, dtype), random_array(rng, w, dtype), bias))
    yield Sample((random_array(rng, (2, 3), dtype), random_array(rng, (3,), dtype)))


def _line_gradients(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for lead in ((3,), (), (2, 3), (0,)):
        shapes = ((*lead, 2), (*lead, 4), (2, 4))
        yield Sample(tuple(random_array(rng, shape, dtype) for shape in shapes))


def _errors(*calls):
    """Calls, and the words of their messages."""
    kinds = (IndexError, RuntimeError, ValueError)
    return tuple(ErrorSample(args, {}, kinds, words) for args, words in calls)


_LINEAR = _errors(
    ((zeros(2, 3), zeros(5, 3), zeros(4)), ("linear", "bias", "4", "5")),
    ((zeros(2, 3), zeros(2, 5, 3)), ("linear", "weight")),
)

_LINEAR_BACKWARD = _errors(
    ((zeros(2, 3), zeros(3, 4), zeros(3, 4)), ("linear_backward", "grad", "(2, 3)")),
    ((zeros(2, 2), zeros(2, 4), zeros(3, 4)), ("linear_backward", "grad", "(2, 2)")),
)

_NUMERIC = ("int32", "int64", *FLOATS, *COMPLEX)


def _product(name, reference, samples, dtypes=_NUMERIC, **more):
    return OpRecord(name, reference, samples, dtypes, differentiable=True, **{**_LOOSE, **more})


def _operands(*calls) -> Sampler:
    """Shapes of the operands of each call, and keywords if a dict comes last."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for call in calls:
            kwargs = call[-1] if isinstance(call[-1], dict) else {}
            shapes = call[: len(call) - bool(kwargs)]
            yield Sample(
                tuple(s if s is None else random_array(rng, s, dtype, -2, 2) for s in shapes), kwargs
            )

    return samples


def _weighted(*shapes) -> Sampler:
    """A sum with a product: plain, weighted, and with beta 0, where the summand is not read."""

    def samples(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
        for call in shapes:
            arrays = [random_array(rng, shape, dtype, -2, 2) for shape in call]
            yield Sample((*arrays,))
            yield Sample((*arrays,), {"beta": 2, "alpha": 3})
            if np.dtype(dtype).kind == "c":
                yield Sample((*arrays,), {"beta": 0.5 - 1j, "alpha": 1 + 2j})
            if np.dtype(dtype).kind == "f":
                unread = np.full_like(arrays[0], np.nan)
                yield Sample((unread, *arrays[1:]), {"beta": 0}, "the first is not read")

    return samples


def _plus(product):
    def call(x, a, b, beta=1, alpha=1):
        return (alpha * product(a, b) + (beta * x if beta else 0)).astype(x.dtype)

    return call


_NOTATIONS = (
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ba,cb", (2, 3), (4, 2)),  # without an arrow: letters in alphabetical order
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("ij->ji", (2, 3)),
    ("ij->", (2, 3)),
    ("i,j->ij", (2,), (3,)),
    ("i,i", (3,), (3,)),
    ("bij,bjk->bik", (2, 3, 1), (2, 1, 4)),
    ("...ij,...jk->...ik", (2, 1, 3, 2), (3, 2, 2)),
    ("i...,i...->...", (3, 2), (3, 2)),
    ("...i->...", (2, 3)),
    (" i j , j -> i ", (2, 3), (3,)),
    ("ij,jk,kl->il", (2, 3), (3, 2), (2, 4)),
    ("ij,ij,i->j", (2, 3), (2, 3), (2,)),
    ("iij,jk->ik", (2, 2, 3), (3, 2)),
    ("aB,Bc->ac", (2, 3), (3, 2)),
    ("ij,jk->ik", (2, 0), (0, 3)),
    ("i,->i", (3,), ()),
    ("ij,kj->ik", (2, 1), (4, 1)),
    ("ij,j->ij", (2, 3), (3,)),
)


def _notations(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for equation, *shapes in _NOTATIONS:
        arrays = [random_array(rng, shape, dtype, -2, 2) for shape in shapes]
        yield Sample((equation, *arrays))
    yield Sample((equation, arrays))
    yield Sample(("ij,jk->ik", random_array(rng, (3, 2), dtype).T, random_array(rng, (4, 3), dtype).T))


def _einsum(equation, *tensors):
    given = tensors[0] if isinstance(tensors[0], list) else tensors
    found = np.einsum(equation, *given)
    if len(given) > 1 or found.dtype.kind != "i":
        return found
    # A sum alone is one of integers in int64; a product, or a diagonal, stays in their dtype.
    labels, arrow, kept = equation.replace(" ", "").partition("->")
    summed = set(labels) - set(kept) if arrow else {c for c in labels if labels.count(c) > 1 and c != "."}
    return np.einsum(equation, given[0].astype(np.int64)) if summed else found


def _chains(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for sizes in ((2, 3), (2, 3, 4), (2, 1, 3, 2), (4, 2, 3, 1, 2), (0, 2, 3)):
        yield Sample(tuple(random_array(rng, s, dtype, -2, 2) for s in pairwise(sizes)))


def _contractions(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    calls = (
        ((2, 3, 4), (3, 4, 2), {}),
        ((2, 3), (2, 3), {"dims": 2}),
        ((2, 3), (3, 1), {"dims": 1}),
        ((2,), (3,), {"dims": 0}),
        ((2, 3, 4), (4, 3, 2), {"dims": ([1, 2], [1, 0])}),
        ((2, 3, 4), (3, 5), {"dims": ([-2], [-2])}),
        ((2, 0), (0, 3), {"dims": 1}),
    )
    for a, b, kwargs in calls:
        yield Sample((random_array(rng, a, dtype, -2, 2), random_array(rng, b, dtype, -2, 2)), kwargs)


def _powers(dtype: str, rng: np.random.Generator) -> Iterator[Sample]:
    for shape, n in (
        ((2, 2), 0),
        ((2, 2), 1),
        ((3, 3), 2),
        ((2, 2), 5),
        ((1, 1), 3),
        ((0, 0), 2),
        ((2, 2, 2), 3),
    ):
        yield Sample((random_array(rng, shape, dtype, -2, 2), n))


def _trace(x):
    return np.asarray(
        np.trace(x, dtype=x.dtype if x.dtype.kind in "fc" or x.dtype == np.uint64 else np.int64)
    )


def _vecdot(x, y, dim=-1):
    return np.asarray((np.conj(x) * y).sum(dim, dtype=x.dtype))


_MATRICES = (((2, 2),), ((2, 3),), ((3, 2),), ((1, 1),), ((0, 2),))


RECORDS = [
    _record("mm", np.matmul, _pairs(_PAIRS), errors=inner("mm", (2, 3), (4, 2))),
    _record("matmul", np.matmul, _pairs(_MATMUL), half="largest", errors=inner("m", (2, 3), (4, 2))),
    _record(
        "bmm", np.matmul, _pairs((((4, 2, 3), (4, 3, 5)), ((0, 2, 3), (0, 3, 1)), ((2, 40, 30), (2, 30, 20)))),
            errors=inner("bmm", (5, 2, 3), (5, 4, 2))
    ),
    _record("mv", np.matmul, _pairs((((2, 3), (3,)), ((5, 0), (0,)))), errors=misfit(
        "mv", (2, 3), (4,), words=("vec", "3", "4")
    )),
    _record("dot", np.dot, _pairs((((3,), (3,)), ((0,), (0,)))), errors=misfit(
        "dot", (3,), (4,), words=("3", "4")
    )),
    _record("outer", np.outer, _pairs((((3,), (2,)), ((0,), (2,)))), errors=misfit(
        "outer", (2, 3), (2,), words=("self", "(2, 3)")
    )),
    OpRecord("addmm", _added, _sums(((2, 4), (2, 3), (3, 4)), ((4,), (2, 3), (3, 4)), ((2, 2), (2, 0), (0, 2))),
             (*FLOATS, *COMPLEX), differentiable=True, in_place=True, out=True, **_LOOSE,
             errors=misfit("addmm", (2, 4), (2, 3), (5, 4), words=("mat2", "3", "5"))),
    OpRecord("addmv", _added, _sums(((2,), (2, 3), (3,)), ((1,), (1, 1), (1,))),
             (*FLOATS, *COMPLEX), differentiable=True, in_place=True, out=True, **_LOOSE,
             errors=misfit("addmv", (2,), (2, 3), (4,), words=("vec", "3", "4"))),
    OpRecord("baddbmm", _added, _sums(((4, 2, 5), (4, 2, 3), (4, 3, 5)), ((2, 1), (3, 2, 4), (3, 4, 1))),
             (*FLOATS, *COMPLEX), differentiable=True, in_place=True, out=True, **_LOOSE,
             errors=misfit("baddbmm", (2, 2), (2, 2, 3), (2, 4, 2), words=("batch2", "3", "4"))),
    _layer("linear", _linear, _lines, "ops", out=True,
            errors=(*_LINEAR, *(ErrorSample((zeros(2, 3), zeros(5, 4), None), {}, REFUSED, ("3", "4")),))),
    _layer("linear_backward", _linear_backward, _line_gradients, "ops", errors=_LINEAR_BACKWARD, half="largest"),
    _product("addbmm", _plus(lambda a, b: (a @ b).sum(0)), _weighted(
        ((2, 4), (5, 2, 3), (5, 3, 4)), ((4,), (2, 3, 1), (2, 1, 4)), ((2, 2), (0, 2, 3), (0, 3, 2))
    ), FLOATS_AND_COMPLEX, errors=misfit("addbmm", (2, 2), (2, 2, 3), (2, 4, 2), words=("3", "4"))),
    _product("addr", _plus(np.outer), _weighted(
        ((2, 3), (2,), (3,)), ((3,), (2,), (3,)), ((1, 1), (1,), (1,)), ((0, 2), (0,), (2,))
    ), errors=misfit("addr", (2, 3), (2, 2), (3,), words=("vec1", "(2, 2)", "1 dim"))),
    _product("bilinear", lambda a, b, w, bias=None: np.einsum("...i,kij,...j->...k", a, w, b) + (
        0 if bias is None else bias
    ), _operands(
        ((2, 3), (2, 2), (4, 3, 2), (4,)), ((2, 3), (2, 2), (4, 3, 2), None), ((3,), (2,), (4, 3, 2)),
        ((2, 2, 1), (2, 2, 3), (1, 1, 3), (1,)), ((0, 3), (0, 2), (4, 3, 2), (4,)),
    ), FLOATS_AND_COMPLEX, namespace="ops",
        errors=misfit("bilinear", (2, 3), (2, 2), (4, 5, 2), words=("input1", "3", "5"))
        + misfit("bilinear", (1, 5), (2, 2), (4, 5, 2), words=("same batch", "(1, 5)"))),
    _product("chain_matmul", lambda *m: reduce(np.matmul, m), _chains, errors=misfit(
        "m", (2, 3), (4, 2), words=("3", "4")
    )),
    _product("einsum", _einsum, _notations, errors=(
        *misfit("einsum", "ij,jk->ik", (2, 3), (4, 2), words=("j", "3", "4")),
        *misfit("einsum", "ij,jk->ik", (2, 3), words=("2", "1")),
        *misfit("einsum", "ij->ijk", (2, 3), words=("k",)),
        *misfit("einsum", "ij->i", (2, 3, 4), words=("3",)),
    )),
    _product("inner", np.inner, _operands(
        ((3,), (3,)), ((2, 3), (4, 3)), ((2, 3), (3,)), ((2, 1, 3), (2, 3)), ((), (2,)), ((2,), ()), ((0,), (0,)),
    ), errors=misfit("inner", (2, 3), (4,), words=("3", "4"))),
    _product("kron", np.kron, _operands(
        ((2, 3), (3, 2)), ((2,), (3,)), ((2, 2), (3,)), ((3,), (2, 1, 2)), ((), (2,)), ((), ()), ((0, 2), (2, 2)),
    ), ("bool", *_NUMERIC)),
    _product("matrix_power", np.linalg.matrix_power, _powers, errors=misfit(
        "matrix_power", (2, 3), 2, words=("2", "3")
    )),
    _product("tensordot", lambda a, b, dims=2: np.asarray(np.tensordot(a, b, dims)), _contractions, errors=(
        *misfit("tensordot", (2, 3), (4, 2), 1, words=("3", "4")),
        *misfit("tensordot", (2,), (2,), 3, words=("3",)),
    )),
    _product("trace", _trace, _operands(*_MATRICES), NUMBERS, errors=misfit("trace", (3,), words=("(3,)", "2"))),
    _product("vdot", np.vdot, _operands(((3,), (3,)), ((1,), (1,)), ((0,), (0,))), errors=(
        *misfit("vdot", (3,), (4,), words=("3", "4")),
        *misfit("vdot", (2, 3), (2, 3), words=("2",)),
    )),
    _product("vecdot", _vecdot, _operands(
        ((3,), (3,)), ((2, 3), (3,)), ((2, 1, 3), (4, 3)), ((3, 2), (3, 1), {"dim": 0}), ((2, 3), (2, 3), {"dim": -2}),
        ((2, 0), (2, 0)),
    ), ("int64", *FLOATS_AND_COMPLEX), errors=misfit("", (2, 3), (2, 4), words=("3", "4"))),
]  # fmt: skip
