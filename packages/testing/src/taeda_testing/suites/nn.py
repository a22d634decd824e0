"""Behaviour of a neural-network provider: modules and their state, layers against formulas in NumPy."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np

from taeda_registry.slots import tensor
from taeda_testing.conformance.checks import Suite, array_of, close, equal, raises, true

suite = Suite("nn")
CHECKS = suite.checks


def _t(array: Any) -> Any:
    return tensor.tensor(np.asarray(array, np.float32))


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _network(part: Any) -> Any:
    class Network(part.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = part.Linear(3, 4)
            self.rest = part.Sequential(part.ReLU(), part.Linear(4, 2, bias=False))
            self.scale = part.Parameter(tensor.ones(1))
            self.register_buffer("count", tensor.zeros(1))

        def forward(self, x: Any) -> Any:
            return self.rest(self.first(x)) * self.scale

    return Network()


@suite.check("Module", "Module.named_parameters", "Module.parameters", "Module.buffers", "Parameter")
def what_a_module_finds(part: Any) -> None:
    """Parameters, buffers and submodules among the attributes, with dotted names, each once."""
    network = _network(part)
    names = ["scale", "first.weight", "first.bias", "rest.1.weight"]
    equal("named_parameters", [name for name, _ in network.named_parameters()], names)
    equal("number of parameters", len(list(network.parameters())), 4)
    equal("number of buffers", len(list(network.buffers())), 1)
    network.again = network.first
    equal("parameters when a module appears twice", len(list(network.parameters())), 4)
    for parameter in network.parameters():
        true("a parameter", isinstance(parameter, part.Parameter), "a Parameter")
        true("a parameter", isinstance(parameter, tensor.Tensor), "a Tensor")


@suite.check("Module.named_modules", "Module.children", "Module.apply")
def walking_modules(part: Any) -> None:
    """`named_modules`, `children` and `apply` visit every module; apply visits children first."""
    network = _network(part)
    names = [name for name, _ in network.named_modules()]
    equal("named_modules", names, ["", "first", "rest", "rest.0", "rest.1"])
    equal("children", [type(m).__name__ for m in network.children()], ["Linear", "Sequential"])
    seen: list[str] = []
    result = network.apply(lambda module: seen.append(type(module).__name__))
    equal("order of apply", seen, ["Linear", "ReLU", "Linear", "Sequential", "Network"])
    true("apply", result is network, "the module itself")


@suite.check("Module", "Module.forward")
def calls(part: Any) -> None:
    """Calling a module runs `forward`; a module without one is an error."""
    network, x = _network(part), _random(5, 3)
    equal("shape of network(5, 3)", tuple(network(_t(x)).shape), (5, 2))
    with raises("call of a Module without forward", NotImplementedError, AttributeError):
        part.Module()(_t(x))


@suite.check("Module.train", "Module.eval")
def training_mode(part: Any) -> None:
    """`train` and `eval` reach all submodules and return the module."""
    network = _network(part)
    true("network.eval()", network.eval() is network, "the module itself")
    equal("training flags after eval", {m.training for _, m in network.named_modules()}, {False})
    network.train()
    equal("training flags after train", {m.training for _, m in network.named_modules()}, {True})


@suite.check("Module.state_dict", "Module.load_state_dict", "Module.register_buffer")
def state(part: Any) -> None:
    """A state dict has all parameters and buffers by name, and another module can take it over."""
    network, other = _network(part), _network(part)
    saved = network.state_dict()
    names = ["scale", "count", "first.weight", "first.bias", "rest.1.weight"]
    equal("names", list(saved), names)
    other.load_state_dict(saved)
    x = _t(_random(5, 3))
    close("output after load_state_dict", other(x), array_of(network(x)), 0, 0)
    hidden = part.Module()
    hidden.register_buffer("cache", tensor.ones(1), persistent=False)
    equal("state_dict with a buffer that is not persistent", list(hidden.state_dict()), [])


@suite.check("Module.load_state_dict")
def wrong_states(part: Any) -> None:
    """Missing, unexpected and misshapen entries are one error that names all of them and changes nothing."""
    network = _network(part)
    before = {name: array_of(value).copy() for name, value in network.state_dict().items()}
    wrong = dict(_network(part).state_dict())
    del wrong["scale"]
    wrong["extra"], wrong["first.bias"] = tensor.ones(1), tensor.ones(7)
    with raises("load_state_dict", RuntimeError, words=["scale", "extra", "first.bias"]):
        network.load_state_dict(wrong)
    for name, value in network.state_dict().items():
        close(f"{name} after the error", value, before[name], 0, 0)


@suite.check("Module.to")
def conversion(part: Any) -> None:
    """`to` converts parameters and buffers in place and keeps the parameters' identity."""
    network = _network(part)
    first = network.scale
    network.to(tensor.float64)
    equal("dtypes", {str(p.dtype) for p in network.parameters()}, {str(tensor.float64)})
    equal("dtype of the buffer", network.count.dtype, tensor.float64)
    true("the parameter", network.scale is first, "the same object")


