"""Import hook: ``taeda.nn.functional`` is the very module object of the slot's provider.

A second name for the whole is honoured too: after ``sys.modules["torch"] = taeda`` the import of ``torch.nn`` gives
the module ``taeda.nn``, never a copy of it.
"""

from __future__ import annotations

import sys
from importlib import import_module

from taeda import _names, _reachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType
    from typing import Any

# Import path under taeda, and the slot whose provider stands there.
SLOTS = {
    "taeda.nn": "nn",
    "taeda.optim": "optim",
    "taeda.autograd": "autograd",
    "taeda.utils.data": "data",
    "taeda.data": "data",
    "taeda.multiprocessing": "multiprocessing",
    "taeda.profiler": "profiler",
}
# Import path under taeda, the slot that has the module that stands there, and its name in it.
PARTS = {
    "taeda.memory": ("profiler", "memory"),
    "taeda.utils._python_dispatch": ("tensor", "python_dispatch"),
    "taeda.autograd.profiler": ("profiler", "autograd_profiler"),
    "taeda.autograd.profiler_util": ("profiler", "autograd_profiler"),
    "taeda.cuda.comm": ("nn", "parallel.comm"),
    "taeda.utils.benchmark": ("profiler", "benchmark"),
    "taeda.utils.bottleneck": ("profiler", "bottleneck"),
    "taeda.utils.checkpoint": ("autograd", "checkpoint"),
    "taeda.utils.flop_counter": ("profiler", "flop_counter"),
}
# Import path under taeda, and the module of this package that stands there too.
STANDS = {
    "taeda._C._functorch": "taeda._functorch.extension",
    "taeda._functorch.compilers": "taeda._functorch.aot_autograd",
    "taeda._functorch.deprecated": "taeda._functorch.package",
    "taeda._functorch.partitioners": "taeda._functorch.aot_autograd",
    "taeda._functorch.vmap": "taeda.func._vmap",
    "taeda._C._distributed_c10d": "taeda.distributed.distributed_c10d",
    "taeda._C._distributed_rpc": "taeda.distributed.rpc",
    "taeda._C._profiler": "taeda.profiler",
    "taeda._refs.fft": "taeda.fft",
    "taeda._refs.linalg": "taeda.linalg",
    "taeda._refs.nn": "taeda.nn",
    "taeda._refs.nn.functional": "taeda.nn.functional",
    "taeda._refs.special": "taeda.special",
    "taeda.distributed._composable.fsdp": "taeda.distributed.fsdp",
    "taeda.distributed._composable.fsdp.fully_shard": "taeda.distributed.fsdp._fully_shard",
    "taeda.distributed.checkpoint._traverse": "taeda.distributed.checkpoint._nested_dict",
    "taeda.distributed._shard._utils": "taeda.distributed.tensor._utils",
    "taeda.distributed._tensor": "taeda.distributed.tensor",
    "taeda.testing._internal.common_cuda": "taeda._testing.common_cuda",
    "taeda.testing._internal.common_device_type": "taeda._testing.common_device_type",
    "taeda.testing._internal.common_utils": "taeda._testing.common_utils",
    "taeda.testing._internal.distributed": "taeda._testing.distributed",
    "taeda.testing._internal.distributed.fake_pg": "taeda.distributed._fake_group",
    "taeda.distributed._tensor._utils": "taeda.distributed.tensor._utils",
    "taeda.distributed._tensor.api": "taeda.distributed.tensor._api",
    "taeda.distributed._tensor.device_mesh": "taeda.distributed.device_mesh",
    "taeda.distributed._tensor.experimental": "taeda.distributed.tensor.experimental",
    "taeda.distributed._tensor.placement_types": "taeda.distributed.tensor.placement_types",
    "taeda.distributed.fsdp._flat_param": "taeda.distributed.fsdp.fully_sharded_data_parallel",
    "taeda.distributed.fsdp._wrap_utils": "taeda.distributed.fsdp.wrap",
    "taeda.distributed.fsdp.flat_param": "taeda.distributed.fsdp.fully_sharded_data_parallel",
    "taeda.distributed.tensor.device_mesh": "taeda.distributed.device_mesh",
    "taeda.utils._cxx_pytree": "taeda.utils._pytree",
    "taeda.nn.utils._per_sample_grad": "taeda.func._per_sample",
    "taeda.nn.intrinsic": "taeda.ao.nn.intrinsic",
    "taeda.nn.intrinsic.qat": "taeda.ao.nn.intrinsic.qat",
    "taeda.nn.intrinsic.quantized": "taeda.ao.nn.intrinsic.quantized",
    "taeda.nn.qat": "taeda.ao.nn.qat",
    "taeda.nn.quantizable": "taeda.ao.nn.quantizable",
    "taeda.nn.quantized": "taeda.ao.nn.quantized",
    "taeda.nn.quantized.dynamic": "taeda.ao.nn.quantized.dynamic",
    "taeda.nn.quantized.functional": "taeda.ao.nn.quantized.functional",
    **dict.fromkeys(
        (
            f"taeda._functorch.{name}"
            for name in ("apis", "batch_norm_replacement", "eager_transforms", "functional_call")
        ),
        "taeda.func",
    ),
}
# Packages that PyTorch brings along, which programs import beside it, and the module that stands for each.
BESIDE = {
    "functorch": "taeda._functorch.package",
    "functorch.compile": "taeda._functorch.aot_autograd",
    "functorch.experimental": "taeda._functorch.package",
    "functorch.experimental.control_flow": "taeda._higher_order_ops",
}
# Import path under taeda, and the package outside the slots that stands there.
PACKAGES = {f"taeda.{name}": f"taeda_{name}" for name in _names.PACKAGES}
# Module under taeda, and the functions of it that have the name of a module below it. An import of that module puts it
# in the function's place, if nobody prevents it.
FUNCTIONS = {
    "taeda.ao.quantization": ("fuse_modules", "quantize"),
    "taeda.distributed": ("rendezvous",),
    "taeda.distributed._composable": ("contract", "replicate"),
    "taeda.export": ("unflatten",),
    "taeda.multiprocessing": ("spawn",),
    "taeda.package.analyze": ("find_first_use_of_broken_modules", "trace_dependencies"),
    "taeda.quantization": ("fuse_modules", "quantize"),
}
# Files of this package that programs do not import.
FILES = frozenset(
    {
        "_absent",
        "_aliases",
        "_checks",
        "_compiler_names",
        "_further_names",
        "_distributed_names",
        "_children",
        "_home_names",
        "_homes",
        "_inner_names",
        "_names",
        "_reachable",
        "_samples",
    }
)


