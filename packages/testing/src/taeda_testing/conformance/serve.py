"""The child process of an isolated run: writes what it begins and what came of it, line by line."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from taeda_testing.conformance.isolated import BEGIN, END, ERROR, FACTS, ITEM

Say = Callable[[str, Any], None]


def line_writer() -> Say:
    """Writes lines to what was the standard output, which from now on goes where errors go.

    Whatever kernels print must not get between the lines.
    """
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(kind: str, data: Any) -> None:
        out.write(f"{kind} {json.dumps(data)}\n")
        out.flush()

    return say


def serve(order: dict[str, Any], say: Say) -> None:
    """Runs what is ordered and not yet done."""
    # Loading the tensor provider may print or crash, so it comes after the writer is there.
    from taeda_testing.conformance import devices
    from taeda_testing.conformance.backend import plan

    if order["load"] is not None:
        devices.load(order["load"])
    report, tasks = plan(order["device"], order["lacks"], order["only"])
    say(FACTS, [report.facts, report.lacks])
    for task in tasks:
        if task.name not in order["done"]:
            say(BEGIN, {"name": task.name, "group": task.group, "family": task.family})
            say(ITEM, asdict(task.run()))
    say(END, None)


if __name__ == "__main__":
    writer = line_writer()
    try:
        serve(json.loads(sys.argv[1]), writer)
    except (RuntimeError, ValueError) as error:
        kind = ValueError if isinstance(error, ValueError) else RuntimeError
        writer(ERROR, [kind.__name__, str(error)])
