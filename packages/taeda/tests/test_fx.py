"""Graphs of programs: tracing, editing, running, copying."""

import copy
import gc
import importlib
import linecache
import math
import operator
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from math import gcd
from typing import NamedTuple

import pytest

import taeda
import taeda.nn.functional as F
from taeda import fx, nn
from taeda.fx.experimental.optimization import fuse, remove_dropout
from taeda.fx.passes.shape_prop import ShapeProp
from taeda.fx.passes.split_module import split_module


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.layers = nn.Sequential(nn.ReLU(), nn.Conv2d(4, 4, 1))
        self.scale = nn.Parameter(taeda.full((4, 1, 1), 2.0))
        self.register_buffer("shift", taeda.ones(1))
        self.loose = taeda.full((1,), 3.0)

    def forward(self, x, factor=2.0):
        y = self.norm(self.conv(x)) * self.scale.exp()
        y += 1
        left, right = taeda.split(self.layers(y), 2, 1)
        flat = taeda.cat([left, right], dim=1).view(y.shape[0], -1)
        return {
            "sum": F.relu(flat).sum(dim=1) * factor + self.shift,
            "rest": (1 - flat[:, 0], self.loose * y),
        }


@taeda.fx.wrap
def opaque(x, times):
    return x if times > 100 else x * times


fx.wrap("len")
fx.wrap("gcd")


class Pair(NamedTuple):
    left: object
    right: object


def flat(result):
    return [result["sum"], *result["rest"]]


def image():
    return taeda.randn(2, 3, 5, 5, generator=taeda.Generator().manual_seed(0))


@pytest.fixture
def net():
    taeda.manual_seed(0)
    return Net().eval()


def same(left, right):
    return all(taeda.equal(a, b) for a, b in zip(flat(left), flat(right), strict=True))


def test_a_traced_module_does_what_the_module_does(net):
    traced = fx.symbolic_trace(net)
    assert same(traced(image()), net(image())) and same(traced(image(), 0.5), net(image(), 0.5))
    assert traced.conv is net.conv and traced.scale is net.scale
    assert set(traced.state_dict()) == {*net.state_dict(), "loose", "_tensor_constant0"} - {
        "_tensor_constant0"
    }


def test_nodes_are_those_of_the_program(net):
    nodes = {node.name: node for node in fx.symbolic_trace(net).graph.nodes}
    kinds = {name: nodes[name].op for name in ("x", "conv", "scale", "exp", "mul", "output")}
    assert kinds == {
        "x": "placeholder", "conv": "call_module", "scale": "get_attr", "exp": "call_method", "mul": "call_function",
        "output": "output",
    }  # fmt: skip
    assert nodes["mul"].target is operator.mul and nodes["relu"].target is F.relu
    assert nodes["layers_0"].target == "layers.0"
    assert nodes["cat"].args == ([nodes["getitem"], nodes["getitem_1"]],) and nodes["cat"].kwargs == {
        "dim": 1
    }
    assert list(nodes["conv"].users) == [nodes["norm"]] and nodes["norm"].all_input_nodes == [nodes["conv"]]
    assert nodes["conv"].meta["nn_module_stack"]["conv"] == ("conv", nn.Conv2d)


def test_code_is_what_runs():
    def program(x, *rest, scale=1.5, **named):
        return taeda.relu(x[:, 0] ** 2) + scale, -x.T

    assert fx.symbolic_trace(program).code.strip() == (
        "def forward(self, x, scale = 1.5, *rest, **named):\n"
        "    _rest = rest\n"
        "    _named = named\n"
        "    getitem = x[(slice(None, None, None), 0)]\n"
        "    pow_1 = getitem ** 2;  getitem = None\n"
        "    relu = torch.relu(pow_1);  pow_1 = None\n"
        "    add = relu + scale;  relu = scale = None\n"
        "    getattr_1 = x.T;  x = None\n"
        "    neg = -getattr_1;  getattr_1 = None\n"
        "    return (add, neg)"
    )


@pytest.mark.parametrize(
    "again",
    [
        copy.deepcopy,
        copy.copy,
        lambda module: pickle.loads(pickle.dumps(module)),
        lambda module: fx.Transformer(module).transform(),
        fx.symbolic_trace,
        lambda module: fx.GraphModule(module, copy.deepcopy(module.graph)),
    ],
)
def test_copies_do_the_same(net, again):
    traced = fx.symbolic_trace(net)
    made = again(traced)
    assert isinstance(made, fx.GraphModule) and made.code == traced.code
    assert same(made(image()), net(image()))
    made.graph.lint()


