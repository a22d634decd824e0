"""What programs read of modules and of the library itself: members in `__dict__`, and texts under the other name."""

import copy
import pickle
import subprocess
import sys
import weakref

import pytest

import taeda
from taeda import nn
from taeda.nn.utils._named_member_accessor import NamedMemberAccessor, swap_tensor


def net():
    made = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    made.register_buffer("kept", taeda.ones(1), persistent=False)
    return made


def test_members_stand_in_the_dict():
    made = net()
    values = made.__dict__
    assert values["_modules"]["0"] is made[0] and list(values["_modules"]) == ["0", "1"]
    assert list(made[0].__dict__["_parameters"]) == ["weight", "bias"] and "kept" in values["_buffers"]
    weight = nn.Parameter(taeda.zeros(3, 2))
    made[0].__dict__["_parameters"]["weight"] = weight
    assert made[0].weight is weight and next(made.parameters()) is weight
    assert made.__getattr__("0") is made[0] and made[0].__getattr__("weight") is weight
    with pytest.raises(AttributeError, match="'Sequential' object has no attribute 'training'"):
        made.__getattr__("training")
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made)), copy.copy(made)):
        assert (
            other.__dict__["_modules"]["1"] is other[1] is other.__getattr__("1") and other.kept.item() == 1
        )
    assert (
        type(copy.deepcopy(values)["_parameters"]) is dict
        and type(pickle.loads(pickle.dumps(values["_buffers"]))) is dict
    )


def test_a_module_goes_when_nothing_holds_it():
    made = net()
    gone, views = weakref.ref(made), made.__dict__["_modules"]
    del made
    assert gone() is None
    with pytest.raises(RuntimeError, match="is gone"):
        len(views)


def test_clones_by_their_dicts():
    first = net()
    clone = type(first).__new__(type(first))
    clone.__dict__ = first.__dict__.copy()
    for kind in ("_parameters", "_buffers", "_modules"):
        setattr(clone, kind, getattr(clone, kind).copy())
    clone._modules["0"] = nn.Identity()
    clone._buffers["kept"] = None
    assert isinstance(first[0], nn.Linear) and first.kept is not None
    assert isinstance(clone[0], nn.Identity) and clone.kept is None
    assert clone.__dict__["_modules"]["0"] is clone[0] and "kept" not in clone.state_dict()
    clone._modules = {}
    assert len(clone) == 0 and len(first) == 2 and not hasattr(clone, "1")
    first._modules.move_to_end("0")
    assert list(first._modules) == ["1", "0"] == list(reversed(list(reversed(first._modules))))
    first._modules.move_to_end("0", last=False)
    assert list(first._modules) == ["0", "1"]


def test_tensors_by_their_names():
    made = net()
    accessor = NamedMemberAccessor(made)
    before = accessor.swap_tensor("0.weight", taeda.zeros(3, 2))
    assert made[0].weight.sum() == 0 and type(made[0].weight) is taeda.Tensor
    accessor.swap_tensors_dict({"0.weight": before})
    assert made[0].weight is before and accessor.check_keys(["0.weight"])[1] == []
    with pytest.raises(AttributeError, match="no attribute `nothing`"):
        swap_tensor(made, "nothing", before)
    with pytest.raises(KeyError, match="can't contain"):
        swap_tensor(made, "a.b", before)
    with pytest.raises(TypeError, match="not an instance"):
        swap_tensor(made, "kept", 3)
    before, missing = accessor.swap_tensors_dict(
        {"0.bias": taeda.ones(3), "0.b": taeda.ones(1)}, allow_missing=True
    )
    assert list(before) == ["0.bias"] and missing == ["0.b"]


def test_the_other_name():
    source = (
        "import sys, taeda\n"
        "before = repr(taeda.float32), repr(taeda.ones(2).shape), taeda.Tensor.__module__\n"
        "sys.modules['torch'] = taeda\n"
        "import torch, json.tool, torch.nn\n"
        "import html.parser\n"
        "assert torch.__name__ == 'torch' and torch.Tensor.__module__ == 'torch'\n"
        "assert repr(torch.float32) == 'torch.float32' and repr(torch.ones(2).shape) == 'torch.Size([2])'\n"
        "assert torch.nn.Parameter.__module__.startswith('torch.')\n"
        "from torch import nn, optim\n"
        "assert nn is taeda.nn\n"
        "names = [n for n, v in vars(torch).items() if isinstance(v, torch.dtype)]\n"
        "assert 'bfloat16' in names\n"
        "classes = [v for v in vars(torch.optim).values() if isinstance(v, type) and v is not torch.optim.LBFGS]\n"
        "assert torch.optim.SparseAdam in classes\n"
        "assert torch._ops.OpOverload and torch._C._VariableFunctions.add(1, torch.ones(1)).item() == 2\n"
        "data = torch.utils.data\n"
        "import calendar, pickle\n"
        "for kind in (data.Dataset, data.IterableDataset, data.DataLoader, torch.nn.Parameter):\n"
        "    assert kind.__module__.startswith('torch.') and pickle.loads(pickle.dumps(kind)) is kind\n"
        "for kind in (torch.Generator, torch.Size, torch.device, torch.dtype):\n"
        "    assert kind.__module__.split('.')[0] == 'torch' and pickle.loads(pickle.dumps(kind)) is kind\n"
        "for made in (torch.Size([1, 2]), torch.device('meta'), torch.float16):\n"
        "    assert pickle.loads(pickle.dumps(made)) == made\n"
        "assert isinstance(data.DataLoader([1, 2]), data.DataLoader)\n"
        "del sys.modules['torch']\n"
        "import xml.dom\n"
        "assert before == (repr(taeda.float32), repr(taeda.ones(2).shape), taeda.Tensor.__module__)\n"
        "assert data.DataLoader.__module__ == 'taeda_data.loader'\n"
        "assert taeda.Generator.__module__ == taeda.dtype.__module__ == 'taeda_tensor_core'\n"
    )
    subprocess.run([sys.executable, "-c", source], check=True)


def test_swapped_tensors_exchange_layouts_and_classes():
    class Named(taeda.Tensor):
        pass

    dense, sparse = taeda.ones(2, 2), taeda.eye(2).to_sparse()
    taeda.utils.swap_tensors(dense, sparse)
    assert dense.is_sparse and dense.to_dense().tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert type(sparse) is taeda.Tensor and sparse.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    weight, other = taeda.nn.Parameter(taeda.ones(3)), taeda.zeros(2).as_subclass(Named)
    weight.grad, other.note = taeda.ones(3), "kept"
    taeda.utils.swap_tensors(weight, other)
    assert type(weight) is Named and weight.tolist() == [0.0, 0.0] and weight.note == "kept"
    assert (
        isinstance(other, taeda.nn.Parameter)
        and other.grad.tolist() == [1.0, 1.0, 1.0]
        and weight.grad is None
    )
