"""Programs over libraries that read graphs, register operators, or work beneath the public functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from libraries.common import Found, filled, learned, network, numbers


def fvcore(torch: Any, folder: Path) -> Found:
    """What a network of convolutions and one of attention cost, by operator and by module."""
    from fvcore.nn import ActivationCountAnalysis, FlopCountAnalysis, flop_count_table, parameter_count

    nn = torch.nn
    layers = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.ConvTranspose2d(4, 2, 2, stride=2),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(8, 2),
    )  # fmt: skip
    words = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    found: Found = {}
    for name, model, given in (
        ("images", layers, numbers(torch, 1, 3, 8, 8, dtype=torch.float32)),
        ("words", words, numbers(torch, 2, 5, 8, dtype=torch.float32)),
    ):
        cost = FlopCountAnalysis(filled(torch, model), given).unsupported_ops_warnings(False)
        found[name] = [
            cost.total(), dict(cost.by_module()), dict(cost.by_operator()), dict(parameter_count(model)),
            ActivationCountAnalysis(model, given).unsupported_ops_warnings(False).total(),
        ]  # fmt: skip
        if name == "images":
            found["table"] = len(flop_count_table(cost).splitlines())
    return found


def torchviz(torch: Any, folder: Path) -> Found:
    """The nodes of a drawn graph, and what they saved."""
    from torchviz import make_dot

    a, w = (numbers(torch, *shape, dtype=torch.float32).requires_grad_() for shape in ((2, 3), (3,)))
    drawn = make_dot((a * w).tanh().exp(), params={"a": a, "w": w}, show_saved=True, show_attrs=True)
    lines = [line.split("[", 1)[1] for line in drawn.source.splitlines() if "[label=" in line]
    return {"nodes": sorted(lines)}


def ptflops(torch: Any, folder: Path) -> Found:
    """What a network costs, by the operators that a dispatch mode meets."""
    from ptflops import get_model_complexity_info

    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
    )
    cost, size = get_model_complexity_info(
        model, (3, 8, 8), as_strings=False, print_per_layer_stat=False, verbose=False, backend="aten"
    )
    return {"cost": cost, "size": size}


def spikingjelly(torch: Any, folder: Path) -> Found:
    """Networks of spikes over several steps, whose neurons are operators of the library."""
    from spikingjelly.activation_based import functional, layer, neuron, surrogate
    from spikingjelly.activation_based.model import spiking_resnet

    small = torch.nn.Sequential(
        layer.Linear(6, 8), neuron.LIFNode(tau=2.0, surrogate_function=surrogate.ATan()), layer.Linear(8, 3),
        neuron.IFNode(),
    )  # fmt: skip
    functional.set_step_mode(small, "m")
    found = learned(torch, small, numbers(torch, 4, 5, 6))
    deep = spiking_resnet.spiking_resnet18(
        spiking_neuron=neuron.ParametricLIFNode,
        surrogate_function=surrogate.Sigmoid(),
        detach_reset=True,
        num_classes=4,
    )
    functional.set_step_mode(deep, "m")
    deep = filled(torch, deep).eval()
    with torch.no_grad():
        found["deep"] = deep(numbers(torch, 2, 1, 3, 16, 16, dtype=torch.float32))
    return found


def torchmin(torch: Any, folder: Path) -> Found:
    """Minima by methods of several orders, and a problem of least squares."""
    from torchmin import least_squares, minimize

    def valley(x: Any) -> Any:
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    start = torch.tensor([1.2, 0.8], dtype=torch.float64)
    found: Found = {
        method: minimize(valley, start, method=method).x
        for method in ("bfgs", "l-bfgs", "newton-cg", "newton-exact", "trust-ncg", "trust-exact", "dogleg")
    }
    found["squares"] = least_squares(lambda x: torch.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]]), start).x
    return found


def fairscale(torch: Any, folder: Path) -> Found:
    """Checkpoints of activations, and a step of its optimizer that adapts to the size of batches."""
    from fairscale.nn import checkpoint_wrapper
    from fairscale.optim import AdaScale

    x = numbers(torch, 4, 6)
    model = checkpoint_wrapper(network(torch, 5))
    optimizer = AdaScale(
        torch.optim.SGD(model.parameters(), lr=0.1), world_size=1, num_gradients_to_accumulate=2
    )
    for part in x.split(2):
        (model(part).pow(2).mean() / 2).backward()
    optimizer.step()
    return {"parameters": list(model.parameters()), "gain": float(optimizer.gain())}
