"""Small tools that programs import."""

import importlib
import operator
import unittest

import numpy as np
import pytest

import taeda
from taeda import fx, nn
from taeda.fx.experimental.const_fold import split_const_subgraphs
from taeda.fx.experimental.optimization import optimize_for_inference
from taeda.fx.passes.fake_tensor_prop import FakeTensorProp
from taeda.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from taeda.fx.passes.operator_support import OperatorSupport, OpSupports, any_chain, chain, create_op_support
from taeda.fx.passes.shape_prop import ShapeProp
from taeda.fx.passes.utils.matcher_utils import SubgraphMatcher
from taeda.utils.module_tracker import ModuleTracker


def test_the_modules_around_are_known_by_name():
    model, seen = nn.Sequential(nn.Linear(1, 1), nn.ReLU()), []
    tracker = ModuleTracker()
    model[0].register_forward_pre_hook(lambda *_: seen.append(sorted(tracker.parents)))
    with tracker:
        model(taeda.ones(1, 1))
        assert tracker.parents == {"Global"} and not tracker.is_bw
    model(taeda.ones(1, 1))
    assert seen == [["Global", "Sequential", "Sequential.0"], ["Global"]]


def test_the_modules_around_a_backward_are_known():
    seen = []

    class Watch(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            seen.append((tracker.is_bw, "Sequential.1" in tracker.parents, "Sequential.0" in tracker.parents))
            return grad

    class Watched(nn.Module):
        def forward(self, x):
            return Watch.apply(x).tanh()

    model = nn.Sequential(nn.Linear(1, 1), Watched())
    with ModuleTracker() as tracker:
        model(taeda.ones(1, 1)).sum().backward()
    assert seen == [(True, True, False)]


def test_modules_are_left_with_the_gradients_of_all_their_arguments_or_the_whole_backward():
    forwards, backwards = [], []

    class Part(nn.Module):
        def forward(self, x, y):
            forwards.append((set(tracker.parents), tracker.is_bw))
            first = x * 1
            first.register_hook(lambda grad: backwards.append((set(tracker.parents), tracker.is_bw)))
            return {"product": first @ y}

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList([Part(), Part()])

        def forward(self, x):
            for part in self.parts:
                x = part(x, x)["product"]
            return x

    model = Whole()
    with ModuleTracker() as tracker:
        for _ in range(2):
            model(taeda.ones(2, 2, requires_grad=True)).sum().backward()
            assert not tracker.is_bw and tracker.parents == {"Global"}
    names = [{"Global", "Whole", f"Whole.parts.{place}"} for place in range(2)]
    assert forwards == [(name, False) for name in names] * 2
    assert backwards == [(name, True) for name in reversed(names)] * 2


def test_the_running_backward_has_a_number():
    number = taeda._C._current_graph_task_id
    x, seen = taeda.ones(2, requires_grad=True), []
    x.register_hook(lambda grad: seen.append(number()))
    for _ in range(2):
        x.sum().backward()
    assert number() == -1 and seen[1] > seen[0] >= 0


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.bfloat16])
def test_models_for_onednn_compute_what_they_did(dtype):
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.PReLU(), nn.Flatten(), nn.Linear(16, 2)
    ).eval()
    x = taeda.linspace(-1, 1, 48).reshape(1, 3, 4, 4)
    expected = model(x).tolist()
    made = taeda.utils.mkldnn.to_mkldnn(model, dtype)
    copied = x.to_mkldnn(dtype)
    assert copied.dtype == dtype and copied.data_ptr() != x.data_ptr()
    result = made(copied).to_dense(taeda.float32)
    np.testing.assert_allclose(result.tolist(), expected, atol=0.05 if dtype == taeda.bfloat16 else 1e-6)
    assert made[1].weight.dtype == taeda.float32 and made[4].weight.dtype == dtype


def test_other_numbers_are_none_for_onednn():
    with pytest.raises(RuntimeError, match=r"expected float32.*found taeda\.float64"):
        taeda.ones(2).double().to_mkldnn()
    with pytest.raises(TypeError, match="'dtype' must be float32"):
        taeda.utils.mkldnn.to_mkldnn(nn.Linear(2, 2), taeda.float64)


def crossing(a, b):
    """Sums and products, between which a sine waits for one sum and a product for the sine."""
    first = taeda.add(a, b)
    product = taeda.mul(first, taeda.sin(first))
    return taeda.add(product, first), first


KNOWN = create_op_support(lambda _, node: node.target in (taeda.add, taeda.mul))


