"""Names of PyTorch's serialization that programs set or ask for: options, and places that tensors are loaded to."""

from __future__ import annotations

import enum
import mmap
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import taeda_tensor_core as tc
from taeda_registry.files import is_path
from taeda_tensor_core.checkpoint.common import skipped

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "StorageType",
    "check_module_version_greater_or_equal",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_unsafe_globals_in_checkpoint",
    "location_tag",
    "mkdtemp",
    "normalize_storage_type",
    "register_package",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "storage_to_tensor_type",
]

mkdtemp = tempfile.mkdtemp
_options: dict[str, Any] = {"endianness": None, "crc32": True, "mmap": mmap.MAP_PRIVATE}


class SourceChangeWarning(Warning):
    """What programs filter: the source of a class that was stored has changed. Sources are not compared here."""


class LoadEndianness(enum.Enum):
    """The byte order of files that do not tell it."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness() -> LoadEndianness | None:
    """What `set_default_load_endianness` was given; None at first, which is little-endian."""
    return _options["endianness"]


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Kept and given back; files that do not tell are little-endian.

    Raises:
        TypeError: It is something else. NotImplementedError: Big-endian.
    """
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    if endianness is LoadEndianness.BIG:
        raise NotImplementedError(
            "set_default_load_endianness: files of big-endian numbers are not there yet"
        )
    _options["endianness"] = endianness


def get_crc32_options() -> bool:
    """What `set_crc32_options` was given; True at first."""
    return _options["crc32"]


def set_crc32_options(compute_crc32: bool) -> None:
    """Kept and given back: checksums are always written, so that every reader can test them."""
    _options["crc32"] = bool(compute_crc32)


def get_default_mmap_options() -> int:
    """What `set_default_mmap_options` was given; MAP_PRIVATE at first."""
    return _options["mmap"]


