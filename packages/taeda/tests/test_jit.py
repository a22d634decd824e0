"""Scripts, traces and exported programs: they do what the module does, here and read from files."""

import copy
import io
import os
import pickle
import subprocess
import sys
import warnings
from collections import OrderedDict, namedtuple

import pytest

import taeda
from taeda import fx, jit, nn
from taeda.fx.experimental.proxy_tensor import make_fx


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(7, 4), nn.LSTM(4, 5, batch_first=True)
        self.layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.register_buffer("places", taeda.randn(10, 4))

    def forward(self, words, mask=None):
        rows, length = words.shape
        hidden = self.layer(self.embed(words) + self.places[:length])
        hidden, (last, _) = self.rnn(hidden)
        weights = taeda.ones(length, length).tril()
        hidden = taeda.einsum("bnd,nm->bmd", hidden, weights)
        hidden[:, 0] = 0.0
        return {"hidden": hidden.reshape(rows * length, -1), "last": last.clone().add_(1)}


def words(rows=2, length=3):
    return (taeda.arange(rows * length) % 7).view(rows, length)


@pytest.fixture
def net():
    taeda.manual_seed(0)
    return Words().eval()


def same(left, right):
    return all(taeda.allclose(left[key], right[key], atol=1e-6) for key in ("hidden", "last"))


def read_again(program, save=jit.save, load=jit.load):
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    return load(file)


def test_a_script_shares_parameters_with_its_module(net):
    made = jit.script(net)
    assert isinstance(made, jit.ScriptModule) and isinstance(made, nn.Module) and not isinstance(made, Words)
    assert same(made(words()), net(words())) and list(made.state_dict()) == list(net.state_dict())
    assert made.original_name == "Words" and "def forward" in made.code and jit.script(made) is made
    pairs = zip(made.parameters(), net.parameters(), strict=True)
    assert all(own is given for own, given in pairs)
    assert repr(made).startswith("RecursiveScriptModule(\n  original_name=Words\n  (embed)")
    layers = jit.script(nn.Sequential(nn.ReLU(), nn.Tanh()))
    assert len(layers) == 2 and isinstance(layers[1], nn.Tanh) and len(list(layers)) == 2
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        _ = made.missing


@pytest.mark.parametrize(
    "make", [jit.script, lambda module: jit.trace(module, taeda.ones(3, 2), check_trace=False)]
)
def test_modes_of_a_script_are_its_own(make):
    """A program goes on training its module after it has made a script for evaluation of it."""
    shared = nn.Dropout(0.9)
    net = nn.Sequential(nn.BatchNorm1d(2), shared, nn.Sequential(shared))
    first, second = make(net.eval()), make(net)
    net.train()
    second.eval()
    modes = [{module.training for module in one.modules()} for one in (net, first, second)]
    assert modes == [{True}, {False}, {False}] and first[1] is first[2][0]
    x = taeda.ones(3, 2)
    assert taeda.equal(first(x), second(x)) and first[0].running_mean is net[0].running_mean
    first.train()
    net.eval()
    assert first[1].training and not second.training and not shared.training
    first.extra = 3
    assert not hasattr(net, "extra")


def test_hooks_and_gradients_go_through_scripts():
    layer = nn.Linear(2, 2)
    made, seen = jit.script(layer), []
    made.register_forward_hook(lambda *_: seen.append(1))
    made(taeda.ones(1, 2)).sum().backward()
    assert seen == [1] and layer.weight.grad is not None


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_scripts_are_copied(net, again):
    made = again(jit.script(net))
    assert type(made) is jit.RecursiveScriptModule and same(made(words()), net(words()))


def test_a_trace_does_what_the_module_does(net):
    made = jit.trace(net, words())
    assert isinstance(made, jit.TopLevelTracedModule) and same(made(words()), net(words()))
    assert same(made(words(3, 5)), net(words(3, 5)))


def test_the_graph_of_a_trace_serves_other_sizes(net):
    graph_module = jit.trace(net, words())._recorded
    for size in ((2, 3), (1, 6), (4, 1)):
        assert same(graph_module(words(*size)), net(words(*size)))
    assert "self.places" in graph_module.code and "reshape(mul" in graph_module.code
    assert sorted(graph_module.state_dict()) == sorted(net.state_dict())


