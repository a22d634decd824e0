"""What programs written for PyTorch import beside the public names, under taeda's name and under torch's."""

import importlib
import subprocess
import sys
from dataclasses import dataclass

import pytest

import taeda

IMPORTED = [
    "fx._symbolic_trace: FunctionType ScriptObject _orig_module_call compatibility",
    "profiler._memory_profiler: MemoryProfileTimeline _CATEGORY_TO_COLORS _CATEGORY_TO_INDEX",
    "jit: _get_trace_graph", "cuda: _lazy_call _lazy_init", "nn.modules.conv: _ConvTransposeMixin _ConvNd",
    "_C: Value Graph Node FunctionSchema", "_vmap_internals: _vmap", "_subclasses.fake_tensor: unset_fake_temporarily",
    "distributed.tensor._utils: compute_local_shape_and_global_offset", "distributed.run: main get_args_parser",
    "distributed.checkpoint.hf_storage: HuggingFaceStorageReader", "distributed._functional_collectives: all_reduce",
    "distributed.algorithms.ddp_comm_hooks.default_hooks: fp16_compress_hook",
    "distributed.distributed_c10d: GroupName", "_export.serde.serialize: serialize",
    "distributed.constants: default_pg_timeout", "distributed: _remote_device remote_device",
    "distributed._shard._utils: narrow_tensor_by_index",
    "distributed.tensor.placement_types: Shard Replicate _StridedShard",
    "_dynamo.eval_frame: is_dynamo_supported", "distributed.distributed_c10d: default_pg_timeout",
    "_guards: detect_fake_mode TracingContext", "_ops: OpOverload HigherOrderOperator",
    "_functorch.eager_transforms: jacrev vjp", "_functorch.functional_call: stack_module_state",
    "_subclasses.functional_tensor: FunctionalTensor", "nn.modules.module: _global_parameter_registration_hooks",
    "cuda.nvtx: mark range range_push range_pop", "nn.init: _no_grad_trunc_normal_ _no_grad_fill_",
    "_dynamo.config: suppress_errors", "_dynamo.utils: counters", "_functorch.config: patch",
    "_inductor.config: triton", "_jit_internal: boolean_dispatch List Optional", "_logging: set_logs",
    "classes: load_library", "compiler.config: patch", "utils.mobile_optimizer: optimize_for_mobile",
    "nn.functional.grad: conv2d_input", "nn.parallel.scatter_gather: scatter gather scatter_kwargs is_namedtuple",
    "nn.parallel.replicate: replicate", "nn.parallel.parallel_apply: parallel_apply",
    "utils._contextlib: _DecoratorContextManager _NoParamDecoratorContextManager context_decorator",
    "utils._foreach_utils: _group_tensors_by_device_and_dtype _has_foreach_support",
    "optim.swa_utils: AveragedModel _group_tensors_by_device_and_dtype",
    "utils._typing_utils: not_none", "utils.data._utils.collate: default_collate default_collate_err_msg_format",
    "utils.data._utils: IS_WINDOWS", "autograd: kineto_available",
    "utils.data._utils.worker: get_worker_info", "utils.data._utils.pin_memory: pin_memory",
    "distributed.rpc: RRef init_rpc", "distributed.optim: ZeroRedundancyOptimizer",
    "distributed.fsdp: FullyShardedDataParallel MixedPrecision ShardingStrategy fully_shard",
    "distributed.fsdp.wrap: transformer_auto_wrap_policy", "distributed.algorithms.join: Join",
    "distributed.elastic.multiprocessing.errors: record",
    "distributed.checkpoint.state_dict: get_state_dict _init_optim_state",
    "distributed.tensor.parallel: ColwiseParallel parallelize_module", "distributed.nn.functional: all_reduce",
    "_C: _add_docstr _infer_size _set_grad_enabled _VariableFunctionsClass",
    "_jit_internal: _overload _overload_method _qualified_name",
    "distributed._tensor.placement_types: DTensorSpec Shard TensorMeta",
    "_utils: _rebuild_tensor_v2 _rebuild_sparse_tensor _reorder_tensors_as _import_dotted_name is_compiling",
    "nn.modules.conv: _reverse_repeat_tuple _size_2_t", "nn.modules.loss: _Reduction",
    "nn.modules.rnn: apply_permutation", "nn.parallel.scatter_gather: _is_namedtuple",
    "nn.parallel.distributed: DistributedDataParallel _find_tensors", "nn.parallel._functions: _get_stream Scatter",
    "autograd.function: _SingleLevelFunction _ContextMethodMixin", "_tensor_str: _str _tensor_str",
    "autograd.profiler_util: _format_time _format_memory", "backends.cuda: SDPBackend SDPAParams",
    "cuda.amp.autocast_mode: autocast custom_fwd custom_bwd", "cuda.amp.grad_scaler: GradScaler OptState",
    "serialization: _get_layout pickle", "storage: _load_from_bytes",
]  # fmt: skip


