"""What a call costs: operations on tiny tensors, one thread."""

from __future__ import annotations

import re
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

IMAGE = "x = torch.randn(1, 2, 6, 6)"
IMAGE_TRAIN = "x = torch.randn(1, 2, 6, 6, requires_grad=True)\ndef run():\n    {}.sum().backward()"
LAYER_TRAIN = """
layer = {}
x = torch.randn({}, requires_grad=True)
def run():
    layer(x).sum().backward()
"""
LOSS = "x, y = torch.rand(2, 4, requires_grad=True), torch.rand(2, 4)\ndef run():\n    {}.backward()"
VALUE_TRAIN = "a, b = torch.rand(4, requires_grad=True), torch.rand(4)\ndef run():\n    {}.sum().backward()"
MATRIX_TRAIN = "m = torch.rand(4, 4, requires_grad=True)\ndef run():\n    {}.sum().backward()"
OPTIMIZER = """
parameters = [torch.randn(4, requires_grad=True) for _ in range(4)]
for parameter in parameters:
    parameter.grad = torch.randn(4)
optimizer = torch.optim.{}
optimizer.step()
"""

NET = "x = torch.randn(4, 8); net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))"
PART = "import importlib\npart = lambda name: importlib.import_module(torch.__name__ + name)\n"
CHECKPOINT = (
    PART
    + NET
    + """
checkpoint = part(".utils.checkpoint").checkpoint
def run():
    checkpoint(net, x, use_reentrant=False).sum().backward()
"""
)
MODE = (
    NET
    + """
class Passing(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))
def run():
    with Passing():
        net(x)
"""
)
OPERATORS = (
    PART
    + NET
    + """
class Passing(part(".utils._python_dispatch").TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))
def run():
    with Passing():
        net(x)
"""
)
FORKED = "def run():\n    with torch.random.fork_rng():\n        pass"
DUALS = (
    PART
    + """
forward_ad = part(".autograd.forward_ad")
x = torch.randn(4)
def run():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, x)
        forward_ad.unpack_dual(dual * dual)
"""
)
MAPPED = "x = torch.randn(4, 8); run = torch.func.vmap(lambda a: {})"
FILE = (
    NET
    + """
import io
def run():
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    torch.load(file)
"""
)

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
    ("F.conv2d", IMAGE + "; w, b = torch.randn(2, 2, 3, 3), torch.randn(2)", "F.conv2d(x, w, b)", 1),
    ("F.max_pool2d", IMAGE, "F.max_pool2d(x, 2)", 1),
    ("F.max_pool2d, forward and backward", IMAGE_TRAIN.format("F.max_pool2d(x, 2)"), "run()", 1),
    ("F.avg_pool2d", IMAGE, "F.avg_pool2d(x, 2)", 1),
    ("F.avg_pool2d, forward and backward", IMAGE_TRAIN.format("F.avg_pool2d(x, 2)"), "run()", 1),
    ("F.adaptive_avg_pool2d", IMAGE, "F.adaptive_avg_pool2d(x, 2)", 1),
    (
        "F.adaptive_avg_pool2d, forward and backward",
        IMAGE_TRAIN.format("F.adaptive_avg_pool2d(x, 2)"),
        "run()",
        1,
    ),
    ("F.adaptive_max_pool2d", IMAGE, "F.adaptive_max_pool2d(x, 2)", 1),
    (
        "F.adaptive_max_pool2d, forward and backward",
        IMAGE_TRAIN.format("F.adaptive_max_pool2d(x, 2)"),
        "run()",
        1,
    ),
    ("F.pad", IMAGE, "F.pad(x, (1, 1))", 1),
    ("F.pad, forward and backward", IMAGE_TRAIN.format("F.pad(x, (1, 1))"), "run()", 1),
    ("nn.Conv2d, forward and backward", LAYER_TRAIN.format("nn.Conv2d(2, 2, 3)", "1, 2, 5, 5"), "run()", 1),
    ("nn.Conv1d, forward and backward", LAYER_TRAIN.format("nn.Conv1d(2, 2, 3)", "1, 2, 5"), "run()", 1),
    (
        "nn.ConvTranspose2d, forward and backward",
        LAYER_TRAIN.format("nn.ConvTranspose2d(2, 2, 3)", "1, 2, 5, 5"),
        "run()",
        1,
    ),
    ("nn.Linear, forward and backward", LAYER_TRAIN.format("nn.Linear(4, 4)", "2, 4"), "run()", 1),
    (
        "nn.BatchNorm2d, forward and backward",
        LAYER_TRAIN.format("nn.BatchNorm2d(2)", "2, 2, 3, 3"),
        "run()",
        1,
    ),
    ("nn.LayerNorm, forward and backward", LAYER_TRAIN.format("nn.LayerNorm(4)", "3, 4"), "run()", 1),
    ("nn.GroupNorm, forward and backward", LAYER_TRAIN.format("nn.GroupNorm(2, 4)", "2, 4, 3"), "run()", 1),
    ("nn.PReLU, forward and backward", LAYER_TRAIN.format("nn.PReLU()", "2, 4"), "run()", 1),
    ("nn.GRUCell, forward and backward", LAYER_TRAIN.format("nn.GRUCell(4, 4)", "2, 4"), "run()", 1),
    ("nn.MaxPool2d call", "layer = nn.MaxPool2d(2); " + IMAGE, "layer(x)", 1),
    ("nn.Dropout call", "layer = nn.Dropout(); x = torch.randn(4)", "layer(x)", 1),
    ("nn.Dropout, forward and backward", LAYER_TRAIN.format("nn.Dropout()", "4"), "run()", 1),
    ("F.mse_loss, forward and backward", LOSS.format("F.mse_loss(x, y)"), "run()", 1),
    ("F.binary_cross_entropy, forward and backward", LOSS.format("F.binary_cross_entropy(x, y)"), "run()", 1),
    (
        "F.binary_cross_entropy_with_logits, forward and backward",
        LOSS.format("F.binary_cross_entropy_with_logits(x, y)"),
        "run()",
        1,
    ),
    ("F.smooth_l1_loss, forward and backward", LOSS.format("F.smooth_l1_loss(x, y)"), "run()", 1),
    ("F.kl_div, forward and backward", LOSS.format("F.kl_div(x, y, reduction='sum')"), "run()", 1),
    (
        "F.cross_entropy, forward and backward",
        LOSS.format("F.cross_entropy(x, torch.tensor([1, 2]))"),
        "run()",
        1,
    ),
    ("exp, forward and backward", VALUE_TRAIN.format("a.exp()"), "run()", 1),
    ("sigmoid, forward and backward", VALUE_TRAIN.format("a.sigmoid()"), "run()", 1),
    ("power, forward and backward", VALUE_TRAIN.format("(a ** 2)"), "run()", 1),
    ("divide, forward and backward", VALUE_TRAIN.format("(a / b)"), "run()", 1),
    ("where, forward and backward", VALUE_TRAIN.format("torch.where(b > 0.5, a, b)"), "run()", 1),
    ("clamp, forward and backward", VALUE_TRAIN.format("a.clamp(0.2, 0.8)"), "run()", 1),
    ("gelu, forward and backward", VALUE_TRAIN.format("F.gelu(a)"), "run()", 1),
    ("softmax, forward and backward", MATRIX_TRAIN.format("m.softmax(1)"), "run()", 1),
    ("log_softmax, forward and backward", MATRIX_TRAIN.format("m.log_softmax(1)"), "run()", 1),
    ("matmul, forward and backward", MATRIX_TRAIN.format("(m @ m)"), "run()", 1),
    ("mean of a dimension, forward and backward", MATRIX_TRAIN.format("m.mean(1)"), "run()", 1),
    ("max of a dimension, forward and backward", MATRIX_TRAIN.format("m.max(1)[0]"), "run()", 1),
    ("slice, forward and backward", MATRIX_TRAIN.format("m[1:3]"), "run()", 1),
    ("index by a tensor, forward and backward", MATRIX_TRAIN.format("m[torch.tensor([0, 2])]"), "run()", 1),
    ("transpose and reshape, forward and backward", MATRIX_TRAIN.format("m.t().reshape(16)"), "run()", 1),
    ("cat, forward and backward", MATRIX_TRAIN.format("torch.cat([m, m])"), "run()", 1),
    ("stack, forward and backward", MATRIX_TRAIN.format("torch.stack([m, m])"), "run()", 1),
    ("var, forward and backward", MATRIX_TRAIN.format("m.var(1)"), "run()", 1),
    ("norm, forward and backward", MATRIX_TRAIN.format("m.norm()"), "run()", 1),
    ("cumsum, forward and backward", MATRIX_TRAIN.format("m.cumsum(1)"), "run()", 1),
    (
        "gather, forward and backward",
        MATRIX_TRAIN.format("m.gather(1, torch.zeros(4, 1, dtype=torch.int64))"),
        "run()",
        1,
    ),
    (
        "einsum, matrix product",
        MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0",
        "torch.einsum('ij,jk->ik', m, m)",
        1,
    ),
    (
        "bmm",
        MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0",
        "torch.bmm(m[None], m[None])",
        1,
    ),
    ("chunk", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "m.chunk(2)", 1),
    ("split", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "m.split(2)", 1),
    ("topk", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "m.topk(2)", 1),
    ("sort", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "m.sort()", 1),
    ("cumsum", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "m.cumsum(1)", 1),
    ("gather", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "m.gather(1, i)", 1),
    ("scatter", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "m.scatter(1, i, 1.0)", 1),
    (
        "masked_fill",
        MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0",
        "m.masked_fill(k, 0.0)",
        1,
    ),
    ("boolean mask", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "m[k]", 1),
    ("nonzero", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "k.nonzero()", 1),
    ("any", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "k.any()", 1),
    ("var", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "m.var(1)", 1),
    ("norm", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "m.norm()", 1),
    ("expand", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "m[:, :1].expand(4, 4)", 1),
    ("flip", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "m.flip(0)", 1),
    ("triu", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "m.triu()", 1),
    ("allclose", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "torch.allclose(m, m)", 1),
    ("one_hot", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "F.one_hot(i[:, 0], 4)", 1),
    ("clamp", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "m.clamp(0.0, 1.0)", 1),
    ("floor_divide", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "m // 2.0", 1),
    ("remainder", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "m % 2.0", 1),
    (
        "linspace",
        MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0",
        "torch.linspace(0, 1, 4)",
        1,
    ),
    ("full", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "torch.full((4,), 1.0)", 1),
    (
        "zeros_like",
        MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0",
        "torch.zeros_like(m)",
        1,
    ),
    ("rand", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "torch.rand(4)", 1),
    (
        "randint",
        MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0",
        "torch.randint(5, (4,))",
        1,
    ),
    ("randperm", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "torch.randperm(4)", 1),
    ("dropout", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "F.dropout(m)", 1),
    ("copy in place", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "m.copy_(m)", 1),
    (
        "zero in place",
        MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0",
        "m.clone().zero_()",
        1,
    ),
    ("tolist of one element", "v = torch.randn(1)", "v.tolist()", 1),
    (
        "iterate over rows",
        MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0",
        "for _row in m: pass",
        1,
    ),
    ("repr", MATRIX + "; i = torch.zeros(4, 1, dtype=torch.int64); k = m > 0", "repr(m)", 1),
    ("SGD step, 4 tensors", OPTIMIZER.format("SGD(parameters, lr=1e-3)"), "optimizer.step()", 1),
    (
        "SGD with momentum step, 4 tensors",
        OPTIMIZER.format("SGD(parameters, lr=1e-3, momentum=0.9)"),
        "optimizer.step()",
        1,
    ),
    ("Adam step, 4 tensors", OPTIMIZER.format("Adam(parameters, lr=1e-3)"), "optimizer.step()", 1),
    ("AdamW step, 4 tensors", OPTIMIZER.format("AdamW(parameters, lr=1e-3)"), "optimizer.step()", 1),
    ("RMSprop step, 4 tensors", OPTIMIZER.format("RMSprop(parameters, lr=1e-3)"), "optimizer.step()", 1),
    ("Adagrad step, 4 tensors", OPTIMIZER.format("Adagrad(parameters, lr=1e-3)"), "optimizer.step()", 1),
    (
        "clip_grad_norm_, 4 tensors",
        OPTIMIZER.format("SGD(parameters, lr=1e-3)"),
        "nn.utils.clip_grad_norm_(parameters, 1.0)",
        1,
    ),
    ("checkpoint of a network, trained", CHECKPOINT, "run()", 1),
    ("network in a mode of functions", MODE, "run()", 1),
    ("network in a mode of operators", OPERATORS, "run()", 1),
    ("fork_rng", FORKED, "run()", 1),
    ("is there a device", "", "torch.cuda.is_available()", 1),
    ("duals", DUALS, "run()", 1),
    ("vmap of a chain", MAPPED.format("((a * 2 + 1) * a - a).relu()"), "run(x)", 1),
    ("vmap of a sum", MAPPED.format("a.sum()"), "run(x)", 1),
    ("vmap of a view", MAPPED.format("a.view(2, 4)"), "run(x)", 1),
    ("func.grad", "x = torch.randn(4); run = torch.func.grad(lambda a: (a * a).sum())", "run(x)", 1),
    ("func.jacrev", "x = torch.randn(4); run = torch.func.jacrev(lambda a: a * a)", "run(x)", 1),
    ("state_dict", NET, "net.state_dict()", 1),
    ("load_state_dict", NET + "; state = net.state_dict()", "net.load_state_dict(state)", 1),
    ("deepcopy of a network", NET + "; import copy", "copy.deepcopy(net)", 1),
    ("save and load", FILE, "run()", 1),
    (
        "sample of a normal distribution",
        "d = torch.distributions.Normal(torch.zeros(4), 1.0)",
        "d.sample()",
        1,
    ),
    ("log_prob", "d = torch.distributions.Normal(torch.zeros(4), 1.0); x = d.sample()", "d.log_prob(x)", 1),
]


def rows(libraries: dict, only: str = "") -> Iterator[list[str]]:
    """One row for every entry of ``ROWS`` whose label holds ``only``: microseconds by library, and the ratio."""
    for label, setup, statement, inside in ROWS:
        if not re.search(only, label):
            continue
        try:
            times = statements_in_turn(libraries, setup, statement)
        except Exception as error:
            yield [label, *[""] * len(libraries), failure(error)]
            continue
        yield [label, *(f"{seconds * 1e6 / inside:.3f}" for seconds in times.values()), ratio(times)]


def main() -> None:
    """Prints the table."""
    options = parser(__doc__)
    options.add_argument("--only", default="", help="regular expression: labels to measure")
    given = options.parse_args()
    chosen = given.libraries.split(",")
    libraries = load(chosen, threads=1)
    table(
        "Overhead on tiny tensors",
        ["operation", *(f"{name} us" for name in chosen), "ratio"],
        rows(libraries, given.only),
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
