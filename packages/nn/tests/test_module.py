"""Module: members, walking, modes, conversion, hooks, text, copies."""

import copy
import gc
import pickle
import subprocess
import sys
import weakref
from types import ModuleType

import pytest

import taeda_nn as nn
from taeda_registry.slots import autograd
from taeda_registry.slots import tensor as tt


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
        self.scale = nn.Parameter(tt.ones(3))
        self.register_buffer("mean", tt.zeros(3))
        self.register_buffer("cache", tt.zeros(2), persistent=False)
        self.note = "text"

    def forward(self, x, shift=0.0):
        return self.head(x) * self.scale - self.mean + shift


NAMES = ["scale", "head.0.weight", "head.0.bias"]


def test_members_are_found_by_kind_and_in_order():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == NAMES
    assert [name for name, _ in net.named_buffers()] == ["mean", "cache"]
    assert [name for name, _ in net.named_modules()] == ["", "head", "head.0", "head.1"]
    assert [name for name, _ in net.named_children()] == ["head"]
    assert [name for name, _ in net.named_parameters(prefix="net", recurse=False)] == ["net.scale"]
    assert list(net._parameters) == ["scale"] and list(net._modules) == ["head"]
    assert net._non_persistent_buffers_set == {"cache"}


def test_shared_members_are_yielded_once():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias", "1.bias"]
    assert len(list(net.named_parameters(remove_duplicate=False))) == 4
    layer = nn.ReLU()
    assert len(list(nn.Sequential(layer, layer).children())) == 1


def test_assignment_registers_and_replaces():
    net = Net()
    net.scale = None
    assert "scale" in net._parameters and [n for n, _ in net.named_parameters()] == NAMES[1:]
    net.scale = nn.Parameter(tt.zeros(3))
    assert next(iter(net.named_parameters()))[0] == "scale"
    net.mean = tt.ones(3)
    assert [name for name, _ in net.named_buffers()] == ["mean", "cache"]
    net.note = nn.Parameter(tt.zeros(1))
    assert "note" in net._parameters
    net.other = nn.Buffer(tt.ones(2), persistent=False)
    assert "other" in net._buffers and "other" not in net.state_dict()
    net.mean = nn.Linear(1, 1)
    assert "mean" not in net._buffers and "mean" in net._modules


def test_assignment_of_another_type_is_refused():
    net = Net()
    layer, buffer = nn.Linear(1, 1), nn.Buffer(tt.ones(2))
    wrong = [
        ("scale", tt.zeros(3)),
        ("scale", 3),
        ("scale", layer),
        ("scale", buffer),
        ("head", 3),
        ("mean", 3),
    ]
    for name, value in wrong:
        before = getattr(net, name)
        with pytest.raises(TypeError, match=name):
            setattr(net, name, value)
        assert getattr(net, name) is before


def test_deletion_forgets_the_member():
    net = Net()
    del net.scale, net.mean, net.head
    assert not list(net.parameters()) and [n for n, _ in net.named_buffers()] == ["cache"]
    with pytest.raises(AttributeError, match="scale"):
        _ = net.scale
    with pytest.raises(AttributeError):
        del net.absent


def test_views_over_members_write_through():
    net = Net()
    net._modules["head"] = nn.Identity()
    assert isinstance(net.head, nn.Identity)
    del net._parameters["scale"]
    assert not hasattr(net, "scale")
    net._buffers["mean"] = None
    assert net.mean is None


def test_registration_checks_its_arguments():
    net = Net()
    for call, error in [
        (lambda: net.register_parameter("a.b", None), KeyError),
        (lambda: net.register_parameter("", None), KeyError),
        (lambda: net.register_parameter(1, None), TypeError),
        (lambda: net.register_parameter("note", None), KeyError),
        (lambda: net.register_parameter("w", tt.zeros(1)), TypeError),
        (lambda: net.register_buffer("forward", None), KeyError),
        (lambda: net.register_buffer("b", 3), TypeError),
        (lambda: net.add_module("m", 3), TypeError),
        (lambda: net.add_module("note", nn.Identity()), KeyError),
        (lambda: nn.Module(3), TypeError),
        (lambda: nn.Parameter([1.0]), TypeError),
    ]:
        with pytest.raises(error):
            call()


def test_members_before_init_are_refused():
    class Early(nn.Module):
        def __init__(self):
            self.plain = 1
            self.weight = nn.Parameter(tt.zeros(1))

    with pytest.raises(AttributeError, match="super"):
        Early()


