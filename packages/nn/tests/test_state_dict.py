"""state_dict and load_state_dict: names, all or nothing, errors, hooks, versions."""

import copy
import warnings
from collections import OrderedDict

import numpy as np
import pytest

import taeda_nn as nn
from taeda_registry.slots import tensor as tt


def make():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def values(module):
    return {name: np.array(value.tolist()) for name, value in module.state_dict().items()}


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def test_round_trip():
    source, target = make(), make()
    result = target.load_state_dict(source.state_dict())
    assert same(values(source), values(target))
    assert result.missing_keys == [] and result.unexpected_keys == []
    assert repr(result) == "<All keys matched successfully>"
    assert list(source.state_dict()) == [
        "0.weight",
        "0.bias",
        "1.weight",
        "1.bias",
        "1.running_mean",
        "1.running_var",
        "1.num_batches_tracked",
        "2.weight",
        "2.bias",
    ]


def test_state_shares_memory_and_has_no_history():
    module = nn.Linear(2, 2)
    state = module.state_dict()
    assert not state["weight"].requires_grad and module.state_dict(keep_vars=True)["weight"] is module.weight
    with tt.no_grad():
        module.weight.fill_(3)
    assert state["weight"].tolist() == [[3, 3], [3, 3]]
    assert list(module.state_dict(prefix="a.")) == ["a.weight", "a.bias"]


def test_all_problems_are_reported_and_nothing_is_changed():
    module = make()
    state = {name: tt.full_like(value, 9) for name, value in module.state_dict().items()}
    state["2.weight"] = tt.zeros(5, 5)
    state["2.bias"] = [1.0, 2.0]
    state["0.extra"] = tt.zeros(1)
    state["other.weight"] = tt.zeros(1)
    del state["1.running_mean"]
    before = values(module)
    with pytest.raises(RuntimeError) as caught:
        module.load_state_dict(state)
    text = str(caught.value)
    for part in (
        "2.weight",
        "[5, 5]",
        "[2, 4]",
        "2.bias",
        "list",
        "0.extra",
        "other.weight",
        "1.running_mean",
    ):
        assert part in text
    assert same(values(module), before)


def test_not_strict_loads_what_fits_by_name():
    module = make()
    result = module.load_state_dict({"0.bias": tt.full((4,), 2.0), "x": tt.zeros(1)}, strict=False)
    assert module[0].bias.tolist() == [2, 2, 2, 2]
    assert result.unexpected_keys == ["x"] and "0.weight" in result.missing_keys
    with pytest.raises(RuntimeError, match="shape"):
        module.load_state_dict({"0.bias": tt.zeros(5)}, strict=False)
    with pytest.raises(TypeError, match="dict-like"):
        module.load_state_dict([1])


@pytest.mark.parametrize("assign", [False, True])
def test_numbers_may_come_as_vectors_of_one(assign):
    """Checkpoints from before there were tensors without dimensions have them so."""
    module = nn.BatchNorm1d(2)
    module.load_state_dict({**module.state_dict(), "num_batches_tracked": tt.tensor([3])}, assign=assign)
    assert module.num_batches_tracked.shape == () and module.num_batches_tracked.item() == 3
    with pytest.raises(RuntimeError, match="size mismatch for num_batches_tracked"):
        module.load_state_dict(
            {**module.state_dict(), "num_batches_tracked": tt.tensor([3, 4])}, assign=assign
        )


def test_values_are_converted_and_identity_kept():
    module = nn.Linear(2, 2)
    weight = module.weight
    state = {name: value.double() for name, value in module.state_dict().items()}
    module.load_state_dict(state)
    assert module.weight is weight and weight.dtype == tt.float32 and weight.requires_grad
    module.load_state_dict(state, assign=True)
    assert module.weight.dtype == tt.float64 and isinstance(module.weight, nn.Parameter)


def test_parameters_are_taken_themselves_where_they_are_assigned():
    class Marked(nn.Parameter):
        pass

    source, module = nn.Linear(2, 2), nn.Linear(2, 2)
    state = source.state_dict(keep_vars=True)
    state["weight"] = Marked(tt.ones(2, 2), requires_grad=False)
    module.load_state_dict(state, assign=True)
    assert type(module.weight) is Marked and module.weight is state["weight"] and module.weight.requires_grad
    assert module.bias is source.bias


