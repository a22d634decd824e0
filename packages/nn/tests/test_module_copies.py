"""Modules that are pickled and copied in ways of their own."""

import copy
import pickle

import pytest

import taeda_nn as nn
from taeda_registry.slots import tensor as tt


class Showing(nn.Module):
    """A class that says of itself what is pickled, as PyTorch's users do: all of its `__dict__`."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 3)
        self.register_buffer("seen", tt.ones(2))
        self.register_buffer("passing", tt.ones(1), persistent=False)
        self.cache = {}

    def __getstate__(self):
        self.cache = None
        return self.__dict__

    def forward(self, x):
        return self.layer(x + self.seen)


class Taking(Showing):
    def __setstate__(self, state):
        self.__dict__ = state


class Updating(Showing):
    def __setstate__(self, state):
        self.__dict__.update(state)


@pytest.mark.parametrize("kind", [Showing, Taking, Updating])
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_modules_that_pickle_their_dict(kind, duplicate):
    net = kind()
    twin = duplicate(net)
    assert list(twin.state_dict()) == ["seen", "layer.weight", "layer.bias"]
    assert twin.__getattr__("layer") is twin.layer is not net.layer
    x = tt.ones(1, 2)
    assert (twin(x) == net(x)).all()


class UpdatingEmpty(nn.Module):
    """Takes what PyTorch's pickles have, in the three ways that classes do."""

    way = "update"

    def __setstate__(self, state):
        if self.way == "update":
            self.__dict__.update(state)
        elif self.way == "replace":
            self.__dict__ = state
        else:
            self.__dict__ |= state
        self.taken = True

    def forward(self, x):
        return self.layer(x) * self.scale + self.seen


@pytest.mark.parametrize("way", ["update", "replace", "join"])
def test_members_in_pytorchs_layout_are_taken_from_a_dict(way, monkeypatch):
    monkeypatch.setattr(UpdatingEmpty, "way", way)
    layer, scale, seen = nn.Linear(2, 3), nn.Parameter(tt.full((3,), 2.0)), tt.ones(3)
    again = UpdatingEmpty.__new__(UpdatingEmpty)
    again.__setstate__(
        {
            "training": False,
            "_parameters": {"scale": scale, "bias": None},
            "_buffers": {"seen": seen, "passing": tt.ones(1)},
            "_non_persistent_buffers_set": {"passing"},
            "_modules": {"layer": layer},
            "_forward_hooks": {},
            "name": "given",
        }
    )
    assert list(again.state_dict()) == ["scale", "seen", "layer.weight", "layer.bias"]
    assert again.scale is scale and again.layer is layer and again.bias is None and again.seen is seen
    assert again.taken and again.name == "given" and not again.training
    assert list(again.__dict__["_parameters"]) == ["scale", "bias"]
    assert tt.equal(again(tt.ones(1, 2)), layer(tt.ones(1, 2)) * 2 + 1)
    again.scale = nn.Parameter(tt.zeros(3))
    assert again(tt.ones(1, 2)).tolist() == [[1, 1, 1]]


class Marked(nn.Module):
    """A module that pickles its ``__dict__`` itself, as programs do that leave something out."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.scale = nn.Parameter(tt.ones(1))
        self.register_buffer("passing", tt.zeros(1), persistent=False)
        self.file, self.notes = iter(()), {"k": [1]}

    def __getstate__(self):
        state = self.__dict__.copy()
        del state["file"]
        return {**state, "mark": 5}

    def forward(self, x):
        return self.inner(x) * self.scale


class MarkedTwice(Marked):
    def __setstate__(self, state):
        self.__dict__.update(state)
        self.file = None


@pytest.mark.parametrize("cls", [Marked, MarkedTwice])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_modules_that_pickle_their_dict_themselves(cls, copied):
    module = cls()
    made = copied(module)
    assert made.mark == 5 and made.notes == {"k": [1]} and made.notes is not module.notes
    assert list(made.state_dict()) == ["scale", "inner.weight", "inner.bias"]
    assert [name for name, _ in made.named_buffers()] == ["passing"]
    x = tt.ones(1, 2)
    assert tt.equal(made(x), module(x))
    made.scale = nn.Parameter(tt.zeros(1))
    assert made.__dict__["_parameters"]["scale"] is made.scale and made.__getattr__("scale") is made.scale
    assert module.scale.item() == 1
    made.float().eval()
    assert module.training and made(x).tolist() == [[0, 0]]


class CopiedByAttribute(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = object()
        self.inner = nn.Linear(2, 3)
        self.scale = nn.Parameter(tt.ones(3))
        self.register_parameter("absent", None)
        self.register_buffer("passing", tt.ones(3), persistent=False)

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        for name, value in self.__dict__.items():
            setattr(made, name, value if name == "shared" else copy.deepcopy(value, memo))
        return made

    def forward(self, x):
        return self.inner(x) * self.scale + self.passing


def test_modules_that_copy_their_attributes_one_by_one():
    module = CopiedByAttribute()
    made = copy.deepcopy(copy.deepcopy(module))
    assert made.shared is module.shared and made.absent is None
    assert sorted(made.state_dict()) == ["inner.bias", "inner.weight", "scale"]
    assert [name for name, _ in made.named_buffers()] == ["passing"]
    x = tt.ones(1, 2)
    assert tt.equal(made(x), module(x))
    with tt.no_grad():
        made.scale.zero_()
        made.inner.weight.zero_()
    assert made(x).tolist() == [[1, 1, 1]] and module.scale.tolist() == [1, 1, 1]
    made.eval()
    assert module.inner.training and not made.inner.training


class AssignsByItself(nn.Module):
    """Asks the names of its parameters before it assigns, and writes other attributes past `Module.__setattr__`."""

    def __setattr__(self, name, value):
        if name in self.__dict__.get("_parameters", ()):
            assert isinstance(value, tt.Tensor), name
            self._parameters[name] = value
        else:
            object.__setattr__(self, name, value)


def test_attributes_of_another_module_do_not_become_members():
    source, made = CopiedByAttribute(), AssignsByItself()
    made._parameters = {"scale": tt.zeros(3)}
    for name, value in source.__dict__.items():
        if name not in ("_parameters", "_buffers", "_modules"):
            setattr(made, name, value)
    assert made.absent is None and made.shared is source.shared and made.scale is source.scale
    assert list(made._parameters) == ["scale"] and not made._buffers and not made._modules
    made._buffers["passing"] = tt.zeros(3)
    made._modules["other"] = nn.Linear(1, 1)
    del made._parameters["scale"]
    assert sorted(made.state_dict()) == ["other.bias", "other.weight", "passing"]
    assert [name for name, _ in source.named_parameters()] == ["scale", "inner.weight", "inner.bias"]
    assert source.passing.tolist() == [1, 1, 1] and list(source._modules) == ["inner"]
    assert list(copy.deepcopy(made)._buffers) == ["passing"]
    made.__init__()
    assert not list(made.children()) and not made.state_dict() and not hasattr(made, "passing")
