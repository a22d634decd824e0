"""What plug-ins cost: the way to a third party's C kernel, and installed plug-ins that nobody asks for."""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from _measure import LIBRARIES, table

SOURCE = Path(__file__).with_name("plugin_kernel.c")
IMPORT = """
import sys, time
start = time.perf_counter()
import taeda
first = time.perf_counter()
taeda.zeros(1)
print(first - start, time.perf_counter() - start)
"""


def build(folder: Path) -> Path:
    """The plug-in, compiled against the header alone."""
    import taeda_registry

    library = folder / "libplugin_kernel.so"
    options = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC"]
    include = f"-I{taeda_registry.include_dir()}"
    subprocess.run(["cc", *options, include, str(SOURCE), "-o", str(library)], check=True)
    return library


def in_turn(
    first: tuple[Callable[[], object], Callable[[], object]],
    second: tuple[Callable[[], object], Callable[[], object]],
    calls: int = 20_000,
    rounds: int = 31,
) -> tuple[float, float]:
    """Median microseconds per call of two programs, each prepared before its samples, interleaved."""
    samples: tuple[list[float], list[float]] = ([], [])
    for _round in range(rounds):
        for (prepare, run), found in zip((first, second), samples, strict=True):
            prepare()
            found.append(timeit.timeit(run, number=calls) / calls * 1e6)
    return median(samples[0]), median(samples[1])


def kernel_rows(folder: Path) -> Iterator[list[str]]:
    """Built-in kernels and a third party's in their place, on a tensor of four elements."""
    import taeda

    taeda.set_num_threads(1)
    library = build(folder)
    taeda.backends.load(library)
    plugin = ctypes.CDLL(str(library))

    def theirs() -> None:
        plugin.take()
        assert plugin.put() == 0

    ours = plugin.take
    a, b = taeda.ones(4), taeda.ones(4)
    out = taeda.empty(4)
    tracked = taeda.ones(4, requires_grad=True)
    programs = {
        "-a": lambda: -a,
        "a + b": lambda: a + b,
        "a.add_(b)": lambda: a.add_(b),
        "add(a, b, out=out)": lambda: taeda.add(a, b, out=out),
        "a + b with gradient": lambda: tracked + b,
    }
    for text, program in programs.items():
        built_in, third = in_turn((ours, program), (theirs, program))
        yield [text, f"{built_in:.3f}", f"{third:.3f}", f"{third - built_in:+.3f}"]
    ours()
    own, neg = taeda.ops.benchmark.neg, taeda.library.op("neg")
    built_in, third = in_turn((ours, lambda: neg(a)), (ours, lambda: own(a)))
    yield ["an operator of its own, by name", f"{built_in:.3f}", f"{third:.3f}", f"{third - built_in:+.3f}"]
    minus = programs["-a"]
    built_in, third = in_turn((lambda: plugin.watch(0), minus), (lambda: plugin.watch(1), minus))
    plugin.watch(0)
    yield ["-a through a layer", f"{built_in:.3f}", f"{third:.3f}", f"{third - built_in:+.3f}"]


def install(folder: Path, plugins: int) -> Path:
    """A site with that many distributions, each with a device and a provider, and as many modules without."""
    site = folder / f"site{plugins}"
    for number in range(plugins):
        info = site / f"stranger_{number}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: stranger-{number}\nVersion: 1.0\n", encoding="utf-8"
        )
        (info / "entry_points.txt").write_text(
            f"[taeda.backends]\ndev{number} = stranger_{number}\n[taeda.components]\n"
            f"optim.lion{number} = stranger_{number}\n",
            encoding="utf-8",
        )
        (site / f"stranger_{number}.py").write_text("raise RuntimeError('nobody asked')\n", encoding="utf-8")
    site.mkdir(exist_ok=True)
    return site


def import_rows(folder: Path, plugins: int = 50, rounds: int = 41) -> Iterator[list[str]]:
    """Time of `import taeda` in fresh interpreters beside an empty site and one full of plug-ins, in turn."""
    sites = {f"{count} plug-ins installed": install(folder, count) for count in (0, plugins)}
    statements = ("import taeda", "import taeda; taeda.zeros(1)")
    samples: dict[tuple[str, str], list[float]] = {(s, name): [] for s in statements for name in sites}
    for _round in range(rounds):
        for name, site in sites.items():
            path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH", "")]))
            result = subprocess.run(
                [sys.executable, "-c", IMPORT],
                env={**os.environ, "PYTHONPATH": path},
                capture_output=True,
                text=True,
                check=True,
            )
            for statement, seconds in zip(statements, result.stdout.split(), strict=True):
                samples[statement, name].append(float(seconds) * 1e3)
    for (statement, name), found in samples.items():
        low, high = sorted(found)[len(found) // 4], sorted(found)[3 * len(found) // 4]
        yield [f"{statement}, {name}", f"{median(found):.2f}", f"{low:.2f} to {high:.2f}"]


def main() -> None:
    """Prints both tables."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--libraries", default=",".join(LIBRARIES), help="taken and not used: taeda alone is measured"
    )
    options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        header = ["call (float32, 4 elements)", "built-in, us", "third party, us", "difference"]
        table("The way to a third party's C kernel", header, kernel_rows(Path(folder)))
        header = ["statement", "median, ms", "middle half"]
        table("Installed plug-ins that nobody asks for", header, import_rows(Path(folder)))


if __name__ == "__main__":
    main()
