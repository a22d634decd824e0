"""The Tensor object itself: identity, attributes, subclasses, life time, copies and pickles."""

import copy
import gc
import pickle
import weakref

import pytest

import taeda_tensor_core as taeda
from taeda_tensor_core import Tensor
from taeda_testing.settling import without_collector


def test_attributes():
    t = taeda.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert t.shape == (2, 3) and isinstance(t.shape, taeda.Size) and t.shape.numel() == 6
    assert t.size() == t.shape and t.size(-1) == 3
    assert t.stride() == (3, 1) and t.stride(0) == 3
    assert (t.ndim, t.dim(), t.numel(), t.itemsize, t.nbytes, len(t)) == (2, 2, 6, 4, 24, 2)
    assert t.dtype is taeda.float32 and t.device == taeda.device("cpu")
    assert t.T.shape == (3, 2) and t.mT.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert t.is_contiguous() and not t.T.is_contiguous()
    assert t[1].storage_offset() == 3
    assert t.T._base is t and t._base is None
    assert not t.requires_grad and t.is_leaf and t.grad is None and t.grad_fn is None


def test_version_counts_writes_through_views():
    t = taeda.zeros(3)
    view = t[1:]
    before = t._version
    view.add_(1)
    t[0] = 5
    assert t._version == view._version == before + 2


def test_same_tensor_is_same_object():
    t = taeda.ones(2)
    view = t[:]
    assert view._base is t
    holder = [t]
    assert holder[0].contiguous() is t
    assert t.to(taeda.float32) is t


def test_wrapper_with_state_survives_in_cpp():
    base = taeda.zeros(4)
    base.note = "kept"
    alive = weakref.ref(base)
    view = base[1:]
    del base
    gc.collect()
    assert view._base.note == "kept"
    assert alive() is view._base
    del view
    gc.collect()
    assert alive() is None


def test_weakref_taken_while_owned_by_cpp():
    base = taeda.arange(4)
    base.note = 1
    alive = weakref.ref(base)
    view = base[1:]
    del base
    again = alive()
    del view
    assert again.tolist() == [0, 1, 2, 3] and again.note == 1
    del again
    assert alive() is None


def test_memory_dies_with_the_last_reference():
    with without_collector():
        before = taeda._C._live_bytes()
        t = taeda.zeros(1000)
        t.me = [1]
        views = [t[i:] for i in range(10)]
        assert taeda._C._live_bytes() == before + 4000
        del t
        assert taeda._C._live_bytes() == before + 4000
        del views
        assert taeda._C._live_bytes() == before


class Special(Tensor):
    """A subclass with state in a slot and in __dict__."""

    @staticmethod
    def __new__(cls, data):
        return Tensor._make_subclass(cls, data, False)

    def twice(self):
        return self * 2


def test_subclass():
    t = Special(taeda.ones(2))
    t.label = "x"
    assert type(t) is Special and isinstance(t, Tensor)
    assert t.twice().tolist() == [2.0, 2.0]
    assert type(t.detach()) is Special
    view = t[:1]
    alive = weakref.ref(t)
    del t
    assert type(view._base) is Special and view._base.label == "x"
    del view
    assert alive() is None


def test_subclass_with_slots_and_finalizer():
    seen = []

    class Slotted(Tensor):
        __slots__ = ("extra",)

        def __del__(self):
            seen.append(self.tolist())

    t = Tensor._make_subclass(Slotted, taeda.arange(2))
    marker = Special(taeda.ones(1))
    t.extra = marker
    gone = weakref.ref(marker)
    del marker
    with taeda._C.DisableTorchFunctionSubclass():
        view = t[1:]
    del t
    assert seen == []
    del view
    assert seen == [[0, 1]] and gone() is None


def test_cycle_through_dict_is_collected():
    t = taeda.ones(3)
    t.me = t
    gone = weakref.ref(t)
    del t
    gc.collect()
    assert gone() is None


def of_numbers(dtype):
    """Whether there are tensors of a dtype; the others are names that programs import."""
    try:
        return taeda.empty(0, dtype=dtype) is not None
    except TypeError:
        return False


DTYPES = [
    n for n in dir(taeda) if isinstance(getattr(taeda, n), taeda.dtype) and of_numbers(getattr(taeda, n))
]


@pytest.mark.parametrize("name", DTYPES)
def test_pickle_every_dtype(name):
    dtype = getattr(taeda, name)
    t = taeda.tensor([[0, 1], [1, 0], [1, 1]]).to(dtype)
    back = pickle.loads(pickle.dumps(t.T))
    assert back.dtype is dtype and back.shape == (2, 3) and back.tolist() == t.T.tolist()