class _Alias:
    """Loader that hands out a module which exists under another name."""

    def __init__(self, name: str, module: ModuleType) -> None:
        self._name = name
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just overwritten it; reload and pickling need the module's own.
        module.__spec__ = self._spec
        complete(self._name, module)

    def get_code(self, _: str) -> CodeType | None:
        """The code of the module, which `python -m` runs under this name."""
        if self._spec is None or not hasattr(self._spec.loader, "get_code"):
            return None
        return self._spec.loader.get_code(self._spec.name)


def complete(name: str, module: ModuleType) -> None:
    """Enter what is to be found below a module that stands under a name."""
    from taeda_registry.submodules import is_package

    _keep_hidden(name, module)
    if not is_package(module):
        if name in SLOTS:
            _announce(name, module)
        _announce_inner(name)


def _keep_hidden(name: str, module: ModuleType) -> None:
    """Enter the submodules that something else of the package hides, as the function `gradcheck` hides its module.

    An import of one under this name would be the first, and would put the module in the function's place.
    """
    start = f"{module.__name__}."
    for full, found in sys.modules.copy().items():
        child = full.removeprefix(start)
        if full.startswith(start) and "." not in child and vars(module).get(child, found) is not found:
            sys.modules.setdefault(f"{name}.{child}", found)
    home = f"taeda.{name.partition('.')[2]}"
    for full in (*PARTS, *STANDS):
        parent, _, child = full.rpartition(".")
        if parent == home and callable(vars(module).get(child)):
            found = module_for(full)
            if found is not None:
                sys.modules.setdefault(f"{name}.{child}", found)


