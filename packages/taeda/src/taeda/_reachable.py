"""Modules that programs reach as attributes without importing them, as in PyTorch, which has imported them itself."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

#: By path below taeda: names of the modules, which are imported when they are asked for.
_CHILDREN = {
    "_C": "_distributed_c10d _distributed_rpc _profiler",
    "_custom_op": "autograd impl",
    "_dispatch": "python",
    "_functorch": "autograd_function batch_norm_replacement predispatch pyfunctorch utils",
    "_higher_order_ops": "auto_functionalize effects torchbind utils wrap",
    "_library":
    "autograd custom_ops effects fake_class_registry fake_impl fake_profile opaque_object simple_registry "
    "triton utils",
    "_logging": "_internal _registrations structured",
    "_subclasses": "_fake_tensor_utils fake_utils functional_tensor meta_utils",
    "ao.nn": "quantizable sparse",
    "ao.nn.intrinsic": "modules",
    "ao.nn.intrinsic.modules": "fused",
    "ao.nn.intrinsic.qat": "modules",
    "ao.nn.intrinsic.qat.modules": "conv_fused linear_fused linear_relu",
    "ao.nn.intrinsic.quantized": "dynamic modules",
    "ao.nn.intrinsic.quantized.dynamic": "modules",
    "ao.nn.intrinsic.quantized.dynamic.modules": "linear_relu",
    "ao.nn.intrinsic.quantized.modules": "bn_relu conv_add conv_relu linear_relu",
    "ao.nn.qat": "dynamic modules",
    "ao.nn.qat.dynamic": "modules",
    "ao.nn.qat.dynamic.modules": "linear",
    "ao.nn.qat.modules": "conv embedding_ops linear",
    "ao.nn.quantizable": "modules",
    "ao.nn.quantizable.modules": "activation rnn",
    "ao.nn.quantized": "modules reference",
    "ao.nn.quantized.dynamic": "modules",
    "ao.nn.quantized.dynamic.modules": "conv linear rnn",
    "ao.nn.quantized.modules":
    "activation batchnorm conv dropout embedding_ops functional_modules linear normalization rnn utils",
    "ao.nn.quantized.reference": "modules",
    "ao.nn.quantized.reference.modules": "conv linear rnn sparse utils",
    "ao.nn.sparse": "quantized",
    "ao.nn.sparse.quantized": "dynamic linear utils",
    "ao.nn.sparse.quantized.dynamic": "linear",
    "ao.quantization": "fuser_method_mappings quant_type utils",
    "autograd": "profiler_legacy profiler_util",
    "backends": "python_native",
    "cuda": "comm gds green_contexts sparse",
    "cuda.amp": "common",
    "distributed": "config logging_handlers",
    "export": "_tree_utils custom_ops decomp_utils dynamic_shapes exported_program",
    "fx": "_lazy_graph_module _pytree _utils",
    "fx.experimental": "_backward_state _config const_fold proxy_tensor sym_node unification",
    "fx.experimental.unification": "core dispatch more multipledispatch unification_tools utils variable",
    "fx.experimental.unification.multipledispatch": "conflict core dispatcher utils variadic",
    "fx.passes": "net_min_base regional_inductor reinplace runtime_assert splitter_base",
    "fx.passes.infra": "pass_base pass_manager",
    "jit": "_async _check _freeze _fuser _monkeytype_config _recursive _script _serialization _state _trace frontend",
    "masked.maskedtensor": "binary core creation passthrough reductions unary",
    "mps": "event",
    "nested": "_internal",
    "nested._internal": "nested_tensor",
    "nn": "quantizable",
    "nn.intrinsic": "modules",
    "nn.intrinsic.modules": "fused",
    "nn.intrinsic.qat": "modules",
    "nn.intrinsic.qat.modules": "conv_fused linear_fused linear_relu",
    "nn.intrinsic.quantized": "dynamic modules",
    "nn.intrinsic.quantized.dynamic": "modules",
    "nn.intrinsic.quantized.dynamic.modules": "linear_relu",
    "nn.intrinsic.quantized.modules": "bn_relu conv_relu linear_relu",
    "nn.modules": "_functions",
    "nn.parallel": "_functions comm",
    "nn.qat": "dynamic modules",
    "nn.qat.dynamic": "modules",
    "nn.qat.dynamic.modules": "linear",
    "nn.qat.modules": "conv embedding_ops linear",
    "nn.quantizable": "modules",
    "nn.quantized": "modules",
    "nn.utils": "_named_member_accessor",
    "package":
    "_digraph _directory_reader _importlib _mangling _package_pickler _package_unpickler _stdlib analyze "
    "file_structure_representation find_file_dependencies glob_group importer package_exporter "
    "package_importer",
    "package.analyze": "is_from_package",
    "profiler": "_memory_profiler _utils itt profiler",
    "sparse": "_semi_structured_conversions _semi_structured_ops semi_structured",
    "testing": "_internal",
    "testing._internal": "common_cuda common_device_type common_dtype common_utils distributed",
    "testing._internal.distributed": "fake_pg",
    "utils":
    "_config_module _content_store _dtype_abbrs _exposed_in _import_utils _inspect _mode_utils "
    "_ordered_set _stats _thunk _traceback throughput_benchmark",
    "utils._debug_mode": "_calls _mode _utils",
    "utils.data": "graph graph_settings",
    "utils.data.datapipes": "dataframe utils",
    "utils.data.datapipes.dataframe": "dataframe_wrapper dataframes datapipes structures",
    "utils.data.datapipes.iter":
    "callable combinatorics combining filelister fileopener grouping selecting sharding streamreader "
    "utils",
    "utils.data.datapipes.map": "callable combinatorics combining grouping utils",
    "utils.data.datapipes.utils": "common decoder",
}  # fmt: skip
#: By path below taeda: the modules in which programs find the whole library, as in `torch.sparse.torch.eye`, since
#: PyTorch's files import it under that name.
_WITH_LIBRARY = {
    "":
    "accelerator autograd backends compiler cpu cuda distributed export fft functional futures hub jit "
    "library mps mtia multiprocessing nested overrides quasirandom random return_types serialization "
    "sparse special storage utils xpu",
    "accelerator": "graphs memory",
    "amp": "autocast_mode grad_scaler",
    "ao": "quantization",
    "ao.nn.intrinsic.modules": "fused",
    "ao.nn.intrinsic.qat.modules": "conv_fused linear_fused linear_relu",
    "ao.nn.intrinsic.quantized.dynamic.modules": "linear_relu",
    "ao.nn.intrinsic.quantized.modules": "bn_relu conv_add conv_relu linear_relu",
    "ao.nn.qat.dynamic.modules": "linear",
    "ao.nn.qat.modules": "conv embedding_ops linear",
    "ao.nn.quantizable.modules": "activation rnn",
    "ao.nn.quantized": "functional modules",
    "ao.nn.quantized.dynamic.modules": "conv linear rnn",
    "ao.nn.quantized.modules":
    "activation batchnorm conv dropout embedding_ops functional_modules linear normalization rnn utils",
    "ao.nn.quantized.reference.modules": "conv linear rnn utils",
    "ao.nn.sparse.quantized": "linear",
    "ao.nn.sparse.quantized.dynamic": "linear",
    "ao.quantization":
    "fake_quantize observer qconfig qconfig_mapping quantization_mappings quantize quantize_jit stubs "
    "utils",
    "autograd":
    "anomaly_mode forward_ad function functional grad_mode gradcheck graph profiler profiler_legacy "
    "profiler_util variable",
    "backends": "cpu cuda cudnn cusparselt kleidiai mha miopen mkl mkldnn mps nnpack openmp quantized",
    "cpu.amp": "autocast_mode grad_scaler",
    "cuda": "gds graphs green_contexts jiterator memory nccl random streams tunable",
    "cuda.amp": "autocast_mode common grad_scaler",
    "distributed": "c10d_logger distributed_c10d rpc utils",
    "distributed.rpc": "api backend_registry internal options server_process_global_profiler",
    "distributions":
    "bernoulli beta binomial categorical cauchy constraints continuous_bernoulli dirichlet distribution "
    "exp_family exponential fishersnedecor gamma generalized_pareto geometric gumbel half_cauchy "
    "half_normal independent inverse_gamma kl kumaraswamy laplace lkj_cholesky "
    "lowrank_multivariate_normal mixture_same_family multinomial multivariate_normal negative_binomial "
    "normal one_hot_categorical poisson relaxed_bernoulli relaxed_categorical studentT "
    "transformed_distribution transforms uniform utils von_mises weibull wishart",
    "export": "custom_ops decomp_utils dynamic_shapes exported_program unflatten",
    "fx": "graph graph_module interpreter node operator_schemas proxy subgraph_rewriter",
    "fx.experimental": "const_fold proxy_tensor sym_node",
    "fx.passes":
    "graph_drawer graph_manipulation net_min_base operator_support param_fetch regional_inductor "
    "reinplace runtime_assert shape_prop split_module split_utils splitter_base tools_common",
    "fx.passes.utils": "matcher_utils",
    "jit": "annotations frontend",
    "masked.maskedtensor": "binary core passthrough reductions unary",
    "mps": "event profiler",
    "mtia": "memory",
    "multiprocessing": "reductions",
    "nn": "attention functional grad init parameter",
    "nn.modules":
    "activation adaptive batchnorm container conv lazy linear linear_cross_entropy_options module "
    "normalization rnn sparse transformer",
    "nn.parallel": "comm data_parallel distributed parallel_apply replicate scatter_gather",
    "nn.utils":
    "clip_grad convert_parameters fusion init memory_format parametrizations parametrize rnn "
    "spectral_norm stateless",
    "optim":
    "adadelta adagrad adam adamax asgd lbfgs nadam optimizer radam rmsprop rprop sgd sparse_adam "
    "swa_utils",
    "package": "package_exporter package_importer",
    "profiler": "profiler",
    "signal.windows": "windows",
    "sparse": "semi_structured",
    "utils": "backend_registration checkpoint collect_env deterministic dlpack hooks throughput_benchmark",
    "utils.data": "dataloader distributed graph_settings sampler",
    "utils.data.datapipes.iter": "callable combinatorics",
    "utils.data.datapipes.map": "combinatorics",
    "utils.data.datapipes.utils": "decoder",
    "xpu": "graphs memory random streams",
}  # fmt: skip
_KNOWING = frozenset(
    f"{parent}.{name}".lstrip(".") for parent, names in _WITH_LIBRARY.items() for name in names.split()
)
#: Paths of modules that find something, and all that they lie below.
_ABOVE: set[str] = set()
for _path in (*_CHILDREN, *(path.rpartition(".")[0] for path in _KNOWING)):
    while _path and _path not in _ABOVE:
        _ABOVE.add(_path)
        _path = _path.rpartition(".")[0]


def reach(module: ModuleType, path: str) -> None:
    """Let a module, and what it has already, answer for the modules below it.

    Args:
        module: What stands at taeda.`path`.
    """
    if path in _KNOWING:
        vars(module).setdefault("torch", sys.modules["taeda"])
    # Nothing more for modules without any below: functions of plain ones are called faster.
    if path not in _ABOVE or "__reaching__" in vars(module):
        return
    own, of_class = vars(module).get("__getattr__"), getattr(type(module), "__getattr__", None)
    names = frozenset(_CHILDREN.get(path, "").split())

    def find(name: str) -> Any:
        if name in names:
            from importlib import import_module

            try:
                return import_module(f"taeda.{path}.{name}")
            except ModuleNotFoundError:
                pass
        if own is not None:
            return _reached(own(name), f"{path}.{name}")
        if of_class is not None:
            return _reached(of_class(module, name), f"{path}.{name}")
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    vars(module).update(__getattr__=find, __reaching__=True)
    for child, value in vars(module).copy().items():
        _reached(value, f"{path}.{child}")


def own_spec(name: str, path: Any) -> Any:
    """How a file of this package is loaded that something is to be reached in; None where nothing is."""
    path_below = name.partition(".")[2]
    if path_below not in _ABOVE and path_below not in _KNOWING:
        return None
    from importlib.machinery import PathFinder

    found = PathFinder.find_spec(name, path)
    if found is not None and found.loader is not None:
        found.loader = LoadedThen(found.loader, _reach_from)
    return found


class LoadedThen:
    """Another loader, after whose work a function is called with the module."""

    def __init__(self, loader: Any, then: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._then = then

    def create_module(self, spec: Any) -> Any:
        """As the loader does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Load the file; the module knows its own loader alone."""
        module.__spec__.loader = module.__loader__ = self._loader  # type: ignore[union-attr]
        self._loader.exec_module(module)
        self._then(module)


def _reach_from(module: ModuleType) -> None:
    reach(module, module.__name__.partition(".")[2])


def _reached(value: Any, path: str) -> Any:
    from types import ModuleType

    if isinstance(value, ModuleType):
        reach(value, path)
    return value