def test_values_for_parameters_without_memory_are_warned_of():
    module = nn.Linear(2, 2, device="meta")
    with pytest.warns(UserWarning, match="for bias: copying from a non-meta parameter"):
        module.load_state_dict({"bias": tt.ones(2)}, strict=False)
    assert module.bias.is_meta
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.load_state_dict({"bias": tt.ones(2)}, strict=False, assign=True)
        module.load_state_dict({"bias": tt.zeros(2)}, strict=False)
    assert module.bias.tolist() == [0, 0]


def test_values_without_memory_are_refused_before_anything_is_copied():
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    state = {key: tt.full(tuple(value.shape), 4.0) for key, value in module.state_dict().items()}
    state["1.weight"] = tt.empty(1, 2, device="meta")
    before = values(module)
    with pytest.raises(RuntimeError, match="Cannot copy out of meta tensor; no data!"):
        module.load_state_dict(state)
    assert same(values(module), before)
    module.load_state_dict(state, assign=True)
    assert module[1].weight.is_meta and module[0].bias.tolist() == [4, 4]


def test_modules_may_take_part_in_loading():
    class Renamed(nn.Linear):
        def _load_from_state_dict(self, state_dict, prefix, *rest):
            if prefix + "w" in state_dict:
                state_dict[prefix + "weight"] = state_dict.pop(prefix + "w")
            super()._load_from_state_dict(state_dict, prefix, *rest)

    module = nn.Sequential(Renamed(2, 2), nn.Linear(2, 2))
    state = dict(module.state_dict())
    state["0.w"] = tt.full((2, 2), 4.0)
    del state["0.weight"]
    bad = dict(state, **{"1.bias": tt.zeros(7)})
    before = values(module)
    with pytest.raises(RuntimeError):
        module.load_state_dict(bad)
    assert same(values(module), before)
    module.load_state_dict(state)
    assert module[0].weight.tolist() == [[4, 4], [4, 4]]
    assert "0.w" in state


