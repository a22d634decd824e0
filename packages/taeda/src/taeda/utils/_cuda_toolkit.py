"""NVIDIA's toolkit, as extensions with sources of CUDA need it: where it is, and what its compiler is told."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

#: What every source of CUDA is compiled with.
FLAGS = (
    "-std=c++20",
    "--expt-relaxed-constexpr",
    "--compiler-options=-O2,-fPIC,-fvisibility=hidden,-fwrapv",
    "-DTAEDA_HOST_DEVICE=__host__ __device__",
)
# Code of its own for one device, and PTX that later ones run: as taeda-tensor-cuda is built.
_DEFAULT = "8.0+PTX;9.0"
#: Headers that PyTorch has for sources of CUDA.
HEADERS = str(Path(__file__).parent / "device_names")


def _places() -> Iterator[Path]:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            yield Path(os.environ[name])
    yield Path("/usr/local/cuda")
    if found := shutil.which("nvcc"):
        yield Path(found).resolve().parents[1]
    spec = importlib.util.find_spec("nvidia")  # as pip installs it
    for folder in spec.submodule_search_locations or () if spec else ():
        yield from sorted(Path(folder).glob("cu*"), reverse=True)


def home() -> str | None:
    """The toolkit's folder: `CUDA_HOME` or `CUDA_PATH`, where NVIDIA's installers put it, on the path, or pip's."""
    return next((str(place) for place in _places() if (place / "bin" / "nvcc").is_file()), None)


def required() -> Path:
    """As `home`.

    Raises:
        OSError: There is no toolkit.
    """
    found = home()
    if found is None:
        raise OSError(
            "cpp_extension: sources of CUDA need NVIDIA's compiler nvcc, which is not in CUDA_HOME, in "
            "/usr/local/cuda, on the path, or among installed packages; install the CUDA toolkit "
            "(pip install nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-cccl), or set CUDA_HOME to its folder"
        )
    return Path(found)


def architectures(flags: Sequence[str] = ()) -> list[str]:
    """What nvcc is told of the devices to compile for, unless `flags` say it.

    `TORCH_CUDA_ARCH_LIST` or `TAEDA_CUDA_ARCHITECTURES` name them, as in "8.0;9.0+PTX" or "80;90".

    Raises:
        ValueError: A name that is none.
    """
    if any("arch" in flag or "-gencode" in flag for flag in flags):
        return []
    wanted = os.environ.get("TORCH_CUDA_ARCH_LIST") or os.environ.get("TAEDA_CUDA_ARCHITECTURES") or _DEFAULT
    chosen = []
    for word in wanted.replace(" ", ";").replace(",", ";").strip(";").split(";"):
        number = word.removesuffix("+PTX").replace(".", "")
        if not number[:-1].isdigit():
            raise ValueError(
                f"cpp_extension: expected devices such as '8.0;9.0+PTX' in TORCH_CUDA_ARCH_LIST, found {wanted!r}"
            )
        codes = f"sm_{number},compute_{number}" if word.endswith("+PTX") else f"sm_{number}"
        chosen.append(f"-gencode=arch=compute_{number},code=[{codes}]")
    return chosen


def command(flags: Sequence[str]) -> list[str]:
    """nvcc with its options; `flags` are the extension's own."""
    return [str(required() / "bin" / "nvcc"), *FLAGS, *architectures(flags), *flags]


def include_dirs() -> list[str]:
    """Folders of headers, of sources of C++ too: those by PyTorch's names, and the toolkit's."""
    return [HEADERS, str(required() / "include")]


def library_dirs() -> list[str]:
    """Folders of the toolkit's libraries."""
    return [str(folder) for name in ("lib64", "lib") if (folder := required() / name).is_dir()]


#: Libraries to link: the runtime is taken in, so that the extension runs where no toolkit is.
LIBRARIES = ("cudart_static", "dl", "rt", "pthread")
