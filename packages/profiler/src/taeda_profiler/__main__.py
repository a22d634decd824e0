"""``python -m taeda_profiler script.py args``: what a script spends its time on.

Prints the table of operators, the costliest places in the script's own code and hints in plain words, and writes the
trace as a page.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from taeda_profiler._recorder import DEFAULT_MB
from taeda_profiler.hints import costliest_places, hints
from taeda_profiler.profiles import profile
from taeda_profiler.scripts import run_script
from taeda_profiler.table import time_text


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a script under the profiler; the exit status is the script's."""
    parser = argparse.ArgumentParser(prog="python -m taeda_profiler", description=__doc__)
    parser.add_argument("--html", default="profile.html", help="the page (default: %(default)s)")
    parser.add_argument("--trace", help="write a trace for Perfetto and chrome://tracing too")
    parser.add_argument("--rows", type=int, default=15, help="rows of the table (default: %(default)s)")
    parser.add_argument(
        "--sort-by", default="self_cpu_time_total", help="column to sort by (default: %(default)s)"
    )
    parser.add_argument(
        "--max-mb", type=float, default=DEFAULT_MB, help="room for events (default: %(default)s)"
    )
    parser.add_argument("script", help="the program")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    options = parser.parse_args(arguments)
    found = profile(
        record_shapes=True, profile_memory=True, with_stack=True, with_modules=True, max_mb=options.max_mb
    )
    status: object = 0
    with found:
        try:
            run_script(options.script, options.args)
        except SystemExit as end:
            status = end.code
    _report(found, options)
    if isinstance(status, int):
        return status
    print(status, file=sys.stderr)
    return 1


def _report(found: profile, options: argparse.Namespace) -> None:
    print(found.key_averages().table(sort_by=options.sort_by, row_limit=options.rows))
    places = costliest_places(found.trace)
    if places:
        print("The costliest places:")
    for place in places:
        print(f"  {time_text(place.time):>12}  {place.calls:>8} events  {place.line}")
    for hint in hints(found._found("hints")):
        print(f"* {hint}")
    found.export_html(options.html, title=options.script)
    print(f"The timeline is in {options.html}")
    if options.trace:
        found.export_chrome_trace(options.trace)
        print(f"The trace is in {options.trace}")


if __name__ == "__main__":
    sys.exit(main())
