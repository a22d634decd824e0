"""Distributed checkpoints as safetensors, and copies of states that a program goes on changing."""

from __future__ import annotations

import json
from concurrent.futures import Future
from pathlib import Path

import pytest

import taeda
import taeda.distributed.checkpoint as dcp
from taeda.distributed.checkpoint._consolidate_hf_safetensors import (
    consolidate_safetensors_files,
    consolidate_safetensors_files_on_every_rank,
)
from taeda.distributed.checkpoint.staging import BlockingAsyncStager, DefaultStager, StagingOptions


def _state() -> dict[str, taeda.Tensor]:
    return {
        "a.weight": taeda.arange(6.0).reshape(2, 3),
        "a.bias": taeda.tensor([1, 2], dtype=taeda.int64),
        "scale": taeda.tensor(0.5, dtype=taeda.bfloat16),
    }


def _empty() -> dict[str, taeda.Tensor]:
    return {key: taeda.zeros_like(value) for key, value in _state().items()}


def _equal(found: dict, expected: dict) -> bool:
    return found.keys() == expected.keys() and all(taeda.equal(found[key], expected[key]) for key in expected)


@pytest.mark.parametrize("numbers", [None, {"a.weight": 2, "a.bias": 1, "scale": 2}])
def test_a_state_comes_back(tmp_path: Path, numbers: dict[str, int] | None):
    dcp.save(_state(), storage_writer=dcp.HuggingFaceStorageWriter(str(tmp_path), numbers))
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    count = 1 if numbers is None else 2
    assert index["weight_map"]["a.weight"] == f"model-{count:05}-of-{count:05}.safetensors"
    assert index["metadata"]["total_size"] == 24 + 16 + 2
    assert _equal(taeda.load(tmp_path / "model.safetensors.index.json"), _state())
    found = _empty()
    dcp.load(found, storage_reader=dcp.HuggingFaceStorageReader(str(tmp_path)))
    assert _equal(found, _state())


def test_tied_tensors_are_stored_by_both_names(tmp_path: Path):
    whole = taeda.arange(4.0)
    dcp.save(
        {"x": whole, "y": whole, "part": whole[1:3]},
        storage_writer=dcp.HuggingFaceStorageWriter(str(tmp_path)),
    )
    found = taeda.load(tmp_path / "model-00001-of-00001.safetensors")
    assert found["x"].tolist() == found["y"].tolist() == [0, 1, 2, 3] and found["part"].tolist() == [1, 2]


def test_what_is_no_tensor_is_refused(tmp_path: Path):
    with pytest.raises(dcp.CheckpointException, match="'step' is no tensor"):
        dcp.save({"step": 3}, storage_writer=dcp.HuggingFaceStorageWriter(str(tmp_path)))


def _shards(folder: Path) -> taeda.Tensor:
    whole = taeda.arange(20.0).reshape(4, 5)
    folder.mkdir(exist_ok=True)
    for shard, (rows, at) in enumerate(((whole[:3], 0), (whole[3:], 3)), 1):
        offsets = {"w": {"saved_offsets": [at, 0]}}
        taeda.save(
            {"w": rows.clone()}, folder / f"shard-{shard:05}-model-00001-of-00001.safetensors",
            format="safetensors", metadata={"DCP_SHARDING_INFO": json.dumps(offsets), "format": "pt"},
        )  # fmt: skip
    return whole


def test_parts_of_several_processes(tmp_path: Path):
    whole = _shards(tmp_path / "parts")
    found = {"w": taeda.zeros(4, 5)}
    dcp.load(found, storage_reader=dcp.HuggingFaceStorageReader(str(tmp_path / "parts")))
    assert taeda.equal(found["w"], whole)
    for consolidate in (consolidate_safetensors_files, consolidate_safetensors_files_on_every_rank):
        target = tmp_path / consolidate.__name__
        consolidate(str(tmp_path / "parts"), str(target), {"w": 1})
        assert taeda.equal(taeda.load(target / "model.safetensors.index.json")["w"], whole)
    with pytest.raises(ValueError, match="lacks 'w'"):
        consolidate_safetensors_files(str(tmp_path / "parts"), str(tmp_path), {"v": 1})


