"""Command line of the conformance kit: ``python -m taeda_testing backend mydev``, ``... provider optim:mypkg``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import taeda_registry
from taeda_testing.conformance import Report, html, run_backend, run_backend_isolated, run_provider, text
from taeda_testing.conformance.capability import KNOWN


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the status is 0 when the implementation conforms, 1 when not, 2 when it cannot be run."""
    options = _parser().parse_args(arguments)
    try:
        _check_writable(options.json, options.html, options.text)
        lacks = dict(_lack(item) for item in options.lacks)
        if options.command == "backend":
            progress = _progress if options.verbose else None
            if options.in_process:
                report = run_backend(options.device, lacks, options.only, progress, options.load)
            else:
                report = run_backend_isolated(
                    options.device, lacks, options.only, progress, options.timeout, options.load
                )
        else:
            slot, _, provider = options.provider.partition(":")
            report = run_provider(slot, provider or None, lacks, options.only)
    except (taeda_registry.RegistryError, RuntimeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    sys.stdout.write(text.render(report, everything=options.all))
    _write(report, options.json, options.html, options.text)
    return 0 if report.passed else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m taeda_testing",
        description="Hold a backend or a provider against the operator records and interface tests.",
        epilog="capabilities for --lacks: " + ", ".join(KNOWN),
    )
    commands = parser.add_subparsers(dest="command", required=True)
    backend = commands.add_parser("backend", help="run every operator record on a device")
    backend.add_argument("device", help="name of the device, for instance mydev or mydev:1")
    backend.add_argument(
        "--in-process",
        action="store_true",
        help="run in this process: a crash ends the run, a debugger can follow it",
    )
    backend.add_argument(
        "--timeout", type=float, default=300, metavar="SECONDS", help="longest time for one operator (300)"
    )
    backend.add_argument(
        "--load",
        metavar="PLUGIN",
        help="load a plug-in that is not installed: a library, a Python file or a module",
    )
    provider = commands.add_parser("provider", help="run a slot's interface tests on a provider")
    provider.add_argument(
        "provider", metavar="SLOT[:PROVIDER]", help="for instance optim:lion; default: the one in force"
    )
    for command in (backend, provider):
        command.add_argument("--json", type=Path, metavar="FILE", help="write the report as JSON")
        command.add_argument("--html", type=Path, metavar="FILE", help="write the report as an HTML page")
        command.add_argument("--text", type=Path, metavar="FILE", help="write the report as text")
        command.add_argument(
            "--lacks", action="append", default=[], metavar="CAPABILITY[=REASON]", help="skip what needs it"
        )
        command.add_argument("--only", action="append", default=[], metavar="NAME", help="run only this item")
        command.add_argument("--all", action="store_true", help="list passed items too")
        command.add_argument("--verbose", action="store_true", help="print each operator before its run")
    return parser


def _lack(argument: str) -> tuple[str, str]:
    name, _, reason = argument.partition("=")
    return name, reason or "said on the command line"


def _progress(name: str) -> None:
    print(name, file=sys.stderr, flush=True)


def _check_writable(*paths: Path | None) -> None:
    """Finds out before the run, which may take minutes."""
    for path in filter(None, paths):
        try:
            path.open("a").close()
        except OSError as error:
            raise ValueError(f"cannot write the report to '{path}': {error.strerror}") from error


def _write(report: Report, json: Path | None, page: Path | None, plain: Path | None) -> None:
    for path, content in ((json, report.to_json), (page, lambda: html.render(report)), (plain, None)):
        if path is not None:
            path.write_text(content() if content else text.render(report), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