def _keep_function(parent: str, child: str) -> None:
    """Lets no module take the place of a function of its name: the module is to be imported, not to be an attribute."""
    if child not in FUNCTIONS.get(f"taeda.{parent.partition('.')[2]}", ()):
        return
    module = sys.modules[parent]
    if getattr(type(module), "_functions", None):
        return
    from types import ModuleType

    class Keeping(type(module)):  # type: ignore[misc]
        _functions = FUNCTIONS[f"taeda.{parent.partition('.')[2]}"]

        def __setattr__(self, name: str, value: object) -> None:
            if name not in self._functions or not isinstance(value, ModuleType):
                super().__setattr__(name, value)

        def __reduce__(self) -> Any:  # what pickles functions (cloudpickle) knows the class of modules alone
            return import_module, (self.__name__,)

    module.__class__ = Keeping


def _announce(name: str, module: ModuleType) -> None:
    """Enter the submodules of a provider that is no package: below such a module Python asks no import hook."""
    from taeda_registry.interface import interface
    from taeda_registry.submodules import submodule

    for child in interface(SLOTS[name]).submodules:
        found = submodule(module, child)
        if found is not None:
            sys.modules.setdefault(f"{name}.{child}", found)


def _announce_inner(name: str) -> None:
    """Enter the modules inside of PyTorch's package of this name, where it is none here."""
    from taeda import _inner_names

    home = f"taeda.{name.partition('.')[2]}"
    for inner in _inner_names.inside(home):
        made = _inner_names.make(f"{home}.{inner}")
        sys.modules.setdefault(f"{name}.{inner}", made)


#: Modules beside the slots of which only the names are there.
ALONE = frozenset({
    "taeda._awaits", "taeda._classes", "taeda._compile", "taeda._custom_op", "taeda._dispatch", "taeda._export",
    "taeda._lazy", "taeda._library",
    "taeda._linalg_utils", "taeda._lobpcg", "taeda._python_dispatcher", "taeda._sources", "taeda._streambase",
    "taeda._utils_internal", "taeda.nativert", "taeda.numa",
})  # fmt: skip


