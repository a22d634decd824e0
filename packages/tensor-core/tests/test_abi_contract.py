"""What holds between a kernel and an operator that has changed since the kernel was written, through the C ABI."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import backends, library

ABSENT = 100
X = taeda.tensor([[0.5, -1.0], [2.0, 3.0]])


class Kernels:
    """The controls of abi/contract.c."""

    def __init__(self, path):
        backends.load(path)
        self.library = ctypes.CDLL(str(path))
        self.library.error_text.restype = ctypes.c_char_p
        self.library.seen_number.restype = ctypes.c_double

    def put(self, op, schema=None, direct=False, backend=0):
        return self.library.put(op.encode(), schema.encode() if schema else None, int(direct), backend)

    @property
    def seen(self):
        return self.library.seen_arguments(), self.library.seen_outputs(), self.library.seen_number()

    @property
    def error(self):
        return self.library.error_text().decode()


@pytest.fixture
def kernels(shared_plugin):
    made = Kernels(shared_plugin("contract"))
    yield made
    made.library.take()


def test_a_kernel_of_the_present_schema_is_called_as_any(kernels):
    schema = library.op("gelu").schema
    assert kernels.put("gelu", schema) == 0
    assert taeda.ops.gelu(X).tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert kernels.seen[:2] == (3, 1)
    kernels.library.take()
    assert kernels.put("gelu") == 0
    assert taeda.ops.gelu(X)[0, 0].item() == 3.0


def test_an_argument_that_a_kernel_does_not_know_reaches_it_at_its_default_alone(kernels):
    wanted = taeda.ops.gelu(X, approximate="tanh")
    assert kernels.put("gelu", "gelu(Tensor self) -> Tensor") == 0
    assert taeda.ops.gelu(X).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert taeda.ops.gelu(X, approximate="none")[0, 0].item() == 2.0
    assert kernels.seen[:2] == (2, 1)
    # The operator in terms of others, not the kernel.
    np.testing.assert_allclose(taeda.ops.gelu(X, approximate="tanh").numpy(), wanted.numpy(), rtol=1e-5)
    out = taeda.empty(2, 2)
    assert taeda.ops.gelu(X, out=out)[0, 0].item() == 2.0


def test_what_nothing_else_computes_is_an_error_that_names_the_argument(kernels):
    assert kernels.put("cumsum", "cumsum(Tensor self, int dim) -> Tensor") == 0
    assert X.cumsum(-1).tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert kernels.seen == (3, 1, 1.0)
    with pytest.raises(
        NotImplementedError, match=r"cumsum: argument 'dtype' is not known to the kernel of the contr"
    ):
        X.cumsum(0, dtype=taeda.float64)
    kernels.library.take()
    assert X.cumsum(0)[1, 0].item() == 2.5


def test_a_kernel_of_a_newer_schema_gets_its_own_defaults(kernels):
    assert kernels.put("exp", "exp(Tensor self, *, bool fast=False, float scale=2.5) -> Tensor") == 0
    assert X.exp().tolist() == [[4.0, 4.0], [4.0, 4.0]]
    assert kernels.seen == (4, 1, 2.5)


def test_an_operator_of_a_newer_taeda_is_no_failure(kernels):
    assert kernels.put("exp_of_tomorrow", "exp_of_tomorrow(Tensor self) -> Tensor") == ABSENT
    assert kernels.put("mypkg::exp_of_tomorrow") == ABSENT


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("exp(Tensor self, int times) -> Tensor", "there is no argument 'times', which has no default"),
        ("exp(int self) -> Tensor", "argument 'self' is of another type"),
        ("exp(Tensor self) -> (Tensor, Tensor)", "its results are others"),
        ("expm1(Tensor self) -> Tensor", "it is of another name"),
        ("exp() -> Tensor", "it has no argument 'self', which has no default"),
        ("exp(Tensor", "schema"),
    ],
)
def test_what_differs_by_more_is_refused_with_both_schemas(kernels, schema, words):
    assert kernels.put("exp", schema) == 2
    assert words in kernels.error
    if "cannot serve" in kernels.error:
        assert schema in kernels.error and library.op("exp").schema in kernels.error
    assert X.exp()[0, 0].item() == pytest.approx(np.exp(0.5))


@pytest.mark.parametrize("direct", [False, True])
def test_a_kernel_goes_on_being_used_for_an_operator_that_has_become_composite(kernels, direct):
    op = library.op("softsign")
    assert op.kind == "composite"
    wanted = taeda.ops.softsign(X).tolist()
    assert kernels.put("softsign", "softsign(Tensor self) -> Tensor", direct) == 0
    assert op.kernels()["cpu"] == "the contract's test"
    x = taeda.tensor(X.tolist())
    assert taeda.ops.softsign(x).tolist() == [[2.0 - direct] * 2] * 2
    assert kernels.seen[:2] == (2 - direct, 1 - direct)
    kernels.library.take()
    assert op.kernels() == {}
    assert taeda.ops.softsign(taeda.tensor(X.tolist())).tolist() == wanted


def test_gradients_of_such_an_operator_are_those_of_what_it_is_made_of(kernels):
    pytest.importorskip("taeda_autograd")
    assert kernels.put("softsign", None, True) == 0
    x = taeda.tensor([1.0, -3.0]).requires_grad_()
    y = taeda.ops.softsign(x)
    assert y.tolist() == [0.5, -0.75]
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx([0.25, 0.0625])
    with taeda.no_grad():
        assert taeda.ops.softsign(x).tolist() == [1.0, 1.0]


def test_a_direct_kernel_serves_an_operator_whose_outputs_are_made(kernels):
    assert kernels.put("exp", "exp(Tensor self) -> Tensor", True) == 0
    assert X.exp().tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert kernels.seen[:2] == (1, 0)
    y = X.clone()
    assert y.exp_().tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_kernels_from_python_state_their_schemas_too():
    backend = library.Backend("contracting")
    calls = []

    @backend.kernel("copy_same_", "fill_")
    def fill(outputs, inputs):
        to, value = inputs
        backend.array(to)[...] = backend.array(value)

    @backend.kernel("gelu", schema="gelu(Tensor self) -> Tensor")
    def gelu(outputs, inputs):
        calls.append(len(inputs))
        outputs[0].fill_(7)

    @backend.kernel("exp_of_tomorrow", if_present=True)
    def tomorrow(outputs, inputs):
        raise AssertionError("there is no such operator")

    try:
        x = X.to("contracting")
        assert taeda.ops.gelu(x).cpu().tolist() == [[7.0, 7.0], [7.0, 7.0]]
        assert calls == [1]
        with pytest.raises(NotImplementedError):
            taeda.ops.gelu(x, approximate="tanh")
        assert calls == [1]
        with pytest.raises(ValueError, match="there is no operator named 'exp_of_tomorrow'"):
            backend.kernel("exp_of_tomorrow")(tomorrow.function)
        with pytest.raises(ValueError, match="cannot serve"):
            backend.kernel("exp", schema="exp(Tensor self, int n) -> Tensor")(gelu.function)
    finally:
        backend.remove()