@pytest.mark.parametrize("line", IMPORTED)
def test_importable(line):
    module, _, names = line.partition(": ")
    found = importlib.import_module(f"taeda.{module}")
    for name in names.split():
        assert hasattr(found, name), name


STARS = {
    "distributed": "P2POp ReduceOp all_reduce init_process_group is_initialized DeviceMesh distributed_c10d Work",
    "cuda": "is_available Stream Event FloatTensor amp manual_seed_all memory_allocated max_memory_allocated graphs",
    "cpu": "is_available device_count", "compiler": "nested_compile_region set_default_backend",
    "masked": "MaskedTensor masked_tensor mean", "monitor": "Stat SUM", "autograd": "grad_mode Variable",
    "serialization": "load register_package default_restore_location", "nn": "Module parallel parameter attention",
    "nn.modules.module": "Module register_module_forward_hook", "utils.data": "IterDataPipe DataLoader",
}  # fmt: skip


@pytest.mark.parametrize("module", STARS)
def test_what_a_star_imports(module):
    names: dict = {}
    exec(f"from taeda.{module} import *", names)
    assert not [name for name in STARS[module].split() if name not in names]
    assert not [name for name in names if name.startswith("_") and name != "__builtins__"]


def test_what_a_star_imports_under_another_name():
    source = (
        "import sys, taeda; sys.modules['torch'] = taeda\n"
        "for line in sys.argv[1:]:\n"
        "    module, _, wanted = line.partition(':')\n"
        "    names = {}\n"
        "    exec(f'from torch.{module} import *', names)\n"
        "    assert not set(wanted.split()) - set(names), line\n"
    )
    lines = [f"{module}:{names}" for module, names in STARS.items()]
    subprocess.run([sys.executable, "-c", source, *lines], check=True)


def test_registrations_of_hooks_are_no_names_of_nn():
    assert not hasattr(taeda.nn, "register_module_forward_hook")


def test_functions_stay_where_modules_of_their_names_are_imported():
    source = (
        "import sys, taeda; sys.modules['torch'] = taeda\n"
        "from torch.autograd.gradcheck import gradcheck\n"
        "from torch.nn.parallel.replicate import replicate\n"
        "import torch._inductor.config as config, torch\n"
        "config.triton.cudagraphs = True\n"
        "assert torch._inductor.config.triton.cudagraphs\n"
        "assert torch.autograd.gradcheck is gradcheck is taeda.autograd.gradcheck\n"
        "assert torch.nn.parallel.replicate is replicate\n"
    )
    subprocess.run([sys.executable, "-c", source], check=True)


def test_modules_run_as_programs_under_another_name():
    source = (
        "import runpy, sys, taeda; sys.modules['torch'] = taeda\n"
        "sys.argv[1:] = ['--help']\n"
        "runpy.run_module('torch.distributed.run', run_name='__main__', alter_sys=True)\n"
    )
    said = subprocess.run([sys.executable, "-c", source], check=True, capture_output=True, text=True).stdout
    assert "--nproc-per-node" in said


