"""TorchScript archives that PyTorch writes: their programs give the same here, and it reads what is written again."""

import io
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
torch = pytest.importorskip("torch", reason="archives are written by PyTorch, which is not installed")
import op_samples  # noqa: E402

import taeda  # noqa: E402

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyTorch gives its compiler up
    import script_programs as programs

pytestmark = [
    pytest.mark.filterwarnings("ignore:`?torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::taeda.jit.TracerWarning"),
    pytest.mark.filterwarnings("ignore:.*:UserWarning"),
]

SCRIPTED = {
    "loops": (programs.Loops, [((3, 4),), ((3, 4), (4,))]),
    "objects": (programs.Objects, [((3,),)]),
    "layers": (programs.Layers, [((2, 4, 5),)]),
    "forked": (programs.Forked, [((3,),)]),
}


def leaves(value):
    if isinstance(value, (torch.Tensor, taeda.Tensor)):
        return [value.detach().numpy()]
    if isinstance(value, dict):
        return [item for key, inner in value.items() for item in (key, *leaves(inner))]
    if isinstance(value, (list, tuple)):
        return [item for inner in value for item in leaves(inner)]
    return [value]


def agree(ours, theirs, rtol=1e-4):
    ours, theirs = leaves(ours), leaves(theirs)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(b, np.ndarray):
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-5)
        else:
            assert a == b


def saved(program):
    file = io.BytesIO()
    torch.jit.save(program, file)
    return file.getvalue()


def both(program):
    return program, taeda.jit.load(io.BytesIO(saved(program)))


def scripted(name):
    torch.manual_seed(0)
    return both(torch.jit.script(SCRIPTED[name][0]().eval()))


@pytest.mark.parametrize("name", SCRIPTED)
def test_scripts_give_the_same(name):
    theirs, ours = scripted(name)
    rng = np.random.default_rng(0)
    for shapes in SCRIPTED[name][1]:
        arrays = [rng.normal(size=shape).astype("float32") for shape in shapes]
        agree(ours(*map(taeda.tensor, arrays)), theirs(*map(torch.tensor, arrays)))


@pytest.mark.parametrize("name", SCRIPTED)
def test_scripts_are_modules_with_the_same_state(name):
    theirs, ours = scripted(name)
    assert isinstance(ours, taeda.jit.RecursiveScriptModule)
    assert ours.original_name == theirs.original_name
    if name in (
        "layers",
        "forked",
    ):  # others' temporary names are counted otherwise when PyTorch prints again
        assert ours.code == theirs.code
    assert str(ours) == str(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    agree(dict(ours.state_dict()), dict(theirs.state_dict()))
    assert [n for n, _ in ours.named_modules()] == [n for n, _ in theirs.named_modules()]
    assert ours.training is theirs.training is False


def test_attributes_and_exported_methods():
    theirs, ours = scripted("loops")
    assert ours.names == ["a", "bb", "ccc"] and ours.table == theirs.table and ours.limit == 10.0
    assert ours.halves([1, 2]) == theirs.halves([1, 2]) == [0.5, 1.0]
    ours.limit = -1e9
    theirs.limit = -1e9
    x = np.ones((3, 4), "float32")
    agree(ours(taeda.tensor(x), times=5), theirs(torch.tensor(x), times=5))


def test_exceptions_of_programs():
    _, ours = scripted("objects")
    with pytest.raises(taeda.jit.Error, match=r"no stage 2|index"):
        ours(taeda.ones(3), 2)
    assert ours.seen == 1  # what had been done before stays done


def test_training_gives_the_same_gradients():
    theirs, ours = scripted("layers")
    x = np.random.default_rng(1).normal(size=(2, 4, 5)).astype("float32")
    for lib, module in ((torch, theirs), (taeda, ours)):
        module.conv.train(), module.rnn.train()
        out, h = module(lib.tensor(x))
        (out.square().sum() + h.sum()).backward()
    for (name, a), (_, b) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        assert (a.grad is None) == (b.grad is None), name
        if b.grad is not None:
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-3, atol=1e-4, err_msg=name)
    agree(dict(ours.named_buffers()), dict(theirs.named_buffers()))


def traced():
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return both(torch.jit.trace(programs.Traced().eval(), torch.randn(2, 1, 6, 6)))


def test_traces_give_the_same():
    theirs, ours = traced()
    x = np.random.default_rng(2).normal(size=(2, 1, 6, 6)).astype("float32")
    agree(ours(taeda.tensor(x)), theirs(torch.tensor(x)))
    assert ours.conv.weight is ours.other.weight
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]


