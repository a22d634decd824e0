"""What a call costs: operations on tiny tensors, one thread."""

from __future__ import annotations

from collections.abc import Iterator

from _measure import failure, load, parser, ratio, statements_in_turn, table

AB = "a, b = torch.randn(4), torch.randn(4)"
GRAD = "a, b = torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True)"
NO_GRAD = (
    GRAD
    + """
def run():
    with torch.no_grad():
        for _ in range(100):
            a + b
"""
)
MATRIX = "m = torch.randn(4, 4)"
CHAIN = """
a, b = torch.randn(4, requires_grad=True), torch.randn(4)
def run():
    x = a
    for _ in range(500):
        x = x + b
    x.sum().backward()
"""
RNN_STEP = """
x, h = torch.randn(1, 10), torch.randn(1, 20)
w_h = torch.randn(20, 20, requires_grad=True)
w_x = torch.randn(20, 10, requires_grad=True)
def run():
    i2h = torch.mm(w_x, x.t())
    h2h = torch.mm(w_h, h.t())
    ((i2h + h2h).tanh()).sum().backward()
"""
MLP = """
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
x, y = torch.randn(2, 8), torch.tensor([1, 2])
"""
STEP = (
    MLP
    + """
optimizer = torch.optim.{}(net.parameters(), lr=1e-3)
def run():
    optimizer.zero_grad()
    F.cross_entropy(net(x), y).backward()
    optimizer.step()
"""
)
LSTM_CELL = "cell = nn.LSTMCell(8, 8); x = torch.randn(2, 8); state = (torch.randn(2, 8), torch.randn(2, 8))"
LSTM_TRAIN = LSTM_CELL + "\ndef run():\n    h, c = cell(x, state)\n    (h.sum() + c.sum()).backward()"

