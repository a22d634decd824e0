"""Checkpoints: safetensors and PyTorch's files, loaded entirely or not at all, without running code of theirs.

Objects go to PyTorch's zip format. Files named ``.safetensors`` hold tensors and containers as safetensors
(https://github.com/huggingface/safetensors): eight bytes of header length, a JSON header that maps names to dtype,
shape and byte range, then the bytes. A flat dict of tensors is stored as exactly that, so that other readers understand
it; nesting, numbers, strings and views of shared memory are described in the header's ``__metadata__``.
"""

from __future__ import annotations

import os
import pickle as pickle  # programs name it for `pickle_module`
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from taeda_registry import files
from taeda_registry.files import is_path as is_path
from taeda_tensor_core import _C
from taeda_tensor_core.checkpoint import read_any, read_torch, shards, write_torch
from taeda_tensor_core.checkpoint.common import CheckpointError as CheckpointError
from taeda_tensor_core.checkpoint.common import skipped
from taeda_tensor_core.checkpoint.other_pickles import pickler_of
from taeda_tensor_core.checkpoint.read_safetensors import decode
from taeda_tensor_core.checkpoint.source import Source
from taeda_tensor_core.checkpoint.torch_names import placer
from taeda_tensor_core.checkpoint.write_safetensors import encode

#: The protocol of pickles, which PyTorch loads with ``weights_only=True``.
DEFAULT_PROTOCOL = 2
#: What `map_location` may be.
MAP_LOCATION = Callable[[Any, str], Any] | _C.device | str | dict[str, str] | None

_OWN = (
    "CheckpointError",
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "load",
    "safe_globals",
    "save",
    "save_sharded",
)

FORMATS = (None, "safetensors", "torch")