@pytest.mark.parametrize("assign", [False, True])
def test_loaders_of_modules_find_what_was_loaded_before_them(assign):
    class Halved(nn.Linear):
        def _load_from_state_dict(self, state_dict, prefix, *rest):
            self.outer = outer[0].weight.tolist()
            super()._load_from_state_dict(state_dict, prefix, *rest)
            with tt.no_grad():
                self.weight /= 2

    module = nn.Sequential(nn.Linear(1, 1), Halved(1, 1), nn.Linear(1, 1))
    outer = [module[0]]
    state = {
        f"{i}.{name}": tt.full((1, 1)[: 2 - (name == "bias")], 4.0 + i)
        for i in range(3)
        for name in ("weight", "bias")
    }
    before, weight = values(module), module[1].weight
    for bad in (
        dict(state, **{"2.bias": tt.zeros(7)}),
        {**state, "3.bias": tt.zeros(1)},
        {key: state[key] for key in state if key[0] != "0"},
    ):
        given = {key: value.clone() for key, value in bad.items()}
        with pytest.raises(RuntimeError, match="Error\\(s\\) in loading"):
            module.load_state_dict(given, assign=assign)
        assert same(values(module), before) and module[1].weight is weight
    module.load_state_dict(state, assign=assign)
    assert (
        module[1].outer == [[4.0]]
        and module[1].weight.tolist() == [[2.5]]
        and module[2].bias.tolist() == [6.0]
    )
    with pytest.raises(ZeroDivisionError):
        outer[0] = type("Broken", (), {"weight": property(lambda self: 1 // 0)})()
        module.load_state_dict({key: value + 1 for key, value in state.items()})
    assert module[0].weight.tolist() == [[4.0]]


def test_extra_state():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    source, target = nn.Sequential(Counter()), nn.Sequential(Counter())
    source[0].count = 5
    assert source.state_dict() == {"0._extra_state": {"count": 5}}
    target.load_state_dict(source.state_dict())
    assert target[0].count == 5
    with pytest.raises(RuntimeError, match="_extra_state"):
        target.load_state_dict({})


def test_hooks():
    module, log = nn.Linear(2, 2), []
    module.register_state_dict_pre_hook(lambda m, prefix, keep: log.append("before"))
    module.register_state_dict_post_hook(lambda m, state, prefix, meta: state.__delitem__("bias"))
    assert list(module.state_dict()) == ["weight"] and log == ["before"]
    module.register_load_state_dict_pre_hook(lambda m, state, *_: state.setdefault("bias", m.bias * 0 + 3))
    module.register_load_state_dict_post_hook(lambda m, keys: log.append(keys.missing_keys))
    module.load_state_dict({"weight": tt.zeros(2, 2)})
    assert module.bias.tolist() == [3, 3] and log[-1] == []


def test_hooks_are_kept_by_number():
    """As classes that gather their state themselves call them."""
    module, log = nn.Linear(2, 2), []
    assert not module._state_dict_hooks
    handles = [
        module.register_state_dict_pre_hook(lambda *_: log.append("before")),
        module.register_state_dict_post_hook(lambda *_: log.append("after")),
        module.register_load_state_dict_post_hook(lambda *_: log.append("loaded")),
    ]
    kept = [module._state_dict_pre_hooks, module._state_dict_hooks, module._load_state_dict_post_hooks]
    for handle, hooks in zip(handles, kept, strict=True):
        hooks[handle.id]()
        handle.remove()
        assert not hooks
    assert log == ["before", "after", "loaded"]
    module._state_dict_hooks[0] = lambda m, state, *_: dict.fromkeys(state, 1)
    assert module.state_dict() == copy.deepcopy(module).state_dict() == {"weight": 1, "bias": 1}
    module._state_dict_hooks = OrderedDict()
    assert module.state_dict()["bias"].shape == (2,)


def test_batch_norm_accepts_states_without_count():
    module = nn.BatchNorm1d(2)
    state = dict(module.state_dict())
    del state["num_batches_tracked"]
    module(tt.ones(3, 2))
    module.load_state_dict(state)
    assert int(module.num_batches_tracked) == 1


def test_errors_in_the_words_that_programs_take_apart():
    with pytest.raises(RuntimeError) as caught:
        nn.Linear(2, 2).load_state_dict({"weight": tt.zeros(2, 3), "other": tt.zeros(1)})
    assert str(caught.value) == (
        'Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "bias". \n\tUnexpected key(s) in '
        'state_dict: "other". \n\tsize mismatch for weight: copying a param with shape torch.Size([2, 3]) from '
        "checkpoint, the shape in current model is torch.Size([2, 2])."
    )


def test_a_hook_after_loading_may_forgive_missing_keys():
    module, seen = nn.Sequential(nn.Linear(2, 2)), []

    def forgive(owner, keys):
        seen.append((owner, list(keys.missing_keys)))
        keys.missing_keys.clear()

    module.register_load_state_dict_post_hook(
        lambda owner, keys: seen.append((owner, list(keys.missing_keys)))
    )
    module[0].register_load_state_dict_post_hook(forgive)
    module.load_state_dict({"0.bias": tt.ones(2)})
    assert seen == [(module[0], ["0.weight"]), (module, [])]
    assert module[0].bias.tolist() == [1, 1]
    assert len(module._load_state_dict_post_hooks) == 1
    module[0]._load_state_dict_post_hooks.clear()
    with pytest.raises(RuntimeError, match="Missing key"):
        module.load_state_dict({"0.bias": tt.ones(2)})


def test_hooks_that_may_forgive_do_not_hide_other_problems():
    module = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    before = module[1].bias.tolist()
    module.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.remove("1.weight"))
    with pytest.raises(RuntimeError) as caught:
        module.load_state_dict({"0.weight": tt.ones(3, 5), "1.bias": tt.full((1,), 7.0), "other": tt.ones(1)})
    said = str(caught.value)
    assert (
        'Missing key(s) in state_dict: "0.bias".' in said
        and 'Unexpected key(s) in state_dict: "other".' in said
    )
    assert "size mismatch for 0.weight" in said and module[1].bias.tolist() == before


def test_names_of_passing_buffers_are_changed_through_their_set():
    net = nn.Linear(1, 1, bias=False)
    for name in "abc":
        net.register_buffer(name, tt.ones(1), persistent=name == "c")
    hidden = net._non_persistent_buffers_set
    assert hidden == {"a", "b"} and isinstance(hidden, set) and repr(hidden) == repr(set(hidden))
    hidden.discard("a")
    assert list(net.state_dict()) == ["weight", "a", "c"] and net._non_persistent_buffers_set == {"b"}
    net._non_persistent_buffers_set |= {"c"}
    assert list(net.state_dict()) == ["weight", "a"]
    net._non_persistent_buffers_set = {"a"}
    assert list(net.state_dict()) == ["weight", "b", "c"]
    kept = copy.deepcopy(net._non_persistent_buffers_set)
    kept.clear()
    assert type(kept) is set and list(net.state_dict()) == ["weight", "b", "c"]
