"""Operators at four sizes, with each library's default number of threads or a given one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from _measure import failure, load, parser, ratio, statements_in_turn, table

from taeda_testing import all_records

SIDES = (32, 128, 512, 2048)
SQUARES = "a, b = torch.randn({n}, {n}), torch.randn({n}, {n})"
MATMUL_SIDES = (32, 128, 512, 1024)
COMPLEX = "a, b = torch.randn({n}, {n}, dtype=torch.complex64), torch.randn({n}, {n}, dtype=torch.complex64)"
HALVES = "a = torch.randn({n}, {n}).bfloat16()"
# Sums over a graph's edges: an index that is spread to whole slices.
SLICES = (
    "a, b = torch.randn({n} // 10, 64), torch.randn({n}, 64)\n"
    "i = torch.randint({n} // 10, ({n}, 1)).expand({n}, 64)"
)
ORDERS = "e = torch.eye({n}); a = torch.randn(20_000, {n}, {n}) + 3 * e; b = torch.randn(20_000, {n}, 1)"
COMPLEX_SIDES = (32, 128, 512, 1024)

# label, set-up and statement with {n}, sizes
ROWS = [
    ("add", SQUARES, "a + b", SIDES),
    ("multiply-add in place", SQUARES, "a.add_(b, alpha=1e-9)", SIDES),
    ("broadcast row", SQUARES + "; v = torch.randn({n})", "a + v", SIDES),
    ("exp", SQUARES, "a.exp()", SIDES),
    ("tanh", SQUARES, "a.tanh()", SIDES),
    ("relu", SQUARES, "torch.relu(a)", SIDES),
    ("gelu", SQUARES, "F.gelu(a)", SIDES),
    ("compare and where", SQUARES, "torch.where(a > b, a, b)", SIDES),
    ("convert to float64", SQUARES, "a.to(torch.float64)", SIDES),
    ("complex multiply", COMPLEX, "a * b", COMPLEX_SIDES),
    ("complex divide", COMPLEX, "a / b", COMPLEX_SIDES),
    ("complex abs", COMPLEX, "a.abs()", COMPLEX_SIDES),
    ("complex exp", COMPLEX, "a.exp()", COMPLEX_SIDES),
    ("complex sin", COMPLEX, "a.sin()", COMPLEX_SIDES),
    ("sum", SQUARES, "a.sum()", SIDES),
    ("sum of rows", SQUARES, "a.sum(1)", SIDES),
    ("sum of columns", SQUARES, "a.sum(0)", SIDES),
    ("argmax of rows", SQUARES, "a.argmax(1)", SIDES),
    ("var", SQUARES, "a.var(1)", SIDES),
    ("cumsum", SQUARES, "a.cumsum(1)", SIDES),
    ("softmax", SQUARES, "a.softmax(1)", SIDES),
    ("log_softmax", SQUARES, "a.log_softmax(1)", SIDES),
    ("layer_norm", SQUARES, "F.layer_norm(a, ({n},))", SIDES),
    ("transposed copy", SQUARES, "a.t().contiguous()", SIDES),
    ("cat", SQUARES, "torch.cat([a, b], 1)", SIDES),
    ("gather rows", SQUARES + "; i = torch.randperm({n})", "a[i]", SIDES),
    ("sort rows", SQUARES, "a.sort(1)", SIDES),
    ("topk", SQUARES, "a.topk(10, 1)", SIDES),
    ("randn", "", "torch.randn({n}, {n})", SIDES),
    ("matmul", SQUARES, "a @ b", MATMUL_SIDES),
    ("matmul, transposed", SQUARES, "a @ b.t()", MATMUL_SIDES),
    ("matmul float64", SQUARES + "; a, b = a.double(), b.double()", "a @ b", MATMUL_SIDES),
    ("batched matmul, 8", "a = torch.randn(8, {n}, {n})", "a @ a", (16, 64, 128, 256)),
    ("softmax bfloat16", HALVES, "a.softmax(1)", (128, 2048)),
    ("softmax of columns bfloat16", HALVES, "a.softmax(0)", (128, 2048)),
    ("sum bfloat16", HALVES, "a.sum()", (128, 2048)),
    ("sum of rows bfloat16", HALVES, "a.sum(1)", (128, 2048)),
    ("layer_norm bfloat16", HALVES, "F.layer_norm(a, ({n},))", (128, 2048)),
    ("layer of bfloat16", HALVES, "F.linear(a, a)", (64, 256, 1024)),
    ("product of bfloat16", HALVES, "a @ a", (64, 256, 1024)),
    ("product of bfloat16, left transposed", HALVES, "a.t() @ a", (64, 256, 1024)),
    ("one row by bfloat16", HALVES, "F.linear(a[:1], a)", (512, 4096)),
    ("one row by float16", HALVES + "; a = a.half()", "F.linear(a[:1], a)", (512, 4096)),
    ("scatter_add of slices", SLICES, "a.scatter_add(0, i, b)", (2_000, 50_000)),
    ("gather of slices", SLICES, "b.gather(0, i)", (2_000, 50_000)),
    ("scatter_reduce of slices", SLICES, 'a.scatter_reduce(0, i, b, "amax")', (2_000, 50_000)),
    ("det, 20,000 of order", ORDERS, "torch.linalg.det(a)", (2, 3, 4, 8)),
    ("inv, 20,000 of order", ORDERS, "torch.linalg.inv(a)", (2, 3, 4, 8)),
    ("solve, 20,000 of order", ORDERS, "torch.linalg.solve(a, b)", (2, 3, 4, 8)),
    ("cholesky, 20,000 of order", ORDERS, "torch.linalg.cholesky(a @ a.mT + e)", (2, 3, 4, 8)),
]
CONV = """
layer = nn.Conv2d({c}, {o}, {k}, padding={p}, stride={s}, groups={g})
x = torch.randn({b}, {c}, {n}, {n}, requires_grad={grad})
def train():
    layer(x).sum().backward()
