"""Where the host waits, as programs that look for it are told, and what other libraries read a tensor's memory by."""

from __future__ import annotations

import device_programs as programs
import pytest

HEAD = """
import ctypes, warnings
import numpy as np
import taeda_tensor_core as tc
kind = tc.get_device_module("cuda")
x = tc.arange(6.0).reshape(2, 3).to("cuda")
WAITS = {
    "item": lambda: x[0, 0].item(), "cpu": lambda: x.cpu(), "nonzero": lambda: x.nonzero(), "mask": lambda: x[x > 1],
    "bool": lambda: bool(x[0, 0] > 1), "tolist": lambda: x.tolist(), "to": lambda: tc.ones(3).to("cuda"),
}
pinned = tc.ones(3).pin_memory("cuda")
NONE = {
    "launches": lambda: (x * 2).sum(), "synchronize": kind.synchronize, "event": lambda: kind.Event().record(),
    "pinned": lambda: pinned.to("cuda", non_blocking=True),
}
def told(work):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            work()
        except RuntimeError as error:
            return "error", str(error)
    return ("warning", str(found[0].message)) if found else ("nothing", "")
"""


@pytest.mark.parametrize("mode", [("default", 0, "nothing"), ("warn", 1, "warning"), ("error", 2, "error")])
def test_waits_are_told_as_the_program_asks(mode: tuple[str, int, str]) -> None:
    name, number, expected = mode
    programs.run(
        f"""
        assert kind.get_sync_debug_mode() == 0
        for given in ({name!r}, {number}):
            kind.set_sync_debug_mode(0)
            kind.set_sync_debug_mode(given)
            assert kind.get_sync_debug_mode() == {number}
            for what, work in WAITS.items():
                how, text = told(work)
                assert how == {expected!r}, (what, how, text)
                assert how == "nothing" or "called a synchronizing CUDA operation" in text, text
            for what, work in NONE.items():
                assert told(work) == ("nothing", ""), what
        kind.set_sync_debug_mode("default")
        assert np.array_equal(x.cpu().numpy(), np.arange(6.0).reshape(2, 3))
        """,
        HEAD,
    )


def test_warnings_that_are_errors_end_the_wait_and_other_modes_are_refused() -> None:
    programs.run(
        """
        kind.set_sync_debug_mode("warn")
        try:  # programs of these tests have each warning as an error
            x.cpu()
            raise SystemExit("no error")
        except RuntimeError as error:
            assert "called a synchronizing CUDA operation" in str(error)
        kind.set_sync_debug_mode(0)
        for wrong in (3, -1, "loud", None):
            try:
                kind.set_sync_debug_mode(wrong)
                raise SystemExit("no error")
            except RuntimeError as error:
                assert "expected one of `default`, `warn`, `error`" in str(error)
        assert kind.get_sync_debug_mode() == 0
        """,
        HEAD,
    )


def test_the_cuda_array_interface_says_where_a_tensor_lies() -> None:
    programs.run(
        """
        shown = x.__cuda_array_interface__
        assert shown == {
            "typestr": "<f4", "shape": (2, 3), "strides": None, "data": (x.data_ptr(), False), "version": 2}
        turned = x.t()[1:].__cuda_array_interface__
        assert turned["shape"] == (2, 2) and turned["strides"] == (4, 12) and turned["data"][0] == x.data_ptr() + 4
        assert tc.zeros(0, 3, device="cuda").__cuda_array_interface__["data"] == (0, False)
        for dtype in (tc.bool, tc.int8, tc.uint8, tc.int16, tc.uint16, tc.int32, tc.int64, tc.uint64, tc.float16,
                      tc.float64, tc.complex64, tc.complex128):
            host = tc.zeros(2, dtype=dtype)
            assert host.to("cuda").__cuda_array_interface__["typestr"] == host.numpy().dtype.str, dtype
        assert tc.zeros(2, dtype=tc.bfloat16, device="cuda").__cuda_array_interface__["typestr"] == "<V2"
        import taeda_autograd
        # What is no tensor of such a device has none, and what requires grad does not share.
        assert not hasattr(tc.ones(2), "__cuda_array_interface__")
        for tensor, kind_of, text in ((tc.ones(2), AttributeError, "expected a tensor of a cuda device"),
                                      (x.clone().requires_grad_(), RuntimeError, "use detach()")):
            try:
                tensor.__cuda_array_interface__
                raise SystemExit("no error")
            except kind_of as error:
                assert text in str(error), error
        """,
        HEAD,
    )
