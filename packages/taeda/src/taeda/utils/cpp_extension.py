"""C++ extensions: compiled against `taeda/extension.h` when they are asked for, or by setuptools.

An extension stands on taeda's C table alone and links nothing of it, so that it keeps working when taeda grows. What
`load` and `load_inline` compile is kept by its content: sources, headers, flags and compiler. Sources may include
`torch/extension.h` too: PyTorch's namespaces are names for taeda's there.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taeda import _absent
from taeda.utils import _cuda_toolkit
from taeda_registry import files

_NO_TOOLKIT = (
    "extensions are compiled for the cpu and CUDA; "
    "kernels of other devices go through taeda.library and taeda/abi.h"
)
IS_WINDOWS, IS_LINUX, IS_MACOS = (sys.platform == name for name in ("win32", "linux", "darwin"))
#: The folder of NVIDIA's toolkit, if there is one.
CUDA_HOME = _cuda_toolkit.home()
_find_cuda_home = _cuda_toolkit.home  # which programs ask for again
#: Homes of other toolkits: none.
ROCM_HOME = HIP_HOME = CUDNN_HOME = SYCL_HOME = None
IS_HIP_EXTENSION = False
SyclExtension = _absent.function("taeda.utils.cpp_extension.SyclExtension", _NO_TOOLKIT)

#: What sources of CUDA are compiled with beside the host's options.
COMMON_NVCC_FLAGS = ["--expt-relaxed-constexpr"]
#: The end of a library's name.
LIB_EXT = CLIB_EXT = ".dylib" if sys.platform == "darwin" else ".so"
#: The end of a program's name, and what asks a linker for a library.
EXEC_EXT, SHARED_FLAG = "", "-shared"
#: What every extension is compiled with.
FLAGS = ("-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-fwrapv")
_PREFIX = "#include <taeda/extension.h>\n"
_CUDA_PREFIX = "#include <cuda_runtime.h>\n#include <ATen/cuda/CUDAContext.h>\n"
_loaded: dict[Path, Any] = {}


def include_paths(device_type: str = "cpu") -> list[str]:
    """Folders to compile extensions against: taeda's headers, those of PyTorch's names, pybind11's and Python's.

    Args:
        device_type: "cuda" adds headers of NVIDIA's toolkit, and those that PyTorch has for it.

    Raises:
        RuntimeError: pybind11 is not installed.
        OSError: There is no toolkit.
    """
    more = _cuda_toolkit.include_dirs() if device_type == "cuda" else []
    return [*_own_headers(), *more, *_foreign_headers()]


def library_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """Folders of libraries to link: the toolkit's with "cuda"; taeda is met when an extension is loaded."""
    return _cuda_toolkit.library_dirs() if device_type == "cuda" else []


def _own_headers() -> list[str]:
    spec = importlib.util.find_spec("taeda_tensor_core")
    assert spec is not None and spec.origin is not None, "taeda imports it"
    folder = Path(spec.origin).parent / "include"
    return [str(folder), str(folder / "taeda" / "torch_names")]


def _foreign_headers() -> list[str]:
    try:
        import pybind11
    except ImportError as error:
        raise RuntimeError("cpp_extension: pybind11 is not installed; try: pip install pybind11") from error
    return [pybind11.get_include(), sysconfig.get_path("include")]


def is_ninja_available() -> bool:
    """Whether the build tool ninja can be called. Nothing here needs it."""
    return shutil.which("ninja") is not None


def verify_ninja_availability() -> None:
    """RuntimeError where ninja cannot be called."""
    if not is_ninja_available():
        raise RuntimeError("Ninja is required to load C++ extensions (pip install ninja to get it)")