@suite.check("Module", "Module.zero_grad")
def clearing_gradients(part: Any) -> None:
    """`zero_grad` drops all gradients."""
    network = _network(part)
    for p in network.parameters():
        p.grad = tensor.ones_like(p)
    network.zero_grad()
    equal("gradients", [p.grad for p in network.parameters()], [None] * 4)


@suite.check("Module", "Parameter", needs=["pickle"])
def copies_and_pickles(part: Any) -> None:
    """A deep copy is independent; a pickled layer comes back with the same state and class."""
    layer = part.Sequential(part.Linear(3, 2), part.Tanh())
    x = _t(_random(4, 3))
    expected = array_of(layer(x)).copy()
    for name, other in (
        ("deepcopy", copy.deepcopy(layer)),
        ("pickle", pickle.loads(pickle.dumps(layer))),
    ):
        close(f"output of the {name}", other(x), expected, 0, 0)
        equal(f"class of the {name}'s layer", type(other[0]), part.Linear)
        with tensor.no_grad():
            other[0].weight.fill_(0)
        close(f"output of the original after the {name} changed", layer(x), expected, 0, 0)


@suite.check("Sequential", "ModuleList", "ModuleDict", "Identity", "Flatten")
def containers(part: Any) -> None:
    """Containers index, iterate, measure and register their modules."""
    chain = part.Sequential(part.Identity(), part.Flatten(), part.Linear(6, 2))
    equal("len(Sequential)", len(chain), 3)
    equal("shape of the chain's output", tuple(chain(_t(_random(4, 2, 3))).shape), (4, 2))
    listed = part.ModuleList([part.Linear(1, 1)])
    listed.append(part.Linear(1, 1))
    equal("parameters of a ModuleList", len(list(listed.parameters())), 4)
    named = part.ModuleDict({"a": part.Linear(1, 1)})
    true("'a' in ModuleDict", "a" in named, "True")
    equal("names in ModuleDict", list(named.state_dict()), ["a.weight", "a.bias"])


@suite.check("Linear", "functional.linear")
def linear(part: Any) -> None:
    """`Linear` is x W^T + b."""
    layer, x = part.Linear(3, 4), _random(2, 5, 3)
    weight, bias = array_of(layer.weight), array_of(layer.bias)
    close("Linear(3, 4)", layer(_t(x)), x @ weight.T + bias)
    close("functional.linear", part.functional.linear(_t(x), layer.weight), x @ weight.T)
    with raises("Linear(3, 4) of (2, 5)", RuntimeError, ValueError):
        layer(_t(_random(2, 5)))


@suite.check("ReLU", "Sigmoid", "Tanh", "functional.relu", "functional.softmax", "functional.log_softmax")
def activations(part: Any) -> None:
    """Activations as modules and functions."""
    x = _random(3, 4)
    close("ReLU", part.ReLU()(_t(x)), np.maximum(x, 0))
    close("Sigmoid", part.Sigmoid()(_t(x)), 1 / (1 + np.exp(-x)))
    close("Tanh", part.Tanh()(_t(x)), np.tanh(x))
    close("functional.relu", part.functional.relu(_t(x)), np.maximum(x, 0))
    soft = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    close("functional.softmax", part.functional.softmax(_t(x), dim=1), soft)
    close("functional.log_softmax", part.functional.log_softmax(_t(x), dim=1), np.log(soft))


