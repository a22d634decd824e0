"""Builds, tests and measures the CUDA backend on a machine with a GPU, and writes down what it found.

python tools/gpu_check                  # installs, tests, measures
python tools/gpu_check --wheels DIR     # without a network: what pip needs lies in DIR
python tools/gpu_check --no-install     # with what is installed
python tools/gpu_check --only conformance --only measurements  # these steps alone
python tools/gpu_check --simulated --out DIR  # a rehearsal without a GPU: all of it on the simulated driver, in small

It writes docs/benchmarks/gpu.json and gpu.md. Every figure of a GPU in this project is made by it. Without a GPU it
says so, writes nothing and ends with status 3; a failed step is written down and gives status 1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "docs" / "benchmarks"
NO_GPU, FAILED, USAGE = 3, 1, 2
# How long a step may take.
MOST_SECONDS = {
    "install": 1800,
    "tests": 1800,
    "conformance": 3600,
    "conformance without libraries": 3600,
    "kernels": 600,
    "kernels on expanding segments": 600,
    "memcheck": 1800,
    "racecheck": 1800,
    "recurrent layers": 900,
    "sharing": 300,
    "activities": 600,
    "together": 600,
    "fusion": 900,
    "measurements": 1800,
    "kernels, launching thread": 600,
    "measurements, launching thread": 1800,
}
RECURRENT = "packages/tensor-cuda/tests/recurrent_program.py"
# Work put into streams by a thread of its own (docs/design/cuda.md), and what is measured with it.
LAUNCHING = {"TAEDA_CUDA_LAUNCH_THREAD": "1"}
LAUNCHED = ["--more", ", launching thread", "--kind", "queue"]


def graphics_processor() -> tuple[dict[str, str], str]:
    """Facts about the first GPU, or why there is none."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return {}, "there is no nvidia-smi, hence no driver of NVIDIA's"
    fields = "name,driver_version,memory.total,compute_cap"
    command = [tool, f"--query-gpu={fields}", "--format=csv,noheader"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = made.stdout.strip().splitlines()
    if made.returncode != 0 or not lines:
        return {}, f"nvidia-smi shows no GPU: {(made.stdout + made.stderr).strip() or 'no line'}"
    values = [value.strip() for value in lines[0].split(",")]
    return dict(zip(fields.split(","), values, strict=True)), ""


def library_folders() -> str:
    """Where NVIDIA's wheels lie on Python's path, which PyTorch brings; for TAEDA_CUDA_LIBRARIES."""
    told = os.environ.get("TAEDA_CUDA_LIBRARIES")
    found = [str(lib) for entry in sys.path if entry for lib in sorted(Path(entry).glob("nvidia/*/lib"))]
    return told or ":".join(found)


def sanitizer(tool: str) -> list[str]:
    """What runs a command under a tool of compute-sanitizer, which lies on the path or beside nvcc."""
    places = [shutil.which("compute-sanitizer"), "/usr/local/cuda/bin/compute-sanitizer"]
    found = next((place for place in places if place and Path(place).is_file()), "compute-sanitizer")
    return [found, "--tool", tool, "--error-exitcode", "9"]


def step(name: str, command: list[str], **environment: str) -> dict[str, Any]:
    """Runs a command of the repository; what it said at the end, and how long it took."""
    print(f"{name}: {' '.join(command)}", flush=True)
    begin = time.monotonic()
    try:
        made = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=MOST_SECONDS[name],
            check=False,
        )
        status, said = made.returncode, made.stdout + made.stderr
    except subprocess.TimeoutExpired:
        status, said = -1, f"no end within {MOST_SECONDS[name]} seconds"
    except FileNotFoundError as error:
        status, said = -1, str(error)
    seconds = round(time.monotonic() - begin, 1)
    print(f"{name}: {'good' if status == 0 else 'FAILED'} after {seconds} s", flush=True)
    return {"name": name, "status": status, "seconds": seconds, "end": said[-4000:]}