def test_reductions_hold_what_yaml_takes():
    """YAML writes objects by their reductions, and takes none that is a name instead of a call."""

    def parts(value):
        if isinstance(value, (tuple, list)):
            return [part for item in value for part in parts(item)]
        if callable(value) or isinstance(value, (bytes, str, int, float, type(None))):
            return []
        reduction = value.__reduce_ex__(2)
        return [type(reduction), *parts(reduction)]

    assert set(parts(taeda.rand(2, 3))) == set(parts(taeda.empty(2, device="meta"))) == {tuple}


def test_pickle_keeps_class_state_and_empty_shapes():
    t = Special(taeda.zeros(0, 3))
    t.label = {"a": 1}
    back = pickle.loads(pickle.dumps(t))
    assert type(back) is Special and back.shape == (0, 3) and back.label == {"a": 1}
    assert pickle.loads(pickle.dumps(taeda.empty(2, 3, device="meta"))).device.type == "meta"


def test_pickle_methods_of_the_class():
    own = {name: getattr(taeda.Tensor, name) for name in dir(taeda.Tensor) if not name.startswith("__")}
    methods = {
        name: method for name, method in own.items() if callable(method) and not isinstance(method, type)
    }
    assert {"cuda", "to_sparse", "values", "q_scale", "add"} <= methods.keys()
    for name, method in methods.items():
        assert pickle.loads(pickle.dumps(method)) == method, name


def test_pickled_tensor_is_writable():
    t = pickle.loads(pickle.dumps(taeda.zeros(3)))
    t += 1
    assert t.tolist() == [1, 1, 1]


def test_deepcopy_and_copy():
    t = Special(taeda.arange(3))
    t.items = [1]
    deep, shallow = copy.deepcopy(t), copy.copy(t)
    t[0] = 7
    t.items.append(2)
    assert deep.tolist() == [0, 1, 2] and deep.items == [1] and type(deep) is Special
    assert shallow.tolist() == [7, 1, 2] and shallow.items == [1, 2]
    pair = copy.deepcopy([t, t])
    assert pair[0] is pair[1]


def test_deepcopy_keeps_channels_last():
    t = taeda.zeros(2, 3, 4, 5).contiguous(memory_format=taeda.channels_last)
    assert copy.deepcopy(t).is_contiguous(memory_format=taeda.channels_last)
    assert pickle.loads(pickle.dumps(t)).is_contiguous(memory_format=taeda.channels_last)


def test_numbers():
    assert (
        int(taeda.tensor(3)) == 3
        and float(taeda.tensor(2.5)) == 2.5
        and complex(taeda.tensor(1 + 2j)) == 1 + 2j
    )
    assert bool(taeda.tensor([True])) and not taeda.tensor(0.0)
    assert [10, 20, 30][taeda.tensor(1)] == 20
    assert taeda.tensor(2**64 - 1, dtype=taeda.uint64).item() == 2**64 - 1
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(taeda.ones(2))
    with pytest.raises(RuntimeError, match="item"):
        taeda.ones(2).item()
    with pytest.raises(TypeError, match="index"):
        [1, 2][taeda.tensor(1.0)]


def test_iteration_and_membership():
    t = taeda.tensor([[1, 2], [3, 4]])
    assert [row.tolist() for row in t] == [[1, 2], [3, 4]]
    _, b = t
    assert b[0].item() == 3
    assert 3 in t and 9 not in t
    with pytest.raises(TypeError, match="0-d"):
        iter(taeda.tensor(1))
    with pytest.raises(TypeError, match="0-d"):
        len(taeda.tensor(1))


def test_hash_is_identity():
    t = taeda.ones(2)
    assert len({t, t, taeda.ones(2)}) == 2


def test_missing_packages_are_named():
    import subprocess
    import sys

    absent = "import sys\nsys.modules['taeda_multiprocessing'] = None\n"
    code = absent + "import taeda_tensor_core as t\nx = t.ones(2)\n"
    for line, package in [
        ("x.backward()", "taeda-autograd"),
        ("x.requires_grad = True", "taeda-autograd"),
        ("x.share_memory_()", "multiprocessing"),
    ]:
        program = f"{code}try:\n    {line}\nexcept RuntimeError as e:\n    print(e)\n"
        out = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout
        assert "pip install" in out and package in out


def test_tensor_class_makes_tensors():
    assert Tensor(2, 3).shape == (2, 3)
    assert Tensor([1, 2]).dtype is taeda.float32
    assert Tensor().shape == (0,)
    t = taeda.ones(2)
    assert Tensor(t).data_ptr() == t.data_ptr()


