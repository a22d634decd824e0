"""Sessions of the repository; each makes its own environment and does all set-up in it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import nox

nox.options.sessions = ["lint", "tests"]
nox.options.default_venv_backend = "virtualenv"
nox.needs_version = ">=2024.4.15"

ROOT = Path(__file__).parent
# What a build needs beside the vendor libraries.
BUILDING = ("setuptools>=77", "cmake>=3.22", "ninja", "pyyaml>=6", "numpy>=1.26", "pythran>=0.15")
ARRAY_API_SUITE = "https://github.com/data-apis/array-api-tests"
RIVAL = "torch==2.13.0"
# Other people's models, which must run unmodified.
ZOO = ("torchvision==0.28.0", "timm==1.0.31", "transformers==5.23.0")
# Other people's libraries, over each of which a small program runs on both.
LIBRARIES = "tests/parity/libraries/requirements.txt"
LIBRARIES_ALONE = "tests/parity/libraries/requirements_alone.txt"
FORMATTER = "ruff==0.17.5"
NATIVE_FORMATTER = "clang-format==23.1.5"
TYPE_CHECKER = "mypy==2.4.1"


def install(session: nox.Session, *arguments: str, env: dict[str, str] | None = None) -> None:
    """Build all packages and install them into the session's environment."""
    session.run("python", "tools/install.py", *arguments, env=env or {})


def test_folders() -> list[str]:
    """The packages' own tests and the ones that cross packages."""
    return [*sorted(str(folder.relative_to(ROOT)) for folder in ROOT.glob("packages/*/tests")), "tests"]


