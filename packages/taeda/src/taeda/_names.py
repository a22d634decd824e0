"""Where each top-level name of taeda comes from."""

from __future__ import annotations

import sys
from importlib import import_module

import taeda_registry
from taeda_registry.resolution import resolve
from taeda_registry.table import FIRST_PARTY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

# Top-level modules that are a slot's provider as a whole.
MODULES = {
    "nn": "nn",
    "optim": "optim",
    "autograd": "autograd",
    "multiprocessing": "multiprocessing",
    "data": "data",
    "profiler": "profiler",
    "memory": "profiler",
}

# Modules of this package: places where slots stand, and true answers to questions about what is elsewhere or not there.
OWN = frozenset({
    "_VF", "__config__", "__future__", "_custom_ops", "_decomp", "_dynamo", "_functorch", "_guards",
    "_higher_order_ops",
    "_inductor", "_absent", "_children", "_compiler_names", "_distributed_names", "_further_names", "_home_names",
    "_homes",
    "_inner_names",
    "_jit_internal", "_logging", "_ops", "_prims", "_prims_common", "_refs",
    "_subclasses", "_testing",
    "_tensor", "_utils", "_vmap_internals", "ao", "classes", "compiler",
    "distributed", "export", "func", "functional", "futures", "fx",
    "hub", "jit", "mtia", "onnx", "package", "quantization", "torch_version", "types", "utils", "version",
})  # fmt: skip
# Packages outside the slots.
PACKAGES = frozenset({"distributions", "models"})
# Top-level names that modules of this package have.
OWN_NAMES = {
    "__version__": "version", "_assert": "_checks", "_check": "_checks", "_check_index": "_checks",
    "_check_is_size": "_checks",
    "_check_not_implemented": "_checks", "_check_type": "_checks", "_check_value": "_checks",
    "_check_tensor_all": "_checks", "_check_tensor_all_with": "_checks", "_check_with": "_checks",
    "_sample_dirichlet": "_samples", "_standard_gamma": "_samples",
    "compile": "compiler", "_disable_dynamo": "_compile",
    "Tag": "_ops",
    "fork": "jit", "wait": "jit", "Future": "futures",
    "CompilationUnit": "jit", "ScriptFunction": "jit", "ScriptModule": "jit",
    "set_vital": "_checks", "typename": "_checks", "vmap": "func",
    **dict.fromkeys((
        "AnyType", "BoolType", "ClassType", "ComplexType", "DeviceObjType", "DictType", "EnumType", "FloatType",
        "IntType", "InterfaceType", "ListType", "NoneType", "NumberType", "OptionalType", "StringType", "TensorType",
        "TupleType", "UnionType",
    ), "jit"),
}  # fmt: skip

# Kinds of a compiler's objects, which programs name in annotations.
RECORDED = (
    "Argument", "Block", "BufferDict", "Code", "FunctionSchema", "Graph", "LiteScriptModule", "ModuleDict", "Node",
    "ParameterDict", "ScriptDict", "ScriptList", "Type", "Use", "Value",
)  # fmt: skip
# Modules of Python that programs reach through the package, since its source imports them in PyTorch.
OF_PYTHON = frozenset({
    "builtins", "ctypes", "functools", "glob", "importlib", "inspect", "math", "os", "platform", "sys", "textwrap",
    "threading", "warnings",
})  # fmt: skip
# Old questions after parts of the build, which `backends` answers.
BUILT = frozenset({"has_cuda", "has_cudnn", "has_mkldnn", "has_mps"})
# Modules of names alone.
ALONE = frozenset({
    "_awaits", "_classes", "_compile", "_custom_op", "_dispatch", "_export", "_library", "_linalg_utils", "_lobpcg",
    "_sources", "_utils_internal",
})  # fmt: skip
# Packages of operators that `distributed` defines.
COLLECTIVES = ("c10d", "c10d_functional", "_c10d_functional", "_c10d_functional_autograd", "_dtensor")
# Slots whose names appear at top level, the first that has the name wins; later ones load only when reached.
NAMESPACES = ("tensor", "autograd", "nn")
# The only names that a slot further down contributes; everything else there stays in its own module.
CONTRIBUTED = {"autograd": None, "nn": frozenset({"save", "load"})}