def test_graphs_are_edited(net):
    traced = fx.symbolic_trace(lambda x: taeda.relu(x) + 1)
    graph = traced.graph
    relu = next(node for node in graph.nodes if node.target is taeda.relu)
    with graph.inserting_after(relu):
        tanh = graph.call_function(taeda.tanh, (relu.args[0],))
    relu.replace_all_uses_with(tanh)
    with pytest.raises(RuntimeError, match="still had 1 users"):
        graph.erase_node(tanh)
    graph.erase_node(relu)
    graph.lint()
    traced.recompile()
    assert taeda.equal(traced(taeda.ones(2)), taeda.ones(2).tanh() + 1)
    with graph.inserting_before(tanh):
        dead = graph.call_method("sin", (tanh.args[0],))
    assert not dead.users and graph.eliminate_dead_code() and len(graph.nodes) == 4
    tanh.args = (dead,)
    with pytest.raises(RuntimeError, match="before it has been defined"):
        graph.lint()
    with pytest.raises(TypeError, match="does not support mutation"):
        graph.output_node().args[0].graph.create_node("output", "output", ([1],)).args[0].append(2)


def test_patterns_are_replaced():
    traced = fx.symbolic_trace(lambda x, y: taeda.relu(x + y) * taeda.relu(y).sum())
    found = fx.replace_pattern(traced, lambda a: taeda.relu(a), lambda a: taeda.tanh(a) * 2)
    x, y = image()[0], image()[1]
    assert len(found) == 2 and taeda.allclose(traced(x, y), (x + y).tanh() * 2 * (y.tanh() * 2).sum())
    chain = fx.symbolic_trace(lambda x: taeda.sin(taeda.sin(taeda.sin(x))))
    assert len(fx.replace_pattern(chain, lambda a: taeda.sin(taeda.sin(a)), lambda a: taeda.cos(a))) == 1
    shared = fx.symbolic_trace(lambda x: (taeda.sin(x).cos(), taeda.sin(x)))
    used = fx.symbolic_trace(lambda x: [inner := taeda.sin(x), inner.cos()])
    pattern = fx.symbolic_trace(lambda a: taeda.sin(a).cos())
    assert len(fx.replace_pattern(shared, pattern, lambda a: a)) == 1
    assert fx.replace_pattern(used, pattern, lambda a: a) == []


def test_interpreters_run_node_by_node(net):
    class Count(fx.Interpreter):
        calls = 0

        def run_node(self, n):
            self.calls += 1
            return super().run_node(n)

    traced = fx.symbolic_trace(net)
    runner = Count(traced)
    assert same(runner.run(image()), net(image())) and runner.calls == len(traced.graph.nodes)
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x"):
        fx.Interpreter(traced).run()


def test_shapes_are_noted(net):
    traced = fx.symbolic_trace(net)
    ShapeProp(traced).propagate(image())
    meta = {node.name: node.meta.get("tensor_meta") for node in traced.graph.nodes}
    assert meta["conv"].shape == (2, 4, 5, 5) and meta["view"].shape == (2, 100)
    assert meta["conv"].dtype is taeda.float32 and meta["split"][1].shape == (2, 2, 5, 5)


def test_normalization_is_folded():
    taeda.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5), nn.ReLU())
    model(image())
    model.eval()
    made = fuse(model)
    assert [node.target for node in made.graph.nodes if node.op == "call_module"] == ["0", "2", "3"]
    assert taeda.allclose(made(image()), model(image()), atol=1e-5)
    assert model[0].bias is not made.get_submodule("0").bias
    assert len(remove_dropout(made).graph.nodes) == 4


def test_modules_are_split(net):
    traced = fx.symbolic_trace(net)
    order = {node: index for index, node in enumerate(traced.graph.nodes)}
    made = split_module(traced, net, lambda node: 0 if order[node] < 8 else 1)
    assert [name for name, _ in made.named_children()] == ["submod_0", "submod_1"]
    assert same(made(image()), net(image()))


def test_wrapped_functions_are_one_node():
    traced = fx.symbolic_trace(lambda x: opaque(x, len(x)) + math.sqrt(x.shape[0]))
    names = [node.name for node in traced.graph.nodes]
    assert names == ["x", "len_1", "opaque", "getattr_1", "getitem", "sqrt", "add", "output"]
    assert taeda.allclose(traced(taeda.ones(4)), taeda.full((4,), 6.0))
    with pytest.raises(NotImplementedError, match="top level of a module"):
        fx.wrap("print")