def save(
    obj: Any,
    f: str | os.PathLike[str] | IO[bytes],
    pickle_module: Any = None,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
    *,
    format: str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Stores an object: tensors and containers of them as data, anything else that can be pickled as a whole.

    In safetensors a view costs only its visible elements, and tensors of one dtype that have elements in common share
    memory again after loading; in PyTorch's format the whole storage is kept with strides and sharing.

    A regular file is replaced as a whole: the new one is written beside it under another name, flushed to the
    disk and renamed, so that an interrupted or failed save leaves the old file; mode and (where allowed) owner are
    kept, other hard links keep the old content. A symbolic link stays and what it points to is written. Pipes, devices
    and file objects are written through; a failure there leaves what was written.

    Args:
        obj: a state dict, any nesting of dicts, lists and tuples, a module, an optimizer ...
        f: path or binary file.
        pickle_module: whose `Pickler` writes functions, classes and objects in PyTorch's format that the standard one
            cannot (dill, cloudpickle); `load` needs the module installed and ``weights_only=False``.
        pickle_protocol: of the pickle in PyTorch's format; PyTorch loads 2 with ``weights_only=True``.
        _use_new_zipfile_serialization: False asks for PyTorch's older form, one pickle after another and the storages
            behind them.
        _disable_byteorder_record: accepted as in PyTorch and not used.
        format: ``torch`` or ``safetensors``; by default the second where the path is named ``.safetensors``. That one
            holds dicts (str or int keys), lists and tuples of tensors, numbers, strings and None; parameters, tensors
            that require grad and containers of other classes come back as what they were from the first alone.
        metadata: texts by name, which a file of safetensors tells beside its tensors; needs ``format="safetensors"``.

    Raises:
        TypeError: something inside ``obj`` that the format cannot hold, a text file, or a `pickle_module` without a
            pickler; nothing was written.
        ValueError: an unknown format, or containers nested deeper than 200 in safetensors; metadata or PyTorch's older
            form for another format.
        OSError: the file could not be written completely.

    Example:
        >>> save(model.state_dict(), "model.safetensors")
        >>> save({"model": model, "optimizer": optimizer}, "whole.pt")
    """
    if format not in FORMATS:
        raise ValueError(f"save: argument 'format' must be 'safetensors' or 'torch', found {format!r}")
    if metadata is not None and format != "safetensors":
        raise ValueError(f"save: argument 'metadata' needs format='safetensors', found {format!r}")
    if not _use_new_zipfile_serialization and format == "safetensors":
        raise ValueError(
            "save: format='safetensors' has no older form, _use_new_zipfile_serialization must be True"
        )
    name = os.fsdecode(f) if is_path(f) else ""  # type: ignore[arg-type]
    named = format is None and _use_new_zipfile_serialization and name.endswith(".safetensors")
    if named or format == "safetensors":
        if skipped.data:
            raise RuntimeError(
                "save: skip_data leaves out numbers of PyTorch's archives alone, found safetensors"
            )
        head, chunks = encode(obj, metadata=metadata)
        files.write(f, [head, *chunks])
        return
    kind = pickler_of(pickle_module)
    if _use_new_zipfile_serialization:
        files.write(f, write_torch.encode(obj, pickle_protocol, kind, write_torch.archive_name(f)))
    else:
        files.write(f, write_torch.encode_older(obj, pickle_protocol, kind))


def save_sharded(
    state: Mapping[str, Any], f: str | os.PathLike[str], max_shard_size: int = 5 * 10**9
) -> None:
    """Stores tensors by name in several safetensors files with an index, as Hugging Face's libraries lay them out.

    Args:
        state: tensors by name; those that share memory stay in one file.
        f: path of the index, ``model.safetensors.index.json``; the files lie beside it.
        max_shard_size: bytes of tensors in a file; a larger tensor has a file of its own.

    Raises:
        TypeError: something other than tensors by name.
        OSError: a file could not be written completely; an old index is unchanged.

    Example:
        >>> save_sharded(model.state_dict(), "model.safetensors.index.json", 10**9)
        >>> model.load_state_dict(load("model.safetensors.index.json"))
    """
    shards.write(state, os.fsdecode(f), max_shard_size)


def load(
    f: str | os.PathLike[str] | IO[bytes],
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    encoding: str | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Reads what `save` wrote, any safetensors file (as a dict of tensors), or a file of PyTorch's.

    No code of the file is run, unless ``weights_only=False`` asks for it. Everything is checked first: on an error
    nothing was loaded. A file may make objects in proportion to its size (four times, and 64 MiB in any case), nested
    200 deep.

    Args:
        f: path or binary file, read from its position to its end; or the path of an index (``.index.json``) of several
            safetensors files.
        map_location: device to put the tensors on; a dict from saved to wanted locations; or a function of the bytes
            of a storage (a uint8 tensor) and its location, which returns them on another device, or None. By default
            tensors go where they were.
        pickle_module: not used itself, as such files name the functions that read them; but to name one is to ask for
            whole objects, as in PyTorch.
        weights_only: False unpickles whole objects of PyTorch's format, which can run any code that the file's author
            wanted; only for files that you trust. By default False with a `pickle_module`, or where the environment
            sets TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD to 1, else True; always True with TORCH_FORCE_WEIGHTS_ONLY_LOAD.
        mmap: tensors share memory with the file, whose bytes are read when they are used; writes stay private.
        encoding: of text that Python 2 has pickled; "bytes" leaves it bytes. By default UTF-8 with
            ``weights_only=False``, else Latin-1.
        pickle_load_args: `errors` and `fix_imports` are accepted as well, and not used.

    Raises:
        TypeError: another argument.
        RuntimeError: ``weights_only=True`` with a `pickle_module`, or both variables are set.
        CheckpointError: the file is malformed, asks for too much, or holds something other than tensors, containers,
            numbers, strings and what `add_safe_globals` declared; the text says where.

    Example:
        >>> model.load_state_dict(load("model.safetensors"))
    """
    if unknown := pickle_load_args.keys() - {"errors", "fix_imports"}:
        raise TypeError(f"load: unexpected keyword argument {min(unknown)!r}")
    place, whole = placer(map_location), not _is_restricted(weights_only, pickle_module)
    if hasattr(f, "read") and not is_path(f):
        if mmap:
            raise ValueError("load: argument 'mmap' needs a path for argument 'f', found a file object")
        source = Source(f)  # type: ignore[arg-type]
        loaded = _read(source, place, whole, encoding)
        source.finish()
        return loaded
    return _from_path(os.fsdecode(f), place, whole, bool(mmap), encoding)  # type: ignore[arg-type]


def _is_restricted(weights_only: bool | None, pickle_module: Any) -> bool:
    """Whether no code of the file may run."""
    names = "TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
    always, never = (os.environ.get(name, "").lower() in ("1", "y", "yes", "true") for name in names)
    if always and never:
        raise RuntimeError(f"load: the environment sets both {' and '.join(names)}; unset one")
    if weights_only is None:
        if never:
            warnings.warn(f"load: {names[1]} lets files run code, as weights_only is not given", stacklevel=3)
        weights_only = pickle_module is None and not never
    weights_only = always or bool(weights_only)
    if weights_only and pickle_module is not None:
        raise RuntimeError("load: argument 'pickle_module' must be None with weights_only=True")
    return weights_only


def _maps_are_shared() -> bool:
    import mmap

    from taeda_tensor_core.checkpoint import options

    return options.get_default_mmap_options() == mmap.MAP_SHARED


def _from_path(
    path: str, place: Callable[[Any, str], Any], whole: bool, mapped: bool, encoding: str | None = None
) -> Any:
    if path.endswith(shards.SUFFIX):
        return shards.read(path, lambda shard: _from_path(shard, place, False, mapped))
    shared = mapped and _maps_are_shared()
    with open(path, "r+b" if shared else "rb") as file:
        try:
            return _read(Source(file, mapped, shared), place, whole, encoding)
        except Exception as error:  # also those of classes that read their own state
            error.add_note(f"load: this was found in {path!r}")
            raise


def _read(source: Source, place: Callable[[Any, str], Any], whole: bool, encoding: str | None) -> Any:
    start = source.part(0, min(8, source.size))
    how = read_any if whole else read_torch
    text = () if encoding is None else (encoding,)
    with read_torch.callers_errors():
        if start[:4] == b"PK\x03\x04":
            return how.read_zip(source, place, *text)
        if start[:1] == b"\x80" and int.from_bytes(start, "little") > source.size:
            return how.read_legacy(source, place, *text)
        with read_torch.named_errors():
            return decode(source, lambda tensor: place(tensor, "cpu"))


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Lets `load` make objects of these classes and call these functions where a file refers to them.

    Args:
        safe_globals: classes and functions, or pairs of one and the name ``module.name`` that files know it by; other
            objects allow nothing.

    Example:
        >>> add_safe_globals([Vocabulary])
    """
    new = dict(map(_named, safe_globals))
    read_torch.safe.update(new)


def _named(item: Any) -> tuple[str, Any]:
    if isinstance(item, tuple):
        if len(item) != 2 or not isinstance(item[1], str):
            raise TypeError(f"add_safe_globals: expected (class or function, name), found {item!r}")
        return item[1], item[0]
    if not hasattr(
        item, "__qualname__"
    ):  # an object, which no file refers to: it stands under no name with a dot
        return f"object {id(item)}", item
    return f"{item.__module__}.{item.__qualname__}", item


def get_safe_globals() -> list[Any]:
    """What `add_safe_globals` has declared so far."""
    return list(read_torch.safe.values())


def clear_safe_globals() -> None:
    """Takes back all that `add_safe_globals` has declared."""
    read_torch.safe.clear()


@contextmanager
def safe_globals(safe_globals: Iterable[Any]) -> Iterator[None]:
    """`add_safe_globals` for a block.

    Example:
        >>> with safe_globals([Vocabulary]):
        ...     loaded = load("vocabulary.pt")
    """
    before = dict(read_torch.safe)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        read_torch.safe.clear()
        read_torch.safe.update(before)


def __getattr__(name: str) -> object:
    from taeda_tensor_core.checkpoint import options

    if name == "__all__":  # what a program imports by a star
        return [*_OWN, *options.__all__]
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _scripts(name) if "cript" in name else getattr(options, name)


def _scripts(name: str) -> object:
    """How TorchScript archives are recognised, read and written, and what they consist of."""
    from taeda_tensor_core.checkpoint import read_script, write_script

    return getattr(write_script if name == "write_script" else read_script, name)