class _Finder:
    """Answers imports below ``taeda.``, and below any other name that `sys.modules` gives to taeda."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if "taeda" not in sys.modules:  # somebody took it out; all other imports go on
            return None
        if _names.told_name != _names.called_now():
            _beside_the_import_lock(_names.follow_name)
        homes = _names.homes
        head, _, rest = name.partition(".")
        if rest and sys.modules.get(head) is sys.modules["taeda"]:
            found = _beside_the_import_lock(_spec_below, name, path)
        elif name in BESIDE and homes is not None:
            return _beside_the_import_lock(_alias, name, BESIDE[name])
        else:
            found = None
        if found is not None and isinstance(found.loader, _Alias):
            # What was entered meanwhile would be loaded by its own spec, once more.
            sys.modules.pop(name, None)
            return found
        if homes is None:
            return found
        return homes.spec(name, path, target, found, _Finder)


def _beside_the_import_lock(answer: Callable[..., Any], *given: Any) -> Any:
    """Computes an answer that may import, without the lock that Python holds for all threads while it asks a finder.

    What is imported waits for modules that other threads are importing, and these threads wait for the lock. Modules
    have locks of their own, which find out about rings.
    """
    import _imp

    levels = 0
    try:
        while True:
            _imp.release_lock()
            levels += 1
    except RuntimeError:  # not held, or no longer
        pass
    try:
        return answer(*given)
    finally:
        for _ in range(levels):
            _imp.acquire_lock()


def _spec_below(name: str, path: object) -> ModuleSpec | None:
    """What an import of a module below taeda gives, or below another name for it."""
    head, _, rest = name.partition(".")
    _keep_function(*name.rpartition(".")[::2])
    if head != "taeda":
        return _alias(name, f"taeda.{rest}")
    return _reachable.own_spec(name, path) if _is_own(name) else _alias_of(name, module_for(name))


def _alias(name: str, original: str) -> ModuleSpec | None:
    return _alias_of(name, _imported(original))


def _alias_of(name: str, module: ModuleType | None) -> ModuleSpec | None:
    """The module under another name."""
    if module is None:
        return None
    from importlib.machinery import ModuleSpec

    from taeda_registry.submodules import is_package

    _reachable.reach(module, name.partition(".")[2])
    return ModuleSpec(name, _Alias(name, module), is_package=is_package(module))


def _is_own(name: str) -> bool:
    """Whether the module is a file of this package."""
    if (
        name in SLOTS
        or name in PARTS
        or name in STANDS
        or _is_inner(name)
        or any(name.startswith(f"{slot}.") for slot in SLOTS)
    ):
        return False
    first, _, rest = name.partition(".")[2].partition(".")
    if first == "distributed" and rest and _part_of_distributed(rest) is not None:
        return False
    return first in _names.OWN or first in FILES


def _is_inner(name: str) -> bool:
    """Whether the names of the module stand in a package of ours."""
    if name.count(".") < 2 and name not in ALONE:
        return False
    from taeda import _inner_names

    return _inner_names.has(name)


def _part_of_distributed(rest: str) -> Callable[[str], ModuleType] | None:
    """What makes a module below taeda.distributed that has no file of its own."""
    from taeda import _distributed_names

    return _distributed_names.make if _distributed_names.has(rest) else None


def _imported(name: str) -> ModuleType | None:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            return None
        raise


def module_for(name: str) -> ModuleType | None:
    """What stands at a path below taeda that is no file of this package; None where nothing does."""
    from taeda_registry.resolution import resolve

    if name in STANDS:
        return _imported(STANDS[name])
    if name.startswith("taeda.distributed."):
        make = _part_of_distributed(name[len("taeda.distributed.") :])
        if make is not None:
            return make(name[len("taeda.distributed.") :])
    if _is_inner(name):
        from taeda import _inner_names

        return _inner_names.make(name)
    if name in PARTS:
        slot, part = PARTS[name]
        return _below(resolve(slot), part)
    for prefix, package in PACKAGES.items():
        if name == prefix or name.startswith(prefix + "."):
            return _package(package + name[len(prefix) :])
    for prefix, slot in SLOTS.items():
        if name == prefix:
            return resolve(slot)
        if name.startswith(prefix + "."):
            return _below(resolve(slot), name[len(prefix) + 1 :])
    tensor, rest = resolve("tensor"), name[len("taeda.") :]
    if rest == "_C" and hasattr(tensor, "_C"):
        return _names.lookup(rest)
    found = _below(tensor, rest)
    return _below_device(tensor, rest) if found is None else found


def _package(name: str) -> ModuleType | None:
    from importlib.util import find_spec

    if find_spec(name.partition(".")[0]) is None:
        raise ModuleNotFoundError(
            f"{name} is not installed; try: pip install {name.partition('.')[0].replace('_', '-')}", name=name
        )
    return import_module(name)


def _below_device(tensor: ModuleType, dotted: str) -> ModuleType | None:
    """A kind of device, or a module that it has."""
    from types import ModuleType

    kind, *parts = dotted.split(".")
    module: object = _names.device_module(tensor, kind)
    for part in parts:
        module = getattr(module, part, None)
    return module if isinstance(module, ModuleType) else None


def _below(module: ModuleType | None, dotted: str) -> ModuleType | None:
    from taeda_registry.submodules import submodule

    for part in dotted.split("."):
        if module is None or _is_inner(
            module.__name__
        ):  # below names there are no files; to look is to come back here
            return None
        module = submodule(module, part)
    return module


def install() -> None:
    """Put the hook before the path search, which would load a second copy of the provider's submodules."""
    if not any(finder is _Finder for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder)