def test_groups_of_nodes_become_modules():
    net = fx.symbolic_trace(crossing)
    expected = net(taeda.ones(2), taeda.ones(2))
    finder = CapabilityBasedPartitioner(net, KNOWN)
    groups = finder.propose_partitions()
    assert [[node.name for node in group.nodes] for group in groups] == [["mul", "add_1"]]
    made = finder.fuse_partitions(groups)
    assert [node.name for node in made.graph.nodes] == ["a", "b", "add", "sin", "fused_0", "output"]
    for left, right in zip(made(taeda.ones(2), taeda.ones(2)), expected, strict=True):
        assert taeda.equal(left, right)
    single = CapabilityBasedPartitioner(fx.symbolic_trace(crossing), KNOWN, allows_single_node_partition=True)
    whole = single.partition_and_fuse("part_")
    assert sorted(name for name, _ in whole.named_children()) == ["part_0", "part_1"]
    assert taeda.equal(whole(taeda.ones(2), taeda.ones(2))[0], expected[0])


def test_groups_with_several_results():
    net = fx.symbolic_trace(lambda a: (lambda x: (x * 2, taeda.sin(x), taeda.sin(x * 2)))(a + 1))
    known = create_op_support(lambda _, node: node.target in (operator.add, operator.mul))
    made = CapabilityBasedPartitioner(net, known).partition_and_fuse()
    results = made(taeda.zeros(1))
    assert [round(float(item), 4) for item in results] == [2.0, 0.8415, 0.9093]


def test_ends_that_are_no_work_are_taken_off():
    net = fx.symbolic_trace(lambda a: taeda.relu(a.split(1)[0] + 1))
    known = create_op_support(lambda _, node: node.op == "call_function")
    finder = CapabilityBasedPartitioner(net, known)
    groups = finder.propose_partitions()
    finder.remove_bookend_non_compute_ops(groups)
    assert [node.name for node in groups[0].nodes] == ["add", "relu"]


def test_groups_that_share_nothing_come_together():
    net = fx.symbolic_trace(lambda a: (taeda.add(a, 1), taeda.mul(taeda.add(taeda.sin(a), 2), 3)))
    names = [
        [n.name for n in group.nodes] for group in CapabilityBasedPartitioner(net, KNOWN).propose_partitions()
    ]
    assert names == [["add", "add_1", "mul"]]
    apart = CapabilityBasedPartitioner(
        net, KNOWN, allows_single_node_partition=True, skip_horizontal_fusion=True
    )
    assert [[n.name for n in group.nodes] for group in apart.propose_partitions()] == [
        ["add_1", "mul"],
        ["add"],
    ]


def test_items_stay_with_the_result_that_they_are_of():
    net = fx.symbolic_trace(lambda a: taeda.add(taeda.max(a, 0)[0], 1))
    known = create_op_support(lambda _, node: node.target in (taeda.add, operator.getitem))
    made = CapabilityBasedPartitioner(net, known, allows_single_node_partition=True).propose_partitions()
    assert [[node.name for node in group.nodes] for group in made] == [["add"]]


def test_folded_constants_keep_what_is_known_of_them():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(taeda.ones(2))

        def forward(self, x):
            return x + self.w * 3

    net = fx.symbolic_trace(Net())
    for place, node in enumerate(net.graph.nodes):
        node.meta["place"] = place
    assert [node.meta["place"] for node in split_const_subgraphs(net).graph.nodes] == [0, 2, 3, 4]


def test_tables_of_what_is_supported():
    net = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    modules, nodes = dict(net.named_modules()), {node.name: node for node in net.graph.nodes}
    name = f"{nn.Linear.__module__}.Linear"
    table = OperatorSupport({name: None})
    assert table.is_node_supported(modules, nodes["_0"]) and not table.is_node_supported(modules, nodes["_1"])
    doubles = OperatorSupport({name: (((taeda.float64,),), {})})
    with pytest.raises(RuntimeError, match="ShapeProp"):
        OpSupports.decline_if_input_dtype(taeda.float32).is_node_supported(modules, nodes["_0"])
    ShapeProp(net).propagate(taeda.ones(1, 2))
    assert not doubles.is_node_supported(modules, nodes["_0"])
    assert not OpSupports.decline_if_input_dtype(taeda.float32).is_node_supported(modules, nodes["_0"])
    named = OpSupports.decline_if_node_in_names({"_1"})
    assert not chain(table, named).is_node_supported(modules, nodes["_1"])
    assert any_chain(table, named).is_node_supported(modules, nodes["_0"])