"""
CONVS = [
    ("3x3", {"c": 64, "o": 64, "k": 3, "p": 1, "s": 1, "g": 1, "b": 4}),
    ("1x1", {"c": 64, "o": 256, "k": 1, "p": 0, "s": 1, "g": 1, "b": 4}),
    ("3x3 stride 2", {"c": 64, "o": 128, "k": 3, "p": 1, "s": 2, "g": 1, "b": 4}),
    ("depthwise 3x3", {"c": 128, "o": 128, "k": 3, "p": 1, "s": 1, "g": 128, "b": 4}),
]
TRAIN = "\ndef train():\n    {}.sum().backward()"
LOSS = "x, y = torch.rand(1024, {n}, requires_grad=True), torch.rand(1024, {n})" + TRAIN
CLASSES = "x, y = torch.randn(64, {n}, requires_grad=True), torch.randint({n}, (64,))" + TRAIN
LEAF = "a = torch.rand({n}, {n}, requires_grad=True)" + TRAIN
POOL = "x = torch.randn(8, 64, {n}, {n}, requires_grad=True)" + TRAIN
LAYERS = """
layer = {layer}
x = torch.randn({shape}, requires_grad=True)
def train():
    output = layer(x)
    (output[0] if isinstance(output, tuple) else output).sum().backward()
"""
# label, set-up up to a call to put in, calls by name, sizes: each forward and, by `train()`, backward
FAMILIES = [
    (
        LOSS,
        {
            "mse_loss": "F.mse_loss(x, y)",
            "smooth_l1_loss": "F.smooth_l1_loss(x, y)",
            "bce": "F.binary_cross_entropy(x, y)",
            "bce_with_logits": "F.binary_cross_entropy_with_logits(x, y)",
        },
        (16, 1024),
    ),
    (CLASSES, {"cross_entropy": "F.cross_entropy(x, y)"}, (10, 1000, 32000)),
    (
        LEAF,
        {
            "softmax of columns": "a.softmax(0)",
            "log_softmax of columns": "a.log_softmax(0)",
            "log_softmax": "a.log_softmax(1)",
            "layer_norm": "F.layer_norm(a, ({n},))",
            "gelu": "F.gelu(a)",
            "silu": "F.silu(a)",
            "max of rows": "a.max(1)[0]",
            "norm of rows": "a.norm(dim=1)",
        },
        (32, 512, 2048),
    ),
    (
        POOL,
        {
            "max_pool2d": "F.max_pool2d(x, 3, 2)",
            "avg_pool2d": "F.avg_pool2d(x, 2)",
            "adaptive_avg_pool2d": "F.adaptive_avg_pool2d(x, 1)",
        },
        (8, 56),
    ),
]
ELEMENTWISE = {
    "divide": "a / b",
    "floor_divide": "a // b",
    "remainder": "a % b",
    "fmod": "torch.fmod(a, b)",
    "power": "a ** b",
    "power float64": "a.double() ** b.double()",
    "clamp": "a.clamp(0.2, 0.8)",
    "masked_fill": "a.masked_fill(k, 0.0)",
    "boolean mask": "a[k]",
    "gather": "a.gather(1, i)",
    "scatter_add": "torch.zeros_like(a).scatter_add(1, i, b)",
    "nonzero": "k.nonzero()",
    "any": "k.any()",
    "rand": "torch.rand({n}, {n})",
    "dropout": "F.dropout(a)",
    "bfloat16": "a.bfloat16()",
    "add bfloat16": "h + h",
    "add int64": "i + i",
    "matmul bfloat16": "h @ h",
    "matmul int64": "i @ i",
    "matmul int32": "j @ j",
}
ELEMENTS = """
a, b = torch.rand({n}, {n}) * 0.9 + 0.05, torch.rand({n}, {n}) * 0.9 + 0.05
k, i, h = a > 0.5, torch.randint({n}, ({n}, {n})), a.bfloat16()
j = i.int()
"""
# Functions of each element as their records have them: operands within their domains.
FUNCTION = """
import numpy
rng = numpy.random.default_rng(3)
operands = [torch.from_numpy(rng.uniform(low, high, ({n}, {n})).astype("float32")) for low, high, _ in {domains}]
function = getattr(torch, "{name}", None) or getattr(F, "{name}")
"""
MODULES = [
    ("linear 64x512", "nn.Linear(512, 512)", "64, 512"),
    ("linear 64x2048 to 1000", "nn.Linear(2048, 1000)", "64, 2048"),
    ("linear 1024x256", "nn.Linear(256, 1024)", "1024, 256"),
    ("batch_norm", "nn.BatchNorm2d(64)", "8, 64, 28, 28"),
    ("group_norm", "nn.GroupNorm(8, 64)", "8, 64, 28, 28"),
    ("lstm 20x16x256", "nn.LSTM(256, 256)", "20, 16, 256"),
    ("lstm 20x64x1024", "nn.LSTM(1024, 1024)", "20, 64, 1024"),
    ("gru 20x16x256", "nn.GRU(256, 256)", "20, 16, 256"),
    ("conv1d", "nn.Conv1d(64, 64, 3)", "8, 64, 256"),
    ("conv3x3, dilation 2", "nn.Conv2d(32, 32, 3, dilation=2)", "4, 32, 28, 28"),
    ("transposed conv", "nn.ConvTranspose2d(32, 32, 4, stride=2)", "4, 32, 14, 14"),
]

# 50 million parameters in 100 tensors of ten sizes. Streaming them is one pass that reads two numbers and writes one
# for each; clipping moves as many bytes, a step of AdamW 7/3 of them.
MANY = """
sizes = [4888 * 2 ** (i % 10) for i in range(100)]
params = [torch.nn.Parameter(torch.rand(n)) for n in sizes]
for p in params:
    p.grad = torch.rand_like(p)
