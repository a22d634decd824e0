"""Older types, memory as an object, settings and questions that programs use beside operators."""

import mmap
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import taeda_tensor_core as tc


@pytest.mark.parametrize(("dtype", "word"), [
    ("bool", "Bool"), ("uint8", "Byte"), ("int8", "Char"), ("int16", "Short"), ("int32", "Int"), ("int64", "Long"),
    ("float16", "Half"), ("bfloat16", "BFloat16"), ("float32", "Float"), ("float64", "Double"),
    ("complex64", "ComplexFloat"), ("complex128", "ComplexDouble"),
])  # fmt: skip
def test_errors_and_older_types_have_the_same_words_for_dtypes(dtype, word):
    x = tc.ones(1, dtype=getattr(tc, dtype))
    from_it, to_it = (x, tc.ones(1)), (tc.ones(1, dtype=tc.complex128), x)
    source, target = from_it if x.is_complex() else to_it
    text = f"result type {word} can't" if x.is_complex() else f"output type {word}$"
    with pytest.raises(RuntimeError, match=text):
        tc.add(source, 1, out=target)
    assert x.type() == f"torch.{word}Tensor" and isinstance(x, getattr(tc, f"{word}Tensor"))
    assert x.storage_type() is getattr(tc, f"{word}Storage")


def test_legacy_types_make_tensors_and_answer_isinstance():
    assert tc.FloatTensor([1, 2]).dtype is tc.float32 and tc.LongTensor(2, 3).shape == (2, 3)
    assert tc.ByteTensor().numel() == 0 and tc.DoubleTensor(tc.Size((2,))).shape == (2,)
    assert isinstance(tc.ones(1), tc.FloatTensor) and not isinstance(tc.ones(1), tc.DoubleTensor)
    assert not isinstance(3, tc.LongTensor) and not isinstance(tc.ones(1, device="meta"), tc.FloatTensor)
    source = tc.ones(2)
    assert tc.FloatTensor(source).data_ptr() == source.data_ptr()
    assert tc.FloatTensor(source.storage()).data_ptr() == source.data_ptr()
    with pytest.raises(TypeError, match=r"expected a tensor of taeda.int64, found one of taeda.float32"):
        tc.LongTensor(source)
    with pytest.raises(TypeError, match="expected sizes, a sequence or a tensor, found float"):
        tc.FloatTensor(1.5)
    assert tc.get_device_module("xpu").FloatTensor is not tc.FloatTensor


@pytest.mark.parametrize(
    "size", [np.int64(3), np.int32(3), np.uint8(3), np.array(3), np.prod((3, 1))], ids=repr
)
def test_what_stands_for_an_int_is_a_size(size):
    made = (
        tc.Tensor(size), tc.FloatTensor(size), tc.ones(1).new(size), tc.zeros(size), tc.empty((size,)),
        tc.ones(6).narrow(0, 0, size), tc.ones(9).view(size, -1)[:, 0], tc.ones(1).expand(size),
    )  # fmt: skip
    assert {tuple(t.shape) for t in made} == {(3,)}
    assert (
        tc.Tensor(size, 2).shape == tc.LongTensor(2, size).T.shape == tc.ones(1).new(size, 2).shape == (3, 2)
    )
    for wrong in (np.float32(3), np.array(3.0), np.array([3.0, 1.0])):
        with pytest.raises(TypeError):
            tc.zeros(wrong)
    assert tc.FloatTensor(np.array([3, 4])).tolist() == [3, 4]


def test_type_names_and_conversions():
    x = tc.ones(2)
    assert x.type() == "torch.FloatTensor" and x.long().type() == "torch.LongTensor"
    for wanted in (tc.LongTensor, "torch.LongTensor", "taeda.LongTensor", tc.int64):
        assert x.type(wanted).dtype is tc.int64
    assert x.type("torch.FloatTensor") is x
    with pytest.raises(ValueError, match=r"unknown type 'torch.NoTensor'"):
        x.type("torch.NoTensor")
    with pytest.raises(TypeError, match="must be a dtype, a tensor type or its name"):
        x.type(3)
    assert x.new([3, 4]).tolist() == [3.0, 4.0] and x.new(2, 2).dtype is tc.float32


