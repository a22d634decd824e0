"""Schemas of built-in operators, and calls that do not fit them."""

import pytest

import taeda_tensor_core as taeda

SCHEMAS = {
    "add.Tensor": "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "add.Scalar": "aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    "add_.Tensor": "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
    "pow.Scalar": "aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
    "atan2.out": "aten::atan2.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    "view.default": "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    "split_with_sizes.default": (
        "aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]"
    ),
    "sum.dim_IntList": (
        "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"
    ),
    "mean.default": "aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    "avg_pool2d.default": (
        "aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, "
        "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor"
    ),
    "full.default": (
        "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor"
    ),
    "var.correction": (
        "aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor"
    ),
    "native_layer_norm_backward.default": (
        "aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, "
        "Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)"
    ),
    "max.dim": "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    "_pdist_forward.default": "aten::_pdist_forward(Tensor self, float p=2.) -> Tensor",
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_of_built_in_operators_are_those_that_programs_know(name):
    packet, _, overload = name.partition(".")
    schema = getattr(getattr(taeda.ops.aten, packet), overload)._schema
    assert str(schema) == SCHEMAS[name]
    assert schema.is_mutable is ("!" in SCHEMAS[name])


def test_arguments_of_schemas_say_what_is_written_and_what_goes_by_name():
    schema = taeda.ops.aten.sort.values._schema
    assert [(a.name, a.is_out) for a in schema.arguments][-2:] == [("values", True), ("indices", True)]
    assert [a.alias_info.before_set for a in schema.arguments[-2:]] == [{"a"}, {"b"}]
    view = taeda.ops.aten.select.int._schema
    assert (view.arguments[0].alias_info.is_write, view.returns[0].alias_info.before_set) == (False, {"a"})
    step = taeda.ops.aten.slice.Tensor._schema.arguments[-1]
    assert (step.name, step.type, step.default_value, step.optional) == ("step", "SymInt", 1, False)


def test_distances_have_their_inner_operators():
    x = taeda.arange(12.0).reshape(4, 3)
    aten = taeda.ops.aten
    for mode in (None, 0, 1, 2):
        assert taeda.allclose(aten._cdist_forward(x, x + 1, 2.0, mode), taeda.cdist(x, x + 1))
    assert taeda.equal(aten._pdist_forward(x), taeda.ops.pdist(x))


WRONG_CALLS = {
    "too few": (lambda x: taeda.ops.aten.add.Tensor(x), "missing argument 'other'"),
    "too few for any overload": (lambda x: taeda.ops.aten.add(x), "missing argument 'other'"),
    "another type": (
        lambda x: taeda.ops.aten.add.Tensor(x, "a"),
        "argument 'other' must be a Tensor or a number",
    ),
    "an unknown name": (
        lambda x: taeda.ops.aten.add.Tensor(x, x, foo=1),
        "unexpected keyword argument 'foo'",
    ),
    "too many": (lambda x: taeda.ops.aten.relu.default(x, x), "at most 1 positional arguments"),
    "twice": (lambda x: taeda.ops.aten.add.Tensor(x, x, other=x), "several values for argument 'other'"),
    "fractions": (
        lambda x: taeda.ops.aten.view.default(x, [2.5, 1]),
        "argument 'size' must be a sequence of ints",
    ),
    "a function": (
        lambda x: taeda.ops.aten.native_layer_norm_backward.default(x),
        "native_layer_norm_backward",
    ),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_calls_that_do_not_fit_are_runtime_errors_too(name):
    call, text = WRONG_CALLS[name]
    for kind in (RuntimeError, TypeError, taeda.errors.CallError):
        with pytest.raises(kind, match=text):
            call(taeda.ones(2, 3))
