"""Files of ONNX run by onnxruntime give what the modules give. Both packages are optional."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import taeda
import taeda.models
import taeda.nn.functional as F
from taeda import nn

onnx = pytest.importorskip("onnx", reason="files are checked by the package onnx")
runtime = pytest.importorskip("onnxruntime", reason="files are run by the package onnxruntime")

IMAGE, TABLE = (2, 3, 8, 8), (3, 4)


def check(model: Any, *args: Any, axes: Any = None, other: Any = None, tol: float = 1e-4) -> None:
    """Exports, checks the file, and compares its results for the example and for other sizes."""
    if not isinstance(model, nn.Module):
        function = model

        class Calls(nn.Module):
            def forward(self, *args: Any) -> Any:
                return function(*args)

        model = Calls()
    model.eval()
    buffer = io.BytesIO()
    names = [f"i{k}" for k in range(len(args))]
    taeda.onnx.export(model, args, buffer, input_names=names, dynamic_axes=axes)
    onnx.checker.check_model(onnx.load_from_string(buffer.getvalue()), full_check=True)
    session = runtime.InferenceSession(buffer.getvalue(), providers=["CPUExecutionProvider"])
    for given in [args, *([other] if other else [])]:
        with taeda.no_grad():
            expected = model(*[value.clone() for value in given])
        leaves = [x for x in taeda.utils._pytree.tree_leaves(expected) if isinstance(x, taeda.Tensor)]
        found = session.run(None, {name: value.numpy() for name, value in zip(names, given, strict=True)})
        assert len(leaves) == len(found)
        for left, right in zip(leaves, found, strict=True):
            assert left.numpy().dtype == right.dtype
            np.testing.assert_allclose(left.numpy(), right, rtol=tol, atol=tol)


def table() -> Any:
    return taeda.rand(TABLE, generator=taeda.Generator().manual_seed(3)) * 0.9 + 0.05


def signed() -> Any:
    return taeda.randn(TABLE, generator=taeda.Generator().manual_seed(4))


def image() -> Any:
    return taeda.randn(IMAGE, generator=taeda.Generator().manual_seed(5))


UNARY = (
    "abs acos asin atan ceil cos cosh erf exp floor frac neg reciprocal round sigmoid sin sinh tan tanh relu sign "
    "square log1p expm1 exp2 isnan isfinite logical_not rsqrt log sqrt log2 trunc"
)
ACTIVATIONS = (
    "relu6 hardtanh hardsigmoid silu softplus mish gelu elu celu selu leaky_relu logsigmoid tanhshrink softshrink "
    "hardshrink hardswish softsign glu normalize"
)
MODELS = (
    "resnet18 mobilenet_v2 squeezenet1_1 efficientnet_b0 shufflenet_v2_x0_5 convnext_tiny swin_t regnet_y_400mf "
    "mobilenet_v3_small"
)


@pytest.mark.parametrize("name", UNARY.split())
def test_functions_of_one_tensor(name: str) -> None:
    check(getattr(taeda, name), table())


@pytest.mark.parametrize("name", ACTIVATIONS.split())
def test_activations(name: str) -> None:
    check(getattr(F, name), signed())


@pytest.mark.parametrize("name", MODELS.split())
def test_networks(name: str) -> None:
    taeda.manual_seed(0)
    check(getattr(taeda.models, name)(), taeda.randn(1, 3, 64, 64), tol=1e-3)


def test_sizes_that_vary() -> None:
    taeda.manual_seed(0)
    axes = {"i0": {0: "b", 1: "t"}}
    check(
        nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True),
        taeda.randn(2, 3, 4),
        axes=axes,
        other=(taeda.randn(3, 6, 4),),
    )
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True, activation="gelu")
    check(layer, taeda.randn(2, 3, 8), axes=axes, other=(taeda.randn(3, 5, 8),))
    check(
        taeda.models.resnet18(),
        taeda.randn(1, 3, 32, 32),
        axes={"i0": {0: "b"}},
        other=(taeda.randn(2, 3, 32, 32),),
        tol=1e-3,
    )


FUNCTIONS = {
    "arithmetic": lambda a: (
        (a + 1) * 2 - 3 / a + a**2 - (1 - a) + 2**a,
        a // 0.5,
        taeda.fmod(a, 0.5),
        a % 0.5,
    ),
    "comparisons": lambda a: (a > 0, a >= 0, a < 0, a <= 0.1, a == a, a != 0, (a > 0) & (a < 1), ~(a > 0)),
    "choices": lambda a: (
        taeda.where(a > 0, a, 0.0),
        a.masked_fill(a > 0, -1e9),
        a.clamp(-0.5, 0.5),
        taeda.maximum(a, -a),
    ),
    "casts": lambda a: (a.long(), a.to(taeda.float64), a.bool(), a.half().float(), a.int()),
    "shapes": lambda a: (
        a.view(-1),
        a.t(),
        a.permute(1, 0),
        a[None].squeeze(0),
        a.flatten(),
        a.expand(2, 3, 4),
        a.repeat(2, 1, 1),
    ),
    "orders": lambda a: (
        taeda.flip(a, [0]),
        taeda.roll(a, (1, -1), (0, 1)),
        taeda.roll(a, 2),
        a.movedim(0, 1),
        a.unfold(1, 2, 1),
    ),
    "indices": lambda a: (
        a[0],
        a[1:, :2],
        a[..., -1],
        a[:, None],
        a[taeda.tensor([0, 2])],
        a[:, taeda.tensor([1, 0])],
    ),
    "several indices": lambda a: (
        a[taeda.tensor([0, 1]), taeda.tensor([1, 2])],
        a[-1, -1],
        a[[0, 1]],
        a[a > 100].sum(),
    ),
    "joins": lambda a: (
        taeda.cat([a, a], 1),
        taeda.stack([a, a], -1),
        a.split(2, 1),
        a.chunk(2, 1),
        a.unbind(0),
        taeda.broadcast_tensors(a, a[:1], a[:, :1], a[0]),
    ),
    "sums": lambda a: (
        a.sum(),
        a.mean(1, keepdim=True),
        a.max(1),
        a.prod(1),
        a.logsumexp(1),
        (a > 0).all(1),
        (a > 0).sum(),
    ),
    "spread": lambda a: (
        a.var(1),
        a.std(),
        a.var(1, unbiased=False),
        a.norm(),
        a.norm(p=1, dim=1),
        taeda.linalg.norm(a, dim=1),
    ),
    "places": lambda a: (
        a.argmax(),
        a.argmin(0, keepdim=True),
        a.topk(2),
        a.sort(1, descending=True),
        a.argsort(1),
        a.cumsum(1),
    ),
    "products": lambda a: (
        a @ a.t(),
        taeda.addmm(a[:, :3], a, a.t(), beta=0.5),
        taeda.einsum("ij,kj->ik", a, a),
        taeda.cdist(a, a * 2),
    ),
    "losses": lambda a: (
        F.mse_loss(a, a * 2),
        F.cross_entropy(a, taeda.tensor([0, 1, 2])),
        F.l1_loss(a, a + 1),
    ),
    "triangles": lambda a: (
        a.triu(1),
        a.tril(-1),
        taeda.diagonal(a),
        taeda.meshgrid(a[0], a[1], indexing="xy"),
    ),
    "attention": lambda a: (
        F.scaled_dot_product_attention(a[None], a[None], a[None], is_causal=True),
        F.softmax(a, -1),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    check(FUNCTIONS[name], signed())


def test_changes_in_place() -> None:
    def change(a: Any) -> Any:
        a = a.clone()
        a[:, 0] = 1
        a[0, 1:] = a[1, 1:] * 2
        a[a > 1] = 0
        a[1].add_(5)
        a += 1
        return a.mul_(2)

    check(change, signed())


LAYERS = {
    "conv": lambda: nn.Conv2d(3, 6, 3, groups=3, dilation=2, padding="same"),
    "transposed": lambda: nn.ConvTranspose2d(3, 4, 4, 2, 1, output_padding=1),
    "max pool": lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True),
    "average pool": lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False),
    "adaptive": lambda: nn.AdaptiveAvgPool2d((4, 2)),
    "batch norm": lambda: nn.BatchNorm2d(3),
    "instance norm": lambda: nn.InstanceNorm2d(3, affine=True),
    "layer norm": lambda: nn.LayerNorm([8, 8]),
    "group norm": lambda: nn.GroupNorm(3, 3),
    "bilinear": lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
    "bicubic": lambda: nn.Upsample(scale_factor=2, mode="bicubic"),
    "unshuffle": lambda: nn.PixelUnshuffle(2),
    "reflection": lambda: nn.ReflectionPad2d(2),
    "unfold": lambda: nn.Unfold(2, padding=1),
    "channel shuffle": lambda: nn.ChannelShuffle(3),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    taeda.manual_seed(0)
    check(LAYERS[name](), image())


def test_recurrent_layers() -> None:
    taeda.manual_seed(0)
    for layer in (nn.GRU(4, 5), nn.RNN(4, 5, nonlinearity="relu"), nn.LSTM(4, 5, bias=False)):
        check(layer, taeda.randn(3, 2, 4))
    for cell in (nn.LSTMCell(4, 5), nn.GRUCell(4, 5)):
        check(cell, signed())


DRAWS: dict[str, tuple[Any, float, float]] = {
    "rand": (lambda x: taeda.rand(x.shape), 0.5, 0.2887),
    "randn": (lambda x: taeda.randn(x.shape[0], dtype=taeda.float64), 0.0, 1.0),
    "rand_like": (lambda x: taeda.rand_like(x, dtype=taeda.float16), 0.5, 0.2887),
    "randint": (lambda x: taeda.randint(2, 5, x.shape), 3.0, 0.8165),
    "randint_like": (lambda x: taeda.randint_like(x, 4), 1.5, 1.118),
    "randperm": (lambda x: taeda.randperm(x.shape[0]), 999.5, 577.35),
    "normal": (lambda x: taeda.normal(x, 2.0), 0.25, 2.0),
    "normal of sizes": (lambda x: taeda.normal(3.0, 2.0, (x.shape[0],)), 3.0, 2.0),
    "normal_": (lambda x: taeda.empty_like(x).normal_(1.0, 3.0), 1.0, 3.0),
    "log_normal_": (lambda x: taeda.empty_like(x).log_normal_(0.0, 0.25), 1.0317, 0.262),
    "uniform_": (lambda x: x.new_empty(x.shape).uniform_(-1, 3), 1.0, 1.1547),
    "exponential_": (lambda x: taeda.empty_like(x).exponential_(2.0), 0.5, 0.5),
    "bernoulli": (lambda x: taeda.bernoulli(x), 0.25, 0.433),
    "bernoulli of p": (lambda x: taeda.bernoulli(x, 0.75), 0.75, 0.433),
    "bernoulli_": (lambda x: x.clone().bernoulli_(), 0.5, 0.5),
    "bernoulli_ of p": (lambda x: taeda.ones(x.shape, dtype=taeda.int64).bernoulli_(x), 0.25, 0.433),
    "multinomial": (lambda x: taeda.multinomial(taeda.stack([x, 3 * x], 1), 1), 0.75, 0.433),
    "multinomial of all": (lambda x: taeda.multinomial(x, 2000), 999.5, 577.35),
    "multinomial again": (lambda x: taeda.multinomial(x, 2000, replacement=True), 999.5, 577.35),
    "categorical": (
        lambda x: taeda.distributions.Categorical(taeda.stack([x, 3 * x], 1)).sample(),
        0.75,
        0.433,
    ),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("axes", [None, {"x": {0: "rows"}}])
def test_draws(name: str, axes: Any) -> None:
    draw, mean, deviation = DRAWS[name]

    class Draws(nn.Module):
        def forward(self, x: Any) -> Any:
            return draw(x)

    example, buffer = taeda.full((2000 if axes is None or "multinomial " in name else 7,), 0.25), io.BytesIO()
    given = taeda.full((2000,), 0.25)
    taeda.onnx.export(Draws(), (example,), buffer, input_names=["x"], dynamic_axes=axes)
    session = runtime.InferenceSession(buffer.getvalue(), providers=["CPUExecutionProvider"])
    feed = {"x": given.numpy()} if session.get_inputs() else {}
    first, again = (session.run(None, feed)[0] for _ in range(2))
    expected = draw(given).numpy()
    assert first.dtype == expected.dtype and first.shape == expected.shape
    assert (first != again).any()
    assert abs(first.astype(float).mean() - mean) < 6 * deviation / 2000**0.5
    assert abs(first.astype(float).std() / deviation - 1) < 0.1
