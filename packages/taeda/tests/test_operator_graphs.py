"""Graphs of operators: of functions, of their gradients, and of both for compilers."""

import copy
import pickle

import numpy as np
import pytest

import taeda
from taeda import nn
from taeda._functorch.aot_autograd import aot_function, aot_module, make_boxed_func
from taeda.fx.experimental.proxy_tensor import make_fx


def targets(module):
    return [str(node.target) for node in module.graph.nodes if node.op == "call_function"]


def program(x, w):
    return nn.functional.layer_norm((x * x).sin() * w, (3,)).softmax(-1).relu().sum()


def test_functions_become_graphs_of_operators():
    made = make_fx(lambda x, k: taeda.relu(x) * k + 1)(taeda.ones(2), 3)
    assert [node.name for node in made.graph.nodes] == ["x_1", "k_1", "relu", "mul", "add", "output"]
    assert targets(made) == ["aten.relu.default", "aten.mul.Tensor", "aten.add.Tensor"]
    assert "torch.ops.aten.relu.default(x_1)" in made.code
    assert made(taeda.full((2,), -1.0), 3).tolist() == [1.0, 1.0]
    node = next(node for node in made.graph.nodes if node.name == "mul")
    value = node.meta["val"]
    assert value.shape == (2,) and not value.is_meta and node.target is taeda.ops.aten.mul.Tensor


def test_containers_and_constants():
    kept = taeda.tensor([1.0, 2.0])
    made = make_fx(lambda d: {"r": d["a"] + kept, "s": [d["b"]]})({"a": taeda.ones(2), "b": taeda.ones(1)})
    found = made({"a": taeda.zeros(2), "b": taeda.full((1,), 4.0)})
    assert found["r"].tolist() == [1.0, 2.0] and found["s"][0].tolist() == [4.0]
    assert [node.target for node in made.graph.nodes if node.op == "get_attr"] == ["_tensor_constant0"]


def test_gradients_are_in_graphs():
    made = make_fx(taeda.func.grad(lambda x: (x.sin() * x).sum()))(taeda.ones(3))
    x = taeda.tensor([0.5, 1.0, 2.0])
    np.testing.assert_allclose(made(x).numpy(), (x.cos() * x + x.sin()).numpy(), rtol=1e-6)
    assert "aten.cos.default" in targets(made)


def test_decompositions_stand_for_operators():
    table = {taeda.ops.aten.relu.default: lambda x: taeda.where(x > 0, x, 0.0)}
    made = make_fx(lambda x: x.relu() + 1, decomposition_table=table)(taeda.ones(2))
    found = targets(made)
    assert (
        "aten.relu.default" not in found and found[0] == "aten.gt.Scalar" and found[-1] == "aten.add.Tensor"
    )
    assert any(target.startswith("aten.where") for target in found)
    assert made(taeda.tensor([-1.0, 2.0])).tolist() == [1.0, 3.0]


def test_sizes_are_followed_when_they_are_symbols():
    made = make_fx(lambda x: x.view(x.size(0), -1) * 2, tracing_mode="symbolic")(taeda.ones(2, 3, 4))
    assert made(taeda.ones(5, 2, 2)).shape == (5, 4)
    with pytest.raises(ValueError, match="tracing type"):
        make_fx(program, tracing_mode="other")


def graphs():
    seen = []

    def keep(module, inputs):
        seen.append((module, len(inputs)))
        return module

    return keep, seen


def test_compilers_get_forward_and_backward_graphs():
    keep, seen = graphs()
    compiled = aot_function(program, keep)
    x, w = taeda.rand(2, 3, requires_grad=True), taeda.ones(3, requires_grad=True)
    compiled(x, w).backward()
    (forward, given), (backward, saved) = seen
    assert given == 2 and [n.name for n in forward.graph.nodes][:2] == ["primals_1", "primals_2"]
    assert not any(node.op == "get_attr" for node in backward.graph.nodes)  # saved results are handed over
    inputs = [node.name for node in backward.graph.nodes if node.op == "placeholder"]
    assert inputs[-1] == "tangents_1" and len(inputs) == saved
    found = x.grad, w.grad
    x.grad = w.grad = None
    program(x, w).backward()
    for ours, plain in zip(found, (x.grad, w.grad), strict=True):
        np.testing.assert_allclose(ours.numpy(), plain.numpy(), rtol=1e-5, atol=1e-7)
    again = taeda.rand(2, 3, requires_grad=True)
    compiled(again, w)
    assert len(seen) == 2  # the same form is not compiled again
    compiled(taeda.rand(4, 3, requires_grad=True), w)
    assert len(seen) == 4


