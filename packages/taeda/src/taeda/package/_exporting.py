"""Writing packages."""

from __future__ import annotations

import ast
import io
import os
import pickle
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from taeda import jit
from taeda.package._importing import _is_implicit
from taeda.package._names import (
    GlobGroup,
    Importer,
    ObjMismatchError,
    ObjNotFoundError,
    OrderedImporter,
    demangle,
    source_of,
    sys_importer,
)
from taeda_registry import files
from taeda_registry.pickles import DISPATCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["EmptyMatchError", "PackageExporter", "PackagingError"]

_UNMATCHED = "Module did not match against any action pattern. Extern, mock, or intern it."


class EmptyMatchError(Exception):
    """A pattern that must match something matched nothing."""


class PackagingError(Exception):
    """Modules that nothing was said of, or that cannot be written.

    Args:
        problems: What is wrong with each, by name.
    """

    def __init__(self, problems: dict[str, str]) -> None:
        self.problems = problems
        by_text: dict[str, list[str]] = {}
        for name, text in problems.items():
            by_text.setdefault(text, []).append(name)
        lines = [
            f"* {text}\n" + "".join(f"    {name}\n" for name in names) for text, names in by_text.items()
        ]
        super().__init__("\n" + "".join(lines))


class _Pickler(pickle._Pickler):  # type: ignore[name-defined]  # the one written in Python can be told where names are
    dispatch = dict(DISPATCH)

    def __init__(
        self, importer: Importer, file: io.BytesIO, protocol: int, save_script: Callable[[Any], str]
    ) -> None:
        super().__init__(file, protocol)
        self._importer, self._save_script = importer, save_script
        self.modules: dict[str, None] = {}

    def persistent_id(self, obj: Any) -> tuple[str, str] | None:
        return ("script", self._save_script(obj)) if isinstance(obj, jit.ScriptModule) else None

    def save_global(self, obj: Any, name: str | None = None) -> None:
        try:
            home, path = self._importer.get_name(obj, name)
        except (ObjNotFoundError, ObjMismatchError) as error:
            raise pickle.PicklingError(f"Can't pickle {obj!r}: {error}") from error
        self.modules.setdefault(home)
        self.save(home)
        self.save(path)
        self.write(pickle.STACK_GLOBAL)
        self.memoize(obj)

    dispatch[FunctionType] = save_global


def _imports(source: str, module: str, is_package: bool) -> list[tuple[str, str | None]]:
    """What a source imports: names of modules, and beside them names that may be modules below."""
    package = module if is_package else module.rpartition(".")[0]
    found: dict[tuple[str, str | None], None] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(dict.fromkeys((alias.name, None) for alias in node.names))
        elif isinstance(node, ast.ImportFrom):
            base = _resolved(node.module or "", node.level, package)
            names = [None if alias.name == "*" else alias.name for alias in node.names]
            found.update(dict.fromkeys((base, name) for name in names))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "__import__":
            found.update(dict.fromkeys(_imported_by_call(node, package)))
    return list(found)