def test_graphs_are_run_on_tensors_without_memory():
    net = fx.symbolic_trace(nn.Linear(2, 3).to("meta"))
    assert FakeTensorProp(net).propagate(taeda.ones(4, 2, device="meta")).shape == (4, 3)
    assert [tuple(node.meta["val"].shape) for node in net.graph.nodes if "val" in node.meta][-1] == (4, 3)


def test_inference_needs_no_normalization_and_no_dropout():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout()).eval()
    net[1].running_mean.uniform_()
    x = taeda.randn(1, 3, 5, 5)
    made = optimize_for_inference(net)
    assert [node.name for node in made.graph.nodes] == ["input_1", "_0", "output"]
    assert taeda.allclose(made(x), net(x), atol=1e-5)
    with pytest.raises(RuntimeError, match="unknown"):
        optimize_for_inference(net, {"unknown": True})


@taeda.jit.script
def scripted(x, n: int = 2):
    """Doc."""
    return x * n if bool((x > 0).all()) else x


def test_scripts_of_functions_are_functions_with_a_source():
    import copy
    import pickle

    assert isinstance(scripted, taeda.jit.ScriptFunction) and scripted.__doc__ == "Doc."
    assert scripted(taeda.ones(1)).item() == 2 and "def scripted" in scripted.code
    assert taeda.jit.script(scripted) is scripted and copy.deepcopy(scripted) is scripted
    assert pickle.loads(pickle.dumps(scripted)) is scripted

    class Uses(nn.Module):
        twice = scripted

        def forward(self, x):
            return self.twice(x)

    assert Uses()(taeda.ones(1)).item() == 2  # a script is no method


def test_operators_of_ones_own_may_give_their_arguments_to_numpy():
    @taeda.library.custom_op("smalltools::sine", mutates_args=())
    def sine(x: taeda.Tensor) -> taeda.Tensor:
        return taeda.from_numpy(np.sin(x.numpy()))

    sine.register_autograd(
        lambda ctx, grad: grad * ctx.saved_tensors[0].cos(),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )
    x = taeda.zeros(2, requires_grad=True)
    sine(x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]

    @taeda.library.custom_op("smalltools::same", mutates_args=())
    def same(x: taeda.Tensor) -> taeda.Tensor:
        return x

    for given in (taeda.ones(1), x):
        with pytest.raises(RuntimeError, match="clone"):
            same(given)


def test_versions_compare_by_their_numbers():
    from taeda.torch_version import InvalidVersion, TorchVersion, Version

    assert (
        Version("2.9") < Version("2.10.1") and Version("1.0") == Version("1") and Version("1.2.3").micro == 3
    )
    assert TorchVersion("2.1") < "2.10"
    for wrong in ("none", "", "1..2", "1.0+", "1.0.dev1.dev2"):
        with pytest.raises(InvalidVersion, match="no version"):
            Version(wrong)


def test_versions_know_their_parts():
    from taeda.torch_version import Version

    whole = Version("v1!2.0-alpha.3-4.DEV5+Cu-11_8")
    assert str(whole) == "1!2.0a3.post4.dev5+cu.11.8" and whole.public == "1!2.0a3.post4.dev5"
    assert (whole.epoch, whole.release, whole.pre, whole.post, whole.dev, whole.local) == (
        1, (2, 0), ("a", 3), 4, 5, "cu.11.8",
    )  # fmt: skip
    assert (
        whole.base_version == "1!2.0" and whole.is_prerelease and whole.is_postrelease and whole.is_devrelease
    )
    # The order of PEP 440.
    ordered = [
        "1.0.dev1",
        "1.0a1.dev1",
        "1.0a1",
        "1.0b2",
        "1.0rc1",
        "1.0",
        "1.0+a",
        "1.0+5",
        "1.0.post1",
        "1.1",
        "1!0",
    ]
    made = [Version(text) for text in ordered]
    backwards = made[::-1]
    assert sorted(backwards) == made and len(set(made)) == len(made)
    assert Version("1.0.0") == Version("1") and hash(Version("1.0.0")) == hash(Version("1"))


def test_decompositions_are_kept_by_operator():
    from taeda import _decomp

    table: dict = {}
    first, second = taeda.ops.aten.square, taeda.ops.aten.add
    made = _decomp.register_decomposition([first, second], table)(lambda x: x * x)
    assert table == {first: made, second: made}
    with pytest.raises(RuntimeError, match="duplicate registrations"):
        _decomp.register_decomposition(first, table)(made)
    _decomp.remove_decompositions(table, [first])
    assert list(table) == [second] and _decomp.get_decompositions([first]) == {}
    with pytest.raises(ValueError, match="'type' must be one of"):
        _decomp.register_decomposition(first, type="other")