def test_data_shares_elements():
    t = taeda.zeros(2)
    t.data[0] = 3
    assert t.tolist() == [3, 0]
    t.data = taeda.ones(3)
    assert t.shape == (3,)


def test_to():
    t = taeda.ones(2)
    assert t.to("cpu") is t and t.to(taeda.float64).dtype is taeda.float64
    assert t.to(taeda.ones(1, dtype=taeda.int8)).dtype is taeda.int8
    assert (
        t.to("cpu", taeda.int32).dtype is taeda.int32
        and t.to(device="cpu", dtype=taeda.bool).dtype is taeda.bool
    )
    assert t.to(taeda.float32, copy=True) is not t
    assert t.double().dtype is taeda.float64 and t.float() is t and t.long().dtype is taeda.int64
    assert t.type() == "torch.FloatTensor" and t.type(taeda.float64).dtype is taeda.float64
    with pytest.raises(TypeError, match="to: expected"):
        t.to(3.0)
    with pytest.raises(RuntimeError, match="index must not be negative, found -1"):
        t.to(-1)
    assert t.to("cpu:1").device == taeda.device("cpu")
    assert t.reshape(1, -1).size(axis=0) == 1 and t.reshape(1, -1).stride(axis=1) == 1


def test_resize():
    t = taeda.arange(4)
    assert t.resize_(2, 3).shape == (2, 3) and t.reshape(-1)[:4].tolist() == [0, 1, 2, 3]


def test_format():
    assert f"{taeda.tensor(1.5):.3f}" == "1.500"
    assert f"{taeda.tensor([1])}" == "tensor([1])"


def roundtrip(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, roundtrip])
def test_copies_share_memory_as_the_originals_did(duplicate):
    t = taeda.arange(6.0).reshape(2, 3)
    whole, row, turned, bits = duplicate([t, t[1], t.T, t.view(taeda.int32)])
    assert (row.tolist(), turned.tolist()) == (t[1].tolist(), t.T.tolist())
    whole[1, 1] = 50
    assert row.tolist() == [3, 50, 5] and turned[1, 1] == 50 and bits.view(taeda.float32)[1, 1] == 50
    assert t[1, 1] == 4 and whole._base is None and row._base is None
    alone = duplicate(t[1])
    alone[0] = -1
    assert t[1, 0] == 3 and not taeda.equal(duplicate(t), alone)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, roundtrip])
@pytest.mark.parametrize("name", ["channels_last", "contiguous_format", "preserve_format"])
def test_copies_of_memory_formats_are_themselves(duplicate, name):
    assert duplicate(getattr(taeda, name)) is getattr(taeda, name)


def test_requires_grad_takes_bools():
    t = taeda.ones(2)
    with pytest.raises(TypeError, match="requires_grad: expected a bool, found int"):
        t.requires_grad = 3
    with pytest.raises(TypeError, match="requires_grad_: argument 'requires_grad' must be a bool, found str"):
        t.requires_grad_("a")
    assert not t.requires_grad


def test_switches_take_bools():
    with pytest.raises(TypeError, match="set_grad_enabled: argument 'mode' must be a bool, found str"):
        taeda.set_grad_enabled("a")
    with pytest.raises(TypeError, match="inference_mode: argument 'mode' must be a bool, found int"):
        taeda.inference_mode(3)
    assert taeda.is_grad_enabled()


def test_integers_beyond_64_bits_are_reported_by_place():
    with pytest.raises(OverflowError, match=r"tensor: argument 'data': .* 64 bits: 1180591620717411303424"):
        taeda.tensor([1, 2**70])
    with pytest.raises(OverflowError, match=r"add: argument 'other': .* 64 bits"):
        taeda.add(taeda.ones(2), 2**70)
    with pytest.raises(OverflowError, match=r"operator: .* 64 bits"):
        _ = taeda.tensor(5) == 2**70
    with pytest.raises(IndexError, match="index: the integer does not fit into 64 bits"):
        taeda.ones(3)[2**64]
    with pytest.raises(OverflowError, match="manual_seed: argument 'seed'"):
        taeda.manual_seed(2**64)
    for call in (lambda: taeda.ones(2).unsqueeze(2**70), lambda: taeda.full((2,), 2**70)):
        for kind in (OverflowError, ValueError, RuntimeError):
            with pytest.raises(kind):
                call()
    assert taeda.ones(3).normal_(2**70, 0).tolist() == [2.0**70] * 3
    with pytest.raises(OverflowError, match="normal_: argument 'mean'"):
        taeda.ones(3).normal_(2**2000)
    taeda.manual_seed(2**64 - 1)