def test_programs_are_read_from_files(net, tmp_path):
    expected = net(words())
    for program in (jit.trace(net, words()), jit.script(net)):
        program.save(str(tmp_path / "net.pt"), _extra_files={"note": "text"})
        extra = {"note": ""}
        made = jit.load(tmp_path / "net.pt", _extra_files=extra, map_location="cpu")
        assert isinstance(made, jit.ScriptModule) and same(made(words()), expected)
        assert extra == {"note": b"text"} and list(made.state_dict()) == list(net.state_dict())
    assert len(jit.script(net).save_to_buffer()) > 1000


class Counting(nn.Module):
    """A module that counts its calls, in a buffer and in an attribute, and draws a number in each."""

    def __init__(self):
        super().__init__()
        self.calls = 0
        self.register_buffer("count", taeda.zeros(1))

    def forward(self, x):
        self.calls += 1
        self.count += 1
        return x * self.count + taeda.rand(1)


def test_a_script_is_written_without_being_run(tmp_path):
    net = Counting()
    program = jit.script(net)
    taeda.manual_seed(0)
    expected = taeda.rand(1)
    taeda.manual_seed(0)
    program.save(str(tmp_path / "net.pt"))
    assert program.graph is not None and taeda.export.export(net, (taeda.ones(1),)) is not None
    assert net.calls == 0 and net.count.tolist() == [0.0]
    assert taeda.equal(taeda.rand(1), expected)
    assert jit.load(tmp_path / "net.pt").count.tolist() == [0.0]


def test_tensors_are_written_once(tmp_path):
    layer = nn.Linear(300, 300)
    jit.trace(layer, taeda.ones(1, 300)).save(tmp_path / "net.pt")
    assert (tmp_path / "net.pt").stat().st_size < 1.2 * 300 * 301 * 4


READER = """
import sys
import taeda
made = taeda.jit.load(sys.argv[1])
assert isinstance(made, taeda.jit.ScriptModule)
print(made(taeda.ones(3, 2)).sum().item(), sorted(made.state_dict()))
"""
WRITER = """
import sys
import taeda
class Own(taeda.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = taeda.nn.Parameter(taeda.full((2,), 2.0))
    def forward(self, x):
        return x.view(x.size(0), -1) * self.weight
own = Own()
{program}.save(sys.argv[1])
"""


@pytest.mark.parametrize("program", ["taeda.jit.trace(own, taeda.ones(1, 2))", "taeda.jit.script(own)"])
def test_other_programs_need_not_have_the_class(tmp_path, program):
    path = tmp_path / "net.pt"
    subprocess.run([sys.executable, "-c", WRITER.format(program=program), path], check=True)
    done = subprocess.run([sys.executable, "-c", READER, path], check=True, capture_output=True, text=True)
    assert done.stdout == "12.0 ['weight']\n"