def test_modes_are_left_for_a_while():
    from taeda.utils import _python_dispatch as modes

    seen = []

    class Counting(modes.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = taeda.ones(2)
    with Counting() as outer, Counting() as inner:
        assert taeda._C._len_torch_dispatch_stack() == 2 and modes.is_in_torch_dispatch_mode()
        with modes._pop_mode_temporarily() as left:
            assert left is inner and modes._get_current_dispatch_mode() is outer
        with modes._disable_current_modes() as gone:
            assert gone == [outer, inner]
            x + x
            assert not seen
        x + x
    assert seen


def test_functions_for_devices_that_are_not_there_are_never_asked():
    package = taeda.library.Library("small_tools_devices", "DEF")
    package.define("plus(Tensor x) -> Tensor")
    package.impl("plus", lambda x: x + 1, "CPU")
    package.impl("plus", lambda x: x - 1, "CUDA")
    assert taeda.ops.small_tools_devices.plus(taeda.ones(1)).item() == 2


def test_checks_among_operators():
    aten = taeda.ops.aten
    aten._assert_scalar.default(1, "no")
    aten._assert_async.msg(taeda.ones(1), "no")
    aten._assert_tensor_metadata.default(taeda.ones(2), dtype=taeda.float32)
    with pytest.raises(RuntimeError, match="not zero"):
        aten._assert_scalar.default(0, "not zero")
    with pytest.raises(RuntimeError, match="Tensor dtype mismatch"):
        aten._assert_tensor_metadata.default(taeda.ones(2), dtype=taeda.float64)
    aten.sym_constrain_range_for_size.default(3, min=0, max=4)
    with pytest.raises(RuntimeError, match="Invalid value range for 5"):
        aten.sym_constrain_range_for_size.default(5, max=4)
    assert aten._is_all_true(taeda.tensor([True])).item()
    found = aten.where.ScalarOther(taeda.tensor([True, False]), taeda.ones(2), 3.0)
    assert found.tolist() == [1.0, 3.0]


def test_modules_that_stand_under_two_names_hide_no_function():
    from taeda._library.infer_schema import infer_schema
    from taeda.distributed import fsdp
    from taeda.distributed._composable.fsdp.fully_shard import fully_shard

    assert infer_schema is taeda.library.infer_schema and fully_shard is fsdp.fully_shard


def test_what_programs_tell_a_code_generator_leaves_functions_as_they_are():
    from taeda._inductor.decomposition import register_decomposition
    from taeda._inductor.lowering import make_fallback, register_lowering
    from taeda._inductor.virtualized import ops

    library = taeda.library.Library("small_tools", "FRAGMENT")
    library.define("thrice(Tensor x) -> Tensor")
    library.impl("thrice", lambda x: x * 3, "CompositeExplicitAutograd")
    assert library.ns == "small_tools"
    operator = getattr(taeda.ops, library.ns).thrice

    def function(x):
        return x + x + x

    assert register_lowering(operator)(function) is function is register_decomposition([operator])(function)
    make_fallback(operator)
    assert operator(taeda.ones(2)).tolist() == [3.0, 3.0] and callable(ops)


def test_operators_that_take_functions_are_classes():
    from taeda._ops import HigherOrderOperator

    class Twice(HigherOrderOperator):
        def __init__(self):
            super().__init__("twice")

        def __call__(self, f, x):
            return f(f(x))

    assert Twice()(lambda x: x + 1, 0) == 2 and Twice().name() == "twice"
    with pytest.raises(NotImplementedError, match="plain functions here"):
        HigherOrderOperator("other")


def test_references_are_the_functions_themselves():
    import taeda._prims as prims
    import taeda._refs as refs
    import taeda._refs.nn.functional as functional

    x = taeda.arange(6.0).reshape(2, 3)
    assert refs.add is taeda.add and refs.linalg is taeda.linalg and functional is taeda.nn.functional
    assert prims.sum(x, None).item() == 15 and prims.prod(x + 1, (0, 1)).item() == 720
    assert prims.amax(x, [0], output_dtype=taeda.float64).tolist() == [3, 4, 5]
    assert prims.broadcast_in_dim(x[0], (3, 2), (0,)).tolist() == [[0, 0], [1, 1], [2, 2]]
    assert prims.iota(3, start=2, step=3, dtype=taeda.int64).tolist() == [2, 5, 8]
    assert (
        prims.slice(x, [0, 1], [2, 3]).tolist()
        == x[:, 1:].tolist()
        == prims.slice_in_dim(x, 1, 3, axis=1).tolist()
    )
    assert prims.rev(x, [0]).tolist() == [[3, 4, 5], [0, 1, 2]] and prims.transpose(x, (1, 0)).shape == (3, 2)
    assert prims.expand_dims(x, [0, 3]).shape == (1, 2, 3, 1) and prims.split_dim(x, 1, 3).shape == (2, 3, 1)
    assert prims.convert_element_type(x, taeda.int32).dtype is taeda.int32 and prims.collapse(
        x, 0, 1
    ).shape == (6,)
    assert prims.maximum_value(taeda.int8) == 127 and prims.minimum_value(taeda.float32) == -float("inf")
    assert abs(prims.var(x, None).item() - 3.5) < 1e-6 and prims.erf_inv is taeda.erfinv
    for module in (refs, prims):
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
            _ = module.nonsense


def test_old_questions_after_the_build_are_answered_with_a_warning():
    for part in ("cuda", "cudnn", "mkldnn", "mps"):
        with pytest.warns(UserWarning, match=f"'has_{part}' is deprecated, please use 'backends.{part}.is_"):
            assert taeda._names.lookup(f"has_{part}") is getattr(taeda.backends, part).is_available()


def test_kinds_of_recorded_programs_can_be_named():
    assert taeda.Graph is taeda._C.Graph and taeda.Value is taeda._C.Value
    with pytest.raises(NotImplementedError, match="recorded"):
        taeda.Value()


def test_warnings_of_old_programs_can_be_switched_on():
    warning = taeda.utils.backcompat.broadcast_warning
    warning.enabled = True
    assert warning.enabled and not taeda.utils.backcompat.keepdim_warning.enabled
    warning.enabled = False


def test_functional_has_what_editors_import_from_it():
    from taeda.functional import F, Tensor, einsum

    assert F is nn.functional and Tensor is taeda.Tensor and einsum is taeda.einsum


def test_questions_about_dtypes():
    from taeda import _prims_common as common

    assert common.dtype_to_type(taeda.int8) is int and common.dtype_to_type(taeda.complex64) is complex
    assert common.type_to_dtype(float) is taeda.float32 and common.type_to_dtype(bool) is taeda.bool
    assert common.is_integer_dtype(taeda.uint8) and not common.is_integer_dtype(taeda.bool)
    assert common.corresponding_real_dtype(taeda.complex128) is taeda.float64
    assert common.corresponding_complex_dtype(taeda.float32) is taeda.complex64
    kind = common.ELEMENTWISE_TYPE_PROMOTION_KIND
    whole, half = taeda.ones(2, dtype=taeda.int32), taeda.ones(2, dtype=taeda.float16)
    for given, how, expected in (
        ((whole, 2.0), kind.DEFAULT, (taeda.float32, taeda.float32)),
        ((half, None, 1), kind.DEFAULT, (taeda.float32, taeda.float16)),
        ((half, half), kind.NO_OPMATH, (taeda.float16, taeda.float16)),
        ((whole,), kind.INT_TO_FLOAT, (taeda.float32, taeda.float32)),
        ((whole, whole), kind.ALWAYS_BOOL, (taeda.int32, taeda.bool)),
        ((taeda.ones(1, dtype=taeda.complex64),), kind.COMPLEX_TO_FLOAT, (taeda.complex64, taeda.float32)),
        ((whole > 0,), kind.BOOL_TO_LONG, (taeda.int64, taeda.int64)),
    ):
        assert common.elementwise_dtypes(*given, type_promotion_kind=how) == expected


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4, 5), (2, 3, 4, 5, 2), (4, 1, 0, 2), ()])
def test_questions_about_strides(shape):
    from taeda import _prims_common as common

    x = taeda.zeros(shape)
    assert common.make_contiguous_strides_for(shape) == x.stride()
    assert common.suggest_memory_format(x) is taeda.contiguous_format
    assert common.compute_required_storage_length(shape, x.stride(), 3) == (x.numel() + 3 if x.numel() else 0)
    if len(shape) > 1:
        turned = taeda.zeros((*shape[:-2], shape[-1], shape[-2])).transpose(-1, -2)
        assert 0 in shape or common.make_contiguous_strides_for(shape, row_major=False) == turned.stride()
    if len(shape) > 3 and 0 not in shape:
        order = {4: taeda.channels_last, 5: taeda.channels_last_3d}[len(shape)]
        last = x.to(memory_format=order)
        assert common.make_channels_last_strides_for(shape) == last.stride()
        assert common.suggest_memory_format(last) is order
    assert common.canonicalize_dims(3, (-1, 0)) == (2, 0) and common.canonicalize_dim(0, -1) == 0
    with pytest.raises(IndexError, match="out of range"):
        common.canonicalize_dim(2, 2)


