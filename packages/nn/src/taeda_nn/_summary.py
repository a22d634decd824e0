"""What a model is made of: its layers, their results, parameters, multiplications and memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from taeda_nn._bind import Tensor, no_grad
from taeda_nn.modules.activation import MultiheadAttention
from taeda_nn.modules.conv import _ConvNd
from taeda_nn.modules.linear import Bilinear, Linear
from taeda_nn.modules.module import Module
from taeda_nn.modules.rnn import RNNBase, RNNCellBase

__all__ = ["LayerSummary", "Summary", "summary"]


@dataclass
class LayerSummary:
    """One module of a model.

    Attributes:
        name: Its dotted name; "" for the model itself.
        kind: Its class.
        depth: How many modules it stands below.
        output: Shapes of the tensors that it gave in the last call; empty when it was not called.
        parameters: Elements of its own parameters, each counted at the first module that has it.
        multiply_adds: Multiplications with additions of its own products and convolutions, over all calls.
        output_bytes: Memory of its results, over all calls.
        calls: How often it was called.
    """

    name: str
    kind: str
    depth: int
    output: list[tuple[int, ...]]
    parameters: int
    multiply_adds: int = 0
    output_bytes: int = 0
    calls: int = 0


def _millions(count: int) -> str:
    return f"{count:,}"


def _megabytes(count: int) -> str:
    return f"{count / 2**20:.2f} MB"


@dataclass
class Summary:
    """A table of a model's modules, and the sums; its text is the table, in notebooks too.

    Attributes:
        layers: The modules, each before those below it.
        parameters, trainable: Elements of all parameters, and of those that are learned.
        multiply_adds: Multiplications with additions of one call.
        parameter_bytes, buffer_bytes: Memory of parameters and buffers.
        output_bytes: Memory of the results of modules that have none below them, as training keeps them.
        input_bytes: Memory of the input.
    """

    layers: list[LayerSummary]
    parameters: int
    trainable: int
    multiply_adds: int
    parameter_bytes: int
    buffer_bytes: int
    output_bytes: int
    input_bytes: int

    def _rows(self) -> list[tuple[str, ...]]:
        rows = []
        for layer in self.layers:
            label = layer.name.rpartition(".")[2]
            text = "  " * layer.depth + (f"{label}: {layer.kind}" if label else layer.kind)
            shapes = ", ".join(str(list(shape)) for shape in layer.output) or "not called"
            counts = (_millions(layer.parameters), _millions(layer.multiply_adds))
            rows.append((text, shapes, *(c if c != "0" else "-" for c in counts)))
        return rows

    def _totals(self) -> list[tuple[str, str]]:
        return [
            ("Parameters", _millions(self.parameters)),
            ("Trainable parameters", _millions(self.trainable)),
            ("Multiply-adds", _millions(self.multiply_adds)),
            ("Input", _megabytes(self.input_bytes)),
            ("Parameters and buffers", _megabytes(self.parameter_bytes + self.buffer_bytes)),
            ("Results of layers", _megabytes(self.output_bytes)),
        ]

    def __str__(self) -> str:
        heading = ("Layer", "Output shape", "Parameters", "Multiply-adds")
        rows = [heading, *self._rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = [
            "  ".join(
                [
                    row[0].ljust(widths[0]),
                    row[1].ljust(widths[1]),
                    row[2].rjust(widths[2]),
                    row[3].rjust(widths[3]),
                ]
            ).rstrip()
            for row in rows
        ]
        rule = "-" * (sum(widths) + 6)
        totals = [f"{name}: {value}" for name, value in self._totals()]
        return "\n".join([lines[0], rule, *lines[1:], rule, *totals])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def row(cells: Any, tag: str = "td") -> str:
            aligned = ("left", "left", "right", "right")
            return (
                "<tr>"
                + "".join(
                    f'<{tag} style="text-align:{side};white-space:pre">{escape(cell)}</{tag}>'
                    for cell, side in zip(cells, aligned, strict=False)
                )
                + "</tr>"
            )

        table = row(("Layer", "Output shape", "Parameters", "Multiply-adds"), "th")
        table += "".join(row(cells) for cells in self._rows())
        totals = "<br>".join(f"{escape(name)}: {escape(value)}" for name, value in self._totals())
        return f"<table>{table}</table><p>{totals}</p>"


def _tensors(value: Any) -> list[Tensor]:
    """All tensors of a result, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for item in value.values() for t in _tensors(item)]
    if isinstance(value, (tuple, list)):
        return [t for item in value for t in _tensors(item)]
    return []


def _bytes(value: Any) -> int:
    return sum(t.numel() * t.element_size() for t in _tensors(value))


