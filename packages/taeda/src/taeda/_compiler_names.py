"""Modules inside of a compiler that is not there, as names: each can be imported, and using what it has says so.

Where something stands elsewhere already, the module has that.
"""

from __future__ import annotations

import builtins
from enum import Enum
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from taeda import _absent
from taeda._further_names import NAMES as _FURTHER

_REASON = "there is no compiler of Python programs; graphs of functions go to a backend of the program's own"
_WITHOUT = "of its module only the names are"
#: Below taeda: classes begin with a capital, functions with a small letter. `name=place` is what stands in `place`.
NAMES = {
    "_compile": "_disable_dynamo=taeda.compiler.disable",
    "_dynamo.backends.cudagraphs": "cudagraphs=taeda._dynamo.backends.debugging.eager CudagraphsBackend",
    "_dynamo.backends.distributed": "DDPOptimizer",
    "_dynamo.backends.inductor": "inductor=taeda._dynamo.backends.debugging.eager",
    "_dynamo.backends.onnxrt": "has_onnxruntime onnxrt",
    "_dynamo.backends.tvm": "has_tvm tvm",
    "cuda.amp.common": "amp_definitely_not_available",
    "fx.passes.reinplace": "reinplace",
    "_dynamo.bytecode_transformation": "Instruction create_instruction transform_code_object",
    "_dynamo.callback": "CallbackTrigger on_compile_end on_compile_start",
    "_dynamo.comptime": "ComptimeContext ComptimeVar comptime",
    "_dynamo.convert_frame": "ConvertFrame ConvertFrameAssert compile_lock convert_frame convert_frame_assert",
    "_dynamo.device_interface": "CpuInterface CudaInterface DeviceInterface XpuInterface get_interface_for_device "
    "get_registered_device_interfaces register_interface_for_device",
    "_dynamo.functional_export": "dynamo_graph_capture_for_export",
    "_dynamo.guards": "CheckFunctionManager GuardBuilder GuardManagerWrapper",
    "_dynamo.output_graph": "FakeRootModule GraphCompileReason OutputGraph SubgraphTracer",
    "_dynamo.polyfills": "",
    "_dynamo.polyfills.loader": "",
    "_dynamo.repro": "",
    "_dynamo.repro.after_aot": "wrap_compiler_debug",
    "_dynamo.repro.after_dynamo": "wrap_backend_debug",
    "_dynamo.resume_execution": "ContinueExecutionCache",
    "_dynamo.source": "AttrSource ConstantSource GetItemSource GlobalSource LocalSource NNModuleSource Source",
    "_dynamo.symbolic_convert": "InliningInstructionTranslator InstructionTranslator InstructionTranslatorBase",
    "_dynamo.trace_rules": "add is_forbidden lookup lookup_callable torch_non_c_binding_in_graph_functions",
    "_dynamo.types": "ConvertFrameReturn DynamoCallback DynamoFrameType DynamoGuardHook GuardFail GuardFn GuardedCode",
    "_dynamo.variables": "BuiltinVariable ConstantVariable NNModuleVariable SymNodeVariable TensorVariable "
    "UserDefinedObjectVariable UserFunctionVariable VariableTracker",
    "_dynamo.variables.base": "MutationType SourceType VariableTracker",
    "_dynamo.variables.builder": "VariableBuilder wrap_fx_proxy wrap_fx_proxy_cls",
    "_dynamo.variables.constant": "ConstantVariable EnumVariable",
    "_dynamo.variables.tensor": "SymNodeVariable TensorVariable",
    "_export": "capture_pre_autograd_graph=taeda.export.export_for_training",
    "_export.error": "ExportError ExportErrorType InternalError",
    "_export.passes": "",
    "_export.serde": "",
    "_export.utils": "get_buffer=taeda.export._held.get_buffer get_param=taeda.export._held.get_param "
    "is_buffer=taeda.export._held.is_buffer is_param=taeda.export._held.is_param "
    "get_lifted_tensor_constant=taeda.export._held.get_lifted_tensor_constant "
    "is_lifted_tensor_constant=taeda.export._held.is_lifted_tensor_constant "
    "register_dataclass_as_pytree_node=taeda.export._held.register_dataclass_as_pytree_node "
    "_WrappedMethod apply_runtime_assertion_pass deregister_module_as_pytree_input_node get_keystr node_inline_ "
    "node_replace_ nodes_count nodes_filter nodes_first nodes_map placeholder_naming_pass "
    "register_module_as_pytree_input_node remove_proxy_from_state_dict sequential_split sync_state wrap_method",
    "_functorch.autograd_function": "CustomFunctionHigherOrderOperator autograd_function_forward_rewritten",
    "_functorch.pyfunctorch": "FuncTorchInterpreter VmapInterpreter retrieve_current_functorch_interpreter "
    "temporarily_pop_interpreter_stack",
    "_higher_order_ops.flex_attention": "FlexAttentionBackwardHOP FlexAttentionHOP flex_attention "
    "flex_attention_backward",
    "_higher_order_ops.inline_asm_elementwise": "inline_asm_elementwise",
    "_higher_order_ops.triton_kernel_wrap": "TritonKernelWrapperFunctional TritonKernelWrapperMutation",
    "_higher_order_ops.utils": "UnsupportedAliasMutationException autograd_not_implemented reenter_make_fx",
    "_higher_order_ops.wrap": "TagActivationCheckpoint Wrap WrapActivationCheckpoint",
    "_inductor.async_compile": "AsyncCompile",
    "_inductor.codecache": "CppCodeCache FxGraphCache PyCodeCache code_hash get_path",
    "_inductor.codegen": "",
    "_inductor.codegen.common": "BackendFeature Kernel OpOverrides "
    "register_backend_for_device=taeda._inductor.utils.unread",
    "_inductor.codegen.cpp": "CppKernel CppScheduling",
    "_inductor.codegen.triton": "TritonKernel TritonScheduling",
    "_inductor.codegen.wrapper": "PythonWrapperCodegen WrapperCodeGen",
    "_inductor.cpp_builder": "CppBuilder CppOptions CppTorchOptions get_cpp_compiler",
    "_inductor.cpu_vec_isa": "VecISA pick_vec_isa valid_vec_isa_list",
    "_inductor.cudagraph_trees": "CUDAGraphNode CUDAGraphTreeManager",
    "_inductor.decomposition": "decomps_to_exclude "
    "register_decomposition=taeda._decomp.register_decomposition select_decomp_table",
    "_inductor.dependencies": "Dep MemoryDep StarDep WeakDep",
    "_inductor.freezing": "freeze",
    "_inductor.fx_passes": "",
    "_inductor.fx_passes.joint_graph": "joint_graph_passes",
    "_inductor.fx_passes.post_grad": "post_grad_passes",
    "_inductor.fx_passes.pre_grad": "pre_grad_passes",
    "_inductor.fx_utils": "FakeTensorUpdater get_fake",
    "_inductor.graph": "GraphLowering",
    "_inductor.codegen.cpp_flex_attention_template": "CppFlexAttentionTemplate",
    "_inductor.codegen.cpp_template": "CppTemplate",
    "_inductor.codegen.cpp_template_kernel": "CppTemplateCaller CppTemplateKernel",
    "_inductor.freezing_utils": "maybe_set_is_frozen_param=taeda._inductor.utils.unread",
    "_inductor.ir": "Buffer ChoiceCaller ComputedBuffer ExternKernel FallbackKernel FixedLayout FlexibleLayout IRNode "
    "Layout Pointwise Reduction StorageBox TensorBox View",
    "_inductor.kernel": "",
    "_inductor.kernel.mm": "tuned_addmm tuned_mm",
    "_inductor.kernel.mm_common": "mm_args mm_configs mm_options",
    "_inductor.lowering": "add_layout_constraint=taeda._inductor.utils.unread fallback_handler lowerings "
    "make_fallback=taeda._inductor.utils.unread make_pointwise register_lowering=taeda._inductor.utils.unread",
    "_inductor.metrics": "reset",
    "_inductor.output_code": "CompiledFxGraph OutputCode",
    "_inductor.pattern_matcher": "Arg CallFunction CallFunctionVarArgs Ignored KeywordArg Match MultiOutputPattern "
    "PatternExpr PatternMatcherPass PatternPrettyPrinter fwd_only gen_pattern joint_fwd_bwd "
    "register_graph_pattern=taeda._inductor.utils.unread register_lowering_pattern=taeda._inductor.utils.unread "
    "register_replacement=taeda._inductor.utils.unread "
    "stable_topological_sort=taeda.fx.passes.tools_common.legalize_graph",
    "_inductor.runtime": "",
    "_inductor.runtime.benchmarking": "Benchmarker TritonBenchmarker benchmarker",
    "_inductor.runtime.hints": "AutotuneHint DeviceProperties HeuristicType ReductionHint",
    "_inductor.runtime.triton_helpers": "",
    "_inductor.scheduler": "BaseSchedulerNode FusedSchedulerNode Scheduler SchedulerNode",
    "_inductor.select_algorithm": "AlgorithmSelectorCache ExternKernelChoice TritonTemplate autotune_select_algorithm",
    "_inductor.sizevars": "SizeVarAllocator",
    "_inductor.standalone_compile": "CompiledArtifact standalone_compile",
    "_inductor.virtualized": "NullHandler OpsValue Virtualized V ops",
    "_library.autograd": "Info InfoProtocol make_autograd_impl",
    "_subclasses.meta_utils": "MetaConverter MetaTensorDesc",
    "_subclasses.schema_check_mode": "SchemaCheckMode",
    "ao.quantization.pt2e": "",
    "ao.quantization.quantize_jit": "convert_dynamic_jit convert_jit fuse_conv_bn_jit prepare_dynamic_jit prepare_jit "
    "quantize_dynamic_jit quantize_jit script_qconfig script_qconfig_dict",
    "fx._graph_pickler": "GraphPickler Options",
    "fx.experimental.graph_gradual_typechecker": "GraphTypeChecker Refine",
    "fx.experimental.sym_node": "SymNode method_to_operator sympy_is_contiguous",
    "fx.experimental.validator": "TranslationValidator ValidationException",
    "jit._recursive": "create_script_module infer_methods_to_compile make_stub wrap_cpp_class "
    "wrap_cpp_module",
    "jit.frontend": "Builder ExprBuilder FrontendError FrontendTypeError NotSupportedError StmtBuilder "
    "UnsupportedNodeError get_default_args get_jit_class_def get_jit_def",
    "jit.mobile": "LiteScriptModule",
    "nested._internal": "",
    "onnx.verification": "OnnxBackend VerificationOptions verify",
    "profiler._memory_profiler": "Action Category MemoryProfile MemoryProfileTimeline _CATEGORY_TO_COLORS "
    "_CATEGORY_TO_INDEX",
    "profiler._utils": "BasicEvaluation",
    "utils._sympy": "",
    "utils._sympy.functions": "CeilDiv FloorDiv Max Min Mod ModularIndexing",
    "utils._sympy.numbers": "IntInfinity int_oo",
    "utils._sympy.value_ranges": "ValueRangeError ValueRanges bound_sympy",
    "utils.viz._cycles": "observe_tensor_cycles warn_tensor_cycles",
    "utils.bundled_inputs": "InflatableArg augment_model_with_bundled_inputs bundle_inputs bundle_large_tensor "
    "bundle_randn",
    "utils.hipify": "",
    "utils.hipify.hipify_python": "GeneratedFileCleaner hipify",
}  # fmt: skip
# Errors, which programs catch.
_ERRORS = {
    "FrontendError": Exception, "FrontendTypeError": Exception, "NotSupportedError": Exception,
    "UnsupportedNodeError": Exception, "UnsupportedAliasMutationException": RuntimeError,
    "ValidationException": RuntimeError,
}  # fmt: skip
_shared: dict[str, type] = {}