def test_names_that_programs_import_beside_what_they_use():
    from taeda._logging._internal import LazyString, trace_structured
    from taeda._subclasses.fake_tensor import DynamicOutputShapeException, maybe_get_fake_mode
    from taeda.distributed.algorithms.ddp_comm_hooks import default, default_hooks
    from taeda.distributed.checkpoint._traverse import get_element, set_element
    from taeda.fx._pytree import TreeSpec, register_pytree_flatten_spec
    from taeda.utils import _pytree
    from taeda.utils.collect_env import get_pip_packages, run

    assert str(LazyString("{}-{}".format, 1, 2)) == "1-2" and default is default_hooks
    assert trace_structured("artifact", payload_fn=lambda: 1 / 0) is None
    assert maybe_get_fake_mode(taeda.ones(1)) is None and issubclass(
        DynamicOutputShapeException, RuntimeError
    )
    tree = {}
    set_element(tree, ("a", 1, "b"), 3)
    assert tree == {"a": [None, {"b": 3}]} and get_element(tree, ("a", 1, "b")) == 3
    assert get_element(tree, ("a", 5), "none") == "none" == get_element(tree, ("c",), "none")
    assert (
        TreeSpec is _pytree.TreeSpec
        and register_pytree_flatten_spec(type("Own", (), {}), lambda own, _: [own]) is None
    )
    assert run("echo told; exit 3") == (3, "told", "") and "numpy" in get_pip_packages()[1]