def get_default_build_root() -> str:
    """The folder below which extensions are kept: `TAEDA_EXTENSIONS_DIR`, or one in the user's cache."""
    chosen = os.environ.get("TAEDA_EXTENSIONS_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return chosen or str(Path(home) / "taeda_extensions")


def _get_build_directory(name: str, verbose: bool = False) -> str:
    """The folder in which an extension of that name is kept; it is made if it is not there.

    Args:
        name: The extension's name.
        verbose: Print the folder.
    """
    folder = Path(get_default_build_root()) / name
    folder.mkdir(parents=True, exist_ok=True)
    if verbose:
        print(f"Using {folder} as the folder of extension {name}")
    return str(folder)


def get_cxx_compiler() -> str:
    """The command of the compiler, whether there is one or not: `CXX`, or `c++`."""
    return os.environ.get("CXX", "c++")


def _compiler() -> list[str]:
    """The command of the compiler: `CXX`, or `c++`.

    Raises:
        RuntimeError: There is none.
    """
    command = shlex.split(get_cxx_compiler())
    if shutil.which(command[0]) is None:
        raise RuntimeError(f"cpp_extension: the compiler {command[0]!r} was not found; set CXX")
    return command


def _strings(name: str, given: Sequence[str] | str | None) -> list[str]:
    values = [given] if isinstance(given, (str, os.PathLike)) else list(given or ())
    if not all(isinstance(value, (str, os.PathLike)) for value in values):
        raise TypeError(f"cpp_extension: argument {name!r} must be strings, found {given!r}")
    return [os.fspath(value) for value in values]


def _digest(parts: Iterable[bytes]) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "little") + part)
    return found.hexdigest()[:32]