def test_what_needs_a_group_says_so_when_it_is_used():
    from taeda.distributed import fsdp, rpc

    policy = fsdp.MixedPrecision(param_dtype=taeda.bfloat16)
    assert policy.param_dtype is taeda.bfloat16 and fsdp.ShardingStrategy.FULL_SHARD.name == "FULL_SHARD"
    with pytest.raises(RuntimeError, match="RPC has not been initialized"):
        rpc.remote("worker", len)
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        fsdp.FullyShardedDataParallel(taeda.nn.Linear(1, 1))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = rpc.nothing


def test_contexts_as_decorators():
    from taeda.utils._contextlib import _DecoratorContextManager, _NoParamDecoratorContextManager

    events = []

    class Noted(_DecoratorContextManager):
        def __init__(self, name="a"):
            self.name = name

        def __enter__(self):
            events.append(f"+{self.name}")

        def __exit__(self, *_):
            events.append(f"-{self.name}")

        def clone(self):
            return type(self)(self.name)

    @Noted("b")
    def double(x):
        """Twice."""
        events.append("in")
        return 2 * x

    @Noted("c")
    def steps():
        got = yield 1
        try:
            yield got
        except KeyError:
            yield "caught"
        return "end"

    assert double(2) == 4 and double.__doc__ == "Twice." and events == ["+b", "in", "-b"]
    events.clear()
    walk = steps()
    assert next(walk) == 1 and walk.send(5) == 5 and events == ["+c", "-c"] * 2
    assert walk.throw(KeyError) == "caught"
    with pytest.raises(StopIteration) as end:
        next(walk)
    assert end.value.value == "end" and events == ["+c", "-c"] * 4
    with pytest.raises(TypeError, match="classes"):
        Noted()(Noted)

    class Bare(_NoParamDecoratorContextManager):
        def __enter__(self):
            events.append("bare")

        def __exit__(self, *_):
            pass

    events.clear()
    assert Bare(lambda: 3)() == 3 and events == ["bare"]


def test_arguments_for_each_device():
    from taeda.nn.parallel.scatter_gather import scatter_kwargs

    positional, named = scatter_kwargs((taeda.arange(4),), {"y": taeda.arange(4), "z": 1}, ["cpu", "cpu"])
    assert [p[0].tolist() for p in positional] == [[0, 1], [2, 3]]
    assert [(n["y"].tolist(), n["z"]) for n in named] == [([0, 1], 1), ([2, 3], 1)]
    positional, named = scatter_kwargs((taeda.arange(4),), None, ["cpu", "cpu"])
    assert len(positional) == 2 and named == ({}, {})


def test_marks_of_a_vendor_say_what_to_use():
    with pytest.raises(RuntimeError, match="record_function"):
        taeda.cuda.nvtx.range_push("step")
    assert taeda.cuda._initialized is False


def test_dispatch_by_an_argument():
    from taeda._jit_internal import boolean_dispatch

    pick = boolean_dispatch(
        "sure", 1, False, lambda x, sure=True: ("yes", x), lambda x, sure=False: ("no", x)
    )
    assert pick(1) == ("no", 1) and pick(1, True) == ("yes", 1) and pick(1, sure=True) == ("yes", 1)


def test_no_default_backend_is_the_first_one():
    taeda.compiler.set_default_backend("eager")
    taeda.compiler.set_default_backend(None)
    assert taeda.compiler.get_default_backend() == "inductor"


def test_turns_by_a_file(tmp_path):
    from taeda.utils.file_baton import FileBaton

    first, second = (FileBaton(str(tmp_path / "lock"), wait_seconds=0.001) for _ in range(2))
    assert first.try_acquire() and not second.try_acquire()
    first.release()
    second.wait()
    assert second.try_acquire()
    second.release()