def _imported_by_call(node: ast.Call, package: str) -> list[tuple[str, str | None]]:
    """What a call of `__import__` imports, where that can be read in the source."""
    given = dict(zip(("name", "globals", "locals", "fromlist", "level"), node.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    wanted = {key: given[key] for key in ("name", "fromlist", "level") if key in given}
    try:
        known = {key: ast.literal_eval(value) for key, value in wanted.items()}
        base = _resolved(str(known["name"]), int(known.get("level", 0)), package)
        return [(base, name) for name in known.get("fromlist") or (None,)]
    except (KeyError, TypeError, ValueError):
        return []


def _resolved(name: str, level: int, package: str) -> str:
    """The full name of a module that is named from a package, so many levels up."""
    if not level:
        return name
    parts = package.split(".") if package else []
    if level > len(parts) + 1:
        raise ImportError("attempted relative import beyond top-level package")
    above = ".".join(parts[: len(parts) - level + 1])
    return f"{above}.{name}" if above and name else above or name


class PackageExporter:
    """Writes a package: sources, pickles, texts and bytes, with the modules that these need.

    Of every module that something needs, the first pattern that matches its name says what becomes of it: `intern`
    writes its source, `extern` leaves it to the program that loads the file, `mock` puts a stand-in there that fails
    when it is called, `deny` makes an error of it. Python's own modules and this library are left to the program.
    What is said counts for what is saved afterwards. The file is complete when the exporter is closed; as a context it
    closes itself, unless there was an exception.

    Args:
        f: A path, or a file open for writing.
        importer: Where modules and the classes of objects are looked up: an importer or several, asked in turn.
        debug: Accepted.

    Raises:
        PackagingError: When it is closed: modules that no pattern matches, that are denied, or that have no source.
        EmptyMatchError: When it is closed: a pattern with ``allow_empty=False`` matched nothing.
    """

    def __init__(
        self, f: Any, importer: Importer | Sequence[Importer] = sys_importer, debug: bool = False
    ) -> None:
        self._target = f
        self.importer = importer if isinstance(importer, Importer) else OrderedImporter(*importer)
        self._files: dict[str, bytes] = {}
        self._patterns: list[tuple[GlobGroup, str, bool]] = []
        self._matched: set[int] = set()
        self._actions: dict[str, str] = {}
        self._needs: dict[str, dict[str, None]] = {}
        self._problems: dict[str, str] = {}
        self._hooks: dict[str, list[Callable[[PackageExporter, str], None]]] = {
            "intern": [], "extern": [], "mock": [],
        }  # fmt: skip
        self._scripts: dict[int, tuple[str, Any]] = {}
        self._count = 0
        self._open = True

    # --- what becomes of modules ---

    def _say(self, action: str, include: Any, exclude: Any, allow_empty: bool) -> None:
        self._patterns.append((GlobGroup(include, exclude=exclude), action, allow_empty))

    def intern(
        self, include: str | Iterable[str], *, exclude: str | Iterable[str] = (), allow_empty: bool = True
    ) -> None:
        """Write the sources of modules whose names match."""
        self._say("intern", include, exclude, allow_empty)

    def extern(
        self, include: str | Iterable[str], *, exclude: str | Iterable[str] = (), allow_empty: bool = True
    ) -> None:
        """Leave modules whose names match to the program that loads the file."""
        self._say("extern", include, exclude, allow_empty)

    def mock(
        self, include: str | Iterable[str], *, exclude: str | Iterable[str] = (), allow_empty: bool = True
    ) -> None:
        """Put stand-ins in the place of modules whose names match."""
        self._say("mock", include, exclude, allow_empty)

    def deny(self, include: str | Iterable[str], *, exclude: str | Iterable[str] = ()) -> None:
        """Make an error of modules whose names match."""
        self._say("deny", include, exclude, True)

    def register_intern_hook(self, hook: Callable[[PackageExporter, str], None]) -> Any:
        """Call `hook(exporter, name)` for every module that is interned; returns a handle that takes it off."""
        return self._hook("intern", hook)

    def register_extern_hook(self, hook: Callable[[PackageExporter, str], None]) -> Any:
        """Call `hook(exporter, name)` for every module that is externed."""
        return self._hook("extern", hook)

    def register_mock_hook(self, hook: Callable[[PackageExporter, str], None]) -> Any:
        """Call `hook(exporter, name)` for every module that is mocked."""
        return self._hook("mock", hook)

    def _hook(self, action: str, hook: Callable[[PackageExporter, str], None]) -> Any:
        self._hooks[action].append(hook)
        hooks = self._hooks[action]

        class Handle:
            def remove(self) -> None:
                """Take the hook off."""
                if hook in hooks:
                    hooks.remove(hook)

        return Handle()

    def add_dependency(self, module_name: str, dependencies: bool = True) -> None:
        """Let the file need a module, about which the patterns say what becomes of it."""
        if module_name in self._actions or _is_implicit(module_name):
            return
        for index, (group, action, _) in enumerate(self._patterns):
            if group.matches(module_name):
                self._matched.add(index)
                if action == "intern" and module_name in getattr(self.importer, "_mocked", ()):
                    action = "mock"  # it was in the package that it comes from
                self._actions[module_name] = action
                self._act(module_name, action, dependencies)
                return
        self._actions[module_name] = "error"
        self._problems[module_name] = _UNMATCHED

    def _act(self, name: str, action: str, dependencies: bool) -> None:
        for hook in list(self._hooks.get(action, ())):
            hook(self, name)
        if action == "intern":
            self._intern(name, dependencies)
        elif action == "deny":
            self._problems[name] = "Module was denied by a pattern."
        elif action == "mock":
            self._files.setdefault(f"{name.replace('.', '/')}.py", b"")

    def _intern(self, name: str, dependencies: bool) -> None:
        try:
            source, is_package = source_of(self.importer, name)
        except (ImportError, ValueError) as error:
            self._problems[name] = (
                "Module is a C extension module or has no source. C modules cannot be interned; extern or mock them."
                if isinstance(error, ValueError)
                else "Module could not be found."
            )
            return
        self._write_source(name, source, is_package, dependencies)

    # --- what is saved ---

    def save_module(self, module_name: str, dependencies: bool = True) -> None:
        """Write a module's source, whatever patterns say.

        Raises:
            TypeError: It is no name.
            ModuleNotFoundError: There is no such module.
        """
        if not isinstance(module_name, str):
            raise TypeError("save_module() expects a string input, did you perhaps mean to pass `__name__`?")
        module_name = demangle(module_name)
        with suppress(ValueError):  # it has no source, which is said at the end
            source_of(self.importer, module_name)
        self._actions[module_name] = "intern"
        self._intern(module_name, dependencies)

    def save_source_string(
        self, module_name: str, src: str, is_package: bool = False, dependencies: bool = True
    ) -> None:
        """Write a source as a module of that name."""
        self._actions[module_name] = "intern"
        self._write_source(module_name, src, is_package, dependencies)

    def save_source_file(self, module_name: str, file_or_directory: str, dependencies: bool = True) -> None:
        """Write a file, or all Python files of a folder, as the module of that name and those below it."""
        path = Path(file_or_directory)
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            self.save_source_string(module_name, text, path.name == "__init__.py", dependencies)
            return
        for file in sorted(path.rglob("*.py")):
            parts = [*module_name.split("."), *file.relative_to(path).with_suffix("").parts]
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            self.save_source_string(name, file.read_text(encoding="utf-8"), is_package, dependencies)

    def _write_source(self, name: str, source: str, is_package: bool, dependencies: bool) -> None:
        base = name.replace(".", "/")
        self._files[f"{base}/__init__.py" if is_package else f"{base}.py"] = source.encode()
        if not dependencies:
            return
        try:
            imported = _imports(source, name, is_package)
        except ImportError as error:
            self._problems[name] = f"Dependency resolution failed: {error}."
            return
        for base, below in imported:
            full = f"{base}.{below}"
            if below is not None and self._is_module(full):
                self._need(name, full)
            elif self._is_there(base):
                self._need(name, base)

    def _need(self, name: str, needed: str) -> None:
        needed = demangle(needed)
        self._needs.setdefault(name, {})[needed] = None
        self.add_dependency(needed)

    def _is_there(self, name: str) -> bool:
        """Whether a module is known; an import of another one fails where the program runs, if it ever does."""
        name = demangle(name)
        if _is_implicit(name) or name in self._actions:
            return True
        try:
            source_of(self.importer, name)
        except ImportError:
            return any(group.matches(name) for group, _, _ in self._patterns)
        except ValueError:  # it has no source
            pass
        return True

    def _is_module(self, name: str) -> bool:
        if _is_implicit(name) or self._actions.get(name.rpartition(".")[0]) in (
            "extern",
            "mock",
            "error",
            "deny",
        ):
            return False
        try:
            source_of(self.importer, name)
        except (ValueError, ImportError, AttributeError):
            return f"{name.replace('.', '/')}.py" in self._files
        return True

    def save_pickle(
        self, package: str, resource: str, obj: Any, dependencies: bool = True, pickle_protocol: int = 4
    ) -> None:
        """Write an object; the modules of its classes and functions are needed then.

        Args:
            package: The folder, as the name of a package.
            resource: The file.
            obj: Any object that can be pickled.
            dependencies: Whether the modules that it needs are looked at.
            pickle_protocol: Version of the pickle; at least 4.
        """
        buffer = io.BytesIO()
        pickler = _Pickler(self.importer, buffer, max(pickle_protocol, 4), self._save_script)
        pickler.dump(obj)
        self.save_binary(package, resource, buffer.getvalue())
        if dependencies:
            for module in pickler.modules:
                self._need(f"<{package}.{resource}>", module)

    def _save_script(self, module: Any) -> str:
        """The file of a scripted module, which brings its own code along."""
        if id(module) not in self._scripts:
            buffer = io.BytesIO()
            jit.save(module, buffer)
            path = f".data/ts_code/{len(self._scripts)}"
            self._files[path] = buffer.getvalue()
            self._scripts[id(module)] = path, module
        return self._scripts[id(module)][0]

    def save_text(self, package: str, resource: str, text: str) -> None:
        """Write a text."""
        self.save_binary(package, resource, text.encode("utf-8"))

    def save_binary(self, package: str, resource: str, binary: bytes) -> None:
        """Write bytes."""
        folder = f"{package.replace('.', '/')}/" if package else ""
        self._files[f"{folder}{resource}"] = bytes(binary)

    def get_unique_id(self) -> str:
        """A number, as text, that this exporter has not given before."""
        self._count += 1
        return str(self._count - 1)

    # --- what was found ---

    def _of(self, action: str) -> list[str]:
        return [name for name, found in self._actions.items() if found == action]

    def interned_modules(self) -> list[str]:
        """Modules whose sources are written."""
        return self._of("intern")

    def externed_modules(self) -> list[str]:
        """Modules that are left to the program."""
        return self._of("extern")

    def mocked_modules(self) -> list[str]:
        """Modules with stand-ins."""
        return self._of("mock")

    def denied_modules(self) -> list[str]:
        """Modules that are errors."""
        return self._of("deny")

    def get_rdeps(self, module_name: str) -> list[str]:
        """What needs a module."""
        return [name for name, needed in self._needs.items() if module_name in needed]

    def dependency_graph_string(self) -> str:
        """What needs what, in the language of Graphviz."""
        edges = "\n".join(f'"{a}" -> "{b}";' for a, needed in self._needs.items() for b in needed)
        return f"digraph G {{\nrankdir = LR;\nnode [shape=box];\n{edges}\n}}\n"

    def all_paths(self, src: str, dst: str) -> str:
        """All that lies between two modules of the graph, in the language of Graphviz."""

        def reach(start: str, edges: dict[str, list[str]]) -> set[str]:
            seen, ahead = set(), [start]
            while ahead:
                name = ahead.pop()
                if name not in seen:
                    seen.add(name)
                    ahead += edges.get(name, [])
            return seen

        back: dict[str, list[str]] = {}
        for name, needed in self._needs.items():
            for item in needed:
                back.setdefault(item, []).append(name)
        between = reach(src, {k: list(v) for k, v in self._needs.items()}) & reach(dst, back)
        edges = [f'"{a}" -> "{b}";' for a in between for b in self._needs.get(a, ()) if b in between]
        return "digraph G {\n" + "\n".join(sorted(edges)) + "\n}\n"

    # --- the end ---

    def close(self) -> None:
        """Write the file."""
        if not self._open:
            return
        self._open = False
        if self._problems:
            raise PackagingError(self._problems)
        for index, (group, action, allow_empty) in enumerate(self._patterns):
            if not allow_empty and index not in self._matched:
                raise EmptyMatchError(
                    f"Exporter did not match any modules to {group}, which was marked as allow_empty=False ({action})"
                )
        facts = {
            ".data/version": "6\n",
            ".data/extern_modules": "".join(f"{name}\n" for name in self.externed_modules()),
            ".data/python_version": ".".join(map(str, sys.version_info[:3])),
        }
        if self.mocked_modules():
            facts[".data/mocked_modules"] = "".join(f"{name}\n" for name in self.mocked_modules())
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for path, data in {**self._files, **{key: text.encode() for key, text in facts.items()}}.items():
                archive.writestr(zipfile.ZipInfo(path), data)
        if isinstance(self._target, (str, os.PathLike)):
            files.write(self._target, [buffer.getbuffer()])
        else:
            self._target.write(buffer.getvalue())

    def __enter__(self) -> PackageExporter:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is None:
            self.close()