def test_what_has_no_graph_and_no_class_says_so(tmp_path):
    class Branching(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(RuntimeError, match=r"can be written neither as a graph .* nor as an object"):
        jit.script(Branching()).save(tmp_path / "net.pt")
    jit.trace(Branching(), taeda.ones(2)).save(tmp_path / "net.pt")
    assert taeda.equal(jit.load(tmp_path / "net.pt")(taeda.ones(2)), taeda.ones(2))


def test_files_of_others_are_refused(tmp_path):
    taeda.save({"a": 1}, tmp_path / "other.pt")
    with pytest.raises(RuntimeError, match="was not written by"):
        jit.load(tmp_path / "other.pt")
    with pytest.raises(ValueError, match="does not exist"):
        jit.load(tmp_path / "missing.pt")


def test_functions_are_traced():
    made = jit.trace(lambda x, y: (x + y, {"k": x * y}), (taeda.ones(2), taeda.full((2,), 3.0)))
    assert isinstance(made, jit.ScriptFunction) and made(taeda.ones(1), taeda.ones(1))[0].item() == 2.0
    again = read_again(made)
    assert again(taeda.ones(1), taeda.full((1,), 3.0))[1]["k"].item() == 3.0
    assert [node.op for node in made.graph.nodes][:2] == ["placeholder", "placeholder"]
    with pytest.raises(RuntimeError, match="give either"):
        jit.trace(lambda x: x)


class Scaled(namedtuple("Scaled", ["value", "scale"])):
    """A value and its scale, which stand for their product in every function; numbers become tensors."""

    def __new__(cls, value, scale):
        return super().__new__(cls, value, scale if taeda.is_tensor(scale) else taeda.tensor(scale))

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is taeda.sub:
            return NotImplemented
        return func(
            *[item.value * item.scale if isinstance(item, cls) else item for item in args], **kwargs or {}
        )


def test_a_trace_keeps_what_classes_make_of_functions():
    def double(x):
        return nn.functional.linear(Scaled(x, 2.0), taeda.eye(2))

    again = read_again(jit.trace(double, taeda.ones(1, 2)))
    assert again(taeda.tensor([[3.0, 5.0]])).tolist() == [[6, 10]]
    with pytest.raises(TypeError, match="sub"):
        jit.trace(lambda x: taeda.sub(Scaled(x, 2.0), x), taeda.ones(1))


class Pair(namedtuple("Pair", ["first", "second"])):
    def __new__(cls, first, second):
        assert taeda.is_tensor(first) and taeda.is_tensor(second)
        return super().__new__(cls, first, second)


def test_a_trace_takes_tuples_of_classes_that_ask_for_tensors():
    again = read_again(jit.trace(lambda x: taeda.stack(Pair(x + 1, x)), taeda.ones(1)))
    assert again(taeda.tensor([3.0])).tolist() == [[4], [3]]


def test_traces_by_name_and_of_methods(net):
    made = jit.trace(net, example_kwarg_inputs={"words": words()})
    assert same(made._recorded(words=words()), net(words()))
    methods = jit.trace_module(nn.Linear(2, 2), {"forward": taeda.ones(1, 2), "extra_repr": ()})
    assert methods(taeda.ones(1, 2)).shape == (1, 2)


def test_a_trace_that_does_not_repeat_is_told():
    with pytest.warns(jit.TracerWarning, match="gives another result"):
        jit.trace(lambda x: x + taeda.rand(2), taeda.ones(2))
    state = taeda.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jit.trace(lambda x: x * 2, taeda.ones(2))
    assert taeda.equal(state, taeda.get_rng_state())


def test_warnings_of_the_librarys_own_modules_can_be_left_out():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        jit.TracerWarning.ignore_lib_warnings()
        warnings.warn_explicit("inside", jit.TracerWarning, "f.py", 1, module="taeda.nn")
        warnings.warn_explicit("outside", jit.TracerWarning, "f.py", 1, module="program")
    assert [str(warning.message) for warning in seen] == ["outside"]


def test_programs_know_that_they_are_traced():
    seen = []
    jit.trace(lambda x: (seen.append(jit.is_tracing()), x + 1)[1], taeda.ones(1), check_trace=False)
    assert seen == [True] and not jit.is_tracing()
    with pytest.raises(ZeroDivisionError):
        jit.trace(lambda x: x / (1 // 0), taeda.ones(1))
    assert not jit.is_tracing()


def test_what_was_traced_takes_the_branches_of_its_trace():
    class Net(nn.Module):
        def forward(self, x):
            return x + 1 if jit.is_tracing() else x.tolist()

    x = taeda.zeros(1)
    for made in (jit.trace(Net(), x), jit.trace(Net().forward, x), jit.trace_module(Net(), {"forward": x})):
        assert taeda.equal(made(x), taeda.ones(1)) and not jit.is_tracing()
    assert jit.script(Net())(x) == [0.0]
    fails = jit.trace(lambda x: x.view(2), taeda.zeros(2))
    with pytest.raises(RuntimeError):
        fails(taeda.zeros(3))
    assert not jit.is_tracing()


def test_files_that_lack_a_part_are_refused():
    file = io.BytesIO()
    jit.save(jit.script(nn.Linear(2, 2)), file)
    file.seek(0)
    content = taeda.load(file, weights_only=False)
    for name in ("version", "graph", "object", "tensors", "extra"):
        damaged = io.BytesIO()
        taeda.save({key: value for key, value in content.items() if key != name}, damaged)
        damaged.seek(0)
        with pytest.raises(RuntimeError, match=rf"damaged: it lacks \['{name}'\]"):
            jit.load(damaged)


def test_parameters_of_frozen_modules_are_constants():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).eval()
    made, x = jit.freeze(jit.script(net)), taeda.ones(3, 2)
    assert not [*made.parameters(), *made.buffers(), *made.state_dict()]
    assert len(list(net.parameters())) == 4
    file = io.BytesIO()
    jit.save(made, file)
    file.seek(0)
    for frozen in (made, jit.load(file)):
        assert taeda.equal(frozen(x), net(x)) and not frozen(x).requires_grad
    kept = jit.freeze(jit.script(net), preserved_attrs=["0.weight"])
    assert [name for name, _ in kept.named_parameters()] == ["0.weight"]


def test_frozen_modules_need_no_gradients():
    made = jit.freeze(jit.script(nn.Linear(2, 2).eval()))
    assert not made(taeda.ones(1, 2)).requires_grad
    assert jit.optimize_for_inference(jit.script(nn.Linear(2, 2)))(taeda.ones(1, 2)).shape == (1, 2)
    with pytest.raises(RuntimeError, match="evaluation mode"):
        jit.freeze(jit.script(nn.Linear(2, 2)))
    with pytest.raises(RuntimeError, match="expects a ScriptModule"):
        jit.freeze(nn.Linear(2, 2).eval())


def test_script_modules_are_derived_from():
    class Scaled(jit.ScriptModule):
        __constants__ = ["times"]

        def __init__(self):
            super().__init__()
            self.times, self.weight = 3, nn.Parameter(taeda.ones(2))

        @jit.script_method
        def forward(self, x):
            return x * self.weight * self.times

    made = Scaled()
    assert taeda.equal(made(taeda.ones(2)), taeda.full((2,), 3.0)) and made.original_name == "Scaled"
    made.define("def twice(self, x):\n    return self.forward(x) * 2")
    assert made.twice(taeda.ones(2))[0].item() == 6.0
    unit = jit.CompilationUnit("def add(x: Tensor, n: Optional[int] = None):\n    return x + (n or 1)")
    assert unit.add(taeda.ones(1)).item() == 2.0
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        _ = unit.missing


def test_exported_programs(net, tmp_path):
    free = {0: taeda.export.Dim.DYNAMIC, 1: taeda.export.Dim.DYNAMIC}
    program = taeda.export.export(net, (words(),), dynamic_shapes=(free,))
    assert isinstance(program.module(), fx.GraphModule) and same(
        program.module()(words(1, 5)), net(words(1, 5))
    )
    assert sorted(program.state_dict) == sorted(net.state_dict())
    assert {name for name, _ in program.named_parameters()} == {name for name, _ in net.named_parameters()}
    taeda.export.save(program, tmp_path / "net.pt2", extra_files={"note": "text"})
    extra = {"note": ""}
    again = taeda.export.load(tmp_path / "net.pt2", extra_files=extra)
    assert same(again.module()(words()), net(words())) and extra == {"note": "text"}
    assert same(taeda.export.unflatten(again)(words()), net(words()))
    with pytest.raises(RuntimeError, match="directly"):
        program(words())
    with pytest.raises(ValueError, match="instance of"):
        taeda.export.export(lambda x: x, (words(),))
    nested = taeda.export.export(
        Nested(), ({"a": taeda.ones(2), "b": [taeda.ones(2)]},), {"scale": taeda.ones(1)}
    )
    assert (
        nested.module()({"a": taeda.ones(2), "b": [taeda.ones(2)]}, scale=taeda.full((1,), 2.0)).sum().item()
        == 8.0
    )


class Nested(nn.Module):
    def forward(self, parts, scale):
        return (parts["a"] + parts["b"][0]) * scale


def test_functions_become_graphs_by_running_them():
    made = make_fx(lambda x, n: taeda.relu(x) + n if n.shape[0] > 1 else x)(taeda.ones(2), taeda.ones(2))
    assert {"x_1", "n_1", "relu", "add", "output"} <= {node.name for node in made.graph.nodes}
    assert taeda.equal(made(taeda.ones(2), -taeda.ones(2)), taeda.zeros(2))
    with pytest.raises(RuntimeError, match="trying to get value out of a tracing tensor"):
        make_fx(lambda x: taeda.relu(x) if x.sum() > 0 else x)(taeda.ones(2))


class Kinds(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 2)
        self.register_buffer("kept", taeda.ones(2))
        self.register_buffer("left", taeda.ones(2), persistent=False)
        self.fixed = taeda.ones(2)

    def forward(self, x, parts, *, scale=1):
        return {
            "sum": self.inner(x) + self.kept + self.left + self.fixed + parts["a"][0] * scale,
            "twice": [x * 2, 3],
        }


def test_exported_programs_say_what_inputs_and_outputs_are():
    from taeda.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument

    model = Kinds()
    rows = {"x": {0: taeda.export.Dim.DYNAMIC}}
    given = (taeda.ones(4, 3), {"a": [taeda.ones(2)]})
    program = taeda.export.export(model, given, {"scale": 2}, dynamic_shapes=rows)
    signature = program.graph_signature
    assert isinstance(signature, taeda.export.ExportGraphSignature)
    assert signature.parameters == ("inner.weight", "inner.bias")
    assert signature.buffers == ("kept", "left") and signature.non_persistent_buffers == ("left",)
    assert signature.inputs_to_parameters == {"p_inner_weight": "inner.weight", "p_inner_bias": "inner.bias"}
    assert signature.inputs_to_buffers == {"b_kept": "kept", "b_left": "left"}
    assert len(signature.lifted_tensor_constants) == 1
    (constant,) = signature.lifted_tensor_constants
    assert taeda.equal(program.tensor_constants[constant], model.fixed)
    assert signature.user_inputs == ("x", "parts_a_0", 2)
    placeholders = [node.name for node in program.graph.nodes if node.op == "placeholder"]
    assert placeholders[:3] == ["p_inner_weight", "p_inner_bias", "b_kept"] and placeholders[-3:] == [
        "x",
        "parts_a_0",
        "scale",
    ]
    kinds = [spec.kind for spec in signature.input_specs]
    assert kinds == sorted(kinds, key=[InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR,
                                       InputKind.USER_INPUT].index)  # fmt: skip
    assert [spec.kind for spec in signature.output_specs] == [OutputKind.USER_OUTPUT] * 3
    assert [type(spec.arg) for spec in signature.output_specs] == [
        TensorArgument,
        TensorArgument,
        ConstantArgument,
    ]
    assert {"inner.weight", "inner.bias", "kept"} <= set(
        program.state_dict
    ) and "left" not in program.state_dict
    assert "p_inner_weight: PARAMETER target='inner.weight'" in str(program)
    x = taeda.randn(2, 3)
    again = program.module()(x, {"a": [taeda.ones(2)]}, scale=2)
    assert taeda.equal(again["sum"], model(x, {"a": [taeda.ones(2)]}, scale=2)["sum"])


class Ordered(nn.Module):
    def forward(self, x):
        return OrderedDict(twice=x * 2, more=(x + 1,))


def test_exported_programs_keep_the_class_of_the_result():
    made = taeda.export.export(Ordered(), (taeda.ones(2),)).module()(taeda.full((2,), 3.0))
    assert (
        type(made) is OrderedDict
        and made["twice"].tolist() == [6.0, 6.0]
        and made["more"][0].tolist() == [4.0, 4.0]
    )


def test_operands_of_einsum_come_one_by_one():
    traced = fx.symbolic_trace(lambda x, y: taeda.einsum("ij,jk->ik", (x, y)))
    assert len(next(node for node in traced.graph.nodes if node.target is taeda.einsum).args) == 3
    assert traced(taeda.ones(2, 3), taeda.ones(3, 2)).tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_methods_of_scripts_stay_though_attributes_have_their_names(tmp_path):
    layer = nn.Linear(2, 2)
    layer.save = [1, 2]
    made = jit.trace(layer, taeda.ones(1, 2))
    made.save(tmp_path / "net.pt")
    assert layer.save == [1, 2] and jit.load(tmp_path / "net.pt")(taeda.ones(1, 2)).shape == (1, 2)


def halved(x):
    return x / 2


def test_sources_use_the_names_of_the_program():
    factor = 3  # noqa: F841 - in the source
    unit = jit.CompilationUnit(
        "def f(x):\n    return halved(x) * factor + g(x)\ndef g(x):\n    return 0 * len(str(x))"
    )
    assert unit.f(taeda.tensor(4.0)).item() == 6.0
    unit.define("def h(x):\n    return f(x) + factor")
    assert unit.h(taeda.tensor(4.0)).item() == 9.0
    with pytest.raises(AttributeError, match="no attribute 'halved'"):
        unit.halved  # noqa: B018

    class Defined(jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.define("def forward(self, x):\n    return halved(x) + 3")

    assert Defined()(taeda.tensor(4.0)).item() == 5.0


class Annotated(nn.Module):
    def __init__(self):
        super().__init__()
        self.limit, self.names = jit.Attribute(0.5, float), jit.Attribute(["a"], list[str])

    def forward(self, x):
        return x.clamp(max=self.limit), len(self.names)


def test_values_with_a_type_are_values_in_scripts():
    program = jit.script(Annotated())
    assert program.limit == 0.5 and program.names == ["a"]
    clamped, count = program(taeda.ones(2))
    assert clamped.tolist() == [0.5, 0.5] and count == 1

    class Scripted(jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.weights = jit.Attribute({}, dict[str, taeda.Tensor])

    made = Scripted()
    assert made.weights == {} and type(made.weights) is dict


class Picky(nn.Module):
    def forward(self, x):
        assert x.shape[0] == 2, "two rows"
        if x.shape[1] == 3:
            raise ValueError("three columns")
        return x @ x


def test_exceptions_of_scripts():
    """Assertions and exceptions of a script are the script's; operators' own are as they were."""
    function = jit.script(lambda x: Picky()(x))
    for run in (jit.script(Picky()), function, nn.Sequential(jit.script(Picky()))):
        with pytest.raises(jit.Error, match="AssertionError: two rows"):
            run(taeda.ones(1, 2))
        with pytest.raises(jit.Error, match="ValueError: three columns") as raised:
            run(taeda.ones(2, 3))
        assert isinstance(raised.value.__cause__, ValueError)
        with pytest.raises(RuntimeError, match=r"matmul|mm") as raised:
            run(taeda.ones(2, 4))
        assert not isinstance(raised.value, jit.Error)


def test_scripts_and_traces_are_switched_off():
    from taeda.jit import _state

    def double(x):
        return 2 * x

    net, x = nn.Linear(2, 2), taeda.ones(1, 2)
    assert _state._enabled
    _state.disable()
    try:
        assert not _state._enabled
        assert jit.script(double) is double and jit.trace(double, x) is double
        assert jit.script(net) is net and jit.trace_module(net, {"forward": x}) is net
    finally:
        _state.enable()
    assert isinstance(jit.script(double), jit.ScriptFunction)


@pytest.mark.parametrize(("value", "found"), [("0", "double"), ("0v", "> PyTorch JIT DISABLED\ndouble")])
def test_the_environment_switches_scripts_off(value, found):
    code = "import taeda\ndef double(x): return 2 * x\nprint(taeda.jit.script(double).__name__)"
    done = subprocess.run(
        [sys.executable, "-c", code + "\nassert taeda.jit.script(double) is double"],
        env=os.environ | {"PYTORCH_JIT": value}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.strip() == found, done.stderr


def test_an_unknown_switch_is_refused():
    from taeda.jit._state import EnabledProxy

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTORCH_JIT", "maybe")
        with pytest.raises(ValueError, match="Unknown setting of PYTORCH_JIT"):
            EnabledProxy()


def test_the_graph_of_a_trace_is_also_read_as_a_tracer_of_pytorch_gives_it():
    net = taeda.nn.Sequential(taeda.nn.Linear(3, 4), taeda.nn.ReLU())
    graph = taeda.jit.trace(net, taeda.ones(2, 3)).graph
    assert [node.kind() for node in graph.nodes()] == ["aten::linear", "aten::relu"]
    assert [tuple(value.type().sizes()) for value in graph.inputs()] == [(2, 3), (4, 3), (4,)]
    assert [tuple(value.type().sizes()) for value in graph.outputs()] == [(2, 4)]
    assert graph.findNode("aten::relu").kind() == "aten::relu" and not graph.findAllNodes("aten::add")
    assert [node.op for node in graph.nodes][-1] == "output" and len(graph.nodes) == 6
    picked = taeda.jit.trace(lambda x, i: x[i] + 1, (taeda.ones(3), taeda.tensor([2])))
    assert "aten::index" in [node.kind() for node in picked.graph.nodes()]


class Packing(nn.Module):
    def __init__(self, layers, in_order):
        super().__init__()
        self.layers, self.in_order = layers, in_order

    def forward(self, batch, lengths):
        rnn = nn.utils.rnn
        packed = rnn.pack_padded_sequence(batch, lengths, batch_first=True, enforce_sorted=self.in_order)
        output, state = self.layers(packed)
        padded, counts = rnn.pad_packed_sequence(output, batch_first=True, total_length=batch.shape[1])
        return padded, counts, state[0] if isinstance(state, tuple) else state


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_files_of_traces_take_packed_sequences_of_other_lengths(kind, in_order):
    program = Packing(kind(3, 4, 2, bidirectional=True, batch_first=True), in_order)
    traced = jit.trace(program, (taeda.randn(2, 5, 3), taeda.tensor([5, 2])))
    read = jit.load(io.BytesIO(traced.save_to_buffer()))
    batch, lengths = taeda.randn(3, 6, 3), taeda.tensor([6, 4, 1] if in_order else [2, 6, 5])
    for found, expected in zip(read(batch, lengths), program(batch, lengths), strict=True):
        assert taeda.equal(found, expected)
    alone, _ = program.layers(batch[1:2, : lengths[1]])
    assert taeda.allclose(read(batch, lengths)[0][1:2, : lengths[1]], alone, atol=1e-6)
    with pytest.raises(RuntimeError, match="data-dependent"):
        taeda.export.export(program, (batch, lengths))


class Proxying:
    """Passes on what it does not know to what it holds: endless before it holds anything, as when it is read."""

    def __init__(self, held):
        self.held = held

    def __getattr__(self, name):
        return getattr(self.held, name)


def test_traces_are_read_by_their_graph_where_objects_cannot_be():
    layer = nn.Linear(2, 3)
    layer.view = Proxying(layer.weight)
    again = read_again(jit.trace(layer, taeda.ones(1, 2)))
    x = taeda.tensor([[1.0, -2.0]])
    assert taeda.equal(again(x), layer(x)) and list(again.state_dict()) == ["weight", "bias"]


def stateful():
    """Modules of classes that no other place knows, so that files hold their graphs."""

    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("state", taeda.zeros(2))
            self.register_buffer("mean", taeda.zeros(2))
            self.register_buffer("calls", taeda.zeros(2))

        def forward(self, x):
            before = self.state
            self.state = taeda.tanh(x + before)
            self.state += 1
            self.mean = self.mean * 0.5 + x * 0.5
            self.calls += 1
            self.calls[0] *= 2
            return self.state - before, self.mean + self.calls

    class Changing(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = Cell()

        def forward(self, x):
            size = length = x.shape[0]
            length += 1
            change, mean = self.cell(x)
            x -= change
            x[0] = size
            return change, mean * length * size, x

    return Changing()


def test_a_file_of_a_script_writes_to_inputs_and_buffers_as_the_module_does():
    net, script, file = stateful(), jit.script(stateful()), io.BytesIO()
    jit.save(script, file)
    file.seek(0)
    again = jit.load(file)
    for _ in range(3):
        expected, here, there = (taeda.tensor([1.0, 2.0]) for _ in range(3))
        results = net(expected), script(here), again(there)
        assert results[0][2] is expected and results[1][2] is here and results[2][2] is there
        taeda.testing.assert_close(results[1], results[0], rtol=0, atol=0)
        taeda.testing.assert_close(results[2], results[0], rtol=0, atol=0)
        taeda.testing.assert_close(dict(again.named_buffers()), dict(net.named_buffers()), rtol=0, atol=0)
        taeda.testing.assert_close(dict(script.named_buffers()), dict(net.named_buffers()), rtol=0, atol=0)


def test_the_graph_of_a_script_leaves_its_buffers_alone():
    script = jit.script(stateful())
    assert "copy_" in str(script.graph) and not any(buffer.any() for buffer in script.buffers())
