"""Unpickling whole objects out of PyTorch's files, which runs the files' code; only for callers who ask for it."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import taeda_tensor_core as tc
from taeda_tensor_core.checkpoint import torch_names
from taeda_tensor_core.checkpoint.common import DTYPES, OLDER_HEAD, Budget, CheckpointError
from taeda_tensor_core.checkpoint.read_torch import Zip
from taeda_tensor_core.checkpoint.source import Source


class _Kind:
    """A class of storages, which only persistent ids mention."""

    def __init__(self, dtype: str, name: str) -> None:
        self.storage_dtype, self.storage_name = dtype, name


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, storages: Callable[[Any], Any], encoding: str = "utf-8") -> None:
        super().__init__(file, encoding=encoding)
        self.persistent_load = storages

    def find_class(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        if full in torch_names.FUNCTIONS:
            return torch_names.FUNCTIONS[full]
        if full == "torch._tensor._rebuild_from_type_v2":
            return _typed
        dtype = torch_names.storage_kind(module, name)
        if dtype is not None:
            return _Kind(dtype, name)
        if module == "torch" and (name in DTYPES or name in torch_names.QSCHEMES):
            return getattr(tc, name)
        if torch_names.CLASSES.get(full) == "tensor":
            return tc.Tensor
        if torch_names.CLASSES.get(full) == "parameter":
            return torch_names.parameter_class() or tc.Tensor
        if torch_names.CLASSES.get(full) == "range":
            return torch_names.DimRange
        if torch_names.CLASSES.get(full) == "jagged":
            return tc.nested.NestedTensor
        if module == "torch" or module.startswith("torch."):
            try:
                return torch_names.native(module, name)
            except (ImportError, AttributeError) as error:
                raise CheckpointError(
                    f"load: the file refers to {full}, which taeda does not have"
                ) from error
        return super().find_class(module, name)


def _typed(make: Callable[..., Any], kind: type, args: tuple[Any, ...], state: Any) -> Any:
    made = make(*args)
    if type(made) is not kind and issubclass(kind, tc.Tensor):
        made = tc.Tensor._make_subclass(kind, made, made.requires_grad)
    return torch_names.with_attributes(made, state)


def read_zip(source: Source, place: Callable[[Any, str], Any], encoding: str = "utf-8") -> Any:
    """The object in a zip archive."""
    archive = Zip(source, Budget(source.size))
    storages = torch_names.Storages(archive.storage, place)
    return _Unpickler(io.BytesIO(archive.pickle()), storages, encoding).load()


class _Later:
    """The storages of a file that stand behind the pickle: made when they are referred to, filled afterwards."""

    def __init__(self, place: Callable[[Any, str], Any], size: int) -> None:
        self._place, self._left = place, size
        self._sizes: dict[str, int] = {}
        self.made = torch_names.Storages(self._empty, place)

    def __call__(self, reference: Any) -> Any:
        if isinstance(reference, tuple) and len(reference) == 4 and reference[0] == "module":
            return reference[1]  # a class, beside its source text
        wanted = torch_names.parse_reference(reference)
        self._sizes.setdefault(wanted.key, wanted.nbytes)
        return self.made(reference)

    def _empty(self, key: str) -> Any:
        self._left -= self._sizes[key]
        if self._left < 0:
            raise CheckpointError("load: the file refers to more storages than it can hold")
        return tc.zeros((self._sizes[key],), dtype=tc.uint8, device="cpu")

    def fill(self, source: Source, keys: Any, at: int) -> None:
        """Reads the bytes of all storages, which begin at a byte of the file."""
        if not isinstance(keys, list) or set(keys) != set(self._sizes):
            raise CheckpointError("load: the file lists other storages than its tensors refer to")
        for key in keys:
            self.made.memory[key].copy_(source.tensor(at + 8, self._sizes[key]))
            at += 8 + self._sizes[key]
        source.end = at


def read_legacy(source: Source, place: Callable[[Any, str], Any], encoding: str = "utf-8") -> Any:
    """The object in a file before zip archives, whose storages stand behind its pickles."""
    file = io.BytesIO(source.part(0, source.size))
    later = _Later(place, source.size)
    if (_Unpickler(file, later).load(), _Unpickler(file, later).load()) != OLDER_HEAD:
        raise CheckpointError("load: the file is a pickle, but none of PyTorch's")
    _Unpickler(file, later).load()
    loaded = _Unpickler(file, later, encoding).load()
    keys = _Unpickler(file, later).load()
    later.fill(source, keys, file.tell())
    return loaded