def test_consolidation_after_saving(tmp_path: Path):
    writer = dcp.HuggingFaceStorageWriter(str(tmp_path), save_distributed=True, enable_consolidation=True)
    dcp.save(_state(), storage_writer=writer)
    assert [file.name for file in (tmp_path / "sharded").iterdir()] == [
        "shard-00001-model-00001-of-00001.safetensors"
    ]
    assert _equal(taeda.load(tmp_path / "model.safetensors.index.json"), _state())


def test_texts_beside_tensors_need_safetensors(tmp_path: Path):
    with pytest.raises(ValueError, match="'metadata' needs format='safetensors'"):
        taeda.save({}, tmp_path / "x.pt", metadata={"a": "b"})


@pytest.mark.parametrize("later", [False, True])
def test_a_stager_copies(later: bool):
    state = {"net": {"w": taeda.ones(2)}, "steps": [taeda.tensor(3), 4]}
    stager = DefaultStager(StagingOptions(True, True, later, False))
    copy = stager.stage(state)
    assert isinstance(copy, Future) is later
    first = copy.result() if later else copy
    stager.synchronize_staging()
    state["net"]["w"].zero_()
    assert first["net"]["w"].tolist() == [1, 1] and first["steps"][1] == 4
    again = stager.stage(state)
    again = again.result() if later else again
    assert again["net"]["w"] is first["net"]["w"] and first["net"]["w"].tolist() == [0, 0]
    stager.close()
    with pytest.raises(AssertionError, match="accelerator"):
        DefaultStager()


def test_saving_beside_the_program_takes_a_stager(tmp_path: Path):
    state = _state()
    done = dcp.async_save(state, checkpoint_id=tmp_path / "a", async_stager=BlockingAsyncStager())
    state["a.weight"].zero_()
    done.result()
    stager = DefaultStager(StagingOptions(False, False, True, False))
    response = dcp.async_save(state, checkpoint_id=tmp_path / "b", async_stager=stager)
    assert response.staging_completion.result()["a.weight"].sum().item() == 0
    response.upload_completion.result()
    stager.close()
    for name, total in (("a", 15.0), ("b", 0.0)):
        found = _empty()
        dcp.load(found, checkpoint_id=tmp_path / name)
        assert found["a.weight"].sum().item() == total


def test_one_process_plays_one_of_many():
    from taeda import distributed as dist
    from taeda.distributed.device_mesh import init_device_mesh
    from taeda.distributed.tensor import Shard, distribute_tensor
    from taeda.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=2, world_size=4)
    try:
        assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (2, 4, "fake")
        mine = taeda.arange(3.0)
        dist.all_reduce(mine)
        assert mine.tolist() == [0, 1, 2]
        parts = [taeda.zeros(3) for _ in range(4)]
        dist.all_gather(parts, mine)
        assert all(part.tolist() == [0, 1, 2] for part in parts)
        whole = taeda.zeros(12)
        dist.all_gather_into_tensor(whole, mine)
        assert whole.tolist() == [0, 1, 2] * 4
        piece = taeda.zeros(3)
        dist.reduce_scatter_tensor(piece, taeda.arange(12.0))
        assert piece.tolist() == [6, 7, 8]
        dist.barrier()
        dist.send(mine, 1)
        dist.recv(mine, 1)
        objects = [None] * 4
        dist.all_gather_object(objects, {"a": 1})
        assert objects == [{"a": 1}] * 4
        mesh = init_device_mesh("cpu", (2, 2))
        assert list(mesh.get_coordinate()) == [1, 0]
        whole = taeda.arange(8.0).reshape(4, 2)
        cut = distribute_tensor(whole, mesh, [Shard(0), Shard(1)], src_data_rank=None)
        assert cut.to_local().tolist() == [[4.0], [6.0]]
        assert cut.full_tensor().shape == (4, 2)
    finally:
        dist.destroy_process_group()
    dist.init_process_group("fake", rank=0, world_size=2)
    dist.destroy_process_group()