def test_private_names_that_programs_use():
    x, y = taeda.tensor([1.0, 2.0]), taeda.tensor([1.0, 2.0])
    assert x._cdata == x._cdata != y._cdata
    assert list(x._typed_storage()) == [1.0, 2.0]
    truths = taeda.tensor([True, False])
    assert not truths._is_all_true() and truths._is_any_true()
    assert taeda._has_compatible_shallow_copy_type(truths, taeda.ones(3))
    assert not taeda._has_compatible_shallow_copy_type(truths, taeda.ones(3, device="meta"))


def test_switches_take_bools_alone():
    x = taeda.ones(2)
    for call in (
        lambda: x.requires_grad_(None),
        lambda: x.requires_grad_(1),
        lambda: delattr(x, "requires_grad"),
        lambda: taeda.tensor([1.0], requires_grad="no"),
        lambda: x.to(taeda.float64, copy="no"),
        lambda: x.to(taeda.float64, True, 0),
        lambda: x.to(taeda.float64, non_blocking=1),
    ):
        with pytest.raises(TypeError, match="bool"):
            call()
    with pytest.raises(TypeError, match="at most 2"):
        x.to(taeda.float64, True, True, taeda.contiguous_format)
    assert not x.requires_grad
    truth = taeda.tensor(True)
    assert x.to(taeda.float32, copy=truth) is not x and x.to(taeda.float32, non_blocking=truth) is x


@pytest.mark.parametrize("name", ["mT", "mH", "H"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_numbers_have_no_dimensions_to_exchange(name, dtype):
    x = taeda.tensor(2, dtype=getattr(taeda, dtype))
    shown = getattr(x, name)
    assert shown.shape == () and shown.tolist() == 2
    if name in ("mT", "mH"):
        with pytest.raises(RuntimeError, match=f"{name}: expected a tensor of at least 2 dimensions"):
            getattr(taeda.ones(3), name)


def test_bools_are_sizes_behind_the_first_int():
    assert taeda.zeros([2, True]).shape == (2, 1)
    assert taeda.zeros(2, True, False).shape == (2, 1, 0)
    assert taeda.ones(2).view((2, True)).shape == (2, 1)
    for wrong in ([True], [True, 2]):
        with pytest.raises(TypeError, match="'size' must be an int or a sequence of ints"):
            taeda.zeros(wrong)


def test_meta_tensors_may_be_larger_than_any_memory():
    assert taeda.empty(200_000_000, 3, 200_000_000, device="meta").numel() == 12 * 10**16
    with pytest.raises(MemoryError, match="does not fit in memory"):
        taeda.empty(2**50)
    with pytest.raises(MemoryError, match="more elements than can be counted"):
        taeda.empty(2**31, 2**31, 2**31, device="meta")


def test_data_of_another_kind_is_refused():
    dense, sparse = taeda.ones(2, 2), taeda.eye(2).to_sparse()
    for to, other in (
        (dense, sparse),
        (sparse, dense),
        (dense, taeda.eye(2).to_sparse_csr()),
        (dense, taeda.nested.nested_tensor([taeda.ones(2)])),
    ):
        with pytest.raises(RuntimeError, match=r"data: a .* incompatible tensor type"):
            to.data = other
    assert dense.tolist() == [[1.0, 1.0], [1.0, 1.0]] and dense.device.type == "cpu"
    sparse.data = 2 * sparse
    assert sparse.to_dense().tolist() == [[2.0, 0.0], [0.0, 2.0]]


def test_untyped_storage_becomes_elements_of_the_dtype_that_is_asked_for():
    x = taeda.tensor([1.5, -2.0], dtype=taeda.float64)
    bytes_of_x = x.untyped_storage()
    for make in (taeda.tensor, taeda.as_tensor, taeda.asarray):
        assert make(bytes_of_x, dtype=taeda.float64).tolist() == [1.5, -2.0]
        assert len(make(bytes_of_x, dtype=taeda.int16)) == 8
    shared = taeda.as_tensor(bytes_of_x, dtype=taeda.float64)
    shared[0] = 3.0
    assert x[0] == 3.0 and taeda.tensor(bytes_of_x, dtype=taeda.float64).data_ptr() != x.data_ptr()
    with pytest.raises(RuntimeError, match="3 bytes of the storage are no whole number of elements"):
        taeda.tensor(taeda.UntypedStorage(3), dtype=taeda.float32)


def test_a_number_of_threads_below_one_is_refused():
    with pytest.raises(RuntimeError, match="set_num_threads: argument 'count' must be 1 to"):
        taeda.set_num_threads(0)
