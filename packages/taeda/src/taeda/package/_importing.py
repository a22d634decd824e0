"""Reading packages."""

from __future__ import annotations

import builtins
import io
import os
import pickle
import sys
import zipfile
import zlib
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from taeda.package._names import GlobGroup, Importer, demangle, is_mangled, new_prefix, sys_importer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_OWN_NAME = "torch_package_importer"
__all__ = ["Directory", "PackageImporter", "is_from_package"]


class Directory:
    """A folder of a package; `print` shows what is in it.

    Args:
        name: Its name.
        is_dir: Whether it is a folder.
    """

    def __init__(self, name: str, is_dir: bool) -> None:
        self.name, self.is_dir = name, is_dir
        self.children: dict[str, Directory] = {}

    def add(self, path: str) -> None:
        """Add a file by its path."""
        here = self
        *folders, file = path.split("/")
        for folder in folders:
            here = here.children.setdefault(folder, Directory(folder, True))
        here.children[file] = Directory(file, False)

    def has_file(self, filename: str) -> bool:
        """Whether there is a file of that path."""
        here: Directory | None = self
        for part in filename.split("/"):
            here = here.children.get(part) if here is not None else None
        return here is not None

    def __str__(self) -> str:
        lines: list[str] = []
        self._lines(lines, "", "")
        return "".join(lines)

    def _lines(self, lines: list[str], lead: str, below: str) -> None:
        lines.append(f"{lead}{self.name}\n")
        ordered = sorted(self.children.values(), key=lambda child: (not child.is_dir, child.name))
        for index, child in enumerate(ordered):
            last = index == len(ordered) - 1
            child._lines(lines, below + ("└── " if last else "├── "), below + ("    " if last else "│   "))


class _Mocked:
    """Stands for whatever a module that was not packaged would have; calling it fails."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, attr: str) -> _Mocked:
        if attr.startswith("__") and attr.endswith("__"):
            raise AttributeError(attr)
        return _Mocked(f"{self._name}.{attr}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"Object '{self._name}' was mocked out during packaging but it is being used in __call__"
        )

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return (object,)


class _Unpickler(pickle.Unpickler):
    def __init__(self, importer: PackageImporter, file: io.BytesIO) -> None:
        super().__init__(file)
        self._importer = importer

    def find_class(self, module: str, name: str) -> Any:
        found: Any = self._importer.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def persistent_load(self, pid: Any) -> Any:
        kind, path = pid
        if kind != "script":
            raise pickle.UnpicklingError(f"PackageImporter: there is nothing of the kind {kind!r} to be read")
        return self._importer._script(path)


class _Resources:
    """The files of a folder, as `importlib.resources` asks for them."""

    def __init__(self, importer: PackageImporter, folder: str) -> None:
        self._importer, self._folder = importer, folder

    def open_resource(self, resource: str) -> io.BytesIO:
        """A file of the folder."""
        return io.BytesIO(self._importer.load_binary(self._folder, resource))

    def resource_path(self, resource: str) -> str:
        """Refused: the files are in no folder of the machine."""
        raise FileNotFoundError(f"{resource} lies in a package, not in a folder")

    def is_resource(self, path: str) -> bool:
        """Whether there is a file of that name in the folder."""
        return f"{self._folder.replace('.', '/')}/{path}" in self._importer._files

    def contents(self) -> Iterator[str]:
        """The names of its files and folders."""
        start = self._folder.replace(".", "/") + "/"
        inside = (name.removeprefix(start) for name in self._importer._files if name.startswith(start))
        return iter(dict.fromkeys(name.partition("/")[0] for name in sorted(inside)))


def _files_of(source: Any, name: str) -> dict[str, bytes]:
    """The files of a package, which may have been unpacked into a folder; PyTorch's have a folder around them all."""
    if isinstance(source, (str, os.PathLike)) and Path(source).is_dir():
        folder = Path(source)
        return {
            file.relative_to(folder).as_posix(): file.read_bytes()
            for file in folder.rglob("*")
            if file.is_file()
        }
    try:
        with zipfile.ZipFile(source) as archive:
            files = {path: archive.read(path) for path in archive.namelist()}
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        RuntimeError,
        ValueError,
        OverflowError,
    ) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise  # about the file as such
        raise RuntimeError(f"PackageImporter: {name} is no package: {error}") from error
    around = next((path.partition(_EXTERN)[0] for path in files if path.endswith(f"/{_EXTERN}")), "")
    return {path.removeprefix(around): data for path, data in files.items() if path.startswith(around)}


_EXTERN = ".data/extern_modules"


