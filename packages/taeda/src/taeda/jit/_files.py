"""Scripted and traced programs in files.

A file holds the tensors once, and up to two descriptions that refer to them: the Python object, which needs its classes
when it is read, and the graph, which needs nothing. Reading takes the object where it can, else the graph.
That format is taeda's own; PyTorch's TorchScript archives are read by `_archives`.
"""

from __future__ import annotations

import io
import os
import pickle
from typing import Any

from taeda.jit import _modules
from taeda_registry.slots import nn, tensor

_FORMAT = "taeda.jit"
_VERSION = 1


class _Pickler(pickle.Pickler):
    def __init__(self, file: Any, tensors: list[Any]) -> None:
        super().__init__(file, protocol=4)
        self._tensors = tensors
        self._places = {id(item): index for index, item in enumerate(tensors)}

    def persistent_id(self, obj: Any) -> int | None:
        if not isinstance(obj, tensor.Tensor):
            return None
        place = self._places.get(id(obj))
        if place is None:
            place = self._places[id(obj)] = len(self._tensors)
            self._tensors.append(obj)
        return place


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, tensors: list[Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._tensors = tensors

    def persistent_load(self, pid: Any) -> Any:
        return self._tensors[pid]


def _described(obj: Any, tensors: list[Any]) -> tuple[bytes | None, str]:
    """An object as bytes, or why it cannot be."""
    file = io.BytesIO()
    try:
        _Pickler(file, tensors).dump(obj)
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"
    return file.getvalue(), ""


def save(m: Any, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
    """Write a scripted or traced program to a file; what came from an archive of PyTorch's is one again.

    Args:
        m: What `script` or `trace` gave.
        f: A path, or a file open for writing.
        _extra_files: Further contents by name, texts or bytes.

    Raises:
        RuntimeError: It is no such program, or can be written neither as a graph nor as an object.

    Example:
        >>> net = taeda.jit.trace(taeda.nn.Linear(2, 3), taeda.ones(1, 2))
        >>> taeda.jit.save(net, "net.pt")
        >>> again = taeda.jit.load("net.pt")
    """
    if not isinstance(m, (_modules.ScriptModule, _modules.ScriptFunction)) and not callable(m):
        raise RuntimeError(f"save: expected what script or trace gave, found {type(m).__name__}")
    extra = {name: _bytes(value) for name, value in (_extra_files or {}).items()}
    if hasattr(type(m), "_script_program"):  # it came from an archive
        from taeda.jit import _archives

        _archives.save(m, f, extra)
        return
    program = getattr(m, "_original", None) or getattr(m, "_function", None) or m
    tensors: list[Any] = []
    graph, without_graph = None, "it was not traced"
    try:
        module = _modules._graph_module(m)
    except NotImplementedError as error:
        without_graph = str(error)
    else:
        graph, without_graph = _described(module, tensors)
    whole, without_object = _described(program, tensors)
    if graph is None and whole is None:
        raise RuntimeError(
            f"save: {type(program).__name__} can be written neither as a graph ({without_graph}) nor as an object "
            f"({without_object})"
        )
    tensor.save(
        {
            "format": _FORMAT, "version": _VERSION, "tensors": tensors, "graph": graph, "object": whole,
            "extra": extra,
        },
        f,
    )  # fmt: skip


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def load(
    f: Any,
    map_location: Any = None,
    _extra_files: dict[str, Any] | None = None,
    _restore_shapes: bool = False,
) -> Any:
    """Read what `save` wrote, or a TorchScript archive that PyTorch wrote.

    Reading a file of taeda's runs code that the file names, as reading any pickle does: read only what you trust. The
    program of an archive of PyTorch's can call operators on tensors and nothing else.

    Args:
        f: A path, or a file open for reading.
        map_location: Where its tensors go.
        _extra_files: Names of further contents; filled with them.

    Returns:
        A `RecursiveScriptModule`, or a `ScriptFunction`.

    Raises:
        ValueError: There is no such file.
        RuntimeError: The file is another's, or needs classes that are not there and has no graph.
    """
    if isinstance(f, (str, os.PathLike)) and not os.path.exists(f):
        raise ValueError(f"The provided filename {f} does not exist")
    if _is_torchscript(f):
        return _from_archive(f, map_location, _extra_files)
    content = tensor.load(f, map_location=map_location, weights_only=False)
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise RuntimeError(f"load: {f} was not written by taeda.jit.save; read it with taeda.load")
    missing = {"version", "graph", "object", "tensors", "extra"} - content.keys()
    if missing or not isinstance(content["version"], int):
        raise RuntimeError(f"load: {f} is damaged: it lacks {sorted(missing) or 'the number of its version'}")
    if content["version"] > _VERSION:
        raise RuntimeError(
            f"load: {f} has version {content['version']} of the format, and this taeda reads {_VERSION}"
        )
    for name in _extra_files or {}:
        if name in content["extra"]:
            _extra_files[name] = content["extra"][name]  # type: ignore[index]
    return _program(content)


def _program(content: dict[str, Any]) -> Any:
    graph = None
    if content["graph"] is not None:
        graph = _Unpickler(content["graph"], content["tensors"]).load()
    program: Any = graph
    if content["object"] is not None:
        try:
            program = _Unpickler(content["object"], content["tensors"]).load()
        except Exception as error:  # whatever the classes of others do when their objects are read
            if graph is None and isinstance(error, (ImportError, AttributeError)):
                raise RuntimeError(
                    f"load: the file needs a class that is not there ({error}), and has no graph; trace the module "
                    "with example inputs before saving it"
                ) from error
            if graph is None:
                raise
    if isinstance(program, _modules.RecursiveScriptModule):
        return program
    if isinstance(program, nn.Module):
        return _modules.RecursiveScriptModule(program, graph)
    return _modules.ScriptFunction(program, graph)


def _is_torchscript(f: Any) -> bool:
    return (tensor.serialization.is_path(f) or hasattr(f, "seek")) and tensor.serialization.is_script(f)


def _from_archive(f: Any, map_location: Any, extra_files: dict[str, Any] | None) -> Any:
    from taeda.jit import _archives

    if not tensor.serialization.is_path(f):
        return _archives.load(f, map_location, extra_files)
    with open(f, "rb") as file:
        return _archives.load(file, map_location, extra_files)