def test_matrices_with_two_in_four_elements_are_refused_by_name():
    with pytest.raises(RuntimeError, match=r"argument 'original_tensor' is on cpu"):
        taeda.sparse.to_sparse_semi_structured(taeda.ones(32, 32))
    assert not isinstance(taeda.ones(1), taeda.sparse.SparseSemiStructuredTensor)


def test_operators_give_another_dtype():
    from taeda._higher_order_ops.out_dtype import out_dtype

    codes = taeda.tensor([[100, 2], [-100, 1]], dtype=taeda.int8)
    made = out_dtype(taeda.ops.aten.mm.default, taeda.int32, codes, codes)
    assert made.dtype is taeda.int32 and (made.numpy() == codes.numpy().astype(int) @ codes.numpy()).all()
    assert out_dtype(taeda.ops.aten.mul.Tensor, taeda.float32, codes, 0.5).tolist() == [[50, 1], [-50, 0.5]]


def test_a_name_that_modules_of_names_lack_is_an_import_error():
    from taeda.profiler._memory_profiler import Category

    assert isinstance(Category, type)
    with pytest.raises(ImportError):
        from taeda.profiler._memory_profiler import _nothing  # noqa: F401
    with pytest.raises(ModuleNotFoundError):
        import taeda.profiler._memory_profiler.nothing  # noqa: F401


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("distributed.elastic.rendezvous.api", "RendezvousClosedError"),
        ("distributed.optim.functional_adam", "_FunctionalAdam"),
        ("fx.experimental.normalize", "NormalizeArgs"),
        ("fx.passes.splitter_base", "_SplitterBase"),
        ("mtia.memory", "memory_stats"),
        ("numa.binding", "AffinityMode"),
        ("utils.data.datapipes.utils.common", "StreamWrapper"),
    ],
)
def test_modules_whose_names_alone_are_there_can_be_imported(module, name):
    assert hasattr(importlib.import_module(f"taeda.{module}"), name)


def test_what_is_there_by_name_says_so_when_it_is_used():
    from taeda.fx.passes.net_min_base import FxNetMinimizerRunFuncError
    from taeda.fx.passes.splitter_base import generate_inputs_for_submodules

    assert issubclass(FxNetMinimizerRunFuncError, Exception)
    with pytest.raises(NotImplementedError, match="generate_inputs_for_submodules"):
        generate_inputs_for_submodules(None, (), ())
    with pytest.raises(ImportError):
        importlib.import_module("taeda.fx.passes.no_such_module")
    assert not taeda.mtia.is_available() and taeda.mtia.device_count() == 0