def lookup(name: str) -> object:
    """Return the value of a top-level name.

    Raises:
        AttributeError: No slot offers it.
    """
    if name in MODULES or name in OWN or name in ALONE:
        return import_module(f"taeda.{name}")
    if name in PACKAGES:
        return _package(name)
    if name in OF_PYTHON:
        return import_module(name)
    if name in OWN_NAMES:
        return getattr(import_module(f"taeda.{OWN_NAMES[name]}"), name)
    if name in BUILT:
        return _was_built(name)
    if name == "torch":  # programs write torch.torch
        import taeda

        return taeda
    if name == "__all__":
        return starred()
    if name.startswith("__"):
        raise AttributeError(f"module 'taeda' has no attribute {name!r}")
    tensor = _tensor()
    if name == "_C" and hasattr(tensor, "_C"):
        return _extension(tensor)
    if name == "ops":
        _give_homes(tensor)
    for slot in NAMESPACES:
        allowed = CONTRIBUTED.get(slot)
        if allowed is not None and name not in allowed:
            continue
        module = tensor if slot == "tensor" else _optional(slot)
        if hasattr(module, name):
            return getattr(module, name)
    submodule = _submodule(tensor, name)
    if submodule is not None:
        return submodule
    device = device_module(tensor, name)
    if device is not None:
        return device
    if name in RECORDED:
        return getattr(_extension(tensor), name)
    raise AttributeError(
        f"module 'taeda' has no attribute {name!r}: the provider of slot 'tensor' ({tensor.__name__}) does not offer it"
    )


# Whether texts call the library torch, and whether the first-party tensors are among them.
told_name = (False, False)
#: What tells classes and functions their homes, while the library is called torch.
homes: ModuleType | None = None


def called_now() -> tuple[bool, bool]:
    """Whether the library stands under torch's name, and whether the first-party tensors are there, all of them."""
    modules = sys.modules
    return modules.get("torch") is modules["taeda"], hasattr(
        modules.get("taeda_tensor_core"), "__taeda_interface__"
    )


def follow_name() -> None:
    """Let texts call the library torch while it stands under that name: its module, dtypes, sizes, homes of classes.

    Programs read them: the class of a tensor says which library it belongs to, the text of a dtype is a name.
    """
    global told_name
    before, told_name = told_name, called_now()
    if before == told_name:
        return
    called, ready = told_name
    sys.modules["taeda"].__name__ = "torch" if called else "taeda"
    if ready:
        sys.modules["taeda_tensor_core"]._C._set_public_name("torch" if called else "taeda")
    if before[0] != called:
        _tell_homes(called)


def _tell_homes(called: bool) -> None:
    global homes
    if not called:
        told, homes = homes, None
        if told is not None:
            told.hide()
        return
    found = import_module("taeda._homes")
    found.show()
    homes = found


def _was_built(name: str) -> bool:
    import warnings

    part = getattr(lookup("backends"), name.removeprefix("has_"))
    question = "is_built" if hasattr(part, "is_built") else "is_available"
    instead = f"backends.{name.removeprefix('has_')}.{question}()"
    warnings.warn(f"{name!r} is deprecated, please use {instead!r}", UserWarning, stacklevel=3)
    return bool(getattr(part, question)())


def _extension(tensor: ModuleType) -> ModuleType:
    """The compiled part, which programs ask for more than it has itself."""
    from taeda import _absent

    functorch = import_module("taeda._functorch.extension")
    found = tensor._C
    found._functorch = functorch
    for kind in (*RECORDED, "ScriptMethod", "ScriptObject"):
        setattr(
            found, kind, _absent.cls(f"taeda._C.{kind}", "programs are recorded, not compiled; see taeda.jit")
        )
    jit = import_module("taeda.jit")
    for kind in ("CompilationUnit", "ListType", "ScriptFunction", "ScriptModule", "TensorType"):
        if hasattr(jit, kind):
            setattr(found, kind, getattr(jit, kind))
    found._cuda_isCurrentStreamCapturing, found._has_cuda = lambda: False, False
    found.Future = import_module("taeda.futures").Future
    for kind in ("Event", "Stream", "default_generator"):
        if not hasattr(found, kind) and hasattr(tensor, kind):
            setattr(found, kind, getattr(tensor, kind))
    found.PyTorchFileReader, found.PyTorchFileWriter = tensor.PyTorchFileReader, tensor.PyTorchFileWriter
    found.Tag = import_module("taeda._ops").Tag
    found._are_functorch_transforms_active = functorch._are_functorch_transforms_active
    return found