def test_modules_are_compiled_with_their_state():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
    plain = copy.deepcopy(net)
    keep, seen = graphs()
    compiled = aot_module(net, keep, lambda module, inputs: make_boxed_func(keep(module, inputs)))
    x = taeda.rand(5, 3)
    for module in (compiled, plain):
        for _ in range(2):
            module(x).square().sum().backward()
    assert len(seen) == 2
    for (name, ours), expected in zip(net.named_parameters(), plain.parameters(), strict=True):
        np.testing.assert_allclose(
            ours.grad.numpy(), expected.grad.numpy(), rtol=1e-4, atol=1e-6, err_msg=name
        )
    np.testing.assert_allclose(net[1].running_mean.numpy(), plain[1].running_mean.numpy(), rtol=1e-6)
    assert net[1].num_batches_tracked == 2


def test_what_needs_no_gradient_has_one_graph():
    keep, seen = graphs()
    made = aot_function(lambda x, flag: {"y": x * 2, "n": 3} if flag else x, keep)
    assert made(taeda.ones(2), True)["y"].tolist() == [2.0, 2.0] and made(taeda.ones(2), True)["n"] == 3
    assert made(taeda.ones(2), False).tolist() == [1.0, 1.0] and len(seen) == 2


def test_backends_with_two_compilers():
    from taeda._dynamo.backends.common import aot_autograd

    keep, seen = graphs()
    backend = aot_autograd(fw_compiler=keep, bw_compiler=keep)
    x = taeda.ones(3, requires_grad=True)
    taeda.compile(lambda v: v.sin().sum(), backend=backend)(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), np.cos(np.ones(3)), rtol=1e-6)
    assert "aten.sin.default" in targets(seen[0][0]) and "aten.cos.default" in targets(seen[1][0])


def test_outputs_of_scans_stand_along_their_dimension():
    from taeda._higher_order_ops.scan import scan

    x = taeda.arange(6.0).reshape(3, 2)
    last, found = scan(lambda s, row: (s + row, s * row), taeda.zeros(3), x, dim=1, reverse=True)
    assert last.tolist() == [1.0, 5.0, 9.0] and found.tolist() == [[0.0, 0.0], [6.0, 0.0], [20.0, 0.0]]
    with pytest.raises(RuntimeError, match="branches to be callable"):
        taeda.cond(True, 3, abs, (x,))


def test_a_mode_may_be_entered_in_its_own_method():
    from taeda.utils._python_dispatch import TorchDispatchMode

    class Twice(TorchDispatchMode):
        seen = ()

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen += (str(func),)
            if "relu" in str(func):
                with self:
                    return args[0].clamp(min=0)
            return func(*args, **(kwargs or {}))

    x = taeda.ones(2, requires_grad=True)
    with Twice() as mode:
        taeda.relu(x)
        x.exp()
    assert [name.split(".")[1] for name in mode.seen] == ["relu", "clamp", "exp"]
    assert (x * 2).requires_grad and len(mode.seen) == 3  # all is as before


def test_results_of_nested_inputs_are_a_list():
    from collections import UserDict

    from taeda.utils import _pytree

    if UserDict not in _pytree.SUPPORTED_NODES:  # as programs register it: without names of its children
        _pytree.register_pytree_node(
            UserDict,
            lambda d: (list(d.values()), list(d)),
            lambda values, keys: UserDict(zip(keys, values, strict=True)),
        )
    x = taeda.ones(2)
    for inputs in ({"a": x}, UserDict(a=x), (x, [x])):
        made = make_fx(lambda given: _pytree.tree_leaves(given)[0].sin())(inputs)
        (output,) = made.graph.find_nodes(op="output")
        ((value,),) = output.args
        assert value.name == "sin" and taeda.equal(made(inputs), x.sin())


def test_what_a_class_of_the_program_calls_is_kept():
    class Wave(taeda.Tensor):
        @staticmethod
        def __new__(cls, elements):
            made = taeda.Tensor._make_wrapper_subclass(cls, elements.shape, dtype=elements.dtype)
            made.elements = elements
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(
                *(arg.elements.cos() if isinstance(arg, Wave) else arg for arg in args), **(kwargs or {})
            )

    x = taeda.tensor([0.5, 1.0])
    net = make_fx(lambda x: x * Wave(x))(x)
    assert [node.name for node in net.graph.nodes] == ["x_1", "cos", "mul", "output"]
    other = taeda.tensor([2.0, 3.0])
    assert taeda.allclose(net(other), other * other.cos())