def test_a_warning_is_given_once():
    from taeda._dynamo.utils import warn_once

    with pytest.warns(UserWarning, match="only once"):
        warn_once("only once")
    warn_once("only once")


def test_a_module_hides_no_function_of_its_name():
    from taeda._library.custom_ops import custom_op
    from taeda._library.infer_schema import infer_schema

    def twice(x: taeda.Tensor) -> taeda.Tensor:
        return x * 2

    assert callable(taeda.library.infer_schema) and infer_schema is taeda.library.infer_schema
    assert taeda.library.infer_schema(twice, mutates_args=()) == "(Tensor x) -> Tensor"
    assert custom_op is taeda.library.custom_op


def test_rules_for_a_compiler_that_is_not_there_are_taken_and_never_asked():
    from taeda._inductor.decomposition import register_decomposition
    from taeda._inductor.lowering import make_fallback, register_lowering

    def rule(x):
        return x

    assert register_lowering(taeda.ops.aten.sin.default)(rule) is rule
    make_fallback(taeda.ops.aten.sin.default)
    assert register_decomposition([taeda.ops.aten.sin.default], registry={})(rule) is rule


def cases_of_tests():
    """Classes as libraries' tests write them."""
    from taeda.testing._internal.common_cuda import with_tf32_off
    from taeda.testing._internal.common_device_type import dtypes, onlyCPU, onlyCUDA, tol, toleranceOverride
    from taeda.testing._internal.common_utils import TestCase, parametrize, slowTest, subtest

    class Values(TestCase):
        @parametrize("x,y", [(1, 2), subtest((3, 4), name="three"), (taeda.float32, "a")])
        @parametrize("flag", [True, False])
        def test_pairs(self, x, y, flag):
            self.assertNotEqual(x, y)

        def test_equal(self):
            self.assertEqual([taeda.ones(2), {"k": 2}], [taeda.ones(2) + 1e-7, {"k": 2}])
            self.assertEqual(
                [{"k": taeda.ones(2), "name": "a", "none": None}],
                [{"none": None, "name": "a", "k": taeda.ones(2)}],
            )
            self.assertEqual({"k": [0.1 + 0.2, "b"]}, {"k": (0.3, "b")})
            for other in (
                [{"k": taeda.ones(2), "name": "b"}],
                [{"k": taeda.ones(2)}],
                [],
                [{"k": taeda.zeros(2), "name": "a"}],
            ):
                with self.assertRaises(AssertionError):
                    self.assertEqual([{"k": taeda.ones(2), "name": "a"}], other)
            self.assertEqual(np.ones(2, dtype=np.float32), taeda.ones(2))
            self.assertEqual(taeda.tensor(2.0), 2)
            self.assertEqual(1.0, 1.1, atol=0.2, rtol=0)
            for one, other in ((taeda.ones(2), taeda.zeros(2)), (1, 2), (1.0, 1.1), ("a", "b")):
                with self.assertRaises(AssertionError):
                    self.assertEqual(one, other)

        @slowTest
        def test_slow(self):
            raise AssertionError

        @with_tf32_off
        def test_wrong(self):
            self.assertEqual(taeda.ones(2), taeda.ones(3))

    class Devices(TestCase):
        @dtypes(taeda.float32, taeda.int64)
        @parametrize("size", [1, 2])
        def test_made(self, device, dtype, size):
            self.assertEqual(taeda.ones(size, device=device, dtype=dtype).dtype, dtype)

        @onlyCUDA
        def test_elsewhere(self, device):
            raise AssertionError

        @onlyCPU
        @dtypes(taeda.float32)
        @toleranceOverride({taeda.float32: tol(1e-2, 0.0)})
        def test_near(self, device, dtype):
            self.assertEqual(taeda.ones(1, dtype=dtype), taeda.ones(1, dtype=dtype) * 1.001)

    return Values, Devices