def test_lookup_by_path():
    net = Net()
    assert net.get_submodule("head.0") is net.head[0] and net.get_submodule("") is net
    assert net.get_parameter("head.0.bias") is net.head[0].bias
    assert net.get_buffer("mean") is net.mean
    for call in (
        lambda: net.get_submodule("head.7"),
        lambda: net.get_submodule("note"),
        lambda: net.get_parameter("mean"),
        lambda: net.get_buffer("scale"),
    ):
        with pytest.raises(AttributeError):
            call()
    net.set_submodule("head.1", nn.Identity())
    assert isinstance(net.head[1], nn.Identity)
    with pytest.raises(AttributeError):
        net.set_submodule("head.9", nn.Identity(), strict=True)


def test_modes_reach_every_module():
    net = Net()
    assert net.eval() is net and not any(module.training for module in net.modules())
    net.train()
    assert all(module.training for module in net.modules())
    with pytest.raises(ValueError, match="mode"):
        net.train("yes")
    net.requires_grad_(False)
    assert not any(param.requires_grad for param in net.parameters())


def test_apply_goes_children_first():
    seen = []
    net = Net()
    assert net.apply(lambda module: seen.append(type(module).__name__)) is net
    assert seen == ["Linear", "ReLU", "Sequential", "Net"]


def test_zero_grad():
    net = Net()
    net(tt.ones(2, 4)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert all(float(param.grad.abs().sum()) == 0 for param in net.parameters())
    net.zero_grad()
    assert all(param.grad is None for param in net.parameters())


def test_conversion_keeps_identity_and_integers():
    net = Net()
    net.register_buffer("count", tt.tensor(3))
    before = [id(param) for param in net.parameters()]
    net.double()
    assert [id(param) for param in net.parameters()] == before
    assert {param.dtype for param in net.parameters()} == {tt.float64}
    assert net.mean.dtype == tt.float64 and net.count.dtype == tt.int64
    assert net.to(tt.float32).scale.dtype == tt.float32
    assert net.to("cpu", tt.float64).scale.dtype == tt.float64
    assert net.to(tt.zeros(1)).scale.dtype == tt.float32
    assert net.to(dtype=tt.float64, non_blocking=True).scale.dtype == tt.float64
    for bad in (tt.int64, 3.5):
        with pytest.raises(TypeError, match=r"Module\.to"):
            net.to(bad)
    assert net.half().scale.dtype == tt.float16


def test_forward_hooks_see_and_replace():
    net, log = Net().eval(), []
    x = tt.ones(1, 4)
    plain = net(x)
    first = net.register_forward_pre_hook(lambda module, args: log.append("pre") or (args[0] * 0,))
    second = net.register_forward_hook(lambda module, args, out: log.append("post") or out + 1)
    net.register_forward_hook(lambda module, args, out: log.append("early"), prepend=True)
    hooked = net(x)
    assert log == ["pre", "early", "post"]
    net.head.register_forward_hook(lambda *_: None).remove()
    first.remove()
    second.remove()
    second.remove()
    assert (net(x) == plain).all() and not (hooked == plain).all()


def test_hooks_with_keywords_and_on_failure():
    net, log = Net(), []
    net.register_forward_pre_hook(lambda m, args, kwargs: (args, {"shift": 1.0}), with_kwargs=True)
    net.register_forward_hook(lambda m, args, kwargs, out: log.append(kwargs), with_kwargs=True)
    net.register_forward_hook(lambda *_: log.append("always"), always_call=True)
    net(tt.ones(1, 4), shift=0.0)
    assert log == [{"shift": 1.0}, "always"]
    with pytest.raises(Exception):
        net(tt.ones(1, 5))
    assert log[2:] == ["always"]
    with pytest.raises(RuntimeError, match="pair"):
        net.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
        net(tt.ones(1, 4))
    assert log[3:] == ["always"]


def test_what_hooks_raise_after_an_error_does_not_hide_it():
    net, seen = Net(), []

    def refuses(*_):
        raise KeyError("a hook")

    def fails(*_):
        raise ZeroDivisionError("after an error")

    net.register_forward_hook(refuses)
    net.register_forward_hook(fails, always_call=True)
    net.register_forward_hook(lambda module, args, out: seen.append(out), always_call=True)
    with pytest.warns(UserWarning, match="ZeroDivisionError .*: after an error"), pytest.raises(KeyError):
        net(tt.ones(1, 4))
    assert len(seen) == 1 and seen[0].shape[0] == 1  # the result as it was when the error came


def test_hooks_that_forward_registers_are_called_and_may_go_while_they_are():
    log = []

    class Registers(nn.Module):
        def forward(self, x):
            if not log:
                self.register_forward_hook(lambda *_: log.append("late"))
            return x

    net = Registers()
    handle = net.register_forward_hook(lambda *_: (log.append("once"), handle.remove())[0])
    net(tt.ones(1))
    net(tt.ones(1))
    assert log == ["once", "late", "late"]


def test_hooks_for_all_modules():
    seen = []
    with nn.modules.module.register_module_forward_hook(lambda m, args, out: seen.append(type(m).__name__)):
        Net()(tt.ones(1, 4))
    assert seen == ["Linear", "ReLU", "Sequential", "Net"]
    Net()(tt.ones(1, 4))
    assert len(seen) == 4


def test_tables_of_hooks_for_all_modules():
    from taeda_nn.modules import module

    seen = []
    handle = module.register_module_forward_hook(lambda *_: seen.append("hook"))
    assert list(module._global_forward_hooks) == [handle.id] and not module._global_backward_hooks
    module._global_forward_pre_hooks[10**9] = lambda *_: seen.append("put")
    nn.Identity()(1)
    assert seen == ["put", "hook"]
    module._global_forward_hooks.clear()
    del module._global_forward_pre_hooks[10**9]
    nn.Identity()(1)
    assert seen == ["put", "hook"] and not module._global_forward_hooks
    handle.remove()


def test_backward_hooks_see_and_replace_gradients():
    layer, seen = nn.Linear(3, 2), []
    layer.register_full_backward_pre_hook(lambda m, grad_output: (grad_output[0] * 2,))
    layer.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)) or (gi[0] * 10,))
    x = tt.ones(1, 3).requires_grad_(True)
    layer(x).sum().backward()
    ((grad_input, grad_output),) = seen
    assert grad_output[0].tolist() == [[2.0, 2.0]]
    expected = (layer.weight.detach().sum(0) * 2).tolist()
    assert grad_input[0].tolist()[0] == pytest.approx(expected)
    assert x.grad.tolist()[0] == pytest.approx([10 * g for g in expected])


