"""Objects that programs keep in modules, configurations and states are copied, and pickled."""

import copy
import functools
import pickle
import re

import pytest

import taeda as torch
from taeda import nn

WAYS = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
}


def leaf(*shape: int) -> torch.Tensor:
    return torch.ones(*shape, requires_grad=True)


TENSORS = {
    "dense": lambda: leaf(2, 3),
    "parameter": lambda: nn.Parameter(torch.ones(2)),
    "buffer": lambda: nn.Buffer(torch.ones(2)),
    "coo": lambda: torch.eye(3).to_sparse().requires_grad_(),
    "csr": lambda: torch.eye(3).to_sparse_csr(),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 3, torch.qint8),
    "by channel": lambda: torch.quantize_per_channel(
        torch.ones(2, 3), torch.tensor([0.1, 0.2]), torch.tensor([0, 1]), 0, torch.qint8
    ),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(1)]),
    "jagged": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(1)], layout=torch.jagged),
    "bits": lambda: torch.tensor([1, 2], dtype=torch.uint4),
    "meta": lambda: torch.ones(2, device="meta"),
    "conjugate": lambda: torch.tensor([1j]).conj(),
}
OTHERS = {
    "no_grad": torch.no_grad,
    "enable_grad": torch.enable_grad,
    "inference_mode": torch.inference_mode,
    "no inference_mode": lambda: torch.inference_mode(False),
    "set_grad_enabled": lambda: torch.set_grad_enabled(False),
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "operator": lambda: torch.ops.aten.add,
    "overload": lambda: torch.ops.aten.add.Tensor,
    "plain": lambda: torch.ops.aten.numel,
    "dtype": lambda: torch.float32,
    "device": lambda: torch.device("cpu"),
    "layout": lambda: torch.strided,
    "memory format": lambda: torch.channels_last,
    "limits": lambda: torch.finfo(torch.float16),
    "size": lambda: torch.Size([2, 3]),
    "generator": lambda: torch.Generator().manual_seed(3),
    "function": lambda: torch.add,
    "method": lambda: torch.Tensor.add,
    "partial": lambda: functools.partial(torch.clamp, min=0),
    "uninitialised parameter": nn.parameter.UninitializedParameter,
    "uninitialised buffer": nn.parameter.UninitializedBuffer,
    "distribution": lambda: torch.distributions.Normal(torch.zeros(2), 1.0),
    "constraint": lambda: torch.distributions.constraints.positive,
    "several results": lambda: torch.max(torch.ones(2, 2), 0),
    "sequence": lambda: nn.utils.rnn.pack_sequence([torch.ones(2), torch.ones(1)]),
}


def without_addresses(value: object) -> str:
    return re.sub("0x[0-9a-f]+", "", repr(value))


def values(x: torch.Tensor) -> list:
    if x.is_nested:
        return [part.tolist() for part in x.unbind()]
    x = x.detach()
    x = x.to_dense() if x.layout != torch.strided else x.dequantize() if x.is_quantized else x
    return [] if x.is_meta else (x.to(torch.int64) if x.dtype is torch.uint4 else x).tolist()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", TENSORS)
def test_tensors(name: str, way: str) -> None:
    original = TENSORS[name]()
    made = WAYS[way](original)
    assert type(made) is type(original) and made is not original
    assert made.dtype == original.dtype and made.layout == original.layout and made.device == original.device
    assert made.requires_grad == original.requires_grad and (name == "nested" or made.shape == original.shape)
    assert values(made) == values(original)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", OTHERS)
def test_others(name: str, way: str) -> None:
    with torch.enable_grad():  # set_grad_enabled switches when it is made
        original = OTHERS[name]()
        made = WAYS[way](original)
    assert type(made) is type(original)
    assert without_addresses(made) == without_addresses(original)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("switch", "recorded"), [(torch.no_grad, False), (torch.enable_grad, True)])
def test_copied_switches_switch(way: str, switch: type, recorded: bool) -> None:
    class Guarded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mode = switch()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with self.mode:
                return x * 2

    if way == "pickle":
        mode = WAYS[way](switch())
        with mode:
            assert (leaf(2) * 2).requires_grad is recorded
    else:
        with torch.set_grad_enabled(not recorded):
            assert WAYS[way](Guarded())(leaf(2)).requires_grad is recorded


def test_shallow_copies_share_memory() -> None:
    dense = torch.zeros(3)
    copy.copy(dense).fill_(1)
    assert dense.tolist() == [1, 1, 1]
    sparse = torch.eye(2).to_sparse().coalesce()
    copy.copy(sparse).values().fill_(3)
    assert sparse.to_dense().tolist() == [[3, 0], [0, 3]]
    nested = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(1)])
    copy.copy(nested).unbind()[0].fill_(1)
    assert nested.unbind()[0].tolist() == [1, 1]
    deep = copy.deepcopy(nested)
    deep.unbind()[0].fill_(5)
    assert nested.unbind()[0].tolist() == [1, 1]


def test_copies_of_switches_change_nothing_until_they_are_entered() -> None:
    with torch.enable_grad():
        mode = torch.set_grad_enabled(False)
        torch.set_grad_enabled(True)
        for way in WAYS.values():
            copied = way(mode)
            assert torch.is_grad_enabled()
            with copied:
                assert not torch.is_grad_enabled()
            assert torch.is_grad_enabled()