def test_kinds_of_operators_are_told_apart():
    aten = taeda.ops.aten
    assert isinstance(aten.add.Tensor, taeda._ops.OpOverload) and not isinstance(
        aten.add, taeda._ops.OpOverload
    )
    assert isinstance(aten.max, taeda._ops.OpOverloadPacket)
    assert not isinstance(aten.max.dim, taeda._ops.OpOverloadPacket)
    assert all(
        isinstance(x, taeda._ops._OpNamespace) for x in (aten, taeda.ops.prims, taeda.ops.higher_order)
    )
    assert aten.name == "aten"
    assert taeda.Tag.nondeterministic_seeded in aten.rand.default.tags


def test_programs_keep_calls_of_operators_in_all_forms():
    @taeda.library.custom_op("kept::twice", mutates_args=())
    def twice(x: taeda.Tensor) -> taeda.Tensor:
        return taeda.tensor(x.numpy() * 2)

    @taeda.library.custom_op("kept::halves", mutates_args=())
    def halves(x: taeda.Tensor) -> list[taeda.Tensor]:
        return [taeda.tensor(part) for part in np.array_split(x.numpy(), 2)]

    @taeda.library.custom_op("kept::grow", mutates_args=("x",))
    def grow(x: taeda.Tensor) -> None:
        x.add_(1)

    own, aten = taeda.ops.kept, taeda.ops.aten

    def program(x):
        y = own.twice.default(x) + aten.add.Tensor(x, x) + aten.var_mean.correction(x, [0])[1]
        grow(y)
        return y + twice(x), halves(y)

    class Program(taeda.nn.Module):
        def forward(self, x):
            return program(x)

    try:
        x, other = taeda.arange(4.0), taeda.tensor([3.0, 1.0, -2.0, 5.0])
        whole, (first, second) = program(other)
        exported = taeda.export.export(Program(), (x,))
        found = [str(n.target) for n in exported.graph.nodes if n.op == "call_function"]
        assert found.count("kept.twice.default") == 2
        assert {"kept.grow.default", "kept.halves", "aten.add.Tensor"} <= set(found)
        assert not exported.graph.eliminate_dead_code() or "kept.grow" in str(exported.graph)
        graphs = [
            exported.module(), exported.run_decompositions().graph_module, make_fx(program)(x),
            taeda.jit.trace(program, x), taeda.compile(program, backend=lambda gm, inputs: gm),
        ]  # fmt: skip
        for graph in graphs:
            parts = taeda.utils._pytree.tree_leaves(graph(other))
            assert [part.tolist() for part in parts] == [whole.tolist(), first.tolist(), second.tolist()]
        traced = taeda.fx.symbolic_trace(lambda x: halves(x)[1])
        assert traced(other).tolist() == [-2, 5] and "torch.ops.kept.halves(x)" in traced.code
        again = pickle.loads(pickle.dumps(own.halves))
        assert again is own.halves and own.halves.arguments[0].name == "x"
    finally:
        for operator in (twice, halves, grow):
            operator.remove()


def test_a_function_of_ones_own_parts_the_graph_of_both_passes():
    from taeda._functorch.aot_autograd import default_partition
    from taeda._functorch.partitioners import _is_primal, _is_tangent

    seen = []

    def whole_forward(joint, inputs, *, num_fwd_outputs, **_):
        seen.append((joint, inputs, num_fwd_outputs))
        return default_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs)

    def keep(graph, inputs):
        seen.append((graph, inputs))
        return graph

    x, weight = taeda.tensor([0.5, 1.0], requires_grad=True), taeda.tensor([2.0, 3.0])
    y, shifted = aot_function(lambda x, w: (x.sin() * w, w + 1), keep, partition_fn=whole_forward)(x, weight)
    y.sum().backward()
    assert shifted.tolist() == [3.0, 4.0]
    taeda.testing.assert_close(x.grad, weight * x.detach().cos())
    joint, (primals, tangents), count = seen[0]
    nodes = list(joint.graph.nodes)
    assert [len(primals), len(tangents), count] == [2, 1, 2]
    assert [node.name for node in nodes if _is_primal(node)] == ["primals_1", "primals_2"]
    assert [node.name for node in nodes if _is_tangent(node)] == ["tangents_1"]
    assert nodes[0].meta["tensor_meta"].shape == (2,)
    y, shifted, gradient, nothing = joint(x.detach(), weight, taeda.ones(2))
    assert nothing is None
    taeda.testing.assert_close(gradient, x.grad)
    (forward, given), (backward, needed) = seen[1:]
    assert len(given) == 2 and len(forward(*given)) == 2 + len(needed) - 1
    taeda.testing.assert_close(backward(*needed)[0], x.grad)