def test_backward_hooks_see_zeros_for_inputs_that_need_no_gradient():
    seen = []
    mean_square, likelihood = nn.MSELoss(), nn.NLLLoss()
    for loss in (mean_square, likelihood):
        loss.register_full_backward_hook(lambda m, gi, go: seen.append([g.tolist() for g in gi]))
    mean_square(tt.ones(2).requires_grad_(True), tt.zeros(2)).backward()
    likelihood(tt.zeros(2, 2).requires_grad_(True), tt.tensor([0, 1])).backward()
    assert seen == [[[1.0, 1.0], [0.0, 0.0]], [[[-0.5, 0.0], [0.0, -0.5]], [0, 0]]]


def test_backward_hooks_see_none_for_outputs_that_got_no_gradient():
    class Two(nn.Module):
        def forward(self, a, b):
            return a * 2, b * 3, a > 0

    seen = []
    two = Two()
    two.register_full_backward_pre_hook(
        lambda m, go: seen.append([None if g is None else g.tolist() for g in go])
    )
    two.register_full_backward_hook(lambda m, gi, go: seen.append([g.tolist() for g in gi]))
    two(tt.ones(2).requires_grad_(True), tt.ones(2).requires_grad_(True))[1].sum().backward()
    assert seen == [[None, [1.0, 1.0], None], [[0.0, 0.0], [3.0, 3.0]]]


def test_exceptions_name_the_module():
    net = nn.Sequential()
    net.body = nn.ModuleList([Net(), Net()])
    net.forward = lambda x: net.body[1](x)
    with pytest.raises(Exception) as caught:
        net(tt.ones(1, 5))
    assert [str(note) for note in caught.value.__notes__] == ["in module body.1.head.0 (Linear)"]
    with pytest.raises(Exception) as caught:
        nn.Linear(2, 3)(tt.ones(4, 5))
    assert caught.value.__notes__ == ["in module Linear"]


