"""Tensors and operators: a fast n-dimensional array library, and the tensor slot of taeda.

The names follow PyTorch's. Operators that have no place at top level (building blocks of layers) are in ``ops``.
"""

# ruff: noqa: F401 (the imported names are the package's surface)
import os as _os
import sys as _sys

from taeda_tensor_core import _C

_C._check_interpreter()  # a sub-interpreter gets the extension that the main one has loaded
if _engine := _os.environ.get("TAEDA_RANDOM"):
    _C._set_random_engine(_engine)

# Everything public that the extension offers: dtypes, operators, creation, randomness.
globals().update({_name: _value for _name, _value in vars(_C).items() if not _name.startswith("_")})
TYPE_CHECKING = False
if TYPE_CHECKING:
    from taeda_tensor_core._C import *  # noqa: F403

from taeda_tensor_core import _lazy, _methods, _overridable  # noqa: E402
from taeda_tensor_core._build_facts import get_include, get_library_dir, get_ops_dir  # noqa: E402
from taeda_tensor_core._functions import (  # noqa: E402
    are_deterministic_algorithms_enabled,
    broadcast_shapes,
    einsum,
    histogramdd,
    is_complex,
    is_deterministic_algorithms_warn_only_enabled,
    is_floating_point,
    is_nonzero,
    is_same_size,
    is_tensor,
    meshgrid,
    native_batch_norm,
    native_group_norm,
    native_layer_norm,
    nonzero,
    numel,
    resolve_conj,
    resolve_neg,
    split_copy,
    split_with_sizes_copy,
    tensordot,
    unbind_copy,
    use_deterministic_algorithms,
)
from taeda_tensor_core._info import (  # noqa: E402
    finfo,
    iinfo,
    jagged,
    layout,
    memory_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from taeda_tensor_core._modes import enable_grad, inference_mode, no_grad, set_grad_enabled  # noqa: E402
from taeda_tensor_core._overridable import overridable  # noqa: E402
from taeda_tensor_core._printing import set_printoptions  # noqa: E402
from taeda_tensor_core._unique import unique, unique_consecutive  # noqa: E402
from taeda_tensor_core.random import get_rng_state, initial_seed, manual_seed, seed, set_rng_state  # noqa: E402
from taeda_tensor_core.streams import Event, Stream, current_stream, set_stream  # noqa: E402

ops = _C.ops


def abi_capsule(major: int = 1, minor: int = 0, distribution: str = "") -> object:
    """The C ABI's table as a capsule named "taeda.abi", for a plug-in that was built for version major.minor.

    Args:
        major: TAEDA_ABI_MAJOR that the plug-in was compiled with.
        minor: TAEDA_ABI_MINOR that the plug-in was compiled with.
        distribution: What pip installs the plug-in by; stands in the error.

    Raises:
        RuntimeError: That version is not offered; the text names both versions and the command that helps.
    """
    return _C._abi_capsule(major, minor, distribution)


def _announce(place: object) -> None:
    """`ops` and the namespaces that operators declare (`linalg`, `signal.windows`) can be imported as modules."""
    for module in list(vars(place).values()):
        if isinstance(module, type(_sys)) and _sys.modules.get(module.__name__) is not module:
            _sys.modules[module.__name__] = module
            _announce(module)


_announce(_C)
_C.__path__ = []  # there are no files below it, but modules that import hooks find
# The file that PyTorch has its masked functions in, by which its documentation calls them.
_C.masked._ops = _C.masked


_MASKED = ("MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor")


def _more_masked(name: str):
    if name == "__all__":  # what a program imports by a star
        return [item for item in dir(_C.masked) if not item.startswith("_")]
    if name in (*_MASKED, "maskedtensor"):
        from taeda_tensor_core import maskedtensor

        return maskedtensor if name == "maskedtensor" else getattr(maskedtensor, name)
    raise AttributeError(f"module {_C.masked.__name__!r} has no attribute {name!r}")


_C.masked.__getattr__ = _more_masked
# Annotations of programs name the class by its modules too, as they do with `sparse`.
_C.fft.Tensor = _C.special.Tensor = _C.Tensor
_C.masked.__dir__ = lambda: sorted({*vars(_C.masked), *_MASKED})


def _more_ops(name: str):
    if name == "load_library":
        from taeda_tensor_core._extension_names import load_library

        return load_library
    if name == "_parse_to":
        from taeda_tensor_core.private_names import parse_to

        return parse_to
    if name == "quantized":
        from taeda_tensor_core.quantized import _operators

        return vars(ops).setdefault(name, _operators.package())
    if name == "profiler":
        from taeda_tensor_core import _profiler_operators

        return _profiler_operators
    if name.startswith("__"):
        raise AttributeError(f"module {ops.__name__!r} has no attribute {name!r}")
    from taeda_tensor_core.library import _operators

    return _operators.find_package(name)


# Packages whose operators are defined by compiled plug-ins are found when they are asked for.
ops.__getattr__ = _more_ops


def _more_extension(name: str):
    if name.startswith("__"):
        raise AttributeError(f"module {_C.__name__!r} has no attribute {name!r}")
    from taeda_tensor_core import _extension_names

    return _extension_names.find(name)


_C.__getattr__ = _more_extension


def _discover(name: str) -> None:
    # Plug-ins are looked for when somebody asks for a device that is not there, not before.
    from taeda_tensor_core import _plugins

    _plugins.discover(name)


_C._set_discovery(_discover)
_overridable.install()
_methods.install()
overridable((
    *(is_complex, is_floating_point, is_nonzero, is_same_size, nonzero, numel, resolve_conj, resolve_neg),
    *(einsum, histogramdd, meshgrid, tensordot, unique, unique_consecutive),
    *(split_copy, split_with_sizes_copy, unbind_copy),
    *(native_batch_norm, native_group_norm, native_layer_norm),
))  # fmt: skip

contiguous_format = memory_format("contiguous_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
legacy_contiguous_format = contiguous_format
preserve_format = memory_format("preserve_format")

e = 2.718281828459045
pi = 3.141592653589793
inf = 1e999  # the name `float` is a dtype here
nan = -(inf - inf)
newaxis = None

__version__ = "0.1.0"
__taeda_interface__ = {"tensor": "1.0"}


def __getattr__(name: str) -> object:
    # Loaded when used: checkpoints need NumPy, tensors do not.
    return _lazy.find(name, globals())


def __dir__() -> list[str]:
    return sorted({*globals(), *_lazy.names()})
