"""Hold taeda's operators against PyTorch's operator records: all their samples and wrong calls, through both libraries.

    python tests/parity/operators.py linalg.solve 'fft.*'    # some operators (shell patterns), differences in full
    python tests/parity/operators.py --dtype float32 --kind gradient cumsum
    python tests/parity/operators.py --jobs 2 --write        # all of them; writes docs/parity.md

For each operator: results on all samples of all dtypes ("forward"), gradients, the method, operator, in-place and out=
forms, which results are views, further names, and wrong calls. What differs on purpose stands in exceptions.yaml with
the reason; an entry there that nothing needs is reported. `--samples N` takes the first N samples of each dtype.
All of them take hours on two cores: `--kept FILE` keeps each result as it comes and goes on where an earlier run
stopped; operators named by patterns are examined anew.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import torch
from op_checks import Operator, label
from op_report import Entry, summary, table
from op_samples import op_records
from op_workers import results_of

PAGE = Path(__file__).parents[2] / "docs" / "parity.md"


def examine(record, options: argparse.Namespace) -> Entry:
    """Run one record."""
    start = time.perf_counter()
    operator = Operator(record, options.samples)
    dtypes = {getattr(torch, name) for name in options.dtype}
    operator.run(dtypes, set(options.kind))
    return Entry.of(operator, time.perf_counter() - start)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("patterns", nargs="*", default=["*"], help="names of operators, shell patterns")
    parser.add_argument("--dtype", action="append", default=[], help="only this dtype")
    parser.add_argument("--kind", action="append", default=[], help="only this kind of check")
    parser.add_argument("--samples", type=int, help="the first so many samples of each dtype")
    parser.add_argument("--jobs", type=int, default=0, help="processes; 0: this one")
    parser.add_argument("--write", action="store_true", help="write docs/parity.md")
    parser.add_argument("--kept", type=Path, help="a file of results: go on from it, keep them in it")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def serve(records: dict, options: argparse.Namespace) -> None:
    """Examine the records whose names come in, one a line."""
    for line in sys.stdin:
        entry = examine(records[line.strip()], options)
        print(json.dumps(entry.as_json()), file=sys.__stdout__, flush=True)


def kept(path: Path | None) -> list[Entry]:
    """The entries of a file of results, one a line; the last of each name counts."""
    lines = path.read_text().splitlines() if path and path.exists() else []
    return [Entry.from_json(json.loads(line)) for line in lines]


def main() -> int:
    options = arguments()
    records = {label(r): r for r in op_records()}
    if options.worker:
        sys.stdout = sys.stderr
        serve(records, options)
        return 0
    chosen = [
        name
        for name, record in records.items()
        if any(fnmatch.fnmatchcase(name, p) or record.name == p for p in options.patterns)
    ]
    if not chosen:
        print("no operator of PyTorch's records is called", *options.patterns)
        return 2
    entries = {e.name: e for e in kept(options.kept) if e.name in records}
    if options.patterns == ["*"]:
        chosen = [name for name in chosen if name not in entries]
    detailed = len(chosen) <= 20
    if options.jobs:
        results = results_of(chosen, options.jobs, forwarded(options))
    else:
        results = (examine(records[name], options) for name in chosen)
    for entry in results:
        entries[entry.name] = entry
        print(entry.text(detailed), flush=True)
        if options.kept:
            with options.kept.open("a") as file:
                print(json.dumps(entry.as_json()), file=file)
    entries = sorted(entries.values(), key=lambda e: e.name)
    print(summary(entries, complete=len(entries) == len(records)))
    if options.write:
        PAGE.write_text(table(entries))
    return 0 if all(e.state == "passed" for e in entries) else 1


def forwarded(options: argparse.Namespace) -> list[str]:
    """The command-line arguments that workers get."""
    given = [f"--{name}={value}" for name in ("dtype", "kind") for value in getattr(options, name)]
    return given + ([f"--samples={options.samples}"] if options.samples else [])


if __name__ == "__main__":
    sys.exit(main())
