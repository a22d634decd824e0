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


def test_arrays_of_other_libraries_are_read_by_the_cuda_array_interface() -> None:
    programs.run(
        """
        import gc, weakref

        class Array:
            def __init__(self, of, **more):
                self.of, self.more = of, more
            @property
            def __cuda_array_interface__(self):
                return {**self.of.__cuda_array_interface__, **self.more}

        for given in (x, x.t(), x[1:, ::2], tc.arange(6, device="cuda"), tc.ones(3, dtype=tc.bool, device="cuda"),
                      tc.ones(2, dtype=tc.bfloat16, device="cuda"), tc.ones(2, dtype=tc.complex64, device="cuda"),
                      tc.zeros(0, 3, device="cuda"), tc.tensor(2.5, device="cuda", dtype=tc.float64)):
            array = Array(given)
            shared = tc.as_tensor(array)
            assert shared.dtype == given.dtype and shared.device == given.device and tc.equal(shared, given)
            assert shared.stride() == given.stride() or given.numel() == 0
            assert not given.numel() or shared.data_ptr() == given.data_ptr()
            assert not given.numel() or tc.asarray(array, copy=False).data_ptr() == given.data_ptr()
            copied = tc.tensor(array)
            assert tc.equal(copied, given) and (not given.numel() or copied.data_ptr() != given.data_ptr())
        assert tc.as_tensor(Array(x), device="cpu", dtype=tc.float64).tolist() == x.tolist()
        # The array lives as long as a tensor over it.
        array = Array(x)
        gone = weakref.ref(array)
        part = tc.as_tensor(array)[1:]
        del array
        gc.collect()
        assert gone() is not None
        part.record_stream(tc.get_device_module("cuda").Stream())
        part += 1
        assert part.tolist() == x[1:].tolist()
        del part
        gc.collect()
        assert gone() is None
        flat = tc.arange(6.0, device="cuda")
        for more, kind_of, text in (
            ({"data": (flat.data_ptr(), True)}, TypeError, "read-only"),
            ({"typestr": ">f4"}, TypeError, "has no corresponding dtype"),
            ({"typestr": "<U4"}, TypeError, "has no corresponding dtype"),
            ({"strides": (3,)}, ValueError, "no multiples of the 4 bytes"),
            ({"mask": 1}, ValueError, "mask"),
            ({"data": (4096, False)}, ValueError, "is no CUDA device's"),
        ):
            try:
                tc.as_tensor(Array(flat, **more))
                raise SystemExit("no error")
            except kind_of as error:
                assert text in str(error), error
        kept = tc.as_tensor(Array(flat))  # to the end of the process
        """,
        HEAD,
    )


def test_dlpack_calls_the_device_by_its_number_and_takes_it_from_others() -> None:
    programs.run(
        """
        assert x.__dlpack_device__() == (2, 0)
        shared = tc.from_dlpack(x)
        assert shared.data_ptr() == x.data_ptr() and shared.device == x.device and tc.equal(shared, x)

        class Producer:
            def __init__(self, of):
                self.of, self.asked = of, []
            def __dlpack_device__(self):
                return self.of.__dlpack_device__()
            def __dlpack__(self, *, stream="none", **more):
                self.asked.append(stream)
                return self.of.__dlpack__(**more)

        kind = tc.get_device_module("cuda")
        producer, stream = Producer(x), kind.Stream()
        assert tc.as_tensor(producer).data_ptr() == x.data_ptr() and producer.asked == [1]
        with kind.stream(stream):
            assert tc.equal(tc.from_dlpack(producer), x) and producer.asked[1] not in (0, 1, "none")
        assert tc.equal(tc.tensor(producer), x)
        host = Producer(tc.ones(2))
        assert tc.from_dlpack(host).tolist() == [1, 1] and host.asked == ["none"]
        x.__dlpack__(stream=-1), x.__dlpack__(stream=1)
        try:
            x.__dlpack__(stream=0)
            raise SystemExit("no error")
        except BufferError as error:
            assert "'stream' is 0" in str(error)
        """,
        HEAD,
    )
