"""taeda-nn against PyTorch's own database of modules: state names, text, outputs and all gradients of every sample."""

import dataclasses
import inspect
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the reference is PyTorch")

sys.path.insert(0, str(Path(__file__).parent))
from op_samples import DTYPES, close, convert, database, gradients, tensors, theirs, weights_for  # noqa: E402

import taeda  # noqa: E402

MODULES = database("common_modules", "module_db")
TOLERANCE = {"float32": (2e-4, 2e-5), "float64": (1e-7, 1e-9)}
# Results that are drawn at random: their shapes are compared.
RANDOM = {"FractionalMaxPool2d", "FractionalMaxPool3d", "RReLU"}


def encoder_layer(layer):
    """taeda's layer of the same sizes as PyTorch's."""
    attention = layer.self_attn
    return taeda.nn.TransformerEncoderLayer(
        attention.embed_dim,
        attention.num_heads,
        layer.linear1.out_features,
        layer.dropout.p,
        {torch.nn.functional.relu: "relu", torch.nn.functional.gelu: "gelu"}[layer.activation],
        layer.norm1.eps,
        attention.batch_first,
        layer.norm_first,
        attention.in_proj_bias is not None,
        dtype=DTYPES[layer.linear1.weight.dtype],
    )


def settings(value):
    """A constructor's argument for taeda."""
    if isinstance(value, torch.nn.TransformerEncoderLayer):
        return encoder_layer(value)
    if isinstance(value, (tuple, list)):
        return type(value)(settings(item) for item in value)
    if isinstance(value, dict):
        return {key: settings(item) for key, item in value.items()}
    if value is torch.nn.functional.gelu or value is torch.nn.functional.relu:
        return getattr(taeda.nn.functional, value.__name__)
    if type(value).__name__ == "LinearCrossEntropyOptions":
        given = {field.name: settings(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return taeda.nn.LinearCrossEntropyOptions(**given)
    return convert(value, [])


def samples():
    for info in MODULES:
        name = info.name.removeprefix("nn.")
        for dtype in (torch.float32, torch.float64):
            for training in (True, False):
                short = f"{name}-{str(dtype)[6:]}-{'train' if training else 'eval'}"
                yield pytest.param(info, name, dtype, training, id=short)


def build(space, name, args, kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(space.nn, name)(*args, **kwargs)


def same_state(mine, other):
    """Gives ``mine`` the parameters and buffers of ``other``, which must have the same names and shapes."""
    state = other.state_dict()
    assert list(mine.state_dict()) == list(state)
    if not any(torch.nn.parameter.is_lazy(value) for value in state.values()):
        mine.load_state_dict({key: convert(value, []) for key, value in state.items()})


def call(module, args, kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return module(*args, **kwargs)


@pytest.mark.parametrize(("info", "name", "dtype", "training"), list(samples()))
def test_every_sample(info, name, dtype, training):
    rtol, atol = TOLERANCE[str(dtype)[6:]]
    torch.manual_seed(0)
    given = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
    for i, sample in enumerate(given):
        what = f"sample {i} of {name} ({sample.desc})"
        made, call_args = sample.constructor_input, sample.forward_input
        other = build(torch, name, made.args, made.kwargs).to(dtype)
        mine = build(taeda, name, settings(made.args), settings(made.kwargs)).to(DTYPES[dtype])
        other.train(training)
        mine.train(training)
        assert repr(mine) == repr(other), what
        if info.is_lazy:
            call(mine, *convert((call_args.args, call_args.kwargs), []))
            call(other, call_args.args, call_args.kwargs)
            assert type(mine).__name__ == type(other).__name__
        same_state(mine, other)
        if call_args is None:
            continue
        my_leaves, their_leaves = [], []
        my_args = convert((call_args.args, call_args.kwargs), my_leaves)
        their_args = theirs((call_args.args, call_args.kwargs), their_leaves)
        found, expected = call(mine, *my_args), call(other, *their_args)
        results = list(zip(tensors(found), tensors(expected), strict=True))
        if name in RANDOM:
            assert [tuple(a.shape) for a, _ in results] == [tuple(b.shape) for _, b in results], what
            continue
        for a, b in results:
            close(a, b, what, rtol, atol)
        parameters = list(zip(mine.parameters(), other.parameters(), strict=True))
        my_leaves += [a for a, _ in parameters if a.requires_grad]
        their_leaves += [b for _, b in parameters if b.requires_grad]
        compare_gradients((found, my_leaves), (expected, their_leaves), what, rtol, atol)
        for (key, a), (_, b) in zip(mine.named_buffers(), other.named_buffers(), strict=True):
            close(a, b, f"{what}: buffer {key}", rtol, atol)


def compare_gradients(mine, other, what, rtol, atol):
    ours = gradients(*mine, taeda.autograd.grad, weights_for(taeda))
    expected = gradients(*other, torch.autograd.grad, weights_for(torch))
    assert (ours is None) == (expected is None), what
    for k, (a, b) in enumerate(zip(ours or (), expected or (), strict=True)):
        if b is None or a is None:
            given = a if b is None else b
            assert given is None or not np.any(given.detach().numpy()), f"{what}: gradient {k}"
        else:
            close(a, b, f"{what}: gradient {k}", rtol * 10, atol * 10)


def wrong_samples():
    for info in MODULES:
        if info.module_error_inputs_func is not None:
            yield pytest.param(info, id=info.name.removeprefix("nn."))


@pytest.mark.parametrize("info", list(wrong_samples()))
def test_wrong_inputs_are_refused(info):
    """What PyTorch refuses, in the constructor or in the call, is refused there with an error of that class."""
    name = info.name.removeprefix("nn.")
    for training in (True, False):
        given = info.module_error_inputs_func(
            info, device="cpu", dtype=torch.float32, requires_grad=False, training=training
        )
        for case in given:
            wrong = case.module_error_input
            made = wrong.constructor_input
            what = f"{name}{made.args}{made.kwargs}"
            if case.error_on.name == "CONSTRUCTION_ERROR":
                with pytest.raises(case.error_type):
                    build(taeda, name, settings(made.args), settings(made.kwargs))
                continue
            module = build(taeda, name, settings(made.args), settings(made.kwargs))
            call_args = convert((wrong.forward_input.args, wrong.forward_input.kwargs), [])
            try:
                call(module, *call_args)
            except Exception as error:
                assert isinstance(error, case.error_type), f"{what}: {error!r}"
            else:
                pytest.fail(f"{what}: no error")


def in_place_layers():
    """Classes with an argument ``inplace``, and what else they need."""
    for name in dir(torch.nn):
        made = getattr(torch.nn, name)
        if isinstance(made, type) and "inplace" in inspect.signature(made).parameters:
            yield pytest.param(name, (0.1, 20.0) if name == "Threshold" else (), id=name)


@pytest.mark.parametrize(("name", "args"), list(in_place_layers()))
def test_texts_of_layers_in_place(name, args):
    assert repr(getattr(taeda.nn, name)(*args, inplace=True)) == repr(
        getattr(torch.nn, name)(*args, inplace=True)
    )


def names_called(space, monkeypatch, module, args, kwargs):
    """The functions of ``nn.functional`` that layers and attention call, seen by others put in their places."""
    functional, seen, inside = space.nn.functional, set(), []

    def watched(name, function):
        def stand_in(*args, **kwargs):
            if not inside or inside[-1] == "multi_head_attention_forward":
                seen.add(name)
            inside.append(name)
            try:
                return function(*args, **kwargs)
            finally:
                inside.pop()

        return stand_in

    with monkeypatch.context() as patch:
        for name in taeda.nn.functional.__all__:
            if hasattr(functional, name):
                patch.setattr(functional, name, watched(name, getattr(functional, name)))
        call(module, args, kwargs)
    return seen


@pytest.mark.parametrize("info", [pytest.param(info, id=info.name.removeprefix("nn.")) for info in MODULES])
def test_a_function_put_into_functional_is_called(info, monkeypatch):
    """Counters of operations and quantizers exchange functions of `nn.functional`, which layers are to call."""
    name = info.name.removeprefix("nn.")
    for training in (True, False):
        given = info.module_inputs_func(
            info, device="cpu", dtype=torch.float32, requires_grad=False, training=training
        )
        for sample in given[:5]:
            if sample.forward_input is None:
                continue
            made = sample.constructor_input
            other = build(torch, name, made.args, made.kwargs).float().train(training)
            mine = build(taeda, name, settings(made.args), settings(made.kwargs)).float().train(training)
            call_args = sample.forward_input.args, sample.forward_input.kwargs
            expected = names_called(torch, monkeypatch, other, *call_args)
            found = names_called(taeda, monkeypatch, mine, *convert(call_args, []))
            assert expected <= found, f"{sample.desc}, training {training}"
            call(mine, *convert(call_args, []))