def _no_autocast() -> bool:
    """Whether mixed precision on CUDA is certainly not there: there is none."""
    return True


def _same_graph(gm: Any, *sample_args: Any) -> Any:
    """The graph itself: that its functions write no operand is correct, too."""
    return gm


class ConcreteTypeStore:
    """What is known of the types of scripted modules: nothing. Programs put new ones in its place."""

    def __init__(self) -> None:
        self.type_store: dict[type, list[Any]] = {}
        self.methods_compiled: set[Any] = set()


# What can be used all the same.
_REAL: dict[str, dict[str, Any]] = {
    "cuda.amp.common": {"amp_definitely_not_available": _no_autocast},
    "fx.passes.reinplace": {"reinplace": _same_graph},
    "jit._recursive": {"ConcreteTypeStore": ConcreteTypeStore, "concrete_type_store": ConcreteTypeStore()},
}  # fmt: skip


def has(name: str) -> bool:
    """Whether a module below taeda holds names only."""
    below = name.removeprefix("taeda.")
    return below in NAMES or below in _FURTHER


def make(dotted: str) -> ModuleType:
    """The module of that name."""
    name = dotted.removeprefix("taeda.")
    further = name not in NAMES
    reason = _WITHOUT if further else _REASON
    module = ModuleType(dotted, f"Names of `{name}`: {reason}.")
    module.__dict__.update({"__path__": [], "__further__": further})
    places: dict[str, str] = {}
    for item in (_FURTHER if further else NAMES)[name].split():
        short, _, place = item.partition("=")
        if place:
            places[short] = f"taeda.{place}.{short}" if further else place
        else:
            made = _value(dotted, short, reason)
            module.__dict__[made.__name__] = made
    module.__dict__.update(_REAL.get(name, {}))
    module.__dict__["__getattr__"] = partial(_elsewhere, module, places)
    module.__dict__["__all__"] = [*(n for n in vars(module) if not n.startswith("__")), *places]
    return module


def _elsewhere(module: ModuleType, places: dict[str, str], name: str) -> Any:
    """What stands in another module, when it is asked for."""
    if name not in places:
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
    module.__dict__[name] = found = _at(places[name])
    return found


def _at(place: str) -> Any:
    home, _, name = place.rpartition(".")
    return getattr(import_module(home), name)


def _value(dotted: str, item: str, reason: str) -> Any:
    name, _, members = item.partition(":")
    name, _, error = name.partition("!")
    if not name.lstrip("_")[:1].isupper():
        return _absent.function(f"{dotted}.{name}", reason)
    if name not in _shared:
        base = getattr(builtins, error) if error else _ERRORS.get(name)
        if members:
            made = Enum(name, members.split(","), module=dotted)
        elif base is not None:
            made = type(name, (base,), {"__module__": dotted, "__doc__": f"Never raised: {reason}."})
        else:
            made = _absent.cls(f"{dotted}.{name}", reason)
        _shared[name] = made
    return _shared[name]