def test_text():
    net = Net()
    assert repr(net) == (
        "Net(\n  (head): Sequential(\n    (0): Linear(in_features=4, out_features=3, bias=True)\n"
        "    (1): ReLU()\n  )\n)"
    )
    assert repr(nn.Identity()) == "Identity()"
    assert repr(net.scale).startswith("Parameter containing:\n")


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_are_independent(duplicate):
    net = Net()
    net.tied = net.scale
    twin = duplicate(net)
    assert [n for n, _ in twin.named_parameters()] == [n for n, _ in net.named_parameters()]
    assert isinstance(twin.scale, nn.Parameter) and twin.scale.requires_grad
    x = tt.ones(2, 4)
    assert (twin(x) == net(x)).all()
    with tt.no_grad():
        twin.scale.fill_(5)
    assert net.scale.tolist() == [1, 1, 1]


class Mixed:
    """Has no slots, so that its instances' `__dict__` is one that it brings along."""

    def counted(self):
        return len(self.__dict__["_parameters"])


class Also:
    pass


class Mixture(Mixed, nn.Linear):
    pass


class MixedAgain(Also, Mixture):
    pass


class Shortened(Mixture, nn.Module):
    """Pickles its `__dict__` by itself, and asks whether a name is one of its own attributes."""

    def __getstate__(self):
        state = self.__dict__.copy()
        del state["note"]
        return state

    def __setstate__(self, state):
        assert not {"weight", "bias", "_parameter_names"} & state.keys()
        assert list(state["_parameters"]) == ["weight", "bias"]
        self.__dict__ = state


@pytest.mark.parametrize("kind", [Mixture, MixedAgain, nn.LazyLinear, Shortened])
def test_members_stand_in_the_dict_of_classes_with_others_in_front_of_the_module(kind):
    layer = kind(3) if kind is nn.LazyLinear else kind(2, 3)
    layer.note = 5
    assert list(layer.__dict__["_parameters"]) == ["weight", "bias"]
    assert list(vars(layer)["_modules"]) == [] and vars(layer)["note"] == 5
    if kind is nn.LazyLinear:
        return
    assert layer.counted() == 2
    twin = copy.deepcopy(layer)
    assert twin.counted() == 2 and hasattr(twin, "note") is (kind is not Shortened)
    x = tt.ones(1, 2)
    assert twin.weight is not layer.weight and tt.equal(twin(x), layer(x))
    twin.__dict__["_parameters"]["bias"] = None
    assert twin.bias is None and layer.bias is not None


@pytest.mark.parametrize("kind", [nn.Linear, Mixture])
def test_the_class_of_members_makes_dicts_of_their_own(kind):
    layer = kind(2, 3)
    made = type(layer._parameters)((name, value.detach()) for name, value in layer._parameters.items())
    assert type(made) is dict and list(made) == ["weight", "bias"]
    made["bias"] = None
    assert layer.bias is not None
    assert type(layer._buffers)() == {} and type(layer._modules)({"a": 1}, b=2) == {"a": 1, "b": 2}


class Doubling:
    """Makes something of members, as mixtures of PyTorch's modules do, and is no module itself."""

    def __getattr__(self, name):
        try:
            return object.__getattribute__(self, name)
        except AttributeError:
            found = super().__getattr__(name)
        return found * 2 if isinstance(found, tt.Tensor) else found


class Doubled(Doubling, nn.Module):
    shared = 7

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(tt.ones(1))
        self.register_buffer("seen", tt.full((1,), 3.0))
        self.inner, self.bias, self.plain = nn.Linear(2, 2), None, tt.ones(1)
        self.register_parameter("absent", None)


def restored(net):
    return pickle.loads(pickle.dumps(net))


@pytest.mark.parametrize("made", [lambda net: net, copy.deepcopy, restored])
def test_classes_with_a_lookup_of_their_own_are_asked_for_members(made):
    net = made(Doubled())
    assert net.scale.item() == 2 and net.seen.item() == 6 and net.plain.item() == 1 and net.absent is None
    assert net.inner is net._modules["inner"] and net._parameters["scale"].item() == 1
    assert [name for name, _ in net.named_parameters()] == ["scale", "inner.weight", "inner.bias"]
    assert net.state_dict()["seen"].item() == 3 and not hasattr(Doubled, "scale")
    with pytest.raises(AttributeError, match="nothing"):
        _ = net.nothing
    del net.scale
    assert not hasattr(net, "scale")
    net.scale = 5  # no member any more
    assert net.scale == 5 and net.shared == 7


