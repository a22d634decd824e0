"""Records examined in worker processes: one that crashes or hangs costs one operator, not the report."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from op_report import Entry

PROGRAM = Path(__file__).with_name("operators.py")
# Most records take seconds, those with thousands of samples minutes, on a busy machine many.
SECONDS = 1800.0


class Worker:
    """A process that examines one record after the other."""

    def __init__(self, arguments: list[str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), "--worker", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def examine(self, name: str) -> Entry:
        timer = threading.Timer(SECONDS, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(name + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if line:
            return Entry.from_json(json.loads(line))
        return Entry.crashed(name, self.process.wait())

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def results_of(names: list[str], jobs: int, arguments: list[str]) -> Iterator[Entry]:
    """The entries of all records, in the order in which they are ready."""
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    done: queue.SimpleQueue[Entry] = queue.SimpleQueue()
    for name in names:
        waiting.put(name)

    def work() -> None:
        worker = Worker(arguments)
        while True:
            try:
                name = waiting.get_nowait()
            except queue.Empty:
                worker.close()
                return
            entry = worker.examine(name)
            if worker.process.poll() is not None:
                worker = Worker(arguments)
            done.put(entry)

    for _ in range(jobs):
        threading.Thread(target=work, daemon=True).start()
    for _ in names:
        yield done.get()