@pytest.mark.parametrize("name", [*SCRIPTED, "traced"])
def test_what_was_loaded_is_written_for_pytorch(name):
    _, ours = traced() if name == "traced" else scripted(name)
    with taeda.no_grad():
        for parameter in ours.parameters():
            parameter.add_(0.25)
    shapes = [(2, 1, 6, 6)] if name == "traced" else SCRIPTED[name][1][0]
    arrays = [np.random.default_rng(3).normal(size=shape).astype("float32") for shape in shapes]
    file = io.BytesIO()
    taeda.jit.save(ours, file, _extra_files={"note": "kept"})
    again = torch.jit.load(io.BytesIO(file.getvalue()))
    agree(ours(*map(taeda.tensor, arrays)), again(*map(torch.tensor, arrays)))
    extra = {"note": ""}
    taeda.jit.load(io.BytesIO(file.getvalue()), _extra_files=extra)
    assert extra["note"] == b"kept"


def test_functions_are_archives_too():
    @torch.jit.script
    def program(x, k: int = 2):
        return torch.softmax(x * k, -1), list(x.shape)

    _, ours = both(program)
    x = np.arange(6, dtype="float32").reshape(2, 3)
    agree(ours(taeda.tensor(x), 3), program(torch.tensor(x), 3))


def test_load_names_archives():
    data = saved(torch.jit.script(programs.Scale()))
    with pytest.raises(RuntimeError, match=r"TorchScript archive.*taeda\.jit\.load"):
        taeda.load(io.BytesIO(data))


def test_tensors_go_where_they_are_asked():
    ours = taeda.jit.load(io.BytesIO(saved(torch.jit.script(programs.Objects()))), map_location="meta")
    assert ours.weight.device.type == "meta"


#: What traces of PyTorch's records call and taeda does not have, or what draws numbers or signs.
ABSENT = {
    "_batch_norm_with_update", "_chunk_cat", "_unsafe_masked_index", "_unsafe_masked_index_put_accumulate",
    "_native_batch_norm_legit", "hash_tensor", "svd_lowrank", "pca_lowrank", "matrix_exp",
    "linalg.eig", "linalg.eigh", "bfloat16",
}  # fmt: skip
RANDOM = ("rand", "bernoulli", "multinomial", "normal", "dropout", "uniform", "exponential", "cauchy", "geometric",
          "empty", "poisson", "rrelu", "fractional", "jiterator", "nested", "sparse", "resize")  # fmt: skip


def operators():
    for op in op_samples.op_records()[::6]:
        if (
            torch.float32 in op.dtypes
            and not any(word in op.name for word in RANDOM)
            and op.name not in ABSENT
        ):
            yield op


def traced_call(op, sample):
    from torch.utils._pytree import tree_flatten, tree_unflatten

    flat, spec = tree_flatten(((sample.input, *sample.args), sample.kwargs))
    places = [i for i, item in enumerate(flat) if isinstance(item, torch.Tensor)]

    def program(*tensors):
        items = list(flat)
        for place, item in zip(places, tensors, strict=True):
            items[place] = item
        args, kwargs = tree_unflatten(items, spec)
        return tuple(x for x in tree_flatten(op(*args, **kwargs))[0] if isinstance(x, torch.Tensor))

    return program, [flat[i].detach() for i in places]


def test_traces_of_the_operators_of_the_database():
    torch.manual_seed(0)
    wrong, tried = {}, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for op in operators():
            sample = next(iter(op.sample_inputs("cpu", torch.float32)))
            program, given = traced_call(op, sample)
            if not given or any(t.dtype not in op_samples.DTYPES for t in given):
                continue
            expected = program(*[t.clone() for t in given])
            if any(t.dtype not in op_samples.DTYPES or t.layout != torch.strided for t in expected):
                continue
            try:
                trace = torch.jit.trace(program, tuple(t.clone() for t in given), check_trace=False)
            except RuntimeError:
                continue  # PyTorch cannot trace it
            tried += 1
            try:
                found = taeda.jit.load(io.BytesIO(saved(trace)))(*(op_samples.convert(t, []) for t in given))
                found = found if isinstance(found, (tuple, list)) else (found,)
                expected = tuple(t.resolve_conj().resolve_neg() for t in expected)
                agree(list(found), list(expected), rtol=1e-3)
            except Exception as error:
                wrong[f"{op.name} {op.variant_test_name}"] = f"{type(error).__name__}: {str(error)[:200]}"
    assert tried > 50
    assert not wrong, "\n".join(f"{name}: {text}" for name, text in wrong.items())