def test_members_put_in_other_ways_are_asked_for_too():
    net = Doubled()
    net._parameters["weight"] = nn.Parameter(tt.ones(1))
    net._buffers = {"kept": tt.ones(1)}
    assert net.weight.item() == 2 and net.kept.item() == 2 and not hasattr(net, "seen")
    other = Doubled()
    other.kept = 4
    assert other.kept == 4
    del other.kept
    with pytest.raises(AttributeError):
        del other.kept


def test_attributes_before_the_constructor_are_written_through_the_dict():
    made = nn.Linear.__new__(nn.Linear)
    made.__dict__["note"] = 1
    made.__dict__.setdefault("more", []).append(2)
    made.__dict__.update(third=3)
    assert (made.note, made.more, made.third) == (1, [2], 3)
    assert made.__dict__.pop("third") == 3 and not hasattr(made, "third")
    del made.__dict__["note"]
    assert not hasattr(made, "note") and dict(made.__dict__) == {"more": [2]}
    made.__dict__.clear()
    assert not hasattr(made, "more")


@pytest.mark.parametrize("assign", [False, True])
def test_a_member_is_found_where_a_property_of_its_name_fails(assign):
    class Decaying(nn.Module):
        def __init__(self):
            super().__init__()
            if assign:
                self.beta = nn.Parameter(tt.tensor(0.5))
            else:
                self.register_buffer("beta", tt.tensor(0.5))
            self.seen = self.beta.item()

        @property
        def beta(self):
            return self.tau * 2

    net = Decaying()
    assert net.seen == 0.5 and list(net.state_dict()) == ["beta"]
    net.tau = tt.tensor(3.0)
    assert net.beta.item() == 6
    del net.tau
    assert copy.deepcopy(net).beta.item() == 0.5
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        net.other  # noqa: B018


@pytest.mark.parametrize("assign", [False, True])
def test_a_submodule_is_found_where_a_property_of_its_name_fails(assign):
    class Headed(nn.Module):
        def __init__(self):
            super().__init__()
            if assign:
                self.head = nn.Linear(2, 3)
            else:
                self.add_module("head", nn.Linear(2, 3))

        @property
        def head(self):
            return self._head

    net = Headed()
    assert hasattr(net, "head") and net.head is dict(net.named_children())["head"]
    net._head = nn.ReLU()
    assert isinstance(net.head, nn.ReLU)


def test_submodules_do_not_hide_what_their_class_has_under_their_name():
    class Blocks(nn.Module):
        head = None

        def __init__(self):
            super().__init__()
            self.parameters = []  # an attribute hides the method, until it is a submodule
            self.parameters.extend(nn.Linear(2, 3).parameters())
            self.parameters = nn.ParameterList(self.parameters)
            self.head = nn.Linear(3, 1)

    class Named(Blocks):
        def __init__(self):
            super().__init__()
            self.parameters = [1]

    first, second = Blocks(), Blocks()
    assert first.head is None and first._modules["head"].out_features == 1
    assert [tuple(p.shape) for p in second.parameters()] == [(3, 2), (3,), (1, 3), (1,)]
    assert list(first.state_dict()) == ["parameters.0", "parameters.1", "head.weight", "head.bias"]
    del second.head
    assert second.head is None and list(second._modules) == ["parameters"]
    with pytest.raises(TypeError, match="parameters is a module"):
        Named()
    assert len(list(copy.deepcopy(first).parameters())) == 4
    assert len(list(nn.Linear(2, 2).parameters())) == 2


def test_states_have_pytorchs_layout_and_earlier_ones_load():
    norm = nn.BatchNorm1d(2)
    norm.register_buffer("seen", tt.zeros(1), persistent=False)
    state = norm.__getstate__()
    assert list(state["_parameters"]) == ["weight", "bias"]
    assert list(state["_buffers"]) == ["running_mean", "running_var", "num_batches_tracked", "seen"]
    assert state["_non_persistent_buffers_set"] == {"seen"}
    assert state["_modules"] == {}
    assert not {"weight", "running_mean", "_parameter_names"} & set(state)
    for layout in (state, dict(norm.__dict__)):
        again = nn.BatchNorm1d.__new__(nn.BatchNorm1d)
        again.__setstate__(layout)
        assert list(again.state_dict()) == list(norm.state_dict())
        assert again.weight is norm.weight
        assert again.seen is norm.seen
        assert again(tt.ones(3, 2)).shape == (3, 2)