optimizer = torch.optim.AdamW(params, lr=1e-9{fused})
flat, other, bound = torch.rand(sum(sizes)), torch.rand(sum(sizes)), [1e9]
def clip():
    bound[0] = float(nn.utils.clip_grad_norm_(params, bound[0])) * 0.999
"""


def many_cases() -> Iterator[tuple[str, str, str]]:
    """What is done to all parameters of a large model, beside streaming the same bytes."""
    made = MANY.format(fused="")
    yield "stream 50 M numbers", made, "flat.add_(other, alpha=1e-9)"
    yield "clip_grad_norm_, 100 tensors", made, "clip()"
    yield "AdamW, 100 tensors", made, "optimizer.step()"
    yield "AdamW fused, 100 tensors", MANY.format(fused=", fused=True"), "optimizer.step()"


def training_cases() -> Iterator[tuple[str, str, str]]:
    """Layers, losses and element-wise operators, forward and backward."""
    for setup, calls, sizes in FAMILIES:
        for label, call in calls.items():
            for n in sizes:
                made = setup.replace("{}", call).format(n=n)
                yield f"{label}, {n}", made, call.format(n=n)
                yield f"{label}, {n}, training", made, "train()"
    for label, call in ELEMENTWISE.items():
        for n in (128, 1024):
            yield f"{label}, {n}", ELEMENTS.format(n=n), call.format(n=n)
    for record in {r.name: r for r in all_records() if r.domains and "float32" in r.dtypes}.values():
        for n in (128, 1024):
            made = FUNCTION.format(n=n, domains=record.domains, name=record.name)
            yield f"{record.name} of its record, {n}", made, "function(*operands)"
    for label, layer, shape in MODULES:
        setup = LAYERS.format(layer=layer, shape=shape)
        yield label, setup, "layer(x)"
        yield f"{label}, training", setup, "train()"


def cases() -> Iterator[tuple[str, str, str]]:
    """All measurements as (label, set-up, statement)."""
    for label, setup, statement, sizes in ROWS:
        for n in sizes:
            yield f"{label}, {n}", setup.format(n=n), statement.format(n=n)
    for label, settings in CONVS:
        for n in (7, 14, 28, 56):
            yield f"conv {label}, {n}", CONV.format(n=n, grad=False, **settings), "layer(x)"
            yield f"conv {label}, {n}, training", CONV.format(n=n, grad=True, **settings), "train()"
    yield from training_cases()
    yield from many_cases()


def rows(libraries: dict, only: str = "") -> Iterator[list[str]]:
    """One row for every measurement whose label holds ``only``: microseconds by library, and the ratio."""
    for label, setup, statement in cases():
        if not re.search(only, label):
            continue
        try:
            times = statements_in_turn(libraries, setup, statement, repeats=7, budget=0.02)
        except Exception as error:
            yield [label, *[""] * len(libraries), failure(error)]
            continue
        yield [label, *(f"{seconds * 1e6:.1f}" for seconds in times.values()), ratio(times)]


def main() -> None:
    """Prints the table."""
    options = parser(__doc__)
    options.add_argument("--only", default="", help="regular expression: labels to measure")
    options.add_argument("--threads", type=int, help="threads of each library, by default its own choice")
    given = options.parse_args()
    chosen = given.libraries.split(",")
    header = ["operation", *(f"{name} us" for name in chosen), "ratio"]
    table("Operators", header, rows(load(chosen, given.threads), given.only))


if __name__ == "__main__":
    main()
