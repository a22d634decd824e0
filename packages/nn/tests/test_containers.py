"""Containers: sequences and dictionaries of modules and parameters."""

from collections import OrderedDict

import pytest

import taeda_nn as nn
from taeda_registry.slots import tensor as tt


def test_sequential_applies_in_order():
    net = nn.Sequential(OrderedDict(twice=nn.Linear(2, 2, bias=False), act=nn.ReLU()))
    with tt.no_grad():
        net.twice.weight.copy_(tt.tensor([[2.0, 0.0], [0.0, -2.0]]))
    assert net(tt.tensor([[1.0, 1.0]])).tolist() == [[2.0, 0.0]]
    assert nn.Sequential()(3) == 3


def test_sequences_index_slice_and_edit():
    for kind in (lambda *m: nn.Sequential(*m), lambda *m: nn.ModuleList(m)):
        a, b, c = nn.ReLU(), nn.Tanh(), nn.Sigmoid()
        items = kind(a, b, c)
        assert len(items) == 3 and items[0] is a and items[-1] is c and list(items) == [a, b, c]
        assert list(items[1:]) == [b, c] and type(items[1:]) is type(items)
        items[1] = nn.Identity()
        assert isinstance(items[1], nn.Identity)
        del items[1]
        assert [name for name, _ in items.named_children()] == ["0", "1"]
        items.append(b).extend([nn.ELU()])
        items.insert(0, nn.GELU())
        assert [type(m).__name__ for m in items] == ["GELU", "ReLU", "Sigmoid", "Tanh", "ELU"]
        assert isinstance(items.pop(0), nn.GELU) and len(items) == 4
        for bad in (4, -5):
            with pytest.raises(IndexError, match=str(bad)):
                items[bad]
        with pytest.raises(TypeError):
            items.insert(0, 3)
    assert len(nn.Sequential(a) + nn.Sequential(b)) == 2
    assert len(nn.ModuleList([a]) + [b]) == 2


def test_module_dict():
    choices = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Linear(1, 1)})
    assert list(choices) == ["a", "b"] and "a" in choices and len(choices) == 2
    choices.update([("c", nn.Tanh())])
    assert [name for name, _ in choices.items()] == ["a", "b", "c"] and len(list(choices.values())) == 3
    assert isinstance(choices.pop("a"), nn.ReLU) and list(choices.keys()) == ["b", "c"]
    del choices["c"]
    with pytest.raises(KeyError):
        choices["c"]
    with pytest.raises(TypeError):
        choices["x"] = 3
    with pytest.raises(ValueError, match="length 2"):
        choices.update([("x",)])
    choices.clear()
    assert len(choices) == 0 and not list(choices.parameters())


def test_parameter_list():
    items = nn.ParameterList([tt.zeros(2), nn.Parameter(tt.ones(3))])
    items.append(tt.zeros(1))
    items += [nn.Parameter(tt.zeros(4))]
    assert len(items) == 4 and [name for name, _ in items.named_parameters()] == ["0", "1", "2", "3"]
    assert isinstance(items[0], nn.Parameter) and items[-1].shape[0] == 4 and len(items[1:3]) == 2
    items[0] = nn.Parameter(tt.ones(5))
    assert items[0].numel() == 5
    with pytest.raises(IndexError):
        items[4]
    assert "(1): Parameter containing" in repr(items)


def test_parameter_dict():
    items = nn.ParameterDict({"a": tt.zeros(2)})
    items["b"] = nn.Parameter(tt.ones(3))
    assert list(items) == ["a", "b"] and "a" in items and items.get("z") is None
    assert list(items.state_dict()) == ["a", "b"]
    assert items.pop("a").numel() == 2 and len(items) == 1
    items.setdefault("c", tt.zeros(1))
    assert [name for name, _ in items.items()] == ["b", "c"]
    del items["c"]
    with pytest.raises(KeyError):
        items["c"]
    items.clear()
    assert not list(items.parameters())


def test_text_of_lists_and_dicts_of_parameters():
    """As PyTorch writes it, indentation and all."""
    items = nn.ParameterList([tt.zeros(2, 3), 3])
    assert repr(nn.Sequential(items)) == (
        "Sequential(\n  (0): ParameterList(\n      (0): Parameter containing: "
        f"[{tt.float32} of size 2x3]\n      (1): Object of type: int\n  )\n)"
    )
    assert list(nn.ParameterDict({"b": tt.zeros(1), "a": tt.zeros(1)})) == ["a", "b"]  # as PyTorch does
    assert list(nn.ParameterDict(OrderedDict(b=tt.zeros(1), a=tt.zeros(1)))) == ["b", "a"]
    named = nn.ParameterDict({"a": tt.zeros(2, dtype=tt.float64)})
    assert repr(named) == "ParameterDict(  (a): Parameter containing: [torch.DoubleTensor of size 2])"