def test_deepcopy_keeps_ties():
    net = Net()
    net.tied = net.scale
    twin = copy.deepcopy(net)
    assert twin.tied is twin.scale


def test_forward_can_be_replaced_on_an_instance():
    layer = nn.Linear(2, 2)
    layer.forward = lambda a, b=1: (a, b)
    assert layer(3) == (3, 1) and layer(3, b=4) == (3, 4)
    with pytest.raises(NotImplementedError):
        nn.Module()()


def test_modules_die_with_their_last_reference():
    gc.disable()
    try:
        net = Net()
        refs = [weakref.ref(net), weakref.ref(net.head[0])]
        net(tt.ones(1, 4)).sum().backward()
        net.register_forward_hook(lambda *_: None)
        net(tt.ones(1, 4))
        del net
        assert [ref() for ref in refs] == [None, None]
    finally:
        gc.enable()


def test_modules_move_to_meta_and_back():
    net = Net()
    expected = {name: value.shape for name, value in net.state_dict().items()}
    assert net.to("meta") is net
    values = [*net.parameters(), *net.buffers()]
    assert all(value.device.type == "meta" for value in values) and all(
        p.requires_grad for p in net.parameters()
    )
    assert net(tt.ones(2, 4, device="meta")).shape == (2, 3)
    net.to_empty(device="cpu")
    assert {name: value.shape for name, value in net.state_dict().items()} == expected
    with tt.no_grad():
        for value in [*net.parameters(), *net.buffers()]:
            value.fill_(0.5)
    net(tt.ones(2, 4)).sum().backward()
    assert net.scale.grad.device.type == "cpu"
    assert nn.Linear(2, 3).to_empty(device="meta").weight.device.type == "meta"


def test_parameters_show_that_they_require_grad():
    assert repr(nn.Parameter(tt.ones(2))) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert "requires_grad" not in repr(nn.Parameter(tt.ones(2), requires_grad=False))
    given = tt.ones(2).as_subclass(type("Marked", (tt.Tensor,), {}))
    assert repr(given) == "Marked([1., 1.])"
    assert repr(nn.Parameter(given)) == "Parameter(Marked([1., 1.], requires_grad=True))"


@pytest.mark.parametrize("make", [nn.Parameter, nn.Buffer])
def test_pickles_keep_what_programs_say_of_parameters(make):
    value = make(tt.ones(2))
    value.tag = {"group": 1}
    read = pickle.loads(pickle.dumps(value))
    assert type(read) is make and read.tag == {"group": 1} and read.tolist() == [1, 1]
    assert read.requires_grad == value.requires_grad


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_copies_of_parameters_share_memory_as_the_originals_did(duplicate):
    whole = nn.Parameter(tt.zeros(4))
    whole, part = duplicate([whole, nn.Buffer(whole.detach()[2:])])
    with tt.no_grad():
        whole[3] = 5.0
    assert part.tolist() == [0.0, 5.0] and isinstance(part, nn.Buffer) and whole.requires_grad


def test_the_interpreter_can_remember_where_functions_stand():
    """CPython does so for plain modules without `__getattr__`; else each call of a function takes a tenth longer."""
    assert type(nn.functional) is ModuleType and "__getattr__" not in vars(nn.functional)


def test_how_hooks_were_registered_can_be_assigned():
    """As copies do that set every attribute of a module."""
    seen = []
    module, other = nn.Linear(1, 1), nn.Linear(1, 1)
    marked = module.register_forward_hook(lambda *given: seen.append(len(given)), with_kwargs=True)
    module.register_forward_hook(lambda *given: seen.append(len(given)))
    names = ("_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called")
    for name in (*names, "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs"):
        setattr(other, name, getattr(module, name))
    other(tt.ones(1))
    assert seen == [4, 3] and list(other._forward_hooks_with_kwargs) == [marked.id]
    other._forward_hooks_with_kwargs = {}
    other(tt.ones(1))
    assert seen == [4, 3, 3, 3]


def test_how_hooks_were_registered_can_be_read():
    module = nn.Linear(1, 1)
    assert module._is_full_backward_hook is None
    plain = module.register_forward_hook(lambda *_: None)
    marked = module.register_forward_hook(lambda *_: None, with_kwargs=True, always_call=True)
    before = module.register_forward_pre_hook(lambda *_: None, with_kwargs=True)
    module.register_full_backward_hook(lambda *_: None)
    assert list(module._forward_hooks) == [plain.id, marked.id]
    assert (
        dict(module._forward_hooks_with_kwargs)
        == {marked.id: True}
        == dict(module._forward_hooks_always_called)
    )
    assert dict(module._forward_pre_hooks_with_kwargs) == {before.id: True}
    assert module._is_full_backward_hook is True