def _cross(x: np.ndarray, w: np.ndarray, bias: np.ndarray, stride: int, padding: int) -> np.ndarray:
    wide = np.pad(x, ((0, 0), (0, 0), *(((padding, padding),) * (x.ndim - 2))))
    sizes = [(n - k) // stride + 1 for n, k in zip(wide.shape[2:], w.shape[2:], strict=True)]
    out = np.zeros((x.shape[0], w.shape[0], *sizes), np.float32)
    for at in np.ndindex(*sizes):
        window = tuple(slice(i * stride, i * stride + k) for i, k in zip(at, w.shape[2:], strict=True))
        out[(slice(None), slice(None), *at)] = np.tensordot(
            wide[(slice(None), slice(None), *window)], w, (range(1, x.ndim), range(1, x.ndim))
        )
    return out + bias.reshape(1, -1, *[1] * (x.ndim - 2))


@suite.check("Conv1d", "Conv2d", "functional.conv2d", needs=["convolution"])
def convolutions(part: Any) -> None:
    """Convolutions of one and two dimensions against loops."""
    for layer, x in (
        (part.Conv1d(2, 3, 3, stride=2, padding=1), _random(2, 2, 7)),
        (part.Conv2d(2, 3, 3, stride=2, padding=1), _random(2, 2, 6, 5)),
    ):
        expected = _cross(x, array_of(layer.weight), array_of(layer.bias), 2, 1)
        close(repr(layer), layer(_t(x)), expected, 1e-4, 1e-5)


@suite.check("MaxPool2d", "AvgPool2d", "AdaptiveAvgPool2d", "functional.max_pool2d", needs=["convolution"])
def pooling(part: Any) -> None:
    """Pooling over windows."""
    x = _random(2, 3, 4, 6)
    windows = x.reshape(2, 3, 2, 2, 3, 2)
    close("MaxPool2d(2)", part.MaxPool2d(2)(_t(x)), windows.max((3, 5)))
    close("AvgPool2d(2)", part.AvgPool2d(2)(_t(x)), windows.mean((3, 5)))
    close("AdaptiveAvgPool2d(1)", part.AdaptiveAvgPool2d(1)(_t(x)), x.mean((2, 3), keepdims=True))
    close("functional.max_pool2d", part.functional.max_pool2d(_t(x), 2), windows.max((3, 5)))


@suite.check("BatchNorm1d", "BatchNorm2d")
def batch_norms(part: Any) -> None:
    """Batch norm uses the batch while training and running statistics afterwards."""
    for layer, x in ((part.BatchNorm1d(4), _random(8, 4)), (part.BatchNorm2d(3), _random(4, 3, 2, 5))):
        axes = (0, *range(2, x.ndim))
        mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
        close(f"{layer!r} while training", layer(_t(x)), (x - mean) / np.sqrt(var + 1e-5), 1e-4, 1e-5)
        n = x.size // x.shape[1]
        close("running_mean", layer.running_mean, 0.1 * mean.ravel(), 1e-4)
        close("running_var", layer.running_var, 0.9 + 0.1 * var.ravel() * n / (n - 1), 1e-4)
        equal("num_batches_tracked", int(layer.num_batches_tracked), 1)
        layer.eval()
        shape = [1, -1] + [1] * (x.ndim - 2)
        m, v = (array_of(s).reshape(shape) for s in (layer.running_mean, layer.running_var))
        close(f"{layer!r} in evaluation", layer(_t(x)), (x - m) / np.sqrt(v + 1e-5), 1e-4, 1e-5)


@suite.check("LayerNorm", "Embedding")
def layer_norm_and_embedding(part: Any) -> None:
    """Layer norm against its formula; an embedding is a look-up."""
    x = _random(2, 3, 4)
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    close("LayerNorm(4)", part.LayerNorm(4)(_t(x)), (x - mean) / np.sqrt(var + 1e-5), 1e-4, 1e-5)
    table = part.Embedding(5, 2)
    found = table(tensor.tensor([[4, 0], [1, 4]]))
    close("Embedding(5, 2)", found, array_of(table.weight)[[[4, 0], [1, 4]]])


@suite.check("Dropout", "functional.dropout")
def dropout(part: Any) -> None:
    """Dropout zeroes and rescales while training, and does nothing in evaluation."""
    tensor.manual_seed(0)
    layer, x = part.Dropout(0.25), tensor.ones(4000)
    values = array_of(layer(x))
    close("values of Dropout(0.25)(ones)", np.unique(values), [0, 4 / 3])
    close("share of zeros", (values == 0).mean(), 0.25, 0, 0.05)
    close("Dropout in evaluation", layer.eval()(x), np.ones(4000))
    close("functional.dropout(p=1)", part.functional.dropout(x, 1.0), np.zeros(4000))
    with raises("Dropout(1.5)", ValueError):
        part.Dropout(1.5)


@suite.check("LSTM", "LSTMCell", needs=["recurrent"])
def recurrent_layers(part: Any) -> None:
    """LSTM over a sequence and its single step against the formula."""
    layer, x = part.LSTM(3, 4), _random(5, 2, 3)
    w, u, b, c = (array_of(p) for p in layer.parameters())

    def sigmoid(z: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-z))

    hidden, cell, outputs = np.zeros((2, 4)), np.zeros((2, 4)), []
    for step in x:
        i, f, g, o = np.split(step @ w.T + b + hidden @ u.T + c, 4, axis=-1)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(cell)
        outputs.append(hidden)
    output, (last, last_cell) = layer(_t(x))
    close("LSTM output", output, np.stack(outputs), 1e-4, 1e-5)
    close("LSTM last cell", last_cell, cell[None], 1e-4, 1e-5)
    close("LSTM last hidden", last, hidden[None], 1e-4, 1e-5)
    single = part.LSTMCell(3, 4)
    for target, source in zip(single.parameters(), (w, u, b, c), strict=True):
        with tensor.no_grad():
            target.copy_(_t(source))
    h, _ = single(_t(x[0]))
    close("LSTMCell", h, outputs[0], 1e-4, 1e-5)


