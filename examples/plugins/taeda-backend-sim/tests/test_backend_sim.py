"""The device "sim", as installed."""

import pytest

import taeda as torch


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int64", "bool"])
def test_bytes_travel_both_ways(dtype):
    x = torch.tensor([[1.0, 2.5], [-3.0, 4.0]]).to(getattr(torch, dtype))
    there = x.to("sim")
    assert there.device.type == "sim"
    assert torch.equal(there.t().cpu(), x.t())
    assert torch.equal((there + there).cpu(), x + x)


def test_a_device_is_not_mixed_with_the_cpu():
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(2).to("sim") + torch.ones(2)