def test_fixed_and_taken_apart_inputs():
    def program(pair, flip):
        return pair["a"] - pair["b"] if flip else pair["a"]

    traced = fx.symbolic_trace(program, concrete_args={"flip": True, "pair": {"a": fx.PH, "b": fx.PH}})
    pair = {"a": taeda.ones(1), "b": taeda.full((1,), 3.0)}
    assert traced(pair, True).item() == -2.0
    assert pickle.loads(pickle.dumps(traced))(pair, True).item() == -2.0
    with pytest.raises(AssertionError, match="flip has been specialized to have value True"):
        traced(pair, False)


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (lambda x: x if x.sum() > 0 else -x, "control flow"),
        (lambda x: [item + 1 for item in x], "cannot be iterated"),
    ],
)
def test_what_is_not_known_cannot_be_asked(program, text):
    with pytest.raises(fx.proxy.TraceError, match=text):
        fx.symbolic_trace(program)


def test_lengths_are_not_known():
    with pytest.raises(RuntimeError, match="'len' is not supported"):
        fx.symbolic_trace(lambda x: x.__len__())


def test_tracers_can_be_derived_from(net):
    class Deep(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return isinstance(m, nn.BatchNorm2d)

    graph = Deep().trace(net)
    targets = [node.target for node in graph.nodes if node.op == "call_module"]
    assert targets == ["norm"] and any(node.target == "conv.weight" for node in graph.nodes)
    assert same(fx.GraphModule(net, graph)(image()), net(image()))


def test_containers_of_other_kinds():
    traced = fx.symbolic_trace(
        lambda x: Pair(x + 1, {"k": [x * 2, None, taeda.float64, taeda.device("cpu")]})
    )
    result = traced(taeda.ones(1))
    assert isinstance(result, Pair) and result.right["k"][0].item() == 2.0
    assert result.right["k"][1:] == [None, taeda.float64, taeda.device("cpu")]
    made = fx.symbolic_trace(lambda x: x.to(taeda.float64).clamp(float("-inf"), float("inf")).sum())
    assert made(taeda.ones(2)).dtype is taeda.float64


def test_tracing_leaves_modules_as_they_were(net):
    before = nn.Module.__dict__.get("__getattribute__"), nn.Module.__call__
    with pytest.raises(fx.proxy.TraceError):
        fx.symbolic_trace(lambda x: 1 if x else 2)
    fx.symbolic_trace(net)
    assert (nn.Module.__dict__.get("__getattribute__"), nn.Module.__call__) == before
    assert not fx._symbolic_trace.is_fx_tracing()


def test_other_threads_run_as_ever_while_one_traces(net):
    before = nn.Module.__dict__.get("__getattribute__"), nn.Module.__call__
    first_done, tasks = threading.Event(), []
    expected = net(image())

    def second(x):
        assert first_done.wait(60)
        return x + 2

    def first(x):
        assert same(pool.submit(net, image()).result(60), expected)
        tasks.append(pool.submit(fx.symbolic_trace, second))  # its turn comes when this one is over
        return x + 1

    with ThreadPoolExecutor(2) as pool:
        made = fx.symbolic_trace(first)
        first_done.set()
        assert [made(1), tasks[0].result(60)(1)] == [2, 3]
    assert (nn.Module.__dict__.get("__getattribute__"), nn.Module.__call__) == before


def program_of(line):
    """A program compiled here, for pytest writes the asserts of its modules anew."""
    scope = {}
    exec(f"def program(x):\n    {line}\n    return x", scope)
    return scope["program"]


@pytest.mark.parametrize(
    "line", ["assert x.shape[0] > 1, 'told'", "assert x.all()", "assert opaque(x.all(), 2)"]
)
def test_asserts_become_nodes_where_that_is_asked_for(line):
    program = program_of(line)
    program.__globals__["opaque"] = opaque
    tracer = fx.Tracer()
    tracer.trace_asserts = True
    graph = tracer.trace(program)
    assert [node.target for node in graph.nodes][-2] is taeda._assert
    made = fx.GraphModule(tracer.root, graph)
    assert made(taeda.ones(2)).tolist() == [1, 1]
    with pytest.raises(AssertionError, match="Assertion failed"):
        made(taeda.zeros(1))
    with pytest.raises(fx.proxy.TraceError):
        fx.Tracer().trace(program)


@pytest.mark.parametrize(
    "line",
    ["assert x.all() and x.any()", "assert not x.all()", "if not x.all(): raise AssertionError", "x = not x"],
)
def test_other_conditions_are_no_asserts(line):
    tracer = fx.Tracer()
    tracer.trace_asserts = True
    with pytest.raises(fx.proxy.TraceError):
        tracer.trace(program_of(line))


def test_graphs_are_built_by_hand():
    graph = fx.Graph()
    x = graph.placeholder("x")
    scaled = graph.call_module("layer", (x,))
    graph.output((scaled, graph.get_attr("offset")))
    module = fx.GraphModule({"layer": nn.Linear(2, 2), "offset": taeda.ones(2)}, graph)
    assert taeda.equal(module(taeda.ones(2))[0], module.layer(taeda.ones(2)))
    assert isinstance(dict(module.named_buffers())["offset"], taeda.Tensor)
    module.delete_all_unused_submodules()
    assert module.add_submodule("more.inner", nn.ReLU()) and module.delete_submodule("more.inner")
    with pytest.raises(RuntimeError, match="not provided in ``root``"):
        fx.GraphModule({}, graph)
    with pytest.raises(ValueError, match="Callable is expected"):
        graph.create_node("call_function", "name")


def test_modules_are_written_to_folders(tmp_path):
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    traced.to_folder(tmp_path / "made", "Made")
    scope = {}
    exec((tmp_path / "made" / "module.py").read_text(), scope)
    assert taeda.equal(scope["Made"]()(taeda.ones(1, 2)), traced(taeda.ones(1, 2)))


def test_powers_of_negative_numbers():
    traced = fx.symbolic_trace(lambda x: (-2) ** x - -1)
    assert traced(taeda.full((1,), 2.0)).item() == 5.0


@pytest.mark.parametrize(
    ("program", "called"),
    [
        (lambda x: taeda.reshape(x, (x.size(0), -1)), taeda.reshape),
        (lambda x: taeda.chunk(x, x.size(0)), taeda.chunk),
        (lambda x: taeda.flip(x, [x.dim() - 1]), taeda.flip),
        (lambda x: taeda.full_like(x, x.size(0)), taeda.full_like),
        (lambda x: taeda.zeros(x.size(0)), taeda.zeros),
        (lambda x: taeda.arange(0, x.size(0)), taeda.arange),
        (lambda x: taeda.ones(4, 4)[x.size(0)], "__getitem__"),
        (lambda x: taeda.ones(3).expand(x.size(0), 3), "expand"),
        (lambda x: nn.functional.pad(x, (0, x.size(0))), nn.functional.pad),
        (lambda x: taeda.ops.aten.sum.dim_IntList(x, [0]), taeda.ops.aten.sum.dim_IntList),
        (lambda x: taeda.ops.aten.mm(x, x), taeda.ops.aten.mm),
        (lambda x: taeda.quantize_per_tensor(x, 0.5, 0, taeda.quint8).dequantize(), "dequantize"),
        (lambda x: taeda.frobenius_norm(x, 0), taeda.frobenius_norm),
    ],
)
def test_sizes_and_operators_while_tracing(program, called):
    x = taeda.tensor([[1.0, 2.0], [3.0, 4.5]])
    traced = fx.symbolic_trace(program)
    assert called in [node.target for node in traced.graph.nodes]
    expected, found = program(x), fx.GraphModule(traced, traced.graph)(x)
    for left, right in zip(expected, found, strict=True):
        assert taeda.equal(left, right)


def test_names_of_operators_in_programs():
    net = fx.symbolic_trace(lambda x: taeda.ops.aten.relu(taeda.ops.aten.add.Tensor(x, x)))
    assert "torch.ops.aten.relu(" in net.code and "torch.ops.aten.add.Tensor(" in net.code
    assert fx.node._get_qualified_name(operator.add) == "_operator.add"


def _doubled(x):
    return x * 2


fx.wrap("_doubled")


def test_wrapped_functions_stay_when_a_graph_is_traced_again():
    once = fx.symbolic_trace(lambda x: _doubled(x) + 1)
    twice = fx.symbolic_trace(once)
    assert [node.target for node in twice.graph.nodes][1] is _doubled and twice(2) == 5


def test_code_says_which_functions_were_wrapped(tmp_path, monkeypatch):
    net = fx.symbolic_trace(lambda x: opaque(x, len(x)) + 1)
    (name,) = (name for name in net.forward.__globals__ if name.endswith("opaque"))
    said = [line for line in net.code.splitlines() if "wrap" in line]
    assert said == [f'torch.fx._symbolic_trace.wrap("{wrapped}")' for wrapped in ("len", name)]
    assert fx.symbolic_trace(copy.deepcopy(net)).code == net.code
    assert "wrap" not in fx.symbolic_trace(lambda x: x + 1).code
    kept = fx.symbolic_trace(_Shared())
    assert fx.symbolic_trace(pickle.loads(pickle.dumps(kept))).code == kept.code
    kept.to_folder(tmp_path / "net_with_wraps")
    monkeypatch.syspath_prepend(tmp_path)
    written = importlib.import_module("net_with_wraps").FxModule()
    assert [node.name for node in fx.symbolic_trace(written).graph.nodes] == ["x", "gcd", "output"]


class _Shared(nn.Module):
    def forward(self, x):
        return gcd(x, 4)


def test_programs_of_containers_are_traced_again():
    def program(flag, x):
        return x["a"][1] if flag else x["z"]

    stands = {"flag": True, "x": {"a": [fx.PH, fx.PH], "z": fx.PH}}
    net = fx.symbolic_trace(fx.symbolic_trace(program, concrete_args=stands))
    assert net(True, {"a": [1, 2], "z": 3}) == 2
    noted = fx.symbolic_trace(lambda a: a, concrete_args={"a": fx._symbolic_trace.PHWithMeta("first")})
    assert next(iter(noted.graph.nodes)).ph_key == "first"


def test_modules_whose_inputs_are_containers_are_traced():
    class Summed(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(taeda.tensor(2.0))

        def forward(self, x):
            return {"total": sum(x["parts"]) * self.scale}

    stands = {"x": {"parts": [fx.PH, fx.PH]}}
    inputs = {"parts": [taeda.tensor(1.0), taeda.tensor(2.0)]}
    net = fx.symbolic_trace(Summed(), concrete_args=stands)
    again = fx.symbolic_trace(fx.symbolic_trace(net), concrete_args=stands)
    for module in (net, again, pickle.loads(pickle.dumps(again)), copy.deepcopy(net)):
        assert module(inputs)["total"].item() == 6.0
        assert [node.op for node in module.graph.nodes].count("placeholder") == 2


def test_copies_of_modules_that_lead_to_themselves():
    net = fx.symbolic_trace(lambda x: x + 1)
    net.meta["self"] = net
    copied = copy.deepcopy(net)
    assert copied is not net and copied.meta["self"] is copied and copied(1) == 2


def test_nodes_that_have_effects_stay():
    graph = fx.Graph()
    x = graph.placeholder("x")
    kept = [
        graph.call_function(taeda.ops.aten.add_.Tensor, (x, 1)),
        graph.call_function(taeda.rand_like, (x,)),
        graph.call_function(taeda.ops.profiler._record_function_enter_new, ("range",)),
    ]
    graph.call_function(taeda.ops.aten.add.Tensor, (x, 1))
    graph.output(x)
    graph.eliminate_dead_code()
    assert [node for node in graph.nodes if node.op == "call_function"] == kept
    assert not kept[1].is_impure(impure_random=False)


def test_tracing_what_is_no_program_of_python_says_so():
    with pytest.raises(AssertionError, match="written in Python"):
        fx.symbolic_trace(taeda.add)


@pytest.mark.parametrize(
    ("function", "arguments", "named", "refused"),
    [
        (taeda.add, 2, {}, False), (taeda.add, 2, {"out": "z"}, True), (taeda.relu_, 1, {}, True),
        (taeda.relu_, 2, {}, False), (taeda.ops.aten.add_.Tensor, 2, {}, True),
        (taeda.ops.aten.add.Tensor, 2, {}, False), (lambda x, out: x, 1, {"out": "z"}, False),
    ],
)  # fmt: skip
def test_calls_that_write_into_what_they_are_given_are_told(function, arguments, named, refused):
    from taeda.fx.operator_schemas import check_for_mutable_operation

    with pytest.raises(RuntimeError, match="mutable operation") if refused else nullcontext():
        check_for_mutable_operation(function, ("x", "y")[:arguments], named)


def test_signatures_of_built_in_functions():
    from taeda.fx.operator_schemas import get_signature_for_torch_op, normalize_function, type_matches

    texts = [list(signature.parameters) for signature in get_signature_for_torch_op(taeda.max)]
    assert ["input"] in texts and ["input", "dim", "keepdim"] in texts and ["input", "other"] in texts
    (one,) = get_signature_for_torch_op(taeda.ops.aten.add.Tensor)
    assert list(one.parameters) == ["input", "other", "alpha"] and one.return_annotation is taeda.Tensor
    assert get_signature_for_torch_op(3) is None

    def named(function, *args, types=None, **kwargs):
        return normalize_function(function, args, kwargs, types, normalize_to_only_use_kwargs=True).kwargs

    assert named(taeda.absolute, "x") == {"input": "x"}
    assert named(taeda.add, "x", 2) == {"input": "x", "other": 2, "alpha": 1}
    assert named(taeda.flatten, "x", 1) == {"input": "x", "start_dim": 1, "end_dim": -1}
    assert named(taeda.relu, "x", out="y") == {"input": "x", "out": "y"}
    tensors = (taeda.Tensor, taeda.Tensor)
    assert named(taeda.max, "x", "y", types=tensors) == {"input": "x", "other": "y"}
    assert named(taeda.max, "x", 1, types=(taeda.Tensor, int)) == {"input": "x", "dim": 1, "keepdim": False}
    with pytest.raises(RuntimeError, match="ambiguous"):
        named(taeda.max, "x", "y")
    assert normalize_function(taeda.relu, ("x", "y", "z")) is None
    assert type_matches(list[int], int) and type_matches(list[int], tuple[int, int])
    assert not type_matches(taeda.Tensor, int) and not type_matches(list[int], list[str])

    class Net(nn.Module):
        def forward(self, x):
            return taeda.relu(x)

    traced = fx.symbolic_trace(Net())
    (call,) = (node for node in traced.graph.nodes if node.op == "call_function")
    assert list(call.normalized_arguments(traced, normalize_to_only_use_kwargs=True).kwargs) == ["input"]


def test_arguments_of_graphs_are_normalised():
    from taeda.fx.experimental.normalize import NormalizeArgs, NormalizeOperators

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x):
            y = F.layer_norm(self.linear(x), (3,), eps=1e-3) + F.relu(x, True)
            return taeda.mul(y, x), taeda.add(y, x, alpha=2), y.sum(1, keepdim=True)

    net = fx.symbolic_trace(Net())
    for only_names in (True, False):
        changed = NormalizeArgs(net, only_names).transform()
        called = {
            node.name: (node.args, {k: str(v) for k, v in node.kwargs.items()})
            for node in changed.graph.nodes
        }
        assert called["linear"] == (
            ((), {"input": "x"}) if only_names else ((called_node(changed, "x"),), {})
        )
        defaults = {"normalized_shape": "(3,)", "weight": "None", "bias": "None", "eps": "0.001"}
        assert called["layer_norm"][1].items() >= (
            defaults.items() if only_names else {"eps": "0.001"}.items()
        )
        assert len(called["add"][0]) == 2  # an operator takes no names
        assert called["sum_1"][1] == {"keepdim": "True"}
        for mine, wanted in zip(changed(taeda.ones(2, 3)), net(taeda.ones(2, 3)), strict=True):
            taeda.testing.assert_close(mine, wanted)
    plain = NormalizeOperators(net).transform()
    targets = [node.target for node in plain.graph.nodes]
    assert operator.mul in targets and taeda.mul not in targets
    assert taeda.add in targets  # with an option that the operator has not
    taeda.testing.assert_close(plain(taeda.ones(2, 3)), net(taeda.ones(2, 3)))


def called_node(module, name):
    return next(node for node in module.graph.nodes if node.name == name)


def test_sources_go_with_their_code():
    def kept():
        return sum(name.startswith("<eval_with_key>") for name in linecache.cache)

    made = fx.symbolic_trace(nn.ReLU())
    assert linecache.getlines(made.forward.__func__.__code__.co_filename)[0]
    before = kept()
    for _ in range(5):
        fx.symbolic_trace(nn.ReLU())
    gc.collect()
    assert kept() <= before


def test_functions_of_programs_are_traced_through():
    class Clipped(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(min=0)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * (x > 0)

    traced = fx.symbolic_trace(lambda x: Clipped.apply(x) * 2)
    assert [node.target for node in traced.graph.nodes if node.op == "call_method"] == ["clamp"]
    assert traced(taeda.tensor([-1.0, 3.0])).tolist() == [0, 6]