def _of_convolution(module: Any, inputs: list[Tensor], outputs: list[Tensor]) -> int:
    per_place = math.prod(module.kernel_size)
    if module.transposed:
        return inputs[0].numel() * per_place * (module.out_channels // module.groups)
    return outputs[0].numel() * per_place * (module.in_channels // module.groups)


def _of_linear(module: Any, inputs: list[Tensor], outputs: list[Tensor]) -> int:
    return outputs[0].numel() * module.in_features


def _of_bilinear(module: Any, inputs: list[Tensor], outputs: list[Tensor]) -> int:
    return outputs[0].numel() * (module.in1_features + 1) * module.in2_features


def _of_recurrence(module: Any, inputs: list[Tensor], outputs: list[Tensor]) -> int:
    """Every step multiplies with every weight once."""
    steps = inputs[0].numel() // inputs[0].shape[-1] if inputs else 0
    return steps * sum(p.numel() for p in module.parameters() if p.dim() == 2)


def _of_attention(module: Any, inputs: list[Tensor], outputs: list[Tensor]) -> int:
    query, key, value = inputs[:3]
    batch = query.numel() // query.shape[-1]
    length_at = 1 if module.batch_first and query.dim() == 3 else 0
    places = key.shape[length_at]
    projected = query.numel() + key.numel() + value.numel()
    # The output's projection counts at its own module, which is not called as such.
    return module.embed_dim * (projected + 2 * batch * places + batch * module.embed_dim)


_COUNTED: tuple[tuple[Any, Callable[[Any, list[Tensor], list[Tensor]], int]], ...] = (
    (_ConvNd, _of_convolution),
    (Linear, _of_linear),
    (Bilinear, _of_bilinear),
    ((RNNBase, RNNCellBase), _of_recurrence),
    (MultiheadAttention, _of_attention),
)


def _multiply_adds(module: Module, inputs: list[Tensor], outputs: list[Tensor]) -> int:
    for kind, count in _COUNTED:
        if isinstance(module, kind) and outputs:
            return count(module, inputs, outputs)
    return 0


def _described(model: Module) -> dict[Module, LayerSummary]:
    """A row for each module, before any is called."""
    rows: dict[Module, LayerSummary] = {}
    counted: set[int] = set()
    for name, module in model.named_modules():
        own = [p for p in module.parameters(recurse=False) if id(p) not in counted]
        counted.update(id(p) for p in own)
        depth = name.count(".") + 1 if name else 0
        rows[module] = LayerSummary(name, type(module).__name__, depth, [], sum(p.numel() for p in own))
    return rows


def summary(model: Module, input: Any = None, **kwargs: Any) -> Summary:
    """Tells what a model is made of, by calling it once in evaluation mode without gradients.

    Args:
        model: The model; its mode and its hooks are as before afterwards.
        input: What it is called with: a tensor, a tuple of arguments, or a dict of arguments by keyword.
        **kwargs: Further arguments of forward.

    Returns: the layers with shapes of results, parameters, multiply-adds and memory; printed, a table.

    Example:
        >>> print(nn.summary(nn.Linear(3, 2), torch.ones(4, 3)))
        Layer   Output shape  Parameters  Multiply-adds
        -----------------------------------------------
        Linear  [4, 2]                 8             24
        -----------------------------------------------
        Parameters: 8
        Trainable parameters: 8
        Multiply-adds: 24
        Input: 0.00 MB
        Parameters and buffers: 0.00 MB
        Results of layers: 0.00 MB
    """
    args: tuple[Any, ...] = input if isinstance(input, tuple) else () if input is None else (input,)
    if isinstance(input, dict):
        args, kwargs = (), {**input, **kwargs}
    modes = [(module, module.training) for module in model.modules()]
    rows: dict[Module, LayerSummary] = {}

    def note(module: Module, given: tuple, named: dict, result: Any) -> None:
        row, outputs = rows[module], _tensors(result)
        row.output = [tuple(t.shape) for t in outputs]
        row.calls += 1
        row.output_bytes += _bytes(outputs)
        row.multiply_adds += _multiply_adds(module, _tensors((given, named)), outputs)

    model.eval()
    handles = []
    try:
        with no_grad():
            if any(_is_lazy_module(module) for module, _mode in modes):
                model(*args, **kwargs)  # its modules have sizes only after a call
            rows = _described(model)
            handles = [module.register_forward_hook(note, with_kwargs=True) for module in rows]
            model(*args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    parameters, buffers = list(model.parameters()), list(model.buffers())
    leaves = [row for module, row in rows.items() if not any(True for _ in module.children())]
    return Summary(
        list(rows.values()),
        sum(p.numel() for p in parameters),
        sum(p.numel() for p in parameters if p.requires_grad),
        sum(row.multiply_adds for row in rows.values()),
        _bytes(parameters),
        _bytes(buffers),
        sum(row.output_bytes for row in leaves),
        _bytes((args, kwargs)),
    )


def _is_lazy_module(module: Any) -> bool:
    return hasattr(module, "has_uninitialized_params") and module.has_uninitialized_params()
