"""What a clean build of the native packages costs, in a temporary copy and without a compiler cache.

python tools/build_budget.py                     this tree
python tools/build_budget.py --operators 300     with 300 operators more: the element-wise, reducing and composite
                                                 examples of docs/guides/add-an-operator.md, over and over

Prints the processor time of all compilers, the time by the clock and the size of the libraries once stripped. Processor
time is what to compare: the clock also counts what else the machine does. Run as `python -m nox -s budget`.
"""

from __future__ import annotations

import argparse
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import growth
import try_operators
from new_operator import insert_record

KINDS = ("absolute_difference", "peak_to_peak", "cube")
COPIED = tuple(part for part in try_operators.COPIED if part != "packages/testing")


@dataclass(frozen=True)
class Cost:
    """Processor seconds and seconds by the clock."""

    processor: float
    clock: float


def processor_seconds() -> float:
    """Of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def multiply(copy: Path, count: int) -> None:
    """Adds `count` operators to the copy: the guide's examples under made-up names."""
    blocks: dict[str, list[re.Match[str]]] = {}
    name = ""
    for block in try_operators.BLOCK.finditer(try_operators.PAGE.read_text(encoding="utf-8")):
        if block["side"] is None:
            name = re.search(r"^- op: (\S+)", block["code"], re.M)[1]
        blocks.setdefault(name, []).append(block)
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        new = f"budget_{kind}_{number}"
        for block in blocks[kind]:
            path = copy / block["path"]
            if not path.is_file():
                continue  # its sample record: tests are not built
            code = re.sub(rf"\b{kind}", new, block["code"]).replace(camel(kind), camel(new))
            text = path.read_text(encoding="utf-8")
            if block["side"] is None:
                text = insert_record(text, code)
            else:
                line = block["text"].replace('\\"', '"')
                text = try_operators.insert_beside(text, block["side"], line, code)
            path.write_text(text, encoding="utf-8")


def build(copy: Path, package: str) -> Cost:
    """Build one package of the copy in place."""
    processor, clock = processor_seconds(), time.monotonic()
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    path = growth.import_path(copy, COPIED)
    growth.run(*command, folder=copy / package, CCACHE_DISABLE="1", PYTHONPATH=path)
    return Cost(processor_seconds() - processor, time.monotonic() - clock)


def by_folder(log: Path) -> Counter[str]:
    """Seconds of the compilers, by target and folder."""
    seconds: Counter[str] = Counter()
    for line in log.read_text(encoding="utf-8").splitlines()[1:]:
        begin, end, _, output, _ = line.split("\t")
        group = re.sub(r"CMakeFiles/|\.dir|/[^/]*$", "", output)
        generated = re.search(r"generated/([a-z]+)_", output)
        seconds[f"{group}/{generated[1]}_*" if generated else group] += (int(end) - int(begin)) / 1000
    return seconds


def stripped_size(library: Path, folder: Path) -> int:
    copy = shutil.copy2(library, folder / "stripped")
    subprocess.run(["strip", copy], check=True)
    return Path(copy).stat().st_size


def report(copy: Path, scratch: Path) -> None:
    """Sizes of what was built, and where the time went."""
    for library in (*copy.glob("packages/*/build/*/lib/libtaeda.so"), *copy.glob("packages/*/build/*/_C.*")):
        size = stripped_size(library, scratch) / 1e6
        print(f"{library.relative_to(copy / 'packages').parts[0]:12} {library.name:45} {size:6.2f} MB")
    for log in sorted(copy.glob("packages/*/build/*/.ninja_log"), reverse=True):
        for group, seconds in by_folder(log).most_common():
            if seconds >= 1:
                print(f"{seconds:8.0f} s  {group}")


def main() -> None:
    """Copy, multiply, build and print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--operators", type=int, default=0, metavar="N", help="operators to add to the copy")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy"
        growth.copy_sources(copy, COPIED)
        multiply(copy, chosen.operators)
        costs = {part: build(copy, f"packages/{part}") for part in ("tensor-core", "autograd")}
        for part, cost in costs.items():
            print(f"{part:12} {cost.processor:6.0f} s of processors, {cost.clock:6.0f} s by the clock")
        report(copy, Path(scratch))


if __name__ == "__main__":
    main()