class set_default_mmap_options:
    """How `load` maps files, at once or for a block.

    Args:
        flags: mmap.MAP_PRIVATE, so that what is written to loaded tensors stays theirs, or MAP_SHARED: it goes to the
            file.

    Raises:
        ValueError: Flags of another kind.
    """

    def __init__(self, flags: int) -> None:
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                "set_default_mmap_options: argument 'flags' must be mmap.MAP_PRIVATE or mmap.MAP_SHARED, "
                f"found {flags!r}"
            )
        self._before = _options["mmap"]
        _options["mmap"] = flags

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        _options["mmap"] = self._before


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[int, ...], error_if_malformed: bool = True
) -> bool:
    """Whether a module's ``__version__`` is at least a version.

    Raises:
        RuntimeError: It cannot be read, unless `error_if_malformed` is false; then a warning is shown and True given.
    """
    try:
        found = tuple(
            kind(part)
            for kind, part in zip(map(type, req_version_tuple), module.__version__.split("."), strict=False)
        )
        return found >= req_version_tuple
    except (AttributeError, ValueError) as error:
        message = (
            f"'{module.__name__}' module version string is malformed '{getattr(module, '__version__', None)}'"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        import warnings

        warnings.warn(f"{message}, but continuing assuming that the requirement is met", stacklevel=2)
        return True


def _is_zipfile(f: Any) -> bool:
    """Whether a file's next bytes are those that zip archives begin with; its place stays."""
    start = f.tell()
    first = f.read(4)
    f.seek(start)
    return first == b"PK\x03\x04"


def _maybe_decode_ascii(bytes_str: bytes | str) -> str:
    """A key of a file as text, be it stored as bytes."""
    return bytes_str.decode("ascii") if isinstance(bytes_str, bytes) else bytes_str


def _open_file_like(name_or_buffer: Any, mode: str) -> AbstractContextManager[Any]:
    """A file by its path, which the context closes, or one that is open, which stays so."""
    if not is_path(name_or_buffer):
        return nullcontext(name_or_buffer)
    return open(name_or_buffer, mode, encoding=None if "b" in mode else "utf-8")


def _open_zipfile_reader(name_or_buffer: Any) -> AbstractContextManager[Any]:
    """The reader of an archive's records."""
    from taeda_tensor_core.checkpoint.records import PyTorchFileReader

    return nullcontext(PyTorchFileReader(name_or_buffer))


class StorageType:
    """The class of storages that a file names, known by its dtype alone.

    Raises:
        KeyError: No storage has that name.
    """

    def __init__(self, name: str) -> None:
        from taeda_tensor_core.checkpoint.torch_names import STORAGES

        self._dtype = getattr(tc, STORAGES[name])

    @property
    def dtype(self) -> Any:
        return self._dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


def _get_restore_location(map_location: Any) -> Callable[[Any, str], Any]:
    """What puts a storage where `load` was told to, as `function(storage, location)`."""
    if map_location is None:
        return default_restore_location
    if callable(map_location) and not isinstance(map_location, tc.device):  # devices are decorators too

        def by_function(storage: Any, location: str) -> Any:
            moved = map_location(storage, location)
            return default_restore_location(storage, location) if moved is None else moved

        return by_function
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(
            storage, map_location.get(location, location)
        )
    target = str(tc.device(map_location))
    return lambda storage, location: default_restore_location(storage, target)


def location_tag(storage: Any) -> str:
    """The device of a storage as text, as files name it."""
    return str(storage.device)


def default_restore_location(storage: Any, location: str) -> Any:
    """A storage on the device that a file names.

    Raises:
        RuntimeError: There is no such device.
    """
    return storage.to(device=location)


def normalize_storage_type(storage_type: type) -> type:
    """The class itself: storages have one class for each dtype."""
    return storage_type


def storage_to_tensor_type(storage: Any) -> type:
    """The older class of a storage's tensors, such as ``FloatTensor``."""
    from taeda_tensor_core import _older_names, legacy_types

    return legacy_types.legacy_type(_older_names.TENSORS[storage.dtype.name])


def _maker(name: str) -> Callable[..., Any] | None:
    """What makes tensors of parts in PyTorch's files and pickles, by its full name there; None if it is unknown."""
    from taeda_tensor_core.checkpoint.torch_names import FUNCTIONS

    return FUNCTIONS.get(name)


def _get_layout(name: str) -> Any:
    """A layout by its name, which pickles of sparse tensors call."""
    from taeda_tensor_core.checkpoint import kinds

    return kinds.layout(name)


def register_package(priority: int, tagger: Callable, deserializer: Callable) -> None:
    """Not there yet: devices of plug-ins are found by their names."""
    raise NotImplementedError(
        "register_package is not there: tensors go to devices by their names, which plug-ins bring with them"
    )


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names in a file of PyTorch's format that `load` refuses unless they are declared.

    Args:
        f: Path, or file open for reading.

    Returns: names in full, in the order of the file, each once.

    Raises:
        ValueError: The file is no archive; nothing in it was read.
    """
    import pickletools
    import zipfile

    from taeda_tensor_core.checkpoint.common import CheckpointError
    from taeda_tensor_core.checkpoint.read_torch import Data

    if not zipfile.is_zipfile(f):
        raise ValueError("get_unsafe_globals_in_checkpoint: expected a file that save wrote as an archive")
    with zipfile.ZipFile(f) as archive:
        inner = next((n for n in archive.namelist() if n.rpartition("/")[2] == "data.pkl"), None)
        if inner is None:
            raise ValueError("get_unsafe_globals_in_checkpoint: found no data.pkl in the archive")
        data = archive.read(inner)
    known, refused, texts = Data(lambda reference: None, dry=True), {}, ["", ""]
    for opcode, text, _ in pickletools.genops(data):
        if opcode.name in ("SHORT_BINUNICODE", "BINUNICODE", "UNICODE"):
            texts = [texts[1], str(text)]
        elif opcode.name in ("GLOBAL", "STACK_GLOBAL"):
            module, name = str(text).split(" ", 1) if text else texts
            try:
                known.find(module, name)
            except CheckpointError:
                refused[f"{module}.{name}"] = None
    return list(refused)


class skip_data:
    """Context in which `save` leaves out the numbers of tensors, and `load` makes tensors without reading theirs.

    Files have their whole size, so that numbers can be written into them later; until then zeros stand there.

    Args:
        materialize_fake_tensors: Write tensors of a `FakeTensorMode` as tensors of their shapes.

    Raises:
        RuntimeError: By `save`, for the form before archives and for safetensors.

    Example:
        >>> with taeda.serialization.skip_data():
        ...     taeda.save(model.state_dict(), "shapes.pt")
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors
        self._before: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        self._before.append((skipped.data, skipped.fakes))
        skipped.data, skipped.fakes = True, self.materialize_fake_tensors

    def __exit__(self, *exception: object) -> None:
        skipped.data, skipped.fakes = self._before.pop()
