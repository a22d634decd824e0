"""Functions that programs register for recorded calls of their operators, under the dispatch keys of autograd."""

import pytest

import taeda


class Scale(taeda.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        with taeda._C._AutoDispatchBelowAutograd():
            return taeda.ops.recorded_kernels.scale(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * 5


@pytest.fixture
def lib():
    with taeda.library.Library("recorded_kernels", "DEF") as made:
        made.define("scale(Tensor x) -> Tensor")
        yield made


def check(calls, expected):
    x = taeda.ones(2, requires_grad=True)
    result = taeda.ops.recorded_kernels.scale(x)
    assert result.tolist() == [3.0, 3.0]
    result.sum().backward()
    assert x.grad.tolist() == expected
    assert calls == ["kernel"]
    assert taeda.ops.recorded_kernels.scale(taeda.ones(1)).item() == 3.0
    with taeda.no_grad():
        assert not taeda.ops.recorded_kernels.scale(x).requires_grad


@pytest.mark.parametrize("key", ["Autograd", "AutogradCPU"])
@pytest.mark.parametrize("plain", ["CPU", "CompositeExplicitAutograd"])
@pytest.mark.parametrize("first", ["recorded", "plain"])
def test_recorded_calls_go_to_their_function_and_the_others_to_the_kernel(lib, key, plain, first):
    calls = []

    def kernel(x):
        calls.append("kernel")
        return x * 3

    steps = [lambda: lib.impl("scale", Scale.apply, key), lambda: lib.impl("scale", kernel, plain)]
    for step in steps if first == "recorded" else steps[::-1]:
        step()
    check(calls, [5.0, 5.0])


def test_what_a_function_calls_is_recorded(lib):
    lib.impl("scale", lambda x: x.detach() * 3, "CPU")
    lib.impl("scale", lambda x: x * 3, "AutogradCPU")
    x = taeda.ones(2, requires_grad=True)
    taeda.ops.recorded_kernels.scale(x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_with_a_rule_of_shapes(lib):
    lib.impl("scale", lambda x: x.detach() * 3, "CPU")
    lib.impl("scale", Scale.apply, "Autograd")
    taeda.library.register_fake("recorded_kernels::scale", lambda x: taeda.empty_like(x))
    x = taeda.ones(2, requires_grad=True)
    taeda.ops.recorded_kernels.scale(x).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]
    assert taeda.ops.recorded_kernels.scale(taeda.ones(2, device="meta")).shape == (2,)


def test_built_in_operators_keep_their_derivatives(lib):
    with pytest.raises(NotImplementedError, match="relu is built in"):
        lib.impl("aten::relu", taeda.relu, "AutogradCPU")


def test_layers_by_the_names_of_keys():
    """Of autograd, and of modes."""
    from taeda.utils._python_dispatch import TorchDispatchMode

    keys, names = taeda._C.DispatchKey, []

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    x = taeda.ones(2, requires_grad=True)
    with taeda._C._ExcludeDispatchKeyGuard(taeda._C.DispatchKeySet(keys.AutogradCPU)):
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad
    with taeda.no_grad(), Names():
        x.exp()
        with taeda._C._ExcludeDispatchKeyGuard(taeda._C.DispatchKeySet(keys.Python)):
            x.sin()
        x.neg()
    assert names == ["exp.default", "neg.default"]
