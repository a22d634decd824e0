"""Operators at four sizes, all threads of each library's default."""

from __future__ import annotations

from collections.abc import Iterator

from _measure import failure, load, parser, ratio, statements_in_turn, table

SIDES = (32, 128, 512, 2048)
SQUARES = "a, b = torch.randn({n}, {n}), torch.randn({n}, {n})"
MATMUL_SIDES = (32, 128, 512, 1024)

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


def cases() -> Iterator[tuple[str, str, str]]:
    """All measurements as (label, set-up, statement)."""
    for label, setup, statement, sizes in ROWS:
        for n in sizes:
            yield f"{label}, {n}", setup.format(n=n), statement.format(n=n)
    for label, settings in CONVS:
        for n in (7, 14, 28, 56):
            yield f"conv {label}, {n}", CONV.format(n=n, grad=False, **settings), "layer(x)"
            yield f"conv {label}, {n}, training", CONV.format(n=n, grad=True, **settings), "train()"


def rows(libraries: dict) -> Iterator[list[str]]:
    """One row for every measurement: microseconds by library, and the ratio."""
    for label, setup, statement in cases():
        try:
            times = statements_in_turn(libraries, setup, statement, repeats=7, budget=0.02)
        except Exception as error:
            yield [label, *[""] * len(libraries), failure(error)]
            continue
        yield [label, *(f"{seconds * 1e6:.1f}" for seconds in times.values()), ratio(times)]


def main() -> None:
    """Prints the table."""
    chosen = parser(__doc__).parse_args().libraries.split(",")
    table("Operators", ["operation", *(f"{name} us" for name in chosen), "ratio"], rows(load(chosen)))


if __name__ == "__main__":
    main()