class PackageImporter(Importer):
    """Imports from a file that `PackageExporter` wrote. That runs code of the file: read only what you trust.

    Modules of the file are this importer's own: their names in `__name__` begin with a mark, and `sys.modules` does not
    have them. What the file leaves to the program comes from there.

    Args:
        file_or_buffer: A path, or a file open for reading; also a folder that a package was unpacked into.
        module_allowed: Says whether a module that the file leaves to the program may be imported.

    Raises:
        ImportError: A module that may not be imported.
        RuntimeError: The file is no package.
    """

    def __init__(
        self, file_or_buffer: Any, module_allowed: Callable[[str], bool] = lambda name: True
    ) -> None:
        is_path = isinstance(file_or_buffer, (str, os.PathLike))
        self.filename = os.fspath(file_or_buffer) if is_path else "<binary>"
        self._files = _files_of(file_or_buffer, self.filename)
        if _EXTERN not in self._files:
            raise RuntimeError(f"PackageImporter: {self.filename} is no package of PackageExporter")
        self._scripts: dict[str, Any] = {}
        self._prefix = new_prefix()
        self._extern = self._files[_EXTERN].decode().split()
        self._mocked = frozenset(self._files.get(".data/mocked_modules", b"").decode().split())
        for name in self._extern:
            if not module_allowed(name):
                raise ImportError(
                    f"package '{self.filename}' needs the external module '{name}' but that is not allowed"
                )
        #: A module of the package finds its importer under this name.
        self._modules: dict[str, Any] = {_OWN_NAME: self}
        self._builtins = {**vars(builtins), "__import__": self._import}

    # --- modules ---

    def id(self) -> str:
        """What the names of this importer's modules begin with."""
        return self._prefix

    def python_version(self) -> str | None:
        """The version of Python that wrote the file."""
        found = self._files.get(".data/python_version")
        return None if found is None else found.decode().strip()

    def import_module(self, name: str, package: str | None = None) -> ModuleType:
        """A module of the file, or one that it leaves to the program.

        Raises:
            ModuleNotFoundError: There is neither.
        """
        name = demangle(name)
        parent, _, last = name.rpartition(".")
        if name in self._modules:
            return self._modules[name]
        if self._is_extern(name):
            found = sys_importer.import_module(name)
            if parent and not self._is_extern(parent):
                setattr(self.import_module(parent), last, found)
            return found
        if parent:
            above = self.import_module(parent)
            if name in self._modules:
                return self._modules[name]
        path = self._path(name)
        if path is None and not self._is_folder(name):
            raise ModuleNotFoundError(
                f"No module named '{name}' in self-contained archive '{self.filename}' and the module is also not in "
                f"the list of allowed external modules: {self._extern}",
                name=name,
            )
        module = self._made(name, path)
        if parent:
            setattr(above, last, module)
        return module

    def _is_extern(self, name: str) -> bool:
        if self._path(name) is not None:
            return False
        return _is_implicit(name) or any(
            name == known or name.startswith(f"{known}.") for known in self._extern
        )

    def _path(self, name: str) -> str | None:
        base = name.replace(".", "/")
        return next((p for p in (f"{base}.py", f"{base}/__init__.py") if p in self._files), None)

    def _is_folder(self, name: str) -> bool:
        return any(path.startswith(name.replace(".", "/") + "/") for path in self._files) or any(
            known.startswith(f"{name}.") for known in self._extern
        )

    def _made(self, name: str, path: str | None) -> ModuleType:
        module = ModuleType(f"{self._prefix}.{name}")
        is_package = path is None or path.endswith("__init__.py")
        module.__file__ = f"{self._prefix}.{path or name.replace('.', '/')}"
        module.__dict__["__builtins__"] = self._builtins
        module.__dict__["__torch_package__"] = True
        module.__package__ = module.__name__ if is_package else module.__name__.rpartition(".")[0]
        module.__spec__ = ModuleSpec(module.__name__, self, is_package=is_package)  # type: ignore[arg-type]
        module.__loader__ = self  # type: ignore[assignment]
        if is_package:
            module.__path__ = [module.__file__.removesuffix("/__init__.py")]
        self._modules[name] = module
        if name in self._mocked:
            module.__getattr__ = lambda attr: _mocked_attribute(name, attr)  # type: ignore[method-assign]
            return module
        if path is not None:
            import linecache

            text = self._files[path].decode()
            linecache.cache[module.__file__] = (
                len(text),
                None,
                text.splitlines(keepends=True),
                module.__file__,
            )
            try:
                exec(compile(text, module.__file__, "exec", dont_inherit=True), module.__dict__)
            except BaseException:
                del self._modules[name]
                raise
        return module

    def _import(
        self,
        name: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Iterable[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """What `import` does in modules of the file."""
        if level:
            package = demangle((globals or {}).get("__package__") or "")
            parts = package.split(".")
            if level > len(parts) or not package:
                raise ImportError("attempted relative import beyond top-level package")
            base = ".".join(parts[: len(parts) - level + 1])
            name = f"{base}.{name}" if name else base
        module = self.import_module(name)
        for item in fromlist or ():
            if item == "*":
                for each in getattr(module, "__all__", ()):
                    self._child(module, name, each)
            else:
                self._child(module, name, item)
        if fromlist or level:
            return module
        return self.import_module(name.partition(".")[0])

    def _child(self, module: ModuleType, name: str, item: str) -> None:
        if not hasattr(module, item) and hasattr(module, "__path__"):
            try:
                self.import_module(f"{name}.{item}")
            except ModuleNotFoundError as error:
                if error.name != f"{name}.{item}":
                    raise

    def get_source(self, module_name: str) -> tuple[str, bool]:
        """A module's source and whether it is a package.

        Raises:
            ModuleNotFoundError: The file does not have it.
        """
        path = self._path(module_name)
        if path is None:
            raise ModuleNotFoundError(
                f"there is no source of {module_name} in {self.filename}", name=module_name
            )
        return self._files[path].decode(), path.endswith("__init__.py")

    def whichmodule(self, obj: Any, name: str) -> str:
        """The module of an object of this importer."""
        home = super().whichmodule(obj, name)
        if is_mangled(home) and not home.startswith(self._prefix):
            return f"{home} of another importer"
        return home

    # --- resources ---

    def load_binary(self, package: str, resource: str) -> bytes:
        """The bytes of a resource.

        Raises:
            FileNotFoundError: There is none of that name.
        """
        path = f"{package.replace('.', '/')}/{resource}" if package else resource
        if path not in self._files:
            raise FileNotFoundError(f"PackageImporter: {self.filename} has no resource {path}")
        return self._files[path]

    def load_text(self, package: str, resource: str, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The text of a resource."""
        return self.load_binary(package, resource).decode(encoding, errors)

    def load_pickle(self, package: str, resource: str, map_location: Any = None) -> Any:
        """The object of a resource; its classes come from the file where that has them.

        Args:
            package: The folder.
            resource: The file.
            map_location: A device for the tensors; where they were by default.
        """
        content = io.BytesIO(self.load_binary(package, resource))
        try:
            made = _Unpickler(self, content).load()
        except Exception as error:  # also those of classes that read their own state
            error.add_note(f"PackageImporter: this was found in {resource} of {self.filename}")
            raise
        return made if map_location is None else made.to(map_location) if hasattr(made, "to") else made

    def _script(self, path: str) -> Any:
        """The scripted module of a file."""
        from taeda import jit

        if path not in self._scripts:
            self._scripts[path] = jit.load(io.BytesIO(self._files[path]))
        return self._scripts[path]

    def get_resource_reader(self, package: str) -> _Resources | None:
        """The files of a folder, for `importlib.resources`; None where there is no such folder."""
        folder = demangle(package)
        there = any(path.startswith(folder.replace(".", "/") + "/") for path in self._files)
        return _Resources(self, folder) if there else None

    def file_structure(
        self, *, include: str | Iterable[str] = "**", exclude: str | Iterable[str] = ()
    ) -> Directory:
        """The files, or those whose paths match patterns such as `folder/**` or `**/*.py`."""
        group = GlobGroup(include, exclude=exclude, separator="/")
        made = Directory(self.filename, True)
        for name in self._files:
            if group.matches(name):
                made.add(name)
        return made


def _mocked_attribute(name: str, attr: str) -> Any:
    if attr.startswith("__"):
        raise AttributeError(attr)
    return _Mocked(f"{name}.{attr}")


def _is_implicit(name: str) -> bool:
    """Whether a module is left to the program without being told: Python's own, and this library."""
    first = name.partition(".")[0]
    if name == _OWN_NAME:
        return True
    return first in sys.stdlib_module_names or first == "torch" or first.partition("_")[0] == "taeda"


def is_from_package(obj: Any) -> bool:
    """Whether a module or an object comes from a package."""
    if isinstance(obj, ModuleType):
        return is_mangled(obj.__name__)
    home = getattr(obj if isinstance(obj, type) or callable(obj) else type(obj), "__module__", None)
    return is_mangled(home if isinstance(home, str) else type(obj).__module__)