def _package(name: str) -> ModuleType:
    try:
        return import_module(f"taeda.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"taeda_{name}":
            raise
        raise AttributeError(f"module 'taeda' has no attribute {name!r}: {error}") from error


def device_module(tensor: ModuleType, name: str) -> ModuleType | None:
    """The tensor slot's module of a kind of device; None for names of no device."""
    if name.startswith("_") or not hasattr(tensor, "get_device_module"):
        return None
    try:
        return tensor.get_device_module(name)
    except RuntimeError:
        return None


def listing() -> list[str]:
    """All top-level names that are known without loading more than the tensor slot."""
    offered = (name for name in dir(_tensor()) if not name.startswith("_"))
    own = (item for item in (*OWN, *OWN_NAMES) if not item.startswith("_"))
    packages = (name for name in PACKAGES if _is_installed(f"taeda_{name}"))
    return sorted({*offered, *MODULES, *packages, *own, "save", "load", "__version__"})


def starred() -> list[str]:
    """What ``from taeda import *`` binds: no module and no built-in name, which would hide the program's own.

    A function may well have the name of a built-in function, as ``sum`` and ``max``; `slice` is one of tensors alone.
    """
    tensor = _tensor()
    modules = {*MODULES, *OWN, *PACKAGES, "slice"}
    return [
        name
        for name in listing()
        if not name.startswith("_") and name not in modules and not _is_module(tensor, name)
    ]


def _is_module(tensor: ModuleType, name: str) -> bool:
    if name in vars(tensor):
        return isinstance(vars(tensor)[name], type(sys))
    if name in OWN_NAMES or name in CONTRIBUTED["nn"]:
        return False
    return _has_submodule(tensor, name) or isinstance(getattr(tensor, name, None), type(sys))


def _is_installed(package: str) -> bool:
    from importlib.util import find_spec

    return find_spec(package) is not None


def _tensor() -> ModuleType:
    """Load the tensor slot, and let autograd install its layer before the first tensor exists."""
    present = taeda_registry.active("tensor")
    if present is not None and taeda_registry.active("autograd") is not None:
        return present.module
    tensor = resolve("tensor")
    _show_dtypes(tensor)
    follow_name()
    if _autograd_belongs():
        _optional("autograd")
    return tensor


def _give_homes(tensor: ModuleType) -> None:
    """Tell first-party tensors where operators are defined that this package has."""
    if tensor.__name__ == "taeda_tensor_core":
        from taeda.library import _operators

        for package in COLLECTIVES:
            _operators.homes.setdefault(package, "taeda.distributed._operators")


def _show_dtypes(tensor: ModuleType) -> None:
    """Programs look for dtypes among the variables of the module."""
    kind = getattr(tensor, "dtype", None)
    if isinstance(kind, type):
        found = {name: value for name, value in dict(vars(tensor)).items() if isinstance(value, kind)}
        vars(sys.modules["taeda"]).update(found, dtype=kind)


def _autograd_belongs() -> bool:
    """The first-party autograd serves the first-party tensors; for others it must have been chosen."""
    from taeda_registry.selection import choose

    tensor = taeda_registry.active("tensor")
    return choose("autograd").origin != "default" or (tensor is not None and tensor.name == FIRST_PARTY)


_complained: set[str] = set()


def _optional(slot: str) -> ModuleType | None:
    """Load a slot that the tensor slot can do without; a failure is shown once as a warning."""
    try:
        return resolve(slot)
    except taeda_registry.RegistryError as error:
        from taeda_registry.selection import choose

        # Nobody misses a part that is not installed; one that somebody chose is another matter.
        absent = isinstance(error, taeda_registry.ProviderNotFoundError) and choose(slot).origin == "default"
        if not absent and slot not in _complained:
            import warnings

            _complained.add(slot)
            warnings.warn(str(error), RuntimeWarning, stacklevel=4)
        return None


def _submodule(module: ModuleType, name: str) -> ModuleType | None:
    return import_module(f"{module.__name__}.{name}") if _has_submodule(module, name) else None


def _has_submodule(module: ModuleType, name: str) -> bool:
    from importlib.util import find_spec

    from taeda_registry.submodules import is_package

    # Names with dots are asked for by programs that guess; of such ones Python would import the parent.
    return is_package(module) and name.isidentifier() and find_spec(f"{module.__name__}.{name}") is not None
