"""What `inspect.signature` tells of functions and methods."""

import copy
import inspect

import pytest

import taeda_tensor_core as tc

TENSOR = tc.ones(2, 2)


@pytest.mark.parametrize(("function", "said"), [
    (tc.add, "(input, other, *, alpha=1, out=None)"),
    (tc.absolute, "(input, *, out=None)"),
    (tc.Tensor.add_, "(self, /, other, *, alpha=1)"),
    (TENSOR.add, "(other, *, alpha=1, out=None)"),
    (TENSOR.permute, "(*dims)"),
    (tc.linalg.inv, "(A, *, out=None)"),
    (tc.special.erf, "(input, *, out=None)"),
    (tc.block_diag, "(*tensors)"),
    (tc.atleast_1d, "(*tensors)"),
    (tc.split, "(tensor, split_size_or_sections, dim=0)"),
    (TENSOR.unflatten, "(dim, sizes)"),
    (tc.norm, "(input, p='fro', dim=None, keepdim=False, *, dtype=None, out=None)"),
    (TENSOR.norm, "(p='fro', dim=None, keepdim=False, *, dtype=None, out=None)"),
    (tc.cdist, "(x1, x2, p=2.0, compute_mode='use_mm_for_euclid_dist_if_necessary')"),
    (tc.set_default_dtype, "(d, /)"),
    (tc.from_dlpack, "(ext_tensor, *, device=None, copy=None)"),
    (tc.no_grad, "()"),
    (tc.enable_grad, "(orig_func=None)"),
    (tc.inference_mode, "(mode=True)"),
])  # fmt: skip
def test_signatures_are_those_of_the_schema(function, said):
    assert str(inspect.signature(function)) == said


def test_a_docstring_begins_behind_the_signature():
    assert tc.add.__doc__.startswith("add(Operand self, Operand other, *, Scalar alpha=1")
    assert tc.absolute.__text_signature__ == "(input, *, out=None)"


def test_what_a_signature_binds_is_taken():
    bound = inspect.signature(tc.stft).bind(tc.ones(16), 4, window=tc.ones(4), return_complex=True)
    bound.apply_defaults()
    assert tc.stft(*bound.args, **bound.kwargs).shape == (3, 17)
    for tensors in ((TENSOR,), (TENSOR, TENSOR)):
        bound = inspect.signature(tc.block_diag).bind(*tensors)
        assert tc.block_diag(*bound.args).shape == (2 * len(tensors), 2 * len(tensors))
    bound = inspect.signature(tc.norm).bind(TENSOR)
    bound.apply_defaults()
    assert tc.norm(*bound.args, **bound.kwargs).item() == 2


def test_overloads_without_a_common_signature_have_none():
    with pytest.raises(ValueError, match="no signature found"):
        inspect.signature(tc.max)


def test_modes_can_be_copied_with_their_signature():
    assert inspect.signature(type(copy.copy(tc.no_grad()))) == inspect.signature(tc.no_grad)
