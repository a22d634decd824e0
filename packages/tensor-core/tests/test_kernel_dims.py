"""No kernel sees a negative dimension, whichever form of an operator is called."""

from __future__ import annotations

import pytest

import taeda_tensor_core as tc
from taeda_tensor_core import library

X = tc.arange(24, dtype=tc.float32).reshape(2, 3, 4)
INDEX = tc.zeros(2, 3, 4, dtype=tc.int64)
PLACES = tc.tensor([0, 1])
REDUCED = ("all", "amax", "amin", "any", "argmax", "argmin", "mean", "prod", "sum", "var")
CALLS = {
    **{name: lambda name=name: getattr(tc, name)(X, dim=-1) for name in REDUCED},
    "log_softmax": lambda: tc.log_softmax(X, -1),
    "log_softmax_backward": lambda: tc.ops.log_softmax_backward(X, X, -1),
    "softmax": lambda: tc.softmax(X, -1),
    "softmax_backward": lambda: tc.ops.softmax_backward(X, X, -1),
    "_fft_c2c": lambda: tc.fft.fft(tc.complex(X, X), dim=-2),
    "_fft_c2r": lambda: tc.fft.irfft(tc.complex(X, X), dim=-2),
    "_fft_r2c": lambda: tc.fft.rfft(X, dim=-2),
    "gather": lambda: X.gather(-1, INDEX),
    "index_add": lambda: X.clone().index_add_(-1, PLACES, X[..., :2]),
    "index_copy": lambda: X.index_copy(-1, PLACES, X[..., :2]),
    "index_fill": lambda: X.index_fill(-1, PLACES, 3.0),
    "index_select": lambda: X.index_select(-1, PLACES),
    "scatter": lambda: X.scatter(-1, INDEX, X),
    "scatter.value": lambda: X.scatter(-1, INDEX, 2.0),
    "scatter_add": lambda: X.scatter_add(-1, INDEX, X),
    "scatter_reduce": lambda: X.scatter_reduce(-1, INDEX, X, "amax"),
    "linalg_cross": lambda: tc.linalg.cross(X.transpose(1, 2), X[:1].transpose(1, 2)),
    "cummax": lambda: X.cummax(-1),
    "cummin": lambda: X.cummin(-1),
    "cumprod": lambda: tc.cumprod(X, -1, out=tc.empty(0)),
    "cumsum": lambda: X.clone().cumsum_(-1),
    "logcumsumexp": lambda: X.logcumsumexp(-1),
    "max.dim": lambda: X.max(-1),
    "min.dim": lambda: X.min(-1, keepdim=True),
    "vector_norm": lambda: tc.linalg.vector_norm(X, dim=(-1, 0)),
    "cat": lambda: tc.cat([X, X], -1),
    "sort": lambda: X.sort(),
    "topk": lambda: X.topk(2),
}
WITH_DIM = [
    o.name
    for o in library.operators()
    if o.form == "function"
    and o.kind == "structured"
    and "::" not in o.name
    and any(a.name == "dim" for a in o.arguments)
]


def test_every_operator_with_a_dimension_is_called_here():
    assert sorted(WITH_DIM) == sorted(CALLS)


class Seen(Exception):
    """What a kernel got."""


def dims_of(name, call):
    place = [a.name for a in library.op(name).arguments].index("dim")

    def kernel(outputs, inputs):
        raise Seen(inputs[place])

    with library.Library("dims") as lib:
        lib.kernel(name, "cpu", replace=True)(kernel)
        with pytest.raises(Seen) as caught:
            call()
    found = caught.value.args[0]
    return list(found) if isinstance(found, tuple | list) else [found]


@pytest.mark.parametrize("name", sorted(CALLS))
def test_dimensions_are_counted_from_the_front(name):
    found = dims_of(name, CALLS[name])
    assert found and all(0 <= dim < 3 for dim in found), found


def test_none_and_numbers_without_dimensions():
    assert dims_of("sum", lambda: tc.sum(X)) in ([None], [])
    assert dims_of("argmax", lambda: tc.argmax(X)) == [None]
    assert dims_of("sum", lambda: tc.sum(tc.tensor(3.0), -1)) == [0]
    assert dims_of("cumsum", lambda: tc.cumsum(tc.tensor(3.0), -1)) == [0]
    assert dims_of("amax", lambda: tc.amax(X, (0, -1))) == [0, 2]


def test_layers_see_what_was_written():
    seen = []

    class Note(library.Layer):
        def __call__(self, op, args, kwargs):
            seen.append(args[1])
            return op(*args, **kwargs)

    with Note("note", operators=["softmax"]):
        X.softmax(-1)
    assert seen == [-1]
