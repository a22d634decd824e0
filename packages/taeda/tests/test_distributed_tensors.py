"""Tensors that lie over processes, layers and modules made of them: programs of two processes, beside one alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import taeda
from taeda.distributed.tensor import Shard, _random
from taeda.distributed.tensor.placement_types import _StridedShard

PROGRAM = Path(__file__).with_name("distributed_tensor_program.py")
PARTS = (
    "meshes", "layouts", "grids", "parallel_layers", "fully_sharded", "flattened", "checkpoints", "shared_states",
    "different_lengths", "recomputed", "exchanges", "made_anew",
    "composed", "losses",
)  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_two_processes(part: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "taeda.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*command, str(PROGRAM), part, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]


def test_sizes_of_parts_without_processes() -> None:
    assert [Shard.local_shard_size_and_offset(5, 3, rank) for rank in range(3)] == [(2, 0), (2, 2), (1, 4)]
    groups = _StridedShard(0, 2)  # of 0 1 2 and 3 4: the first has 0 1 and 3, the second 2 and 4
    assert [groups.local_shard_size_and_offset(5, 2, rank) for rank in range(2)] == [(3, 0), (2, 2)]
    assert groups.local_shard_size_and_offset(2, 3, 2) == (0, -1)


def test_seeds_of_devices_with_generators_of_their_own() -> None:
    state = taeda.get_rng_state()
    with pytest.warns(UserWarning, match="may not have complete support on cpu device mesh"):
        _random.manual_seed(3, SimpleNamespace(device_type="cpu", get_coordinate=lambda: (0,)))
    assert (taeda.get_rng_state() == state).all()
    outside = SimpleNamespace(device_type="cuda", get_coordinate=lambda: None)
    assert _random.is_rng_supported_mesh(outside)
    with pytest.raises(RuntimeError, match="requires the current rank to be a part of the device mesh"):
        _random.manual_seed(3, outside)