def test_what_a_compiler_would_make_is_told():
    explain = taeda._dynamo.explain(lambda x: taeda.relu(x) + 1)
    told = explain(taeda.tensor([-1.0, 2.0]))
    assert (told.graph_count, told.graph_break_count, told.op_count) == (1, 0, 2)
    assert "relu" in str(told.ops_per_graph[0][0]) and "Graph Break Count: 0\nOp Count: 2\n" in str(told)
    nothing = taeda._dynamo.explain(lambda x: x, 1)
    assert (nothing.graph_count, nothing.op_count, nothing.ops_per_graph) == (0, 0, [])


def test_ways_of_lying_over_a_mesh_are_told_in_more_detail():
    from taeda.distributed.tensor import Replicate, Shard
    from taeda.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta

    @dataclass(kw_only=True)
    class Detailed(DTensorSpec):
        parts: int = 1

    spec = Detailed(mesh=None, placements=(Replicate(),))
    spec.parts, spec.tensor_meta = 2, TensorMeta(taeda.Size([2, 3]), (3, 1), taeda.float32)
    assert spec.shape == (2, 3) and spec.with_placements([Shard(0)]).parts == 2
    plain = [DTensorSpec(None, (Replicate(),)) for _ in range(2)]
    assert (
        plain[0] == plain[1]
        and hash(plain[0]) == hash(plain[1])
        and plain[0] != plain[0].with_placements([Shard(0)])
    )


def test_segments_under_their_private_name():
    found = taeda._segment_reduce(taeda.arange(5.0), "mean", offsets=taeda.tensor([0, 2, 5]))
    assert found.tolist() == [0.5, 3.0]
    assert taeda._segment_reduce(taeda.arange(5.0), "amax", lengths=taeda.tensor([2, 3])).tolist() == [1, 4]


def test_distributions_that_are_modules_too():
    class Prior(taeda.distributions.Normal, taeda.nn.Module):
        def __init__(self):
            taeda.nn.Module.__init__(self)
            taeda.distributions.Normal.__init__(self, 0.0, 1.0)
            scale = self.__dict__.pop("scale")
            self.register_buffer("scale", scale)

    prior = Prior().to(taeda.float64)
    assert prior.scale.dtype is taeda.float64 and list(prior.parameters()) == []
    assert taeda.nn.Sequential(prior).double().state_dict()["0.scale"].item() == 1
    assert prior.log_prob(taeda.tensor(0.0)).item() == pytest.approx(-0.918938533)


def test_names_of_copied_sources():
    assert taeda._C._infer_size((2, 1), (3,)) == (2, 3)
    assert not taeda._C._mps_is_available() and not taeda._C._mps_is_on_macos_or_newer(13, 0)
    with taeda.enable_grad():
        taeda._C._set_grad_enabled(False)
        assert not taeda.is_grad_enabled()
    assert taeda.is_grad_enabled()
    ours, others = [taeda.ones(1), taeda.tensor([2]), taeda.ones(3)], taeda.ones(2).split(1)
    assert taeda._utils._reorder_tensors_as(
        [ours[0], ours[2], ours[1]], [others[0], ours[1], others[1]]
    ) == tuple(ours)
    assert taeda._utils._import_dotted_name("taeda.nn.Linear") is taeda.nn.Linear
    assert taeda.backends.cuda.SDPBackend is taeda.nn.attention.SDPBackend
    assert taeda.nn.parallel.distributed._find_tensors({"a": [ours[0], 1], "b": (ours[1],)}) == ours[:2]
    assert taeda.nn.parallel._functions._get_stream(taeda.device("cpu")) is None
    moved = taeda.nn.modules.rnn.apply_permutation(taeda.tensor([[1, 2, 3]]), taeda.tensor([2, 0, 1]))
    assert moved.tolist() == [[3, 1, 2]]
    assert taeda.autograd.profiler_util._format_time(1500.0) == "1.500ms"
    with pytest.raises(AttributeError, match="no_such_name"):
        taeda.backends.cuda.no_such_name  # noqa: B018
    with pytest.raises(AttributeError, match="no_such_name"):
        taeda._utils.no_such_name  # noqa: B018