@suite.check(
    "CrossEntropyLoss", "NLLLoss", "MSELoss", "BCELoss", "BCEWithLogitsLoss", "functional.cross_entropy"
)
def losses(part: Any) -> None:
    """Losses against formulas, with each reduction."""
    x, y = _random(4, 3), _random(3, 4).T
    classes = np.array([2, 0, 1, 2])
    logs = x - np.log(np.exp(x).sum(1, keepdims=True))
    picked = -logs[np.arange(4), classes]
    labels = tensor.tensor(classes.tolist())
    for reduction, reduce in (("mean", np.mean), ("sum", np.sum), ("none", lambda z: z)):
        loss = part.CrossEntropyLoss(reduction=reduction)(_t(x), labels)
        close(f"CrossEntropyLoss({reduction})", loss, reduce(picked), 1e-5)
        close(
            f"NLLLoss({reduction})", part.NLLLoss(reduction=reduction)(_t(logs), labels), reduce(picked), 1e-5
        )
        close(
            f"MSELoss({reduction})",
            part.MSELoss(reduction=reduction)(_t(x), _t(y)),
            reduce((x - y) ** 2),
            1e-5,
        )
    target, p = (y > 0).astype(np.float32), 1 / (1 + np.exp(-x))
    expected = -(target * np.log(p) + (1 - target) * np.log(1 - p)).mean()
    close("BCELoss", part.BCELoss()(_t(p), _t(target)), expected, 1e-4)
    close("BCEWithLogitsLoss", part.BCEWithLogitsLoss()(_t(x), _t(target)), expected, 1e-4)
    close("functional.cross_entropy", part.functional.cross_entropy(_t(x), labels), picked.mean(), 1e-5)
    with raises("CrossEntropyLoss of 4 rows and 3 labels", ValueError, RuntimeError):
        part.CrossEntropyLoss()(_t(x), labels[:3])


@suite.check("init", "init.xavier_uniform_", "init.kaiming_uniform_")
def initialisation(part: Any) -> None:
    """Uniform initialisations stay within their bounds and fill them."""
    tensor.manual_seed(0)
    for name, bound in (("xavier_uniform_", (6 / 90) ** 0.5), ("kaiming_uniform_", (6 / 60) ** 0.5)):
        weight = tensor.empty(30, 60)
        true(f"init.{name}(w)", getattr(part.init, name)(weight) is weight, "the tensor itself")
        largest = np.abs(array_of(weight)).max()
        true(
            f"largest of {name}((30, 60))",
            0.9 * bound < largest <= bound + 1e-6,
            f"a little below {bound:.4f}",
        )


@suite.check("Module", needs=["gradients"])
def learning(part: Any) -> None:
    """Gradients reach every parameter, and descent lowers the loss."""
    tensor.manual_seed(0)
    network, x, y = _network(part), _t(_random(16, 3)), _t(_random(16, 2))
    losses = []
    for _ in range(30):
        network.zero_grad()
        loss = part.MSELoss()(network(x), y)
        loss.backward()
        losses.append(loss.item())
        with tensor.no_grad():
            for p in network.parameters():
                true("gradient of a parameter", p.grad is not None, "a tensor")
                p -= 0.1 * p.grad
    true(f"loss from {losses[0]:.3f} to {losses[-1]:.3f}", losses[-1] < 0.9 * losses[0], "a lower loss")


@suite.check("Parameter", "Module")
def assignment_errors(part: Any) -> None:
    """A parameter's attribute takes parameters or None only, and parameters need `super().__init__()`."""
    layer = part.Linear(2, 2)
    with raises("layer.weight = 3", TypeError):
        layer.weight = 3

    class Early(part.Module):
        def __init__(self) -> None:
            self.layer = part.Linear(1, 1)

    with raises("a submodule before super().__init__()", AttributeError):
        Early()