def test_default_tensor_type_and_device():
    try:
        tc.set_default_tensor_type(tc.DoubleTensor)
        assert tc.tensor([1.5]).dtype is tc.float64
        tc.set_default_tensor_type("torch.FloatTensor")
        assert tc.tensor([1.5]).dtype is tc.float32
        with pytest.raises(TypeError, match="only floating-point types"):
            tc.set_default_tensor_type(tc.LongTensor)
        absent = tc._C._reserved_devices()[0]
        with pytest.raises(TypeError, match="not available"):
            tc.set_default_tensor_type(f"torch.{absent}.DoubleTensor")
        assert tc.ones(2).dtype is tc.float32 and tc.ones(2).device.type == "cpu"
        tc.set_default_device("meta")
        assert tc.ones(2).device.type == "meta" and tc.get_default_device().type == "meta"
        assert tc.ones(2, device="cpu").device.type == "cpu" and tc.tensor([1]).device.type == "meta"
    finally:
        tc.set_default_device(None)
        tc.set_default_dtype(tc.float32)
    assert tc.ones(2).device.type == "cpu" and tc.get_default_device().type == "cpu"


def test_a_device_is_a_context_and_not_a_function():
    with tc.device("meta") as device:
        assert tc.zeros(3).device == device and tc.arange(3).device == device
        with tc.device("cpu"):
            assert tc.zeros(3).device.type == "cpu"
    assert tc.zeros(3).device.type == "cpu"
    assert not callable(tc.device("cpu"))
    with pytest.raises(TypeError, match="not callable"):
        tc.device("meta")(tc.rand)


def test_storages_show_the_memory():
    x = tc.arange(6).reshape(2, 3)
    typed, untyped = x[1].storage(), x[1].untyped_storage()
    assert typed.size() == len(typed) == 6 and untyped.nbytes() == untyped.size() == 48
    assert typed.tolist() == [0, 1, 2, 3, 4, 5] and typed[2] == 2 and list(typed)[-1] == 5
    typed[0] = 9
    assert x[0, 0].item() == 9 and untyped[0] == 9
    assert typed.data_ptr() == x.data_ptr() == untyped.data_ptr() and typed.dtype is tc.int64
    assert isinstance(typed, tc.LongStorage) and not isinstance(typed, tc.FloatStorage)
    assert tc.is_storage(typed) and tc.is_storage(untyped) and not tc.is_storage(x)
    assert typed == x.storage() and untyped == x.untyped_storage() and typed != tc.ones(6).storage()
    assert (
        typed.clone() != typed
        and typed.clone().tolist() == typed.tolist()
        and typed.float().dtype is tc.float32
    )
    assert x.storage_type() is tc.LongStorage and typed.type() == "torch.LongStorage"
    assert tc.FloatStorage([1, 2]).tolist() == [1.0, 2.0] and tc.UntypedStorage(3).nbytes() == 3
    assert untyped.resize_(0).nbytes() == 0 == len(x.storage()) and x.shape == (2, 3)
    untyped.resize_(48)
    x.copy_(tc.arange(6).reshape(2, 3))
    view = tc.empty(0, dtype=tc.int64).set_(typed, 1, (2, 2), (3, 1))
    assert view.tolist() == [[1, 2], [4, 5]]
    with pytest.raises(RuntimeError, match=r"found a storage of .*int64, expected one of .*float32"):
        tc.empty(0).set_(typed)
    assert typed.__sizeof__() - x[:0].clone().storage().__sizeof__() == 48
    assert tc.storage._dtype_to_storage_type_map()[tc.int64] == "LongStorage"
    assert tc.storage._storage_type_to_dtype_map()["HalfStorage"] is tc.float16
    with pytest.raises(NotImplementedError, match="device 'meta'"):
        tc.empty(3, device="meta").storage()[0]
    view.fill_(0)
    assert x.tolist() == [[0, 0, 0], [3, 0, 0]]
    assert tc.ones(2).set_().numel() == 0