def test_cases_of_libraries_tests():
    from taeda.testing._internal import common_device_type, common_utils

    values, devices = cases_of_tests()
    scope = {"__name__": __name__, "Devices": devices}
    common_utils.instantiate_parametrized_tests(values)
    common_device_type.instantiate_device_type_tests(devices, scope, only_for="cpu")
    assert set(scope) == {"__name__", "DevicesCPU"}
    names = {
        "test_equal",
        "test_slow",
        "test_wrong",
        "test_pairs_three_flag_True",
        "test_pairs_x_1_y_2_flag_False",
    }
    found = set(unittest.defaultTestLoader.getTestCaseNames(values))
    assert names < found and len(found) == 9 and "test_pairs_float32_y_a_flag_True" in found
    made = {f"test_made_size_{size}_cpu_{kind}" for size in (1, 2) for kind in ("float32", "int64")}
    assert set(unittest.defaultTestLoader.getTestCaseNames(scope["DevicesCPU"])) == {
        *made, "test_elsewhere_cpu", "test_near_cpu_float32"
    }  # fmt: skip
    result = unittest.TestResult()
    for kind in (values, scope["DevicesCPU"]):
        unittest.defaultTestLoader.loadTestsFromTestCase(kind).run(result)
    assert result.testsRun == 15 and not result.errors
    assert [str(test).split()[0] for test, _ in result.failures] == ["test_wrong"]
    assert sorted(str(test).split()[0] for test, _ in result.skipped) == ["test_elsewhere_cpu", "test_slow"]


def test_helpers_of_libraries_tests(tmp_path):
    from taeda.testing._internal import common_utils as helpers

    before = taeda.get_rng_state()
    with (
        helpers.freeze_rng_state(),
        helpers.set_default_dtype(taeda.float64),
        helpers.DeterministicGuard(True),
    ):
        assert taeda.rand(3).dtype == taeda.float64 and taeda.are_deterministic_algorithms_enabled()
    assert taeda.equal(before, taeda.get_rng_state()) and taeda.get_default_dtype() == taeda.float32
    assert not taeda.are_deterministic_algorithms_enabled()
    positive = helpers.random_hermitian_pd_matrix(3, 2, dtype=taeda.complex128, device="cpu")
    assert (taeda.linalg.eigvalsh(positive) > 0).all()
    values = taeda.linalg.svdvals(
        helpers.random_well_conditioned_matrix(4, 3, dtype=taeda.float64, device="cpu")
    )
    assert (values - 1).abs().max() < 0.05
    apart = helpers.noncontiguous_like(taeda.arange(6.0).reshape(2, 3))
    assert not apart.is_contiguous() and apart.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert helpers.gradcheck(taeda.sin, (taeda.ones(2, dtype=taeda.float64, requires_grad=True),))
    assert list(helpers.iter_indices(taeda.ones(1, 2))) == [(0, 0), (0, 1)] and helpers.find_free_port() > 0
    with helpers.TemporaryFileName() as name, open(name, encoding="utf-8") as file:
        assert file.read() == ""


def test_patterns_of_operators_with_arguments_left_out():
    aten = taeda.ops.aten
    pattern = fx.symbolic_trace(lambda x, alpha: aten.add.Tensor(x, 1, alpha=alpha))
    for program, alpha in (
        (lambda x: aten.add.Tensor(x, 1, alpha=3), 3),
        (lambda x: aten.add.Tensor(x, 1), 1),
    ):
        (found,) = SubgraphMatcher(pattern.graph).match(fx.symbolic_trace(program).graph)
        wanted = next(node for node in pattern.graph.nodes if node.name == "alpha")
        assert found.nodes_map[wanted] == alpha and found.placeholder_nodes[1] == alpha
    sizes = fx.symbolic_trace(lambda x, dims: aten.permute.default(x, dims))
    (found,) = SubgraphMatcher(sizes.graph).match(
        fx.symbolic_trace(lambda x: aten.permute.default(x, [1, 0])).graph
    )
    assert found.placeholder_nodes[1] == [1, 0]
    other = fx.symbolic_trace(lambda x: aten.permute.default(x, [0, 1]))
    assert not SubgraphMatcher(other.graph).match(
        fx.symbolic_trace(lambda x: aten.permute.default(x, [1, 0])).graph
    )


def test_chains_on_both_sides_of_what_is_not_supported():
    net = fx.symbolic_trace(lambda a: taeda.add(taeda.mul(taeda.sin(taeda.add(taeda.mul(a, 1), 2)), 3), 4))
    groups = CapabilityBasedPartitioner(net, KNOWN).propose_partitions()
    assert [[node.name for node in group.nodes] for group in groups] == [["mul_1", "add_1"], ["mul", "add"]]


def test_modules_of_other_classes_are_pickled_by_name():
    """As those that pickle functions (cloudpickle) do with modules, whose class alone they know."""
    import pickle
    from types import ModuleType

    import taeda

    for module in (taeda.backends.cuda, taeda.backends.mps):
        assert type(module) is not ModuleType
        assert pickle.loads(pickle.dumps(module)) is module