def markdown(report: dict[str, Any]) -> str:
    """The report for people."""
    gpu = report["gpu"]
    text = ["# The CUDA backend on a GPU", "", "Written by `python tools/gpu_check`; edits are lost.", ""]
    if report["simulated"]:
        text = ["# A rehearsal on the simulated driver", "", "No figure here is of a GPU.", ""]
    text += [
        f"{gpu['name']}, driver {gpu['driver_version']}, {report['date']}, commit {report['commit']}.",
        "",
        "These figures are of that commit alone; [the design](../design/cuda.md) says of each part whether it was "
        "compiled, run on the host or on the simulated driver, or on hardware.",
        "",
    ]
    text += [f"{note}\n" for note in report["notes"]]
    text += ["| step | result | seconds |", "|---|---|---|"]
    for part in report["steps"]:
        text.append(f"| {part['name']} | {'good' if part['status'] == 0 else 'failed'} | {part['seconds']} |")
    for kind, title in (("operator", "Operators, device time"), ("queue", "Host time to queue an operation")):
        text += [
            "",
            f"## {title}",
            "",
            "| | taeda, us | PyTorch, us | taeda / PyTorch | GB/s |",
            "|---|---|---|---|---|",
        ]
        for row in (row for row in report["figures"] if row["kind"] == kind):
            speed = row.get("gigabytes_per_second")
            text.append(f"| {row['name']} | {beside(row, 'us')} | {f'{speed:.0f}' if speed else ''} |")
    text += ["", "## Training", ""]
    text += [
        "| | taeda, ms | PyTorch, ms | taeda / PyTorch | as a graph, ms | peak, MiB | calls of the driver |"
    ]
    text += ["|---|---|---|---|---|---|---|"]
    for row in (row for row in report["figures"] if row["kind"] == "training"):
        graph = row.get("graph_ms")
        shown = [f"{graph:.2f}" if graph else row.get("no_graph", "")[:200]]
        shown += [f"{row['peak_mebibytes']:.0f}", str(row["driver_calls"])] if "ms" in row else ["", ""]
        text.append(f"| {row['name']} | {beside(row, 'ms')} | {' | '.join(shown)} |")
    return "\n".join(text) + "\n"


def beside(row: dict[str, Any], unit: str) -> str:
    """Three fields: a figure of taeda's, of PyTorch's, and their ratio; or the error."""
    if "error" in row:
        return f"failed: {row['error'][:200]} | |"
    ours, theirs = row[unit]["taeda"], row[unit].get("torch")
    return f"{ours:.2f} | {theirs:.2f} | {ours / theirs:.2f}" if theirs else f"{ours:.2f} | not there |"


