"""Transforms of programs (`func.vmap`, `grad`, `jvp` and their like) beside PyTorch's: each program runs in both."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from op_agreement import as_torch
from op_functions import Missing, NoCounterpart, function_of
from op_samples import RANDOM, convert, op_records
from torch.utils._pytree import tree_leaves

import taeda

# What PyTorch says of its own ways.
pytestmark = [
    pytest.mark.filterwarnings("ignore:There is a performance drop"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script"),
    pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node"),
    pytest.mark.filterwarnings("ignore:.*torch.qr is deprecated"),
    pytest.mark.filterwarnings("ignore:Sparse CSR tensor support"),
]


def inputs(lib, *shapes, dtype="float64"):
    random = np.random.default_rng(23)
    return [lib.tensor(random.standard_normal(s), dtype=getattr(lib, dtype)) for s in shapes]


def agree(program, rtol=1e-9):
    found = [as_torch(t) for t in taeda.utils._pytree.tree_leaves(program(taeda))]
    expected = tree_leaves(program(torch))
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        torch.testing.assert_close(ours, theirs.detach(), rtol=rtol, atol=1e-10, equal_nan=True)


def mlp(lib, x, w, v):
    return lib.tanh(x @ w) @ v


def loss(lib, x, w, v):
    return (mlp(lib, x, w, v) ** 2).sum()


def vmap_program(function, shapes, **options):
    return lambda lib: lib.func.vmap(lambda *a: function(lib, *a), **options)(*inputs(lib, *shapes))


def image(lib, x, w, b):
    y = lib.nn.functional.conv2d(x, w, b, padding=1).relu()
    return lib.nn.functional.max_pool2d(y, 2).flatten().sum()


def attention(lib, q, k, v):
    return lib.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def classes(lib, x):
    return lib.nn.functional.cross_entropy(x, lib.tensor([1, 0, 2]))


def written(lib, x, y):
    z = x.clone()
    z[0] = y
    z[1:, 0] += 2
    z.mul_(y.sum())
    return z


VMAPS = {
    "elementwise": vmap_program(lambda lib, a, b: lib.exp(a) * b + 1, [(5, 3), (5, 2, 3)]),
    "numbers": vmap_program(lambda lib, a, b: lib.where(a > 0, a, b) / 2, [(5,), (5, 4)]),
    "matmul": vmap_program(lambda lib, a, b: a @ b, [(5, 2, 3), (5, 3)]),
    "shared": vmap_program(lambda lib, a, b: a @ b, [(5, 2, 3), (3, 4)], in_dims=(0, None)),
    "other dims": vmap_program(lambda lib, a, b: a @ b, [(2, 3, 5), (5, 3)], in_dims=(-1, 0), out_dims=1),
    "views": vmap_program(
        lambda lib, a: a.transpose(0, -1).reshape(-1, 2).unsqueeze(1).expand(-1, 3, 2)[1:, ..., -1],
        [(5, 4, 3, 2)],
    ),
    "reductions": vmap_program(
        lambda lib, a: (
            a.sum(),
            a.mean(-1),
            a.amax(0, True),
            a.var(),
            a.prod(1),
            a.norm(),
            a.argmax(),
            a.max(1),
        ),
        [(5, 3, 4)],
    ),
    "numbers alone": vmap_program(
        lambda lib, a: (a.sum(), a.softmax(0), a.cumsum(0), lib.stack([a, a]), a.expand(3)), [(5,)]
    ),
    "sorts": vmap_program(
        lambda lib, a: (a.sort(-1)[0], a.topk(2, 0)[0], a.cumsum(1), a.flip(0)), [(5, 3, 4)]
    ),
    "indices": vmap_program(
        lambda lib, a: (a[lib.tensor([2, 0])], a[:, lib.tensor([[1, 0]])], a[0, -1], a[..., None, :2]),
        [(5, 4, 3)],
    ),
    "indices of the batch": vmap_program(
        lambda lib, a: (a[a[:, 0].argsort()], a.gather(0, a.argsort(0)), a.index_select(1, a[0].argsort())),
        [(5, 4, 3)],
    ),
    "in place": vmap_program(written, [(5, 3, 2), (5, 2)]),
    "convolution": vmap_program(image, [(5, 2, 3, 6, 6), (4, 3, 3, 3), (4,)], in_dims=(0, None, None)),
    "convolution of kernels": vmap_program(
        image, [(2, 3, 6, 6), (5, 4, 3, 3, 3), (5, 4)], in_dims=(None, 0, 0)
    ),
    "convolution of both": vmap_program(image, [(5, 2, 3, 6, 6), (5, 4, 3, 3, 3), (5, 4)]),
    "attention": vmap_program(attention, [(4, 2, 3, 6, 8)] * 3),
    "cross entropy": vmap_program(classes, [(5, 3, 4)]),
    "layer norm": vmap_program(
        lambda lib, a, w: lib.nn.functional.layer_norm(a, (4,), w), [(5, 3, 4), (5, 4)]
    ),
    "batch norm": vmap_program(
        lambda lib, a: lib.nn.functional.batch_norm(a, None, None, training=True), [(5, 6, 3)]
    ),
    "cat": vmap_program(lambda lib, a, b: lib.cat([a, b], 1), [(5, 2, 3), (2, 1)], in_dims=(0, None)),
    "solve": vmap_program(lambda lib, a, b: lib.linalg.solve(a @ a.T + lib.eye(3), b), [(5, 3, 3), (5, 3)]),
    "einsum": vmap_program(lambda lib, a, b: lib.einsum("ij,kj->ik", a, b), [(5, 3, 4), (5, 2, 4)]),
    "chunks": vmap_program(lambda lib, a: a.sum(0), [(7, 3, 2)], chunk_size=3),
    "nested": lambda lib: lib.func.vmap(
        lambda a: lib.func.vmap(lambda b: (a * b).sum() + a)(inputs(lib, (4, 3))[0])
    )(*inputs(lib, (5, 3))),
    "looped": vmap_program(lambda lib, a: lib.histc(a, 4, -2.0, 2.0), [(5, 9)]),
    "containers": lambda lib: lib.func.vmap(
        lambda d, e: {"sum": d["a"] + e[0], "all": [d["b"] * 2]}, in_dims=({"a": 0, "b": None}, 0)
    )({"a": inputs(lib, (5, 2))[0], "b": inputs(lib, (3,))[0]}, (inputs(lib, (5, 2))[0],)),
}


@pytest.mark.parametrize("name", VMAPS)
def test_vmap(name):
    agree(VMAPS[name])


def derivatives(transform, function, shapes, **options):
    return lambda lib: getattr(lib.func, transform)(lambda *a: function(lib, *a), **options)(
        *inputs(lib, *shapes)
    )


SHAPES = [(4,), (4, 3), (3, 2)]
DERIVATIVES = {
    "grad": derivatives("grad", loss, SHAPES),
    "grad by several": derivatives("grad", loss, SHAPES, argnums=(2, 0)),
    "grad and value": derivatives("grad_and_value", loss, SHAPES, argnums=1),
    "aux": derivatives("grad", lambda lib, x: ((x**3).sum(), {"twice": x * 2}), [(4,)], has_aux=True),
    "jacrev": derivatives("jacrev", mlp, SHAPES, argnums=(0, 1)),
    "jacfwd": derivatives("jacfwd", mlp, SHAPES, argnums=(0, 1)),
    "jacrev in chunks": derivatives("jacrev", mlp, SHAPES, chunk_size=1),
    "hessian": derivatives("hessian", loss, SHAPES),
    "jacfwd of jacrev": lambda lib: lib.func.jacfwd(lib.func.jacrev(lambda x: (x.sin() * x).sum()))(
        *inputs(lib, (4,))
    ),
    "jacrev of jacfwd": lambda lib: lib.func.jacrev(lib.func.jacfwd(lambda x: x.sin() * x))(*inputs(lib, (3,))),
    "grad of grad": lambda lib: lib.func.grad(lambda x: lib.func.grad(lambda y: (y**3 * x).sum())(x).sum())(
        *inputs(lib, (4,))
    ),
    "vjp": lambda lib: lib.func.vjp(lambda x, w: lib.tanh(x @ w), *inputs(lib, (4,), (4, 3)))[1](
        lib.ones(3, dtype=lib.float64)
    ),
    "vjp of containers": lambda lib: lib.func.vjp(
        lambda d: {"y": d["a"] * d["b"]}, {"a": inputs(lib, (4,))[0], "b": inputs(lib, (4,))[0]}
    )[1]({"y": lib.ones(4, dtype=lib.float64)}),
    "jvp": lambda lib: lib.func.jvp(
        lambda x, w: lib.tanh(x @ w), tuple(inputs(lib, (4,), (4, 3))), tuple(inputs(lib, (4,), (4, 3)))
    ),
    "jvp of jvp": lambda lib: lib.func.jvp(
        lambda x: lib.func.jvp(lambda y: y.sin() * x, (x,), (lib.ones_like(x),))[1],
        tuple(inputs(lib, (4,))), tuple(inputs(lib, (4,))),
    ),
    "linearize": lambda lib: lib.func.linearize(lambda x: x.sin(), *inputs(lib, (4,)))[1](*inputs(lib, (4,))),
    "gradients of examples": lambda lib: lib.func.vmap(
        lib.func.grad(lambda w, x: loss(lib, x, w, inputs(lib, (3, 2))[0])), in_dims=(None, 0)
    )(*inputs(lib, (4, 3), (5, 4))),
    "gradients of examples of images": lambda lib: lib.func.vmap(
        lib.func.grad(lambda w, b, x: image(lib, x, w, b), argnums=(0, 1)), in_dims=(None, None, 0)
    )(*inputs(lib, (4, 3, 3, 3), (4,), (5, 2, 3, 6, 6))),
    "grad of vmap": lambda lib: lib.func.grad(
        lambda x: lib.func.vmap(lambda a, b: (a * b).sum(), in_dims=(0, None))(x, x[0]).prod()
    )(*inputs(lib, (3, 4))),
    "jacobians of examples": lambda lib: lib.func.vmap(lib.func.jacrev(lambda x: (x.sin() @ x) * x))(
        *inputs(lib, (5, 3))
    ),
    "hessians of examples": lambda lib: lib.func.vmap(lib.func.hessian(lambda x: x.sin().prod()))(
        *inputs(lib, (5, 3))
    ),
    "jvp of vmap": lambda lib: lib.func.jvp(
        lib.func.vmap(lambda x: x.sin().sum()), tuple(inputs(lib, (5, 3))), tuple(inputs(lib, (5, 3)))
    ),
    "vmap of jvp": lambda lib: lib.func.vmap(
        lambda x, t: lib.func.jvp(lambda y: y.softmax(0), (x,), (t,))[1]
    )(*inputs(lib, (5, 3), (5, 3))),
}  # fmt: skip


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name):
    agree(DERIVATIVES[name])


def test_gradients_of_examples_of_a_network():
    """Per-sample gradients of a module, the way tutorials take them."""

    def program(lib):
        weights = [
            torch.from_numpy(np.random.default_rng(i).standard_normal(s))
            for i, s in enumerate([(8, 4), (8,), (3, 8), (3,)])
        ]
        net = lib.nn.Sequential(lib.nn.Linear(4, 8), lib.nn.Tanh(), lib.nn.Linear(8, 3)).to(lib.float64)
        with lib.no_grad():
            for p, w in zip(net.parameters(), weights, strict=True):
                p.copy_(lib.tensor(w.numpy()))
        params = {n: p.detach() for n, p in net.named_parameters()}

        def one(params, x, y):
            out = lib.func.functional_call(net, params, (x.unsqueeze(0),))
            return lib.nn.functional.cross_entropy(out, y.unsqueeze(0))

        (x,) = inputs(lib, (6, 4))
        y = lib.tensor([0, 2, 1, 1, 0, 2])
        return lib.func.vmap(lib.func.grad(one), in_dims=(None, 0, 0))(params, x, y)

    agree(program)


def test_ensembles():
    def program(lib):
        nets = [lib.nn.Linear(3, 2).to(lib.float64) for _ in range(4)]
        for i, net in enumerate(nets):
            with lib.no_grad():
                net.weight.copy_(lib.arange(6.0, dtype=lib.float64).reshape(2, 3) + i)
                net.bias.fill_(i)
        params, buffers = lib.func.stack_module_state(nets)
        call = lib.func.vmap(
            lambda p, b, x: lib.func.functional_call(nets[0], (p, b), (x,)), in_dims=(0, 0, None)
        )
        return call(params, buffers, inputs(lib, (5, 3))[0])

    agree(program)


# Every operator of PyTorch's database over a batch of its first sample, beside a call for each example.

# What asks for values (shapes by them, checks of them), draws numbers, or has no one memory.
LEFT_OUT = {
    "allclose", "as_strided", "as_strided_copy", "as_strided_scatter", "equal", "histogram", "histogramdd", "item",
    "linspace", "logspace", "nn.functional.ctc_loss", "nn.functional.linear_cross_entropy",
    "nn.functional.gaussian_nll_loss",
    "nn.functional.multi_head_attention_forward", "nn.functional.scaled_dot_product_attention", "pca_lowrank",
    "sparse.mm", "sparse.sampled_addmm", "svd_lowrank", "to_sparse",
}  # fmt: skip
MAPPED = [
    r for r in op_records()
    if torch.float64 in r.supported_dtypes("cpu") and r.name not in {*RANDOM, *LEFT_OUT} and "dropout" not in r.name
]  # fmt: skip


def batch_of(sample):
    """The arguments of a sample three times over, a little different, as arrays of a batch."""
    return sample.transform(
        lambda v: (
            torch.stack([v, v * 0.75, v * 0.5])
            if isinstance(v, torch.Tensor) and v.is_floating_point()
            else v
        )
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("record", MAPPED, ids=[r.name + r.variant_test_name for r in MAPPED])
def test_batches_are_loops(record, dtype):
    """vmap over floating-point tensors gives what calls for each example give, and its dtype."""
    tolerances = {"rtol": 1e-8, "atol": 1e-9} if dtype == torch.float64 else {"rtol": 1e-3, "atol": 1e-4}
    try:
        ours = function_of(record)
    except (Missing, NoCounterpart):
        pytest.skip("no such operator")
    torch.manual_seed(3)
    for sample, _ in zip(record.sample_inputs("cpu", dtype), range(3), strict=False):
        batch = batch_of(sample)
        if not isinstance(sample.input, torch.Tensor) or any(
            t.layout != torch.strided
            for t in tree_leaves((sample.input, sample.args))
            if isinstance(t, torch.Tensor)
        ):
            continue
        try:
            args = [convert(v, []) for v in (batch.input, *batch.args)]
            kwargs = convert(dict(batch.kwargs), [])
            kept = convert(dict(sample.kwargs), [])
        except NoCounterpart:
            continue
        if any(isinstance(v, taeda.Tensor) for v in kwargs.values()) or not sample.input.is_floating_point():
            continue
        dims = [
            dims_of(a, b)
            for a, b in zip((sample.input, *sample.args), (batch.input, *batch.args), strict=True)
        ]
        one = [[picked(a, d, i) for a, d in zip(args, dims, strict=True)] for i in range(3)]
        try:
            expected = [ours(*each, **kept) for each in one]
        except Exception:
            continue  # not every operator takes numbers that were made smaller
        found = taeda.vmap(lambda *a, kept=kept: only_tensors(ours(*a, **kept)), in_dims=tuple(dims))(*args)
        rows = [only_tensors(e) for e in expected]
        for at, ours_whole in enumerate(found):
            for i in range(3):
                same = as_torch(ours_whole[i]), as_torch(rows[i][at])
                torch.testing.assert_close(*same, **tolerances, equal_nan=True)


def dims_of(one, many):
    if isinstance(one, torch.Tensor):
        return 0 if one.is_floating_point() else None
    if isinstance(one, (list, tuple)) and not isinstance(one, torch.Size):
        return type(one)(dims_of(a, b) for a, b in zip(one, many, strict=True))
    return None


def picked(value, dims, i):
    if isinstance(value, taeda.Tensor):
        return value if dims is None else value[i]
    if isinstance(value, (list, tuple)) and isinstance(dims, (list, tuple)):
        return type(value)(picked(v, d, i) for v, d in zip(value, dims, strict=True))
    return value


def only_tensors(made):
    found = [t for t in taeda.utils._pytree.tree_leaves(made) if isinstance(t, taeda.Tensor)]
    return tuple(found)