def test_sizes_may_be_numbers_of_numpy():
    three, two = np.int64(3), np.int32(2)
    assert tc.arange(12.0).resize_(three).tolist() == [0, 1, 2]
    assert tc.arange(12.0).resize_(three, two).shape == tc.arange(12.0).resize_([three, two]).shape == (3, 2)
    with pytest.warns(UserWarning, match="non-inplace"):
        assert tc.arange(3.0).resize(three).shape == (3,)
    dense = tc.arange(6.0).reshape(2, 3)
    table = dense.to_sparse()
    assert (
        table.sum(np.int64(0)).to_dense().tolist()
        == table.mean(np.int64(0)).mul(2).to_dense().tolist()
        == [3, 5, 7]
    )
    assert tc.sparse.sum(table, np.int64(1)).to_dense().tolist() == [3, 12]
    assert tc.equal(table.permute(np.int64(1), np.int64(0)).to_dense(), dense.T)
    assert table.new_zeros(three, two).shape == (3, 2)
    assert tc._empty_affine_quantized(three, dtype=tc.quint8).shape == (3,)


def test_collating_functions_fill_new_shared_storages():
    item = tc.arange(6.0).reshape(2, 3)
    for storage in (
        item.untyped_storage()._new_shared(48, device=item.device),
        item.storage()._new_shared(12, device=item.device),
        tc.UntypedStorage._new_shared(48),
        item.storage_type()._new_shared(12),
        tc.storage.FloatStorage._new_shared(12),
    ):
        assert storage.is_shared() and storage.nbytes() == 48
        out = item.new(storage).resize_(2, 2, 3)
        assert tc.stack([item, item + 6], 0, out=out) is out
        assert out.is_shared() and out.reshape(-1).tolist() == list(range(12))
    assert tc.UntypedStorage._new_shared(0).nbytes() == 0
    assert tc.UntypedStorage._new_shared(4, device="meta").device.type == "meta"


def test_storages_give_memory_back_and_take_it_again():
    def resident():
        return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * mmap.PAGESIZE

    x = tc.ones(4 << 20)
    tail, before = x[-2:], resident()
    storage = x.untyped_storage().resize_(0)
    assert storage.nbytes() == 0 and before - resident() > 12 << 20 and x.shape == (4 << 20,)
    storage.resize_(16 << 20)
    x.fill_(3)
    assert tail.tolist() == [3, 3] and storage.nbytes() == 16 << 20
    with pytest.raises(RuntimeError, match="that tensors show cannot grow to size=33554432"):
        storage.resize_(32 << 20)
    with pytest.raises(RuntimeError, match="'size' is -1, expected at least 0"):
        storage.resize_(-1)
    with pytest.raises(RuntimeError, match="resize storage that is not resizable"):
        tc.from_numpy(np.ones(3)).untyped_storage().resize_(0)
    seen = x.numpy()
    with pytest.raises(RuntimeError, match=r"not resizable: others hold its memory \(1 NumPy"):
        storage.resize_(0)
    assert (seen[-2:] == 3).all() and storage.resize_(16 << 20).nbytes() == 16 << 20
    del seen
    assert storage.resize_(0).nbytes() == 0
    alone = tc.UntypedStorage([5, 6])
    assert alone.resize_(1000).nbytes() == 1000 and alone[1] == 6


def test_storages_of_files(tmp_path):
    name = str(tmp_path / "numbers")
    written = tc.FloatStorage.from_file(name, True, 3)  # makes the file
    written[1] = 2.5
    assert np.fromfile(name, np.float32).tolist() == [0, 2.5, 0]
    private = tc.FloatStorage.from_file(name, False, 2)
    private[0] = 7
    assert private.tolist() == [7, 2.5] and written[0] == 0
    with pytest.raises(FileNotFoundError):
        tc.FloatStorage.from_file(name + "-", False, 2)
    with pytest.raises(RuntimeError, match="no regular file"):
        tc.FloatStorage.from_file("/dev/zero", False, 2)


