"""`__torch_function__` beside PyTorch: each expression asks for the same functions and gives the same classes."""

import pytest

import taeda

torch = pytest.importorskip("torch", reason="the reference is PyTorch")

EXPRESSIONS = """
x + 1; 1 + x; x - 1; 1 - x; x * 2; 2 * x; x / 2; x % 2; -x; abs(x); x @ x.T; x == 1; 1 < x; x >= x; x[0]
x[0] + x[1]; len(x); 3.0 in x; bool(x[0, 0]); float(x[0, 0]); int(x[0, 0]); x.shape; x.dtype; x.device; x.grad
x.T; x.data; x.requires_grad; x.is_leaf; x.ndim; x.grad_fn; x.size(); x.dim(); x.numel(); x.stride()
x.tolist(); x.numpy(); x.is_contiguous(); x.detach(); x.clone(); x.double(); x.cpu(); x.sum(); x.sum(0)
x.mean(); x.view(-1); x.reshape(2, 1, 2); x.t(); x.unsqueeze(0); x.max(dim=1); x.topk(1); x.split(1)
x.unbind(); x.add_(1); x.mul_(x); x.zero_(); x.fill_(3); x.copy_(p); x.new_zeros(2); x.type_as(p)
x.expand(3, 2, 2); x.item; torch.add(x, 1); torch.add(1, x); torch.add(p, x); torch.absolute(x); torch.sum(x)
torch.cat([x, p]); torch.stack((p, x)); torch.ones_like(x); torch.where(x > 0, x, p); torch.matmul(p, x)
torch.max(x, dim=1); torch.einsum("ij,jk->ik", x, x); torch.exp(x); torch.sort(x); torch.argmax(x)
torch.is_floating_point(x); torch.numel(x); torch.add(x, x, alpha=2); p + x; p - x; p * x; p.add(x); p.mul_(x)
p == x; p.copy_(x); F.relu(x); F.dropout(x, 0.0); F.softmax(x, dim=1); F.linear(x, p); F.mse_loss(x, p)
F.layer_norm(x, (2,)); F.gelu(x); F.pad(x, (1, 1))
""".replace("\n", ";")

#: Where PyTorch reaches the function by another of its names, and why ours is as it is.
OTHERWISE = {
    "x == 1": "taeda names the method eq, PyTorch the slot __eq__",
    "p == x": "taeda names the method eq, PyTorch the slot __eq__",
    "x >= x": "taeda names the method ge",
    "F.softmax(x, dim=1)": "PyTorch passes by Tensor.softmax inside",
    'torch.einsum("ij,jk->ik", x, x)': "PyTorch keeps it in torch.functional",
    "F.linear(x, p)": "taeda keeps operators of layers in taeda.ops",
    "F.mse_loss(x, p)": "PyTorch counts the plain tensor's class too",
}


def names(library, expression):
    calls = []

    class Log(library.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append((library.overrides.resolve_name(func), len(types)))
            return super().__torch_function__(func, types, args, kwargs or {})

    plain = library.tensor([[1.0, 2.0], [3.0, 4.0]])
    space = {
        "x": library.tensor([[1.0, 2.0], [3.0, 4.0]]).as_subclass(Log),
        "p": plain,
        "torch": library,
        "F": library.nn.functional,
    }
    result = eval(expression, space)
    root = library.__name__ + "."
    return [(name.removeprefix(root) if name else name, count) for name, count in calls], kinds(result)


def kinds(result):
    if isinstance(result, tuple | list):
        return [type(item).__name__ for item in result]
    return type(result).__name__


@pytest.mark.parametrize("expression", [e.strip() for e in EXPRESSIONS.split(";") if e.strip()])
def test_same_functions_are_asked_for(expression):
    expected, expected_kinds = names(torch, expression)
    found, found_kinds = names(taeda, expression)
    same = {"dtype", "device", "Size", "method", "builtin_function_or_method", "NoneType"}
    assert found_kinds == expected_kinds or {found_kinds, expected_kinds} <= same
    if expression not in OTHERWISE:
        assert found == expected


CALLS = """
F.relu(x); F.relu(x, True); F.relu(input=x); F.dropout(x, 0.3, False); F.softmax(x, 1); F.softmax(x, dim=1)
F.layer_norm(x, (2,), p[0]); F.embedding(i, x); F.cross_entropy(x, target=i[:2]); F.mse_loss(x, p, reduction="sum")
F.batch_norm(x, None, None, None, None, True); F.interpolate(x[None], 4); F.normalize(x, 2.0, 1)
F.leaky_relu(x, 0.2); F.elu(x); F.hardtanh(x, -1); F.log_softmax(x, -1); F.group_norm(x, 2); F.unfold(x[None, None], 2)
F.conv1d(x[None], x[None], None, 1); F.linear(x, p, None); F.gelu(x, approximate="tanh"); F.softshrink(x, 0.5)
F.binary_cross_entropy_with_logits(x, p, None); F.kl_div(x, p, reduction="sum"); F.smooth_l1_loss(x, p, beta=0.5)
F.gumbel_softmax(x, 0.5, True); F.adaptive_avg_pool2d(x[None], 1); F.max_pool1d(x, 2); F.nll_loss(x, i[:2])
"""


@pytest.mark.parametrize(
    "call", [call.strip() for call in CALLS.replace("\n", ";").split(";") if call.strip()]
)
def test_options_are_handed_over_by_name(call):
    def first(library):
        calls = []

        class Log(library.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                options = sorted((name, str(value)) for name, value in (kwargs or {}).items())
                calls.append((func.__name__, len(args), options))
                return super().__torch_function__(func, types, args, kwargs or {})

        space = {"F": library.nn.functional, "p": library.ones(2, 2), "i": library.tensor([0, 1, 1])}
        eval(call, space | {"x": library.ones(2, 2).as_subclass(Log)})
        return next(found for found in calls if found[0] != "__getitem__")

    name, positional, options = first(torch)
    assert first(taeda) == (name, positional, options)
