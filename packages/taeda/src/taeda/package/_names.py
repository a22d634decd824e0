"""Names of modules: patterns of them, those of modules that come from packages, and where objects are found."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import linecache
import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

__all__ = [
    "GlobGroup", "Importer", "ObjMismatchError", "ObjNotFoundError", "OrderedImporter", "demangle", "is_mangled",
    "new_prefix", "source_of", "sys_importer",
]  # fmt: skip

_numbers = itertools.count()
_MANGLED = re.compile(r"<torch_package_\d+>")


def new_prefix() -> str:
    """What the names of the modules of one more importer begin with."""
    return f"<torch_package_{next(_numbers)}>"


def is_mangled(name: str) -> bool:
    """Whether a name is that of a module that comes from a package."""
    return _MANGLED.match(name) is not None


def demangle(name: str) -> str:
    """A module's name in its package."""
    if not is_mangled(name):
        return name
    return name.partition(".")[2]


class GlobGroup:
    """Names that match one of some patterns and none of others.

    In a pattern `*` stands for any part of a name between two dots, and `**` as a whole part for any number of parts,
    also none.

    Args:
        include: One pattern or several.
        exclude: The same, of names that do not match.
        separator: What stands between parts.

    Raises:
        ValueError: `**` stands beside something else in a part.

    Example:
        >>> group = taeda.package.GlobGroup("torch.**", exclude="torch.nn.*")
        >>> group.matches("torch"), group.matches("torch.optim.sgd"), group.matches("torch.nn.init")
        (True, True, False)
    """

    def __init__(
        self, include: str | Iterable[str], *, exclude: str | Iterable[str] = (), separator: str = "."
    ) -> None:
        self.separator = separator
        self._given = (include, exclude)
        self.include, self.exclude = self._patterns(include), self._patterns(exclude)

    def _patterns(self, given: str | Iterable[str]) -> list[re.Pattern[str]]:
        return [self._pattern(item) for item in ([given] if isinstance(given, str) else given)]

    def _pattern(self, text: str) -> re.Pattern[str]:
        sep = re.escape(self.separator)
        made = ""
        for part in text.split(self.separator):
            if part == "**":
                made += f"({sep}[^{sep}]+)*"
            elif "**" in part:
                raise ValueError("** can only appear as an entire path segment")
            else:
                made += sep + f"[^{sep}]*".join(re.escape(piece) for piece in part.split("*"))
        return re.compile(made)

    def matches(self, candidate: str) -> bool:
        """Whether a name matches."""
        name = self.separator + candidate
        return any(p.fullmatch(name) for p in self.include) and not any(
            p.fullmatch(name) for p in self.exclude
        )

    def __repr__(self) -> str:
        include, exclude = self._given
        return f"GlobGroup(include={include}, exclude={exclude})"


class ObjNotFoundError(Exception):
    """An object is not found where its name says."""


class ObjMismatchError(Exception):
    """Another object is found where a name says."""


class Importer(ABC):
    """Where modules come from."""

    @abstractmethod
    def import_module(self, module_name: str) -> ModuleType:
        """The module of that name.

        Raises:
            ModuleNotFoundError: There is none.
        """

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        """The module of an object and its name there.

        Raises:
            ObjNotFoundError: It is not found there.
            ObjMismatchError: Another object is.
        """
        name = name or getattr(obj, "__qualname__", None) or obj.__name__
        home = demangle(self.whichmodule(obj, name))
        found: Any
        try:
            found = self.import_module(home)
            for part in name.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError) as error:
            raise ObjNotFoundError(f"{obj!r} was not found as {home}.{name}") from error
        if found is not obj:
            raise ObjMismatchError(
                f"The object {obj!r} is not the same as {home}.{name}: it may come from a package; pass "
                "importer=(its importer, sys_importer) to the PackageExporter"
            )
        return home, name

    def whichmodule(self, obj: Any, name: str) -> str:
        """The name of the module that an object says it is from."""
        import pickle

        return str(getattr(obj, "__module__", None) or pickle.whichmodule(obj, name))  # type: ignore[attr-defined]


def source_of(importer: Importer, module_name: str) -> tuple[str, bool]:
    """A module's source and whether it is a package, also of an importer that only imports.

    Raises:
        ImportError: There is no such module.
        ValueError: It has no source.
    """
    if hasattr(importer, "get_source"):
        return importer.get_source(module_name)  # type: ignore[no-any-return]
    module = importer.import_module(module_name)
    is_package = hasattr(module, "__path__")
    file = getattr(module, "__file__", None)
    lines = linecache.getlines(file, module.__dict__) if file else []
    if not lines and not is_package:
        raise ValueError("Module has no source")
    return "".join(lines), is_package


class _SysImporter(Importer):
    """The modules of this process."""

    def import_module(self, module_name: str) -> ModuleType:
        if is_mangled(module_name):
            raise ModuleNotFoundError(f"{module_name} belongs to a package", name=module_name)
        return importlib.import_module(module_name)

    def get_source(self, module_name: str) -> tuple[str, bool]:
        """A module's source and whether it is a package.

        Raises:
            ModuleNotFoundError: There is none.
            ValueError: It has no source.
        """
        spec = importlib.util.find_spec(module_name)
        if spec is None:
            raise ModuleNotFoundError(f"there is no module {module_name}", name=module_name)
        is_package = spec.submodule_search_locations is not None
        if spec.loader is None:
            return "", is_package  # a namespace
        source = getattr(spec.loader, "get_source", lambda _: None)(module_name)
        if source is None:
            raise ValueError("Module has no source: it is compiled")
        return source, is_package


sys_importer = _SysImporter()


class OrderedImporter(Importer):
    """Asks several importers, one after another.

    Args:
        args: The importers.
    """

    def __init__(self, *args: Importer) -> None:
        self._importers = list(args)

    def import_module(self, module_name: str) -> ModuleType:
        for importer in self._importers:
            try:
                return importer.import_module(module_name)
            except ModuleNotFoundError as error:
                if error.name is not None and error.name != module_name:
                    raise
        raise ModuleNotFoundError(f"no importer has {module_name}", name=module_name)

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        failure: Exception | None = None
        for importer in self._importers:
            try:
                return importer.get_name(obj, name)
            except (ObjNotFoundError, ObjMismatchError) as error:
                failure = error
        raise failure or ObjNotFoundError(f"there is no importer that would know {obj!r}")

    def whichmodule(self, obj: Any, name: str) -> str:
        """The module that the first importer names which knows one; "__main__" where none does."""
        for importer in self._importers:
            if (found := importer.whichmodule(obj, name)) != "__main__":
                return found
        return "__main__"

    def get_source(self, module_name: str) -> tuple[str, bool]:
        """The source of the first importer that has one."""
        for importer in self._importers:
            try:
                return source_of(importer, module_name)
            except ModuleNotFoundError:
                continue
        raise ModuleNotFoundError(f"no importer has {module_name}", name=module_name)