def main(arguments: list[str] | None = None) -> int:
    """Runs all steps and writes the report."""
    parser = argparse.ArgumentParser(prog="gpu_check", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--wheels", type=Path, help="a folder with what pip needs, in place of a network")
    parser.add_argument("--no-install", action="store_true", help="use what is installed")
    parser.add_argument(
        "--only",
        action="append",
        choices=list(MOST_SECONDS),
        help="a step to take, of several; all without it",
    )
    parser.add_argument("--note", action="append", default=[], help="a sentence for the report")
    parser.add_argument("--out", type=Path, default=REPORTS, help="where the report goes")
    parser.add_argument(
        "--simulated", action="store_true", help="a rehearsal on the simulated driver, in small"
    )
    options = parser.parse_args(arguments)
    if options.simulated:
        return rehearse(options.out)
    gpu, why = graphics_processor()
    if not gpu:
        print(f"gpu_check: there is no GPU on this machine ({why}). Nothing was run and nothing was written.")
        return NO_GPU
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(options.wheels.resolve())} if options.wheels else {}
    python = sys.executable
    real = {"TAEDA_CUDA_DRIVER": "", "TAEDA_CUDA_LIBRARIES": library_folders()}
    alone = {**real, "TAEDA_CUDA_LIBRARIES": "none"}
    figures = options.out / "gpu_figures.json"
    options.out.mkdir(parents=True, exist_ok=True)
    figures.unlink(missing_ok=True)
    number = gpu["compute_cap"].replace(".", "")
    conformance = [python, "-m", "taeda_testing", "backend", "cuda"]
    kernels = [python, "tools/gpu_check/kernels.py"]
    measure = [python, "tools/gpu_check/measure.py"]
    expanding = {"TAEDA_CUDA_ALLOC_CONF": "expandable_segments:True"}
    # The records are compared to more bits than TF32 has.
    whole = {"NVIDIA_TF32_OVERRIDE": "0"}
    plan: dict[str, tuple[list[str], dict[str, str]]] = {
        "install": (
            [python, "tools/install.py", "--editable", "--with", "test"],
            {"TAEDA_CUDA_ARCHITECTURES": number, **offline},
        ),
        "tests": ([python, "-m", "pytest", "-q", "packages/tensor-cuda/tests"], {}),
        "conformance": (conformance, {**real, **whole}),
        "conformance without libraries": (conformance, {**alone, **whole}),
        "kernels": ([*kernels, "--large"], {**real, **whole}),
        "kernels on expanding segments": ([*kernels, "--large"], {**real, **whole, **expanding}),
        "memcheck": ([*sanitizer("memcheck"), *kernels], {**real, **whole}),
        "racecheck": ([*sanitizer("racecheck"), *kernels], {**real, **whole}),
        "recurrent layers": ([python, RECURRENT], real),
        "sharing": ([python, "tools/gpu_check/sharing.py"], real),
        "activities": ([python, "tools/gpu_check/activities.py"], real),
        "together": ([python, "tools/gpu_check/together.py"], real),
        "fusion": ([python, "tools/gpu_check/fusion.py"], real),
        "kernels, launching thread": (kernels, {**real, **whole, **LAUNCHING}),
        "measurements": ([*measure, str(figures)], real),
        "measurements, launching thread": (
            [*measure, str(figures), *LAUNCHED, "--kind", "training"],
            {**real, **LAUNCHING},
        ),
    }
    steps = []
    for name, (command, environment) in plan.items():
        if (options.only and name not in options.only) or (name == "install" and options.no_install):
            continue
        steps.append(step(name, command, **environment))
    return written(options.out, gpu, steps, figures, notes=options.note)


def written(
    out: Path,
    gpu: dict[str, str],
    steps: list[dict[str, Any]],
    figures: Path,
    simulated: bool = False,
    notes: list[str] | None = None,
) -> int:
    """Writes the report; the status of the command."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    report = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit.stdout.strip(),
        "machine": platform.platform(),
        "gpu": gpu,
        "simulated": simulated,
        "notes": notes or [],
        "steps": steps,
        "figures": json.loads(figures.read_text(encoding="utf-8")) if figures.is_file() else [],
    }
    figures.unlink(missing_ok=True)
    (out / "gpu.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    (out / "gpu.md").write_text(markdown(report), encoding="utf-8")
    print(f"gpu_check: wrote {out / 'gpu.json'} and gpu.md")
    return FAILED if any(part["status"] != 0 for part in steps) else 0


def rehearse(out: Path) -> int:
    """Conformance of one operator, kernels, sharing and all measurements, in small, on the simulated driver."""
    if out.resolve() == REPORTS:
        print("gpu_check: a rehearsal writes no figures of GPUs; name a folder with --out")
        return USAGE
    out.mkdir(parents=True, exist_ok=True)
    figures = out / "gpu_figures.json"
    simulated = {"TAEDA_CUDA_DRIVER": "simulated"}
    conformance = [sys.executable, "-m", "taeda_testing", "backend", "cuda", "--only", "add"]
    measure = [sys.executable, "tools/gpu_check/measure.py", str(figures), "--small"]
    later = [*measure, *LAUNCHED]
    steps = [
        step("conformance", conformance, **simulated),
        step("kernels", [sys.executable, "tools/gpu_check/kernels.py"], **simulated),
        step("sharing", [sys.executable, "tools/gpu_check/sharing.py"], **simulated),
        step("activities", [sys.executable, "tools/gpu_check/activities.py", "--small"], **simulated),
        step("measurements", measure, **simulated),
        step("measurements, launching thread", later, **simulated, **LAUNCHING),
    ]
    return written(out, {"name": "simulated device", "driver_version": "none"}, steps, figures, True)


if __name__ == "__main__":
    raise SystemExit(main())
