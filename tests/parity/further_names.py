"""Writes which modules of PyTorch taeda has as names only, beside those that stand in tables by hand.

    python tests/parity/further_names.py          # writes packages/taeda/src/taeda/_further_names.py

A module that taeda has by other means is left out; what a module takes from elsewhere is the same object here when
taeda has it there.
"""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
import pkgutil
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

PAGE = Path(__file__).parents[2] / "packages" / "taeda" / "src" / "taeda" / "_further_names.py"
# Modules beginning with an underscore that programs import all the same, with all that is inside of them.
PRIVATE = (
    "_awaits _classes _custom_op _dispatch _export.pass_base "
    "_export.passes.replace_view_ops_with_view_copy_ops_pass _export.serde.serialize _export.utils "
    "_export.verifier _functorch._activation_checkpointing _functorch.compile_utils _functorch.utils "
    "_functorch.fx_minifier _functorch.predispatch _higher_order_ops.auto_functionalize _higher_order_ops.effects "
    "_higher_order_ops.invoke_subgraph _higher_order_ops.out_dtype _higher_order_ops.strict_mode "
    "_higher_order_ops.torchbind _lazy _library _linalg_utils _lobpcg _logging _prims.context _prims.executor "
    "_prims_common _python_dispatcher _streambase _sources _subclasses._fake_tensor_utils _subclasses.fake_utils "
    "_utils_internal ao.ns ao.pruning._experimental.pruner.base_structured_sparsifier "
    "ao.pruning._experimental.data_sparsifier.base_data_sparsifier ao.quantization autograd._functions "
    "cuda._sanitizer cuda._gpu_trace distributed._checkpointable distributed._composable_state "
    "distributed._shard.sharded_tensor.api distributed._shard.sharded_tensor.metadata "
    "distributed._shard.sharded_tensor.shard distributed._shard.sharded_tensor.utils "
    "distributed._shard.sharding_plan distributed._shard.sharding_spec.api "
    "distributed._shard.sharding_spec.chunk_sharding_spec distributed._shard.sharder distributed._sharded_tensor "
    "distributed._sharding_spec distributed._tools.mem_tracker distributed._tools.memory_tracker "
    "distributed._tools.mod_tracker distributed._tools.runtime_estimator distributed._tools.fsdp2_mem_tracker "
    "distributed.checkpoint._extension distributed.checkpoint._fsspec_filesystem distributed.checkpoint._hf_utils "
    "distributed.checkpoint._sharded_tensor_utils distributed.checkpoint._traverse "
    "distributed.checkpoint._dedup_save_plans distributed.checkpoint._checkpointer "
    "distributed.checkpoint._async_executor distributed.checkpoint._storage_utils distributed.fsdp._fully_shard "
    "distributed.fsdp._shard_utils distributed.fsdp._fsdp_extensions distributed.fsdp._debug_utils "
    "distributed.pipelining distributed.tensor._shards_wrapper distributed.tensor._collective_utils "
    "distributed.tensor.debug distributed.tensor.experimental export._trace export._unlift export._swap "
    "export._tree_utils fx._lazy_graph_module fx._utils fx.experimental._backward_state fx.experimental._config "
    "jit._check jit._decompositions jit._monkeytype_config nested._internal.nested_tensor nn.modules._functions "
    "nn.quantized._reference nn.utils._expanded_weights.expanded_weights_impl nn.utils._deprecation_utils "
    "onnx._constants onnx._flags package profiler._pattern_matcher quantization sparse utils._content_store "
    "utils._debug_mode utils._dtype_abbrs utils._exposed_in utils._functools utils._inspect utils._stats "
    "utils._thunk utils._traceback utils._zip utils.tensorboard "
)
# Programs and examples, tables of other makers' names, and modules that only run.
LEFT_OUT = (
    "testing contrib cuda.amp.common fx.passes.reinplace ao.quantization.utils ao.quantization.backend_config "
    " mtia fx.passes.tests backends.xeon utils.benchmark.examples utils.hipify.cuda_to_hip_mappings "
    "utils.data.datapipes.gen_pyi distributed.flight_recorder _functorch.top_operators_github_usage "
    "_functorch._aot_autograd.graph_compile utils.model_dump.__main__ fx.experimental.migrate_gradual_types "
    "_prims.rng_prims _functorch.benchmark_utils distributed.nn.jit.templates _export.db"
)
FOREIGN = "typing typing_extensions collections abc enum functools contextlib dataclasses warnings builtins"


