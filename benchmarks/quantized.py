"""Layers of int8 weights: dynamically quantized linear layers, quantized convolutions, products of int8."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

from _measure import load, machine, parser, ratio, statements_in_turn, table

_DYNAMIC = """
float_layer = nn.Sequential(nn.Linear({k}, {n})).eval()
layer = torch.ao.quantization.quantize_dynamic(float_layer, {{nn.Linear}}, dtype=torch.qint8)
x = torch.randn({m}, {k}); torch.set_grad_enabled(False)
"""
_CONV = """
torch.set_grad_enabled(False)
float_layer = nn.Conv2d({c}, {o}, {kernel}, {stride}, {kernel} // 2, groups={groups}).eval()
layer = torch.ao.nn.quantized.Conv2d({c}, {o}, {kernel}, {stride}, {kernel} // 2, groups={groups})
scales, zeros = torch.full(({o},), 0.003), torch.zeros({o}).long()
weight = torch.quantize_per_channel(float_layer.weight, scales, zeros, 0, torch.qint8)
layer.set_weight_bias(weight, float_layer.bias); layer.scale, layer.zero_point = 0.05, 64
real = torch.randn(4, {c}, {size}, {size}).contiguous(memory_format=torch.channels_last)
x = torch.quantize_per_tensor(real, 0.03, 100, torch.quint8)
"""
_PRODUCT = """
a = torch.randint(-128, 128, ({m}, {k}), dtype=torch.int8)
b = torch.randint(-128, 128, ({n}, {k}), dtype=torch.int8).t()
"""


def _cases() -> Iterator[tuple[str, str, str, str]]:
    """Name, setup, statement of the layer of codes, and of the layer of float32."""
    for m, k, n in ((1, 768, 768), (1, 768, 3072), (16, 768, 3072), (128, 768, 3072), (512, 3072, 768)):
        yield (
            f"dynamic linear {k} to {n}, {m} rows",
            _DYNAMIC.format(m=m, k=k, n=n),
            "layer(x)",
            "float_layer(x)",
        )
    for c, o, kernel, stride, size, groups in (
        (3, 64, 7, 2, 224, 1), (64, 64, 3, 1, 56, 1), (256, 512, 1, 2, 28, 1), (512, 512, 3, 1, 7, 1),
        (96, 96, 3, 2, 112, 96), (144, 24, 1, 1, 56, 1),
    ):  # fmt: skip
        shape = {"c": c, "o": o, "kernel": kernel, "stride": stride, "size": size, "groups": groups}
        name = f"convolution {kernel} x {kernel} of {c} to {o} channels, 4 x {size} x {size}"
        yield (
            (f"{name}, {groups} groups" if groups > 1 else name),
            _CONV.format(**shape),
            "layer(x)",
            "float_layer(real)",
        )
    for m, k, n in ((1, 1024, 1024), (64, 1024, 1024), (512, 1024, 1024)):
        setup = _PRODUCT.format(m=m, k=k, n=n)
        yield f"_int_mm of {m} x {k} and {k} x {n}", setup, "torch._int_mm(a, b)", ""


def _rows(libraries: dict[str, Any]) -> Iterator[list[str]]:
    for name, setup, statement, in_floats in _cases():
        times = statements_in_turn(libraries, setup, statement)
        row = [name, *(f"{1e6 * seconds:.0f}" for seconds in times.values()), ratio(times)]
        if in_floats:
            plain = statements_in_turn(libraries, setup, in_floats)
            row += [f"{times[library] / plain[library]:.2f}" for library in libraries]
        yield row + [""] * (2 * len(libraries) + 2 - len(row))


def main() -> None:
    """Prints the table."""
    options = parser(__doc__)
    options.add_argument("--threads", type=int, default=os.cpu_count())
    chosen = options.parse_args()
    names = chosen.libraries.split(",")
    warnings.filterwarnings("ignore")
    print(machine())
    header = ["layer", *(f"{name} us" for name in names), f"{names[0]} / {names[-1]}"]
    header += [f"{name}: of its float32" for name in names]
    table("Layers of int8 weights", header, _rows(load(names, chosen.threads)))


if __name__ == "__main__":
    main()
