"""`compile` with a compiler of the program's own: it gets graphs, and what it makes of them runs."""

from __future__ import annotations

import copy
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import taeda
from taeda import nn


class Backend:
    """Takes graphs as they are and keeps them."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []
        self.inputs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Any:
        self.graphs.append(gm)
        self.inputs.append(example_inputs)
        return gm.forward


def targets(gm: Any) -> list[str]:
    return [getattr(n.target, "__name__", n.target) for n in gm.graph.nodes if n.op.startswith("call")]


def test_the_graph_has_the_tensors_that_are_read_as_inputs_and_a_tuple_as_result() -> None:
    backend = Backend()
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    run = taeda.compile(model, backend=backend)
    x = taeda.ones(4, 3)
    assert taeda.equal(run(x), model(x))
    (gm,) = backend.graphs
    assert isinstance(gm, taeda.fx.GraphModule)
    assert targets(gm) == ["linear", "relu"]
    assert {id(p) for p in model.parameters()} <= {id(value) for value in backend.inputs[0]}
    (result,) = gm(*backend.inputs[0])
    assert taeda.equal(result, model(x))


def test_it_is_called_again_for_arguments_of_another_kind_only() -> None:
    backend = Backend()

    @taeda.compile(backend=backend)
    def f(x: Any, scale: float = 2.0, *, extra: Any = None) -> Any:
        return {"scaled": x * scale, "same": (x, extra)}

    one = taeda.ones(2)
    assert f(one)["scaled"].tolist() == [2.0, 2.0]
    assert f(one + 1)["scaled"].tolist() == [4.0, 4.0]
    assert len(backend.graphs) == 1
    assert f(one, 3.0)["scaled"].tolist() == [3.0, 3.0]
    assert f(taeda.ones(3))["scaled"].tolist() == [2.0] * 3
    assert f(one.double())["scaled"].dtype == taeda.float64
    assert f(one, extra="text")["same"] == (one, "text")
    assert len(backend.graphs) == 5


def test_training_through_graphs_is_training() -> None:
    backend = Backend()
    taeda.manual_seed(0)
    plain = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.BatchNorm1d(4), nn.Linear(4, 1))
    other = copy.deepcopy(plain)
    losses: list[list[float]] = []
    for model, run in ((plain, plain), (other, taeda.compile(other, backend=backend))):
        taeda.manual_seed(1)
        optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)
        losses.append([])
        for _ in range(3):
            optimizer.zero_grad()
            loss = run(taeda.arange(12.0).view(4, 3) / 7).pow(2).mean()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    assert losses[0] == losses[1]
    assert len(backend.graphs) == 1
    assert all(taeda.equal(a, b) for a, b in zip(plain.buffers(), other.buffers(), strict=True))
    other.eval()
    assert taeda.compile(other, backend=backend)(taeda.ones(4, 3)).shape == (4, 1)
    assert len(backend.graphs) == 2


def test_writes_modes_and_own_derivatives_stay() -> None:
    class Triple(taeda.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.exp()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 3

    backend = Backend()

    def f(x: Any, count: Any) -> Any:
        count.add_(1)
        with taeda.no_grad():
            kept = x * 2
        return Triple.apply(x) + kept * x

    run = taeda.compile(f, backend=backend)
    count = taeda.zeros(())
    for times in (1, 2):
        x = taeda.ones(2, requires_grad=True)
        run(x, count).sum().backward()
        assert x.grad.tolist() == [5.0, 5.0]
        assert count.item() == times
    assert len(backend.graphs) == 1


def test_what_no_graph_says_runs_as_it_is_and_is_told_once() -> None:
    kept: list[Any] = []

    def branch(x: Any) -> Any:
        return x + 1 if x.sum() > 0 else x - 1

    def append(x: Any) -> Any:
        kept.append(x)
        return x + 1

    class Counter(nn.Module):
        count = 0

        def forward(self, x: Any) -> Any:
            self.count += 1
            return x * self.count

    for function in (branch, append, Counter(), lambda x: x[x > 0] * 1):
        run = taeda.compile(function, backend=Backend())
        with pytest.warns(UserWarning, match="runs as it is"):
            run(taeda.ones(2))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run(-taeda.ones(2))
    assert len(kept) == 2
    assert taeda.compile(branch, backend=Backend()) is not branch
    with pytest.raises(taeda._dynamo.exc.Unsupported, match="no single graph"):
        taeda.compile(branch, backend=Backend(), fullgraph=True)(taeda.ones(2))


def test_attributes_that_change_between_calls_are_read_anew() -> None:
    class Scaled(nn.Module):
        scale = 1.0

        def forward(self, x: Any) -> Any:
            return x * self.scale

    model = Scaled()
    model.scale = 2.0
    run = taeda.compile(model, backend=Backend())
    assert run(taeda.ones(1)).item() == 2
    model.scale = 5.0
    assert run(taeda.ones(1)).item() == 5


def test_a_compiler_that_tells_what_it_was_given() -> None:
    from taeda._dynamo.backends.debugging import ExplainWithBackend

    kept = Backend()
    told = ExplainWithBackend(kept)
    assert told.output().graph_count == 0
    run = taeda.compile(lambda x: taeda.relu(x) + 1, backend=told)
    assert run(taeda.tensor([-1.0, 2.0])).tolist() == [1, 3]
    found = told.output()
    assert found.graphs == kept.graphs and (found.graph_count, found.graph_break_count) == (1, 0)
    assert found.op_count == 2 and found.break_reasons == []
    assert "Op Count: 2" in str(found)
    named = ExplainWithBackend("eager")
    taeda.compile(nn.Linear(2, 2), backend=named)(taeda.ones(1, 2))
    assert named.output().op_count == 1


def test_names_of_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    from taeda._dynamo import _compiled

    monkeypatch.setattr(_compiled, "REGISTERED", {})
    backend = Backend()
    taeda._dynamo.register_backend(backend, name="mine")
    assert taeda._dynamo.list_backends() == ["cudagraphs", "inductor", "mine", "openxla", "tvm"]
    every = taeda._dynamo.list_backends(exclude_tags=None)
    assert {"eager", "aot_eager", "mine", "inductor"} <= set(every) and every == sorted(every)
    assert taeda.compile(taeda.exp, backend="mine")(taeda.zeros(1)).item() == 1
    assert taeda._dynamo.optimize("mine")(taeda.sin)(taeda.zeros(1)).item() == 0
    assert [targets(gm) for gm in backend.graphs] == [["exp"], ["sin"]]
    with pytest.raises(taeda._dynamo.exc.InvalidBackend, match="nobody"):
        taeda.compile(taeda.exp, backend="nobody")

    def broken(gm: Any, inputs: Any) -> Any:
        raise ValueError("no room")

    with pytest.raises(taeda._dynamo.exc.BackendCompilerFailed, match="no room"):
        taeda.compile(taeda.exp, backend=broken)(taeda.zeros(1))


def test_compilers_of_forward_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", taeda)
    for name in [n for n in sys.modules if n.partition(".")[0] == "functorch"]:
        monkeypatch.delitem(sys.modules, name)
    from functorch.compile import aot_function, aot_module, compiled_function, make_boxed_func, nop

    from taeda._dynamo.backends.common import aot_autograd

    found: list[Any] = []

    def forward(gm: Any, inputs: Any) -> Any:
        found.append(targets(gm))
        return make_boxed_func(gm.forward)

    x = taeda.ones(2, requires_grad=True)
    taeda.compile(lambda v: v.sin().sum(), backend=aot_autograd(fw_compiler=forward))(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), np.cos(np.ones(2)), rtol=1e-6)
    assert found[0] == ["sin.default", "sum.default"] and found[1][-2:] == ["cos.default", "mul.Tensor"]
    assert aot_function(lambda v: v * 2, nop)(taeda.ones(1)).item() == 2 and compiled_function is aot_function
    layer = nn.Linear(2, 1)
    assert taeda.equal(aot_module(layer, nop)(x), layer(x))
    for name in [n for n in sys.modules if n.partition(".")[0] == "functorch"]:
        monkeypatch.delitem(sys.modules, name)


def test_graphs_are_kept_for_each_layout_and_take_gradients_of_any():
    from taeda._functorch.aot_autograd import aot_function

    compiled: list[Any] = []

    def keep(gm: Any, inputs: Any) -> Any:
        compiled.append(gm)
        return gm

    x = taeda.arange(6.0, requires_grad=True)
    turned = aot_function(lambda v: v.view(2, 3).t(), keep)(x)
    (grad,) = taeda.autograd.grad(turned, x, taeda.arange(6.0).reshape(3, 2))
    assert grad.tolist() == [0, 2, 4, 1, 3, 5]
    flat = aot_function(lambda v: v.reshape(-1) * 2, keep)
    rows = taeda.arange(6.0).reshape(2, 3)
    compiled.clear()
    assert flat(rows).tolist() == [0, 2, 4, 6, 8, 10] and flat(rows + 1).tolist() == [2, 4, 6, 8, 10, 12]
    assert flat(taeda.arange(6.0).reshape(3, 2).t()).tolist() == [0, 4, 8, 2, 6, 10] and len(compiled) == 2


def test_modes_are_those_of_pytorch():
    assert taeda.compile(lambda x: x, mode="max-autotune")(3) == 3
    with pytest.raises(RuntimeError, match="Unrecognized mode=fast, should be one of: default"):
        taeda.compile(lambda x: x, mode="fast")


def test_graphs_that_older_programs_export():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 3)

        def forward(self, x, shift=True):
            return {"a": self.layer(x).relu(), "b": x + 1 if shift else x}

    model, x = Net(), taeda.ones(4, 2)
    for aten_graph in (False, True):
        net, guards = taeda._dynamo.export(model, aten_graph=aten_graph)(x)
        found = net(taeda.full((4, 2), 2.0))
        assert not guards and taeda.equal(found["b"], taeda.full((4, 2), 3.0))
        assert taeda.allclose(found["a"], model.layer(taeda.full((4, 2), 2.0)).relu())
    operators = [node.target for node in net.graph.nodes if node.op == "call_function"]
    assert taeda.ops.aten.relu.default in operators
    plain = taeda._dynamo.export(model, x, shift=False).graph_module
    assert (
        taeda.equal(plain(x, False)["b"], x) and {"layer.weight", "layer.bias"} <= plain.state_dict().keys()
    )
    with pytest.raises(taeda._dynamo.exc.Unsupported):
        taeda._dynamo.export(lambda x: x.tolist())(x)


def test_functions_that_are_left_as_they_are():
    from taeda._dynamo.decorators import leaf_function

    seen = []

    @leaf_function
    def noted(x):
        seen.append(x.sum().item())
        return (x.mean(dim=1),)

    @noted.register_fake
    def noted_fake(x):
        raise AssertionError("never called")

    doubled = leaf_function(mutates_args={"x"})(lambda x: x.mul_(2))
    assert noted(taeda.ones(2, 3))[0].tolist() == [1, 1] and seen == [6] and noted.__name__ == "noted"
    assert doubled(taeda.ones(2)).tolist() == [2, 2] and callable(noted_fake)


def test_a_module_compiles_its_own_calls_with_their_hooks() -> None:
    backend = Backend()
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    model.register_forward_hook(lambda module, args, output: output * 2)
    x, names = taeda.ones(4, 3), list(model.state_dict())
    expected = model(x)
    model.compile(backend=backend)
    assert taeda.equal(model(x), expected) and taeda.equal(model(input=x), expected)
    assert targets(backend.graphs[0]) == ["linear", "relu", "mul"] and list(model.state_dict()) == names
    count = len(backend.graphs)
    assert (
        taeda.equal(model._call_impl(x), expected) and model(x) is not None and len(backend.graphs) == count
    )
    other = copy.deepcopy(model)
    assert other._compiled_call_impl is None and taeda.equal(other(x), expected)
    assert len(backend.graphs) == count
    with pytest.raises(taeda._dynamo.exc.InvalidBackend):
        model.compile(backend="nothing")
    plain = nn.Linear(3, 2)
    plain.compile(mode="default")
    assert plain(x).shape == (4, 2) and plain._compiled_call_impl is not None