@nox.session
def demo(session: nox.Session) -> None:
    """Train a small convolutional network on handwritten digits and show what it learned."""
    install(session)
    session.install("-r", "examples/digits/requirements.txt")
    session.run("python", "examples/digits/train.py", "--output", "demo-output", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run every test of every package and the cross-package ones."""
    install(session, "--with", "test")
    session.install("-r", "tests/requirements.txt")
    session.run("python", "-m", "pytest", *test_folders(), "--ignore=tests/parity", *session.posargs)


@nox.session
def parity(session: nox.Session) -> None:
    """Compare operators, names, gradients and training with PyTorch; docs/parity*.md are written anew."""
    install(session, "--with", "test")
    session.install("-r", "tests/requirements.txt", RIVAL, *ZOO, "-r", LIBRARIES)
    session.install("--no-deps", "-r", LIBRARIES_ALONE)
    # Its report tells what differs; the tests below are what fails.
    session.run("python", "tests/parity/operators.py", "--jobs=2", "--write", success_codes=[0, 1])
    session.run("python", "tests/parity/names.py", "--write")
    session.run("python", "tests/parity/docstrings.py", "--write", success_codes=[0, 1])
    session.run("python", "-m", "pytest", "tests/parity", *session.posargs)


@nox.session
def array_api(session: nox.Session) -> None:
    """Run the array API standard's own suite on `taeda.array_api`.

    It is fetched with git, or lies in a folder: `-- FOLDER`; further arguments go to pytest.
    """
    install(session)
    folder, *more = session.posargs or [str(Path(session.create_tmp()) / "array-api-tests")]
    if not Path(folder).is_dir():
        session.run("git", "clone", "--recurse-submodules", ARRAY_API_SUITE, folder, external=True)
    session.install("-r", f"{folder}/requirements.txt")
    with session.chdir(folder):
        session.run(
            "python",
            "-m",
            "pytest",
            "array_api_tests",
            # How long an example takes says nothing about its values.
            "--disable-deadline",
            *more,
            env={"ARRAY_API_TESTS_MODULE": "taeda.array_api"},
        )


@nox.session
def bench(session: nox.Session) -> None:
    """Run the same programs on taeda and on PyTorch in turn, and print the ratios."""
    install(session)
    session.install(RIVAL, "pyyaml")
    session.run("python", "benchmarks/run.py", *session.posargs)


THREAD_TESTS = (
    "tests/test_threads.py",
    "packages/autograd/tests/test_threads.py",
    "packages/autograd/tests/test_engine.py",
    "packages/autograd/tests/test_modes.py",
    "packages/tensor-core/tests/test_library.py",
    "packages/tensor-core/tests/test_objects.py",
)


@nox.session
@nox.parametrize("kind", ["address", "thread", "cuda", "pages"], ids=["address", "thread", "cuda", "pages"])
def sanitizers(session: nox.Session, kind: str) -> None:
    """Run the tests on native code with sanitizers: address and undefined behaviour, threads, or CUDA kernels.

    "pages" has a heap of its own instead, for what vendor libraries compile at run time and no sanitizer sees.
    """
    {
        "address": sanitize_addresses,
        "thread": sanitize_threads,
        "cuda": sanitize_cuda,
        "pages": guard_by_pages,
    }[kind](session)


def sanitize_addresses(session: nox.Session) -> None:
    """Every test, with address and undefined-behaviour sanitizers."""
    # Two instruction sets show what a third would.
    install(
        session,
        "--with",
        "test",
        env={"TAEDA_SANITIZE": "address", "TAEDA_CMAKE_ARGS": "-DTAEDA_ISAS=base;avx512"},
    )
    session.install("-r", "tests/requirements.txt")
    runtimes = [runtime(name) for name in ("libasan.so", "libubsan.so", "libstdc++.so")]
    environment = {
        "LD_PRELOAD": " ".join(runtimes),
        # The interpreter keeps memory until it ends, which is no leak of ours.
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "PYTHONMALLOC": "malloc",
    }
    folders = [*test_folders(), "--ignore=tests/parity"]
    session.run("python", "-m", "pytest", *folders, *session.posargs, env=environment)


def sanitize_threads(session: nox.Session) -> None:
    """The tests that run many threads, with the thread sanitizer; a report fails the session."""
    # Vendor libraries are not instrumented, so that what they share between threads would be reported.
    # The interpreter needs not be: its lock is made of calls that the sanitizer sees.
    building = {
        "TAEDA_SANITIZE": "thread",
        "TAEDA_WITHOUT": "onednn,openblas",
        "TAEDA_CMAKE_ARGS": "-DTAEDA_ISAS=base",
    }
    install(session, "--with", "test", env=building)
    session.install("-r", "tests/requirements.txt")
    environment = {
        "LD_PRELOAD": " ".join(runtime(name) for name in ("libtsan.so", "libstdc++.so")),
        "TSAN_OPTIONS": "exitcode=66:history_size=4",
    }
    session.run("python", "-m", "pytest", *(session.posargs or THREAD_TESTS), env=environment)


# The cpu's transforms ask the system for memory in a way that the address sanitizer refuses, wherever they are called.
OPERATORS_UNDER_SANITIZERS = """
from taeda_testing.record import all_records
from taeda_testing.records import fft
transforms = {record.name for record in fft.RECORDS}
print(*(record.name for record in all_records() if record.name not in transforms))
"""


def sanitize_cuda(session: nox.Session) -> None:
    """The CUDA backend on its simulated driver, which ends where a kernel leaves the memory of its tensors.

    Arguments go to the conformance runner, such as `--only add`; without any all operators but transforms are run.
    """
    building = {"TAEDA_CUDA_SANITIZE": "address,undefined", "TAEDA_CUDA_ARCHITECTURES": "none"}
    install(session, "--with", "test", "tensor-cuda", "taeda", env=building)
    environment = {
        "LD_PRELOAD": " ".join(runtime(name) for name in ("libasan.so", "libubsan.so", "libstdc++.so")),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    }
    session.run("python", "-m", "pytest", "packages/tensor-cuda/tests", env=environment)
    environment["TAEDA_CUDA_DRIVER"] = "simulated"
    chosen = list(session.posargs)
    if not chosen:
        names = session.run("python", "-c", OPERATORS_UNDER_SANITIZERS, silent=True) or ""
        chosen = [word for name in names.split() for word in ("--only", name)]
    session.run("python", "-m", "taeda_testing", "backend", "cuda", *chosen, env=environment)


def guard_by_pages(session: nox.Session) -> None:
    """Every operator and the layers of the cpu, where each block of memory ends at a page without access."""
    install(session, "--with", "test")
    session.install("-r", "tests/requirements.txt")
    heap = Path(session.create_tmp()) / "guarded_heap.so"
    session.run(
        "cc", "-O1", "-shared", "-fPIC", "-o", str(heap), str(ROOT / "tools/guarded_heap.c"), external=True
    )
    environment = {"LD_PRELOAD": str(heap), "PYTHONFAULTHANDLER": "1"}
    session.run("python", "-m", "taeda_testing", "backend", "cpu", env=environment)
    tests = session.posargs or ["packages/tensor-core/tests/test_conv.py", "packages/nn/tests"]
    session.run("python", "-m", "pytest", *tests, env=environment)


@nox.session
def growth(session: nox.Session) -> None:
    """Run today's plug-in binaries on a build of taeda whose operators and C ABI have grown."""
    session.install(*BUILDING, "pytest>=8")
    # Vendor libraries change nothing here and would have to be fetched.
    environment = {"TAEDA_WITHOUT": "onednn,openblas"}
    session.run("python", "tools/growth.py", *session.posargs, env=environment)


@nox.session
def budget(session: nox.Session) -> None:
    """Measure a clean build without a compiler cache; `-- --operators 300` adds operators to what is built."""
    for part in ("tensor-core", "autograd"):
        project = nox.project.load_toml(ROOT / "packages" / part / "pyproject.toml")
        needed = project["build-system"]["requires"]
        session.install(*(item for item in needed if not item.startswith("taeda-")))
    session.run("python", "tools/build_budget.py", *session.posargs)


@nox.session
def operators(session: nox.Session) -> None:
    """Follow the guide to adding an operator in a copy, build it and hold the new operators to their records."""
    session.install(*BUILDING, "scipy", "pytest>=8")
    session.run(
        "python", "tools/try_operators.py", *session.posargs, env={"TAEDA_WITHOUT": "onednn,openblas"}
    )


@nox.session
def docs(session: nox.Session) -> None:
    """Build the guides and the reference into docs-output/; a warning is an error."""
    install(session)
    session.install("sphinx==9.0.4", "myst-parser==5.2.0")
    session.run("python", "-m", "sphinx", "-W", "--keep-going", "-q", "docs", "docs-output", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check format, lint rules and the repository's own rules."""
    session.install(FORMATTER, NATIVE_FORMATTER, TYPE_CHECKER, "pyyaml")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("clang-format", "--dry-run", "-Werror", *native_sources(), silent=True)
    session.run("python", "tools/codegen/check.py")
    session.run("python", "tools/docs/core_operators.py", "--check")
    for check in sorted(ROOT.glob("tools/checks/*.py")):
        session.run("python", str(check.relative_to(ROOT)))


def native_sources() -> list[str]:
    """Every C and C++ file under version control."""
    command = ["git", "ls-files", "*.c", "*.cpp", "*.h"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return listed.split()


def runtime(library: str) -> str:
    """Path of one of the compiler's runtime libraries."""
    compiler = os.environ.get("CXX", "c++")
    command = [compiler, f"-print-file-name={library}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