# label, set-up, statement, executions inside the statement
ROWS = [
    ("add", AB, "a + b", 1),
    ("add, gradient recorded", GRAD, "a + b", 1),
    ("add under no_grad", NO_GRAD, "run()", 100),
    ("enter and leave no_grad", "", "with torch.no_grad(): pass", 1),
    ("add a number", AB, "a + 1.0", 1),
    ("multiply by a number", AB, "a * 2", 1),
    ("multiply, gradient recorded", GRAD, "a * b", 1),
    ("add, broadcast", MATRIX + "; v = torch.randn(4)", "m + v", 1),
    ("add in place", AB, "a.add_(b, alpha=1e-9)", 1),
    ("compare", AB, "a > b", 1),
    ("exp", AB, "a.exp()", 1),
    ("relu", AB, "torch.relu(a)", 1),
    ("F.relu", AB, "F.relu(a)", 1),
    ("sum", AB, "a.sum()", 1),
    ("mean of a dimension", MATRIX, "m.mean(1)", 1),
    ("max of a dimension", MATRIX, "m.max(1)", 1),
    ("argmax", AB, "a.argmax()", 1),
    ("softmax", MATRIX, "m.softmax(1)", 1),
    ("where", AB + "; c = a > 0", "torch.where(c, a, b)", 1),
    ("mm", MATRIX, "torch.mm(m, m)", 1),
    ("matmul operator", MATRIX, "m @ m", 1),
    ("view", MATRIX, "m.view(16)", 1),
    ("reshape", MATRIX, "m.reshape(2, 8)", 1),
    ("transpose", MATRIX, "m.t()", 1),
    ("permute", MATRIX, "m.permute(1, 0)", 1),
    ("unsqueeze", AB, "a.unsqueeze(0)", 1),
    ("slice", AB, "a[1:3]", 1),
    ("a[0]", AB, "a[0]", 1),
    ("m[1, 2]", MATRIX, "m[1, 2]", 1),
    ("index by a tensor", MATRIX + "; i = torch.tensor([0, 2])", "m[i]", 1),
    ("assign to an element", AB, "a[0] = 1.0", 1),
    ("item", "a = torch.tensor(1.0)", "a.item()", 1),
    ("shape", AB, "a.shape", 1),
    ("empty", "", "torch.empty(4)", 1),
    ("zeros", "", "torch.zeros(2, 3)", 1),
    ("tensor of a list", "", "torch.tensor([1.0, 2.0, 3.0, 4.0])", 1),
    ("arange", "", "torch.arange(4)", 1),
    ("randn", "", "torch.randn(4)", 1),
    ("clone", AB, "a.clone()", 1),
    ("detach", GRAD, "a.detach()", 1),
    ("convert to float64", AB, "a.to(torch.float64)", 1),
    ("cat", AB, "torch.cat([a, b])", 1),
    ("stack", AB, "torch.stack([a, b])", 1),
    ("numpy", AB, "a.numpy()", 1),
    ("from_numpy", "import numpy; a = numpy.ones(4)", "torch.from_numpy(a)", 1),
    ("500 additions, forward and backward, each", CHAIN, "run()", 500),
    ("RNN step, forward and backward", RNN_STEP, "run()", 1),
    ("nn.Identity call", "layer = nn.Identity(); x = torch.randn(4)", "layer(x)", 1),
    ("nn.Linear call", "layer = nn.Linear(4, 4); x = torch.randn(2, 4)", "layer(x)", 1),
    ("F.linear", "w, b, x = torch.randn(4, 4), torch.randn(4), torch.randn(2, 4)", "F.linear(x, w, b)", 1),
    ("nn.Conv2d call", "layer = nn.Conv2d(2, 2, 3); x = torch.randn(1, 2, 5, 5)", "layer(x)", 1),
    ("nn.BatchNorm1d call", "layer = nn.BatchNorm1d(4); x = torch.randn(3, 4)", "layer(x)", 1),
    ("nn.LayerNorm call", "layer = nn.LayerNorm(4); x = torch.randn(3, 4)", "layer(x)", 1),
    ("nn.Embedding call", "layer = nn.Embedding(9, 4); i = torch.tensor([1, 2])", "layer(i)", 1),
    ("nn.LSTMCell call", LSTM_CELL, "cell(x, state)", 1),
    ("nn.LSTMCell, forward and backward", LSTM_TRAIN, "run()", 1),
    ("nn.LSTM, 5 steps", "layer = nn.LSTM(4, 4); x = torch.randn(5, 1, 4)", "layer(x)", 1),
    ("F.cross_entropy", "x, y = torch.randn(2, 4), torch.tensor([1, 2])", "F.cross_entropy(x, y)", 1),
    ("3-layer MLP, forward", MLP, "net(x)", 1),
    ("3-layer MLP, SGD step", STEP.format("SGD"), "run()", 1),
    ("3-layer MLP, Adam step", STEP.format("Adam"), "run()", 1),
]


def rows(libraries: dict) -> Iterator[list[str]]:
    """One row for every entry of ``ROWS``: microseconds by library, and the ratio."""
    for label, setup, statement, inside in ROWS:
        try:
            times = statements_in_turn(libraries, setup, statement)
        except Exception as error:
            yield [label, *[""] * len(libraries), failure(error)]
            continue
        yield [label, *(f"{seconds * 1e6 / inside:.3f}" for seconds in times.values()), ratio(times)]


def main() -> None:
    """Prints the table."""
    chosen = parser(__doc__).parse_args().libraries.split(",")
    libraries = load(chosen, threads=1)
    table(
        "Overhead on tiny tensors",
        ["operation", *(f"{name} us" for name in chosen), "ratio"],
        rows(libraries),
    )
    import numpy

    space = {"numpy": numpy}
    times = _numpy_add(space)
    print(f"\nNumPy's add of 4 elements: {times * 1e6:.3f} us")


def _numpy_add(space: dict) -> float:
    import timeit

    timer = timeit.Timer("a + b", "a, b = numpy.ones(4, 'f'), numpy.ones(4, 'f')", globals=space)
    return min(timer.repeat(7, 20_000)) / 20_000


if __name__ == "__main__":
    main()
