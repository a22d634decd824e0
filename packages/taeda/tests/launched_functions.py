"""Functions that processes of the launcher's tests run."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import taeda as torch
import taeda.distributed as dist


def identity(word: str) -> tuple[str, int, int]:
    return word, int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def total(scale: float) -> torch.Tensor:
    """The sum over all processes of a group of ones, a tensor."""
    dist.init_process_group("gloo")
    x = torch.full((3,), scale * (dist.get_rank() + 1))
    dist.all_reduce(x)
    dist.destroy_process_group()
    return x


def speak(word: str) -> None:
    sys.stdout.write(f"{word} of {os.environ['LOCAL_RANK']}\n")
    sys.stderr.write("a complaint\n")


def fail(rank: int) -> None:
    if int(os.environ["RANK"]) == rank:
        raise ValueError("on purpose")
    time.sleep(600)


def vanish(signal_number: int) -> None:
    os.kill(os.getpid(), signal_number)


def fail_once(folder: str) -> int:
    """Fails the first time in each process; how often it had been started the time that it does not."""
    count = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    if not count:
        Path(folder, os.environ["RANK"]).touch()
        time.sleep(0.2)
        raise RuntimeError("the first time")
    return count


def large() -> torch.Tensor:
    return torch.arange(1_000_000.0)