def under(name: str, homes: str) -> bool:
    return any(name == home or name.startswith(f"{home}.") for home in homes.split())


def modules() -> Iterator[str]:
    """All modules of PyTorch whose names stand in the table, without `torch.`."""
    for found in pkgutil.iter_modules(torch.__path__):
        yield from inside(found.name)


def inside(name: str) -> Iterator[str]:
    """The modules of one of PyTorch's packages, by path: nothing is imported."""
    root = Path(torch.__path__[0])
    place = root / name
    found = [name] if not place.is_dir() else []
    for file in sorted(place.rglob("*.py")) if place.is_dir() else ():
        parts = file.relative_to(root).with_suffix("").parts
        found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    for each in sorted(found):
        public = not any(part.startswith("_") for part in each.split("."))
        if (public or under(each, PRIVATE)) and not under(each, LEFT_OUT):
            yield each


def ours(name: str) -> ModuleType | None:
    """taeda's module of that name, if it is more than a part of the table."""
    try:
        made = importlib.import_module(f"taeda.{name}")
    except Exception:  # what a module lacks shows in any way
        return None
    file = PAGE.parent.joinpath(*name.split("."))  # the table as it is hides a file that is new
    written = file.with_suffix(".py").exists() or (file / "__init__.py").exists()
    return None if made.__dict__.get("__further__") and not written else made


@functools.cache
def table() -> tuple[str, ...]:
    """The modules of the table."""
    return tuple(name for name in dict.fromkeys(modules()) if ours(name) is None)


def entry(module: ModuleType, name: str, value: Any) -> str | None:
    """How a name stands in the table; None when it is no part of what the module offers."""
    home = getattr(value, "__module__", None)
    if not isinstance(home, str) or home.partition(".")[0] in FOREIGN.split() or not home.startswith("torch"):
        return None
    made = callable(value) and type(value).__module__.startswith("torch") and not name.startswith("_")
    if made and not inspect.isclass(value):  # an operator of PyTorch's
        return name
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return None
    if home != module.__name__:
        place = home.removeprefix("torch").lstrip(".")
        there = ours(place) if place else importlib.import_module("taeda")
        offered = name in getattr(module, "__all__", ()) or hasattr(module, "__path__")
        return f"{name}={place}" if offered and (hasattr(there, name) or place in table()) else None
    if not inspect.isclass(value):
        return name
    if issubclass(value, enum.Enum) and len(value):
        return f"{name}:{','.join(value.__members__)}"
    if issubclass(value, BaseException):
        base = next(kind.__name__ for kind in value.__mro__ if kind.__module__ == "builtins")
        return f"{name}!{base}"
    return name


def names(module: ModuleType) -> str:
    offered = set(getattr(module, "__all__", ()))
    found = []
    for name, value in sorted(vars(module).items()):
        if name.startswith("__"):
            continue
        if name.startswith("_") and not inspect.isclass(value):
            continue
        if offered and name not in offered and getattr(value, "__module__", "") != module.__name__:
            continue
        text = entry(module, name, value)
        if text is not None:
            found.append(text)
    return " ".join(found)


def main() -> None:
    lines = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in table():
            try:
                text = names(importlib.import_module(f"torch.{name}"))
            except Exception as error:  # needs another package
                print(f"{name}: {type(error).__name__}: {error}")
                continue
            parts = textwrap.wrap(text, 108, break_long_words=False, break_on_hyphens=False) or [""]
            head = f'    "{name}": '
            if len(head) + len(parts[0]) < 117 and len(parts) == 1:
                lines.append(f'{head}"{parts[0]}",')
            else:
                lines.append(head.rstrip())
                lines += [f'    "{part} "' for part in parts[:-1]] + [f'    "{parts[-1]}",']
    PAGE.write_text(HEAD + "\n".join(lines) + "\n}  # fmt: skip\n")


HEAD = '''"""Names of modules whose work is not there, written by tests/parity/further_names.py; see `_compiler_names`.

`name=module` is what stands there below taeda, `Name!Base` an error, `Name:A,B` an enumeration.
"""

# ruff: noqa: E501

NAMES: dict[str, str] = {
'''

if __name__ == "__main__":
    main()
