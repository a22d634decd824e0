"""Graphs of operators beside PyTorch's: the same overloads in the same order."""

import pytest

torch = pytest.importorskip("torch", reason="graphs are compared with PyTorch's, which is not installed")
import numpy as np  # noqa: E402

import taeda  # noqa: E402


def programs(lib):
    f = lib.nn.functional
    x, w = lib.arange(6.0).reshape(2, 3) + 1, lib.ones(4, 3)
    image, kernel = lib.ones(1, 2, 6, 6), lib.ones(3, 2, 3, 3)
    return {
        "linear": (lambda x, w: f.gelu(f.linear(x, w)).sum(), x, w),
        "conv2d": (lambda a, b: f.relu(f.conv2d(a, b, padding=1)), image, kernel),
        "avg_pool2d": (lambda a: f.avg_pool2d(a, 2), image),
        "norms": (lambda x, a: (f.layer_norm(x, (3,)), f.group_norm(a, 2)), x, image),
        "attention": (lambda x: lib.softmax(x @ x.t() / 3**0.5, -1) @ x, x),
        "mse_loss": (lambda x: f.mse_loss(x, x * 2), x),
        "indices": (lambda x: x[0, 1:] + x[:, None, 0].sum() + x[x > 2].sum(), x),
        "functions": (
            lambda x: x.exp().log().sqrt().rsqrt().sin().tanh().sigmoid().abs().neg().clamp(0, 1),
            x,
        ),
        "numbers": (lambda x: (x + 1) * 2 - x / 3 + x**2 + 2**x + (1 - x) + x // 2 + x % 2, x),
        "comparisons": (lambda x: lib.where(x > 2, x, -x) + (x == 1).float() + (x <= 2).to(lib.float64), x),
        "in place": (lambda x: x.clone().add_(1).mul_(2).zero_(), x),
        "creation": (lambda x: x.new_zeros(2) + lib.ones(2) + lib.arange(2) + lib.full((2,), 3.0), x),
        "products": (lambda x: (lib.bmm(x[None], x.t()[None]), lib.matmul(x, x[0])), x),
    }


def recorded(lib, name):
    from importlib import import_module

    make_fx = import_module(f"{lib.__name__}.fx.experimental.proxy_tensor").make_fx
    function, *args = programs(lib)[name]
    return make_fx(function)(*args), args


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("name", programs(taeda))
def test_functions_call_the_same_operators(name):
    (theirs, theirs_args), (ours, ours_args) = recorded(torch, name), recorded(taeda, name)

    def nodes(module):
        return [(node.op, node.name, str(node.target)) for node in module.graph.nodes]

    assert nodes(ours) == nodes(theirs)
    found, expected = ours(*ours_args), theirs(*theirs_args)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for a, b in pairs:
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


def core_overloads():
    """PyTorch's overloads that all others can be told in."""
    for name in sorted({schema.name.removeprefix("aten::") for schema in torch._C._jit_get_all_schemas()}):
        packet = getattr(torch.ops.aten, name, None) if name.isidentifier() else None
        for overload in packet.overloads() if isinstance(packet, torch._ops.OpOverloadPacket) else ():
            found = getattr(packet, overload)
            if torch.Tag.core in found.tags:
                yield found


def test_core_operators_have_the_same_schemas():
    differ, count = [], 0
    for theirs in core_overloads():
        name, _, overload = str(theirs).removeprefix("aten.").partition(".")
        ours = getattr(getattr(taeda.ops.aten, name), overload)
        count += 1
        if str(ours._schema) != str(theirs._schema):
            differ.append((str(ours._schema), str(theirs._schema)))
    assert not differ and count > 150