@dataclass(frozen=True)
class _Build:
    """One extension: what it is made of, and where it is kept."""

    name: str
    sources: tuple[Path, ...]
    compile_flags: tuple[str, ...]
    device_command: tuple[str, ...]
    link_flags: tuple[str, ...]
    root: Path
    verbose: bool

    def folder(self) -> Path:
        """Where builds of these sources with these flags lie, whatever headers they include."""
        compiler = _compiler()
        version = subprocess.run([*compiler, "--version"], capture_output=True, check=False).stdout
        facts = [
            self.name,
            sys.version,
            *compiler,
            *self.compile_flags,
            "",
            *self.device_command,
            "",
            *self.link_flags,
        ]
        texts = [path.read_bytes() for path in self.sources]
        return self.root / self.name / _digest([version, *map(os.fsencode, facts), *texts])

    def library(self, folder: Path) -> Path:
        """The library for the headers as they are now; those that were included the last time are listed beside it."""
        listed = folder / "headers.json"
        headers = json.loads(listed.read_text(encoding="utf-8")) if listed.exists() else []
        texts = [Path(name).read_bytes() if Path(name).exists() else b"" for name in headers]
        return folder / _digest(texts) / f"{self.name}{sysconfig.get_config_var('EXT_SUFFIX')}"

    def made(self) -> Path:
        """The path of the library, which is compiled unless it is there.

        Raises:
            RuntimeError: The compiler refused a source; its words are in the text.
        """
        folder = self.folder()
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / "lock"):
            if not (library := self.library(folder)).exists():
                with tempfile.TemporaryDirectory(dir=folder) as scratch:
                    made = self._compiled(Path(scratch))
                    (folder / "headers.json").write_text(
                        json.dumps(self._included(Path(scratch))), encoding="utf-8"
                    )
                    library = self.library(folder)
                    library.parent.mkdir(exist_ok=True)
                    os.replace(made, library)
        return library

    def _compiled(self, scratch: Path) -> Path:
        objects = [scratch / f"{i}.o" for i in range(len(self.sources))]
        compiler = _compiler()
        jobs = int(os.environ.get("MAX_JOBS", "0")) or len(os.sched_getaffinity(0))
        commands = [
            [
                *(self.device_command if _is_cuda_file(source) else (*compiler, *self.compile_flags)),
                *("-MMD", "-MF", str(made.with_suffix(".d"))),
                *("-c", str(source), "-o", str(made)),
            ]
            for source, made in zip(self.sources, objects, strict=True)
        ]
        with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
            list(pool.map(self._run, commands))
        library = scratch / "library.so"
        self._run([*compiler, "-shared", *map(str, objects), "-o", str(library), *self.link_flags])
        return library

    def _run(self, command: list[str]) -> None:
        if self.verbose:
            print(shlex.join(command), flush=True)
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if self.verbose and done.stdout:
            print(done.stdout, flush=True)
        if done.returncode != 0:
            raise RuntimeError(
                f"Error building extension '{self.name}':\n{shlex.join(command)}\n{done.stdout}"
            )

    def _included(self, scratch: Path) -> list[str]:
        """Headers that the sources included, system's apart."""
        own = {str(source) for source in self.sources}
        found: set[str] = set()
        for listed in scratch.glob("*.d"):
            text = os.fsdecode(listed.read_bytes()).replace("\\\n", " ").partition(": ")[2]
            found |= {os.path.abspath(name) for name in shlex.split(text)} - own
        return sorted(found)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time."""
    import fcntl

    with path.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _refuse_other(*given: Any) -> None:
    if any(given):
        raise NotImplementedError(f"cpp_extension: {_NO_TOOLKIT}")


def _is_cuda_file(path: str | os.PathLike[str]) -> bool:
    return Path(path).suffix in (".cu", ".cuh")


def load(
    name: str,
    sources: str | Sequence[str],
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | str | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
) -> Any:
    """Compile an extension, unless it is kept from before, and load it.

    Args:
        name: Of the module; sources see it as `TAEDA_EXTENSION_NAME`.
        sources: Paths of C++ files, and of CUDA's (`.cu`), which NVIDIA's compiler nvcc compiles.
        extra_cflags, extra_cuda_cflags, extra_ldflags: Further options of the compiler, of nvcc and of the linker.
        extra_include_paths: Further folders of headers.
        build_directory: Where it is kept; `get_default_build_root()` without.
        verbose: Print the commands, and what the compiler says.
        is_python_module: Whether it is a module of pybind11; else its `TAEDA_LIBRARY` blocks are registered, and their
            operators found under `taeda.ops`.
        with_cuda: Whether CUDA's headers and runtime are taken; without, where a source is one of CUDA.
        extra_sycl_cflags, with_sycl, is_standalone: must be left out.
        keep_intermediates: Not used: nothing but the library is kept.

    Returns:
        The module; None where it is none.

    Raises:
        RuntimeError: A source cannot be compiled, or there is no compiler or pybind11.
        OSError: A source of CUDA, and no nvcc (`CUDA_HOME` says where it is).
        NotImplementedError: Something other than C++ and CUDA is asked for.

    Example:
        >>> lltm = taeda.utils.cpp_extension.load("lltm", ["lltm.cpp"])  # doctest: +SKIP
    """
    _refuse_other(with_sycl, extra_sycl_cflags, is_standalone)
    if not name.isidentifier():
        raise ValueError(f"load: argument 'name' must be an identifier, found {name!r}")
    paths = tuple(Path(source).resolve() for source in _strings("sources", sources))
    if not paths:
        raise ValueError("load: argument 'sources' names no file")
    with_cuda = any(map(_is_cuda_file, paths)) if with_cuda is None else with_cuda
    device_type = "cuda" if with_cuda else "cpu"
    defined = [f"-DTAEDA_EXTENSION_NAME={name}", f"-DTORCH_EXTENSION_NAME={name}"]
    defined += [] if is_python_module else ["-DTAEDA_EXTENSION_PLUGIN"]
    defined += ["-DWITH_CUDA"] if with_cuda else []
    defined += [
        f"-I{path}" for path in (*_strings("extra_include_paths", extra_include_paths), *_own_headers())
    ]
    others = include_paths(device_type)[len(_own_headers()) :]
    defined += [option for path in others for option in ("-isystem", path)]
    links = _strings("extra_ldflags", extra_ldflags)
    device: list[str] = []
    if with_cuda:
        device = _cuda_toolkit.command([*defined, *_strings("extra_cuda_cflags", extra_cuda_cflags)])
        links += [f"-L{folder}" for folder in library_paths("cuda")]
        links += [f"-l{library}" for library in _cuda_toolkit.LIBRARIES]
    flags = (*FLAGS, *defined, *_strings("extra_cflags", extra_cflags))
    root = Path(build_directory or get_default_build_root())
    library = _Build(name, paths, flags, tuple(device), tuple(links), root, verbose).made()
    return _module(name, library) if is_python_module else _plugin(library)


def _module(name: str, library: Path) -> Any:
    if library not in _loaded:
        spec = importlib.util.spec_from_file_location(name, library)
        assert spec is not None and spec.loader is not None, "a library has a loader"
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        _loaded[library] = module
    return _loaded[library]


def _plugin(library: Path) -> None:
    from taeda import backends

    if library not in _loaded:
        backends.load(str(library))
        _loaded[library] = None


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    cuda_sources: str | Sequence[str] | None = None,
    sycl_sources: str | Sequence[str] | None = None,
    functions: str | Sequence[str] | Mapping[str, str] | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | str | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
) -> Any:
    """As `load`, of sources that are given as text.

    Args:
        cpp_sources: Texts, which are one file; `taeda/extension.h` is included in front.
        cuda_sources: Texts of CUDA, which are another one; its functions are declared in the first.
        functions: Names of functions that the module has, or a dict that gives their docstrings.
        no_implicit_headers: Include nothing in front.
        with_pytorch_error_handling, use_pch: Not used: errors always keep their classes.
        name, extra_cflags, extra_cuda_cflags, extra_ldflags, extra_include_paths, build_directory, verbose, with_cuda,
            is_python_module, keep_intermediates: As for `load`.
        sycl_sources, extra_sycl_cflags, with_sycl: must be left out.

    Returns:
        The module; None where it is none.

    Example:
        >>> text = "taeda::Tensor twice(const taeda::Tensor& x) { return x + x; }"
        >>> taeda.utils.cpp_extension.load_inline("doubling", text, functions="twice").twice(x)
    """
    _refuse_other(with_sycl, sycl_sources)
    text = "\n".join(["" if no_implicit_headers else _PREFIX, *_strings("cpp_sources", cpp_sources)])
    if functions is not None:
        named = (
            functions if isinstance(functions, Mapping) else {f: f for f in _strings("functions", functions)}
        )
        lines = "".join(
            f'  m.def("{f}", &{f}, {json.dumps(doc, ensure_ascii=False)});\n' for f, doc in named.items()
        )
        text += f"\nPYBIND11_MODULE(TAEDA_EXTENSION_NAME, m) {{\n{lines}}}\n"
    folder = Path(build_directory or get_default_build_root()) / name / "inline"
    sources = [_kept_text(folder, text, ".cpp")]
    if device_texts := _strings("cuda_sources", cuda_sources):
        start = "" if no_implicit_headers else _PREFIX + _CUDA_PREFIX
        sources.append(_kept_text(folder, "\n".join([start, *device_texts]), ".cu"))
    return load(
        name,
        sources,
        extra_cflags=extra_cflags,
        extra_cuda_cflags=extra_cuda_cflags,
        extra_sycl_cflags=extra_sycl_cflags,
        extra_ldflags=extra_ldflags,
        extra_include_paths=extra_include_paths,
        build_directory=build_directory,
        verbose=verbose,
        with_cuda=with_cuda,
        is_python_module=is_python_module,
        keep_intermediates=keep_intermediates,
    )


def _kept_text(folder: Path, text: str, suffix: str) -> str:
    """The path of a file of that text."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"{_digest([text.encode()])}{suffix}"
    if not source.exists():
        files.write(source, [text.encode()])
    return str(source)


def CppExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """An extension of setuptools, compiled against taeda; `BuildExtension` builds it.

    Args:
        name, sources: Of the module.
        args, kwargs: As `setuptools.Extension` takes them.

    Example:
        >>> setup(
        ...     name="lltm_cpp",
        ...     ext_modules=[CppExtension("lltm_cpp", ["lltm.cpp"])],
        ...     cmdclass={"build_ext": BuildExtension},
        ... )
    """
    from setuptools import Extension

    kwargs["include_dirs"] = [*kwargs.get("include_dirs", ()), *include_paths()]
    kwargs["language"] = "c++"
    return Extension(name, sources, *args, **kwargs)


def CUDAExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """As `CppExtension`, with sources of CUDA (`.cu`) among them, which nvcc compiles.

    Its kernels meet tensors of a device "cuda" (taeda-tensor-cuda); `extra_compile_args` may be a dict of "cxx" and
    "nvcc". `TORCH_CUDA_ARCH_LIST` names the devices to compile for.

    Args:
        name, sources: Of the module.
        args, kwargs: As `setuptools.Extension` takes them.

    Raises:
        OSError: There is no nvcc; `CUDA_HOME` says where it is.

    Example:
        >>> made = CUDAExtension("lltm_cuda", ["lltm.cpp", "lltm_kernel.cu"], extra_compile_args={"nvcc": ["-O3"]})
    """
    from setuptools import Extension

    kwargs["include_dirs"] = [*kwargs.get("include_dirs", ()), *include_paths("cuda")]
    kwargs["library_dirs"] = [*kwargs.get("library_dirs", ()), *library_paths("cuda")]
    kwargs["libraries"] = [*kwargs.get("libraries", ()), *_cuda_toolkit.LIBRARIES]
    kwargs["define_macros"] = [*kwargs.get("define_macros", ()), ("WITH_CUDA", None)]
    kwargs["language"] = "c++"
    return Extension(name, sources, *args, **kwargs)


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Whether a compiler can be called."""
    return shutil.which(compiler) is not None


def __getattr__(name: str) -> Any:
    if name == "BuildExtension":  # setuptools is needed by who uses it alone
        from taeda.utils import _build_extension

        return _build_extension.BuildExtension
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