ROOM = """
import os, resource, sys
import taeda_tensor_core as tc
name = sys.argv[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
for make in (lambda size: tc.from_file(name, True, size), lambda size: tc.FloatStorage.from_file(name, True, size)):
    for held in (None, 12):
        if held:
            open(name, "wb").write(b"x" * held)
        for size in (1 << 20, 1 << 40, 1 << 62):
            try:
                make(size)
                print("made")
            except (OSError, RuntimeError) as error:
                text = str(error)
                assert name in text or "cannot have" in text, text
            assert os.path.exists(name) == bool(held) and (not held or open(name, "rb").read() == b"x" * held)
    os.unlink(name)
"""


def test_files_for_which_there_is_no_room_are_refused(tmp_path):
    """A write to mapped memory without a block on the disk would end the process."""
    name = tmp_path / "numbers"
    tc.from_file(str(name), True, 1 << 20)
    assert name.stat().st_blocks * 512 >= 4 << 20
    name.unlink()
    done = subprocess.run([sys.executable, "-c", ROOM, str(name)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stdout, done.stdout + done.stderr


def test_settings_are_checked_and_given_back():
    assert tc.get_float32_matmul_precision() == "highest"
    tc.set_float32_matmul_precision("high")
    assert tc.get_float32_matmul_precision() == "high"
    tc.set_float32_matmul_precision("highest")
    with pytest.raises(RuntimeError, match="must be one of highest, high, medium, found 'low'"):
        tc.set_float32_matmul_precision("low")
    for mode, number in (("warn", 1), (2, 2), ("default", 0)):
        tc.set_deterministic_debug_mode(mode)
        assert tc.get_deterministic_debug_mode() == number
    with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
        tc.set_deterministic_debug_mode("loud")
    assert tc.set_flush_denormal(True) is False and tc.get_num_interop_threads() >= 1
    assert not tc.is_warn_always_enabled() and tc.compiled_with_cxx11_abi()


def test_facts_of_tensors():
    x = tc.ones(2, 3)
    assert (
        x.layout is tc.strided and repr(tc.strided) == "taeda.strided" and not x.is_nested and not x.is_mkldnn
    )
    assert not tc.is_conj(x) and not x.is_neg() and tc.is_signed(x) and not tc.is_inference(x)
    assert tc.get_device(x) == -1 and x.T.dim_order() == (1, 0)
    assert x.new_empty_strided((2, 2), (1, 2)).stride() == (1, 2)
    assert tc.sym_int(2.7) == 2 and tc.sym_int(-2.7) == -2 and tc.sym_max(1, 2.0) == 2.0 and tc.sym_not(0)
    with pytest.warns(UserWarning, match=r"torch\.range is deprecated"):
        assert tc.range(1, 4).tolist() == [1.0, 2.0, 3.0, 4.0]
        with pytest.raises(TypeError, match="range: argument 'out' must be a Tensor, found list"):
            tc.range(1, 4, out=[1])


def test_return_types_are_those_of_operators():
    assert type(tc.ones(2).max(0)) is tc.return_types.max and type(tc.ones(2).sort()) is tc.return_types.sort
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tc.return_types.nothing  # noqa: B018


def test_fork_rng_keeps_the_numbers():
    tc.manual_seed(3)
    expected = tc.rand(2)
    tc.manual_seed(3)
    with tc.random.fork_rng():
        tc.rand(100)
    assert (tc.rand(2) == expected).all()
    with tc.random.fork_rng(enabled=False):
        tc.rand(1)
    assert tc.default_generator.initial_seed() == 3 == tc.initial_seed()
    assert tc.random.default_generator.initial_seed() == 3


def test_functions_for_tensors_without_elements_may_come_first():
    lib = tc.library.Library("laterpkg", "DEF")

    @tc.library.register_fake("laterpkg::grow")
    def grow(x):
        return x.new_empty((x.shape[0] * 2,))

    made = lib.define("grow(Tensor x) -> Tensor")
    try:
        assert tc.ops.laterpkg.grow(tc.ones(3, device="meta")).shape == (6,)
    finally:
        made.remove()


def test_what_load_library_cannot_load(tmp_path):
    (tmp_path / "other.so").write_bytes(b"no library")
    with pytest.raises(OSError, match=r"load_library: .*other\.so"):
        tc.ops.load_library(tmp_path / "other.so")


def test_storages_are_converted_by_the_names_of_types():
    """`char` and `byte` among them."""
    made = tc.FloatStorage([1, 2]).char()
    assert made.dtype is tc.int8
    assert made.tolist() == [1, 2]


def test_numbers_become_tensors_of_the_default_dtype():
    """`scalar_tensor` does not look at the number; `type` of the class means that dtype too."""
    assert tc.scalar_tensor(3).dtype is tc.float32
    assert tc.scalar_tensor(3, dtype=tc.int8).dtype is tc.int8
    assert tc.arange(3).type(tc.Tensor).dtype is tc.float32


def test_conversions_of_several_elements_refuse_the_value():
    """As Python's own; asking for the item is a wrong call."""
    for convert in (int, float, complex):
        with pytest.raises(ValueError, match="one element"):
            convert(tc.ones(2))
    with pytest.raises(RuntimeError, match="Tensor with 2 elements cannot be converted to Scalar"):
        tc.ones(2).item()


def test_a_number_is_copied_to_one_place():
    """The source of one index may have no dimension."""
    x = tc.zeros(3).index_copy_(0, tc.tensor([1]), tc.tensor(2.0))
    assert x.tolist() == [0.0, 2.0, 0.0]
    with pytest.raises(RuntimeError, match="source"):
        tc.zeros(3).index_copy_(0, tc.tensor([1, 2]), tc.tensor(2.0))


@pytest.mark.parametrize("name", ["int16", "float32", "float64", "complex64"])
def test_bytes_of_storages_are_turned_round(name):
    numbers = np.array([1, -2, 3]).astype(name)
    x = tc.tensor(numbers)
    x.untyped_storage().byteswap(x.dtype)
    assert x.numpy().tobytes() == numbers.byteswap().tobytes()
    with pytest.raises(RuntimeError, match=r"byteswap: argument 'dtype' is .*int32, the 3 bytes"):
        tc.zeros(3, dtype=tc.uint8).untyped_storage().byteswap(tc.int32)


def test_storages_of_buffers():
    numbers = np.array([1.5, -2.0, 3.25], np.float32)
    found = tc.UntypedStorage.from_buffer(numbers.tobytes(), "native", dtype=tc.float32)
    assert bytes(found.tolist()) == numbers.tobytes()
    other = "big" if sys.byteorder == "little" else "little"
    swapped = numbers.byteswap().tobytes()
    assert tc.FloatStorage.from_buffer(swapped, byte_order=other).tolist() == numbers.tolist()
    assert tc.FloatStorage.from_buffer(b"--" + numbers.tobytes(), "native", 2, 2).tolist() == [1.5, -2.0]
    pairs = (numbers + 1j).astype(np.complex64)
    read = tc.ComplexFloatStorage.from_buffer(pairs.byteswap().tobytes(), byte_order=other)
    assert read.tolist() == pairs.tolist()
    memory = bytearray(b"ab")
    copied = tc.UntypedStorage.from_buffer(memory)
    memory[0] = 0
    assert copied.tolist() == [97, 98] and tc.UntypedStorage.from_buffer(b"").nbytes() == 0


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tc.FloatStorage.from_buffer(b"abcd"), "byte_order"),
        (lambda: tc.FloatStorage.from_buffer(b"abc", "native"), "whole number"),
        (lambda: tc.UntypedStorage.from_buffer(b"abc", count=4), "at most 3"),
        (lambda: tc.UntypedStorage.from_buffer(b"abc", offset=4), "offset 4"),
    ],
)
def test_buffers_that_do_not_fit_storages(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_bytes_that_can_change_are_numbers():
    assert (
        tc.tensor(bytearray(b"abc")).tolist() == [97, 98, 99] and tc.tensor(bytearray(b"a")).dtype is tc.int64
    )
    with pytest.raises(TypeError, match="found bytes"):
        tc.tensor(b"abc")


def test_sizes_and_dimensions_one_by_one():
    x = tc.ones(1, 3, 1)
    assert x.squeeze(0, 2).shape == (3,) and tc.squeeze(x, 0, -1).shape == (3,)
    assert tc.ones(3).broadcast_to(2, 3).shape == (2, 3)
    assert x.clone().squeeze_(0, 2).shape == (3,)


def test_half_precision_complex_numbers_are_refused():
    with pytest.raises(NotImplementedError, match="cfloat"):
        tc.ones(2).chalf()


def test_storages_of_bytes_make_tensors():
    """As programs do that gather pickles as tensors."""
    assert tc.ByteTensor(tc.ByteStorage.from_buffer(b"abc")).tolist() == [97, 98, 99]
    assert tc.ShortStorage.from_buffer(b"\0\1\0\2", "big").tolist() == [1, 2]
    assert tc.TypedStorage.from_buffer(b"xx\1\0\2\0", "little", 1, 2, dtype=tc.int16).tolist() == [1]


def test_storages_have_the_names_of_libraries_that_send_objects():
    sent = tc.ByteTensor(tc.ByteStorage._from_buffer(b"abc"))  # as objects go between processes
    assert sent.tolist() == [97, 98, 99]
    floats = tc.FloatStorage([1.0, 2.0])
    assert (
        floats._get_legacy_storage_class() is tc.FloatStorage
        and floats._pickle_storage_type() == "FloatStorage"
    )
    assert floats._dtype is tc.float32 and floats._getitem(1) == 2.0
    floats._setitem(1, 3.0)
    copied = floats._deepcopy({})
    assert copied.tolist() == [1.0, 3.0] and copied.data_ptr() != floats.data_ptr()
    assert floats._new_wrapped_storage(tc.UntypedStorage(12)).size() == 3
    assert floats._resize_(4) is None and floats.size() == 4 and not floats._is_shared()
    assert floats._share_memory_()._is_shared()
    for storage in (floats, floats.untyped()):
        assert not (storage.is_cuda or storage.is_hpu or storage.is_sparse) and storage.filename is None
        with pytest.raises(RuntimeError, match="hpu"):
            storage.hpu()


def test_storages_of_bytes_have_one_type(tmp_path):
    held = tc.UntypedStorage(4)
    assert held.type(held.type()) is held and held.type().endswith("storage.UntypedStorage")
    assert held.new().nbytes() == 0 and not held.is_sparse_csr
    with pytest.raises(TypeError, match="FloatTensor"):
        held.type("torch.FloatTensor")
    name = tmp_path / "numbers"
    name.write_bytes(b"abcd")
    assert tc.UntypedStorage.from_file(name, True, 4).filename == str(name)
    assert tc.FloatStorage.from_file(str(name), True, 1).filename == str(name)
    assert tc.UntypedStorage.from_file(name, False, 4).filename is None


def test_typed_storages_tell_their_bytes_by_the_newer_name_alone():
    """Programs ask for the older name, a method once, to know how old the library is."""
    storage = tc.FloatStorage([1.0, 2.0])
    assert (
        not hasattr(storage, "_untyped")
        and storage._untyped_storage.nbytes() == storage.untyped().nbytes() == 8
    )


def test_products_of_few_bits():
    a, b = tc.arange(-6, 6).reshape(3, 4).to(tc.int8), tc.arange(8).reshape(4, 2).to(tc.int8)
    assert tc._int_mm(a, b).dtype is tc.int32
    assert tc._int_mm(a, b).tolist() == (a.double() @ b.double()).tolist()
    place = tc.zeros(3, 2, dtype=tc.int32)
    assert tc._int_mm(a, b, out=place) is place and place.tolist() == tc._int_mm(a, b).tolist()
    with pytest.raises(RuntimeError, match=r"'out' is of shape \(3, 2\).*expected \(3, 2\) and int32"):
        tc._int_mm(a, b, out=tc.zeros(3, 2))
    codes = a.to(tc.uint8)
    assert tc._int_mm(codes, b).tolist() == (codes.double() @ b.double()).tolist()
    least, most = (tc.full(shape, -128, dtype=tc.int8) for shape in ((2, 3001), (3001, 3)))
    assert tc._int_mm(least, most).tolist() == [[3001 * 128**2] * 3] * 2
    assert tc._int_mm(a[:, :0], b[:0]).tolist() == [[0] * b.shape[1]] * a.shape[0]
    x, y = (
        tc.arange(6.0).reshape(2, 3).to(tc.float8_e4m3fn),
        tc.arange(6.0).reshape(3, 2).to(tc.float8_e4m3fn),
    )
    product = x.float() @ y.float()
    half, rows, columns = tc.tensor(0.5), tc.tensor([[1.0], [2.0]]), tc.tensor([[3.0, 4.0]])
    made = tc._scaled_mm(x, y, half, half, out_dtype=tc.bfloat16)
    assert made.dtype is tc.bfloat16 and made.tolist() == (product / 4).tolist()
    made = tc._scaled_mm(x, y, rows, columns, bias=tc.tensor([1.0, 0.0]), out_dtype=tc.float32)
    assert made.tolist() == (product * rows * columns + tc.tensor([1.0, 0.0])).tolist()
    assert tc._scaled_mm(x, y, half, half).dtype is tc.float8_e4m3fn
    for call, found in (
        (lambda: tc._int_mm(a, b.long()), "'mat2' has dtype"),
        (lambda: tc._int_mm(a.short(), b), "'self' has dtype"),
        (lambda: tc._int_mm(a, a), r"\(3, 4\) and \(3, 4\)"),
        (lambda: tc._scaled_mm(x, y, columns, half), "'scale_a'"),
        (lambda: tc._scaled_mm(x, y, half, half.double()), "'scale_b'"),
    ):
        with pytest.raises(RuntimeError, match=found):
            call()


def test_operators_are_found_by_name_in_the_compiled_module():
    assert tc._C._jit_get_operation("aten::add")[1] == ["default"]
    assert tc._C._jit_get_operation("aten::nothing_of_the_kind") == (None, None)
    handle = tc._C._dispatch_find_schema_or_throw("aten::add", "Tensor")
    assert str(handle.schema()).startswith("aten::add.Tensor(")
    assert tc._C._dispatch_find_schema_or_throw("aten::relu", "").schema().name == "aten::relu"
    for missing in (("aten::add", "Nothing"), ("nobody::add", "")):
        with pytest.raises(RuntimeError, match=f"Could not find schema for {missing[0]}"):
            tc._C._dispatch_find_schema_or_throw(*missing)
    assert tc._C.default_generator is tc.default_generator


KEYWORDS = [
    ("swapdims", lambda t: tc.swapdims(t, dim0=0, dim1=1), lambda a: a.T),
    ("swapdims method", lambda t: t.swapdims(dim0=1, dim1=0), lambda a: a.T),
    ("heaviside", lambda t: tc.heaviside(t - 2, values=t), lambda a: np.heaviside(a - 2, a)),
    ("hsplit", lambda t: tc.hsplit(t, sections=3)[1], lambda a: a[:, 1:2]),
    ("vsplit", lambda t: tc.vsplit(t, indices=(1,))[1], lambda a: a[1:]),
    ("dropout", lambda t: tc.dropout(t, p=0.5, train=False), lambda a: a),
    ("copy_", lambda t: tc.zeros(2, 3).copy_(other=t), lambda a: a),
    ("cumprod", lambda t: tc.cumprod(a=t, axis=1), lambda a: a.cumprod(1)),
    ("isin", lambda t: tc.isin(elements=t, test_element=2.0), lambda a: a == 2),
    ("uniform_", lambda t: t.clone().uniform_(to=0.0), np.zeros_like),
    ("uniform_ from", lambda t: t.clone().uniform_(**{"from": 1.0, "to": 1.0}), np.ones_like),
    ("random_", lambda t: t.clone().random_(to=1), np.zeros_like),
    ("random_ from", lambda t: t.clone().random_(**{"from": 3, "to": 4}), lambda a: np.full_like(a, 3)),
    ("resize_as_", lambda t: tc.zeros(0).resize_as_(the_template=t).fill_(1), np.ones_like),
    ("one_hot", lambda t: tc.ops.one_hot(input=t.long()[0], num_classes=3), lambda a: np.eye(3)),
]


@pytest.mark.parametrize(
    ("call", "expected"), [case[1:] for case in KEYWORDS], ids=[case[0] for case in KEYWORDS]
)
def test_arguments_have_the_names_that_programs_use(call, expected):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(call(tc.from_numpy(array)).numpy(), expected(array))


def test_normalisation_takes_the_choice_of_a_library():
    x = tc.arange(24.0).reshape(2, 4, 3)
    ops, eps = tc, 1e-5
    plain = ops.layer_norm(x, (3,), None, None, eps)
    for choice in (True, False):
        assert (ops.layer_norm(x, (3,), None, None, eps, choice) == plain).all()
        assert (ops.layer_norm(x, (3,), cudnn_enable=choice) == plain).all()
        assert ops.group_norm(x, 2, None, None, eps, choice).shape == x.shape
        assert ops.instance_norm(x, None, None, None, None, True, 0.1, eps, choice).shape == x.shape
        assert ops.batch_norm(x, None, None, None, None, True, 0.1, eps, choice).shape == x.shape
        assert (
            ops.batch_norm(x, None, None, None, None, True, 0.1, eps, cudnn_enabled=choice).shape == x.shape
        )
    with pytest.raises(TypeError, match="layer_norm: expected at most 5"):
        ops.layer_norm(x, (3,), None, None, eps, 1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'cudnn_enabled'"):
        ops.softmax(x, 1, cudnn_enabled=True)


def test_resize_gives_the_elements_another_shape():
    x = tc.arange(6)
    with pytest.warns(UserWarning, match="non-inplace resize"):
        assert x.resize(2, 3).tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.warns(UserWarning, match="non-inplace resize"):
        assert x.resize_as(tc.ones(3, 2)).shape == (3, 2)
    with pytest.raises(RuntimeError, match="expected the 6 elements"), pytest.warns(UserWarning):
        x.resize((7,))


@pytest.mark.parametrize("kind", ["Tensor", "FloatTensor"])
def test_arguments_of_old_constructors_may_have_names(kind):
    make = getattr(tc, kind)
    assert make(size=(2, 3)).shape == make(size=[2, 3], device="cpu").shape == (2, 3)
    assert make(data=[1, 2]).tolist() == [1, 2] and make(other=tc.ones(2)).tolist() == [1, 1]
    assert make(tc.tensor(3), 2).shape == (3, 2)
    for wrong, said in [
        ({"sizes": (2,)}, "unexpected keyword argument 'sizes'"),
        ({"size": 3}, "'size' must be a tuple of ints, found int"),
        ({"size": ("a",)}, "must be an int, found str"),
        ({"size": (2,), "data": [1]}, "unexpected keyword argument 'data'"),
    ]:
        with pytest.raises(TypeError, match=said):
            make(**wrong)
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        make(3, size=(2,))
    with pytest.raises(TypeError, match=kind):
        make(tc.ones(2), 2)


def test_tensors_are_named_by_the_modules_of_their_functions_too():
    assert tc.sparse.Tensor is tc.fft.Tensor is tc.special.Tensor is tc.Tensor