def test_hooks_of_all_modules_are_met_by_calls_of_before():
    """The first one exchanges what a call does; functions that programs have kept or replaced stay what they are."""
    program = """
import taeda_nn as nn
from taeda_nn.modules.module import register_module_forward_hook
from taeda_registry.slots import tensor as tt
seen, call = [], nn.Module.__call__
def counted(self, *args, **kwargs):
    seen.append("call")
    return call(self, *args, **kwargs)
nn.Module.__call__ = counted
layer = nn.Identity()
layer(1), layer(input=2), nn.Identity.__call__(layer, 3)
assert seen == ["call"] * 3
handle = register_module_forward_hook(lambda module, args, output: seen.append(output))
layer(4)
assert seen[3:] == ["call", 4], seen
nn.Module.__call__ = call
layer(5), call(layer, 6)
assert seen[5:] == [5, 6], seen
handle.remove()
layer(7)
assert seen[5:] == [5, 6], seen
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_modules_that_are_initialised_once_more_have_no_members():
    module = Net()
    module.register_forward_hook(lambda *_: None)
    nn.Module.__init__(module)
    assert module.state_dict() == {} and list(module.modules()) == [module]
    assert module.note == "text" and not any(
        hasattr(module, name) for name in ("head", "scale", "mean", "cache")
    )
    module.add_module("scale", nn.Linear(1, 1))
    module.register_parameter("head", nn.Parameter(tt.ones(1)))
    module.register_buffer("note_2", None)
    assert sorted(module.state_dict()) == ["head", "scale.bias", "scale.weight"]


def test_parameters_whose_class_converts_itself():
    class Packed(nn.Parameter):
        def to(self, *args, **kwargs):
            self.data = self.data.round().to(tt.int8)
            self.packed = True
            return self

        def cpu(self):
            return self.to("cpu")

    for move in (lambda module: module.to("cpu"), lambda module: module.cpu()):
        layer = nn.Linear(2, 1, bias=False)
        weight = layer.weight = Packed(tt.tensor([[1.6, 2.4]]), requires_grad=False)
        move(layer)
        assert layer.weight is weight and weight.packed
        assert weight.dtype == tt.int8 and weight.tolist() == [[2, 2]]


def test_functions_that_write_to_parameters_are_seen_by_the_graph():
    layer = nn.Linear(2, 2)
    layer.weight.grad = tt.ones(2, 2)
    product = (layer.weight * layer.weight).sum()
    before, grad_before = layer.weight._version, layer.weight.grad._version
    assert layer._apply(lambda value: value.add_(1.0)) is layer
    assert layer.weight._version > before and layer.weight.grad._version > grad_before
    with pytest.raises(RuntimeError, match="place"):
        product.backward()


def test_replicas_and_lists_of_hooks():
    layer = nn.BatchNorm1d(2)
    seen = []
    layer.register_full_backward_hook(seen.append)
    layer.register_full_backward_pre_hook(print)
    replica = layer._replicate_for_data_parallel()
    assert replica._is_replica and not list(replica.parameters()) and len(list(layer.parameters())) == 2
    assert [name for name, _ in replica.named_buffers()] == [name for name, _ in layer.named_buffers()]
    replica.weight = nn.Parameter(tt.zeros(2))
    assert layer.weight is not replica.weight
    assert layer._get_backward_hooks() == ([seen.append], []) and layer._get_backward_pre_hooks() == [print]
    assert nn.ReLU()._get_backward_hooks() == ([], [])


def test_backward_hooks_rest_while_a_gradient_is_differentiated():
    loss, calls = nn.MSELoss(), []
    loss.register_full_backward_hook(lambda m, gi, go: calls.append(go[0].item()))
    x, y = tt.tensor([1.0, 2.0]).requires_grad_(), tt.tensor([0.0, 5.0])
    (slope,) = autograd.grad(loss(x, y), x, create_graph=True)
    assert calls == [1]
    assert autograd.grad(slope.sum(), x)[0].tolist() == [1, 1] and calls == [1]


def test_assignments_go_through_the_methods_that_register(monkeypatch):
    """What programs put in their place, to make parameters elsewhere, sees replaced members too."""
    seen = []
    for kind in ("parameter", "buffer"):
        method = getattr(nn.Module, f"register_{kind}")

        def noted(self, name, value, *args, _method=method, **kwargs):
            seen.append((name, value is None))
            _method(self, name, value, *args, **kwargs)

        monkeypatch.setattr(nn.Module, f"register_{kind}", noted)
    layer, norm = nn.Linear(2, 2), nn.BatchNorm1d(2)
    table, several = nn.ParameterDict({"a": tt.ones(1)}), nn.ParameterList([tt.ones(1)])
    seen.clear()
    layer.weight = nn.Parameter(tt.ones(2, 2))
    layer.bias = None
    table["a"] = nn.Parameter(tt.zeros(1))
    several[0] = nn.Parameter(tt.zeros(1))
    norm.running_mean = tt.ones(2)
    assert seen == [("weight", False), ("bias", True), ("a", False), ("0", False), ("running_mean", False)]
    assert layer.bias is None and "running_mean" in norm.state_dict() and table["a"].item() == 0


def test_members_by_a_function_of_the_programs_own():
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1, bias=False))

    def widths(module):
        return [("width", module.in_features)] if isinstance(module, nn.Linear) else []

    assert list(net._named_members(widths)) == [("0.width", 2), ("1.width", 3)]
    assert list(net._named_members(widths, prefix="net", recurse=False)) == []
    assert list(net[0]._named_members(widths, "net")) == [("net.width", 2)]


def test_members_are_converted_by_the_name_of_a_type_of_tensors():
    layer = nn.BatchNorm1d(2)
    assert layer.type("torch.DoubleTensor") is layer
    assert {str(t.dtype).rpartition(".")[2] for t in layer.state_dict().values()} == {"float64"}
    assert str(layer.type(layer.weight.float().dtype).weight.dtype).endswith("float32")


def test_parameters_that_become_sparse_are_replaced():
    layer = nn.Linear(2, 2)
    weight, dense = layer.weight, layer.weight.tolist()
    weight.grad = tt.ones(2, 2)
    layer._apply(lambda t: t.to_sparse() if t.dim() == 2 else t)
    assert layer.weight is not weight and layer.weight.is_sparse and layer.weight.requires_grad
    assert layer.weight.to_dense().tolist() == dense == weight.tolist() and layer.weight.grad.is_sparse
    assert isinstance(layer.weight, nn.Parameter) and set(layer.state_dict()) == {"weight", "bias"}
    kept = layer.weight
    assert layer.double().weight is kept and kept.is_sparse and kept.dtype == tt.float64
    assert kept.to_dense().dtype == kept.grad.dtype == tt.float64 and kept.requires_grad


def test_a_module_within_itself_is_walked_once_or_refused():
    shared = nn.Linear(1, 1)
    layer = nn.Sequential(shared, nn.Sequential(shared))
    names = ["", "0", "1", "1.0"]
    assert [name for name, _ in layer.named_modules(remove_duplicate=False)] == names
    layer[1].add_module("back", layer)
    assert [name for name, _ in layer.named_modules()] == names[:3]
    with pytest.raises(RecursionError, match=r"'1\.back' contains itself"):
        list(layer.named_parameters(remove_duplicate=False))


def test_a_gradient_that_cannot_be_converted_leaves_its_parameter_alike():
    class Refused(tt.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            if getattr(function, "__name__", "") == "to":
                raise MemoryError
            return super().__torch_function__(function, types, args, kwargs or {})

    layer = nn.Linear(2, 2)
    layer.weight.grad = layer.weight.detach().clone().as_subclass(Refused)
    with pytest.raises(MemoryError):
        layer.double()
    assert layer.weight.dtype == layer.weight.grad.dtype


def test_conversions_take_types_of_numbers_and_name_what_is_none():
    layer = nn.Linear(2, 2)
    assert layer.to(float).weight.dtype == layer.to(dtype=float).weight.dtype == tt.float64
    assert layer.to(dtype=complex).bias.dtype == tt.complex128
    for wrong in (
        {"dtype": 3},
        {"dtype": "float32"},
        {"dtype": [tt.float32]},
        {"dtype": int},
        {"memory_format": 3},
    ):
        with pytest.raises(TypeError, match=f"Module.to: .*{next(iter(wrong))}"):
            layer.to(**wrong)
    with pytest.raises(TypeError, match=r"Module\.to: argument 'dtype'"):
        layer.to(str)
