"""TorchScript archives written here by hand: their programs run, and can do nothing but call operators."""

import io

import numpy as np
import pytest

import taeda
from taeda.serialization import ScriptArchive, ScriptClass, ScriptObject, write_script

CLASS = """class Net(Module):
  __parameters__ = ["weight", ]
  __buffers__ = []
  weight : Tensor
  training : bool
  _is_full_backward_hook : NoneType
"""


def archive(body, helpers="", version=10, state=None):
    """A module whose `forward(self, x)` has this body, as a file."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    text = f"{CLASS}  def forward(self: __torch__.Net, x: Tensor) -> Tensor:\n{lines}\n{helpers}"
    root = ScriptObject(ScriptClass("__torch__.Net"))
    root.state = {"weight": taeda.ones(3), "training": True, "_is_full_backward_hook": None, **(state or {})}
    file = io.BytesIO()
    write_script(ScriptArchive(root, {"__torch__": text}, (taeda.arange(3),), version), file)
    file.seek(0)
    return file


def ran(body, x=None, **options):
    return taeda.jit.load(archive(body, **options))(taeda.ones(3) if x is None else x)


def test_programs_run():
    helpers = "def twice(x: Tensor,\n    k: int=2) -> Tensor:\n  return torch.mul(x, k)\n"
    body = """
_0 = __torch__.twice
weight = self.weight
n = 0
for i in range(3):
  n = torch.add(n, i)
if torch.gt(n, 2):
  y = _0(x, n, )
else:
  y = x
return torch.add(torch.mul(y, weight), CONSTANTS.c0, alpha=2)
"""
    np.testing.assert_array_equal(ran(body, helpers=helpers).detach().numpy(), [3, 5, 7])


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("torch.div(7, 2)", 3.5), ("torch.div(1., 0)", float("inf")), ("torch.floordiv(-7, 2)", -4),
        ("torch.remainder(-7, 2)", 1), ("torch.pow(2, 3)", 8.0), ("torch.sqrt(-1.)", float("nan")),
        ("torch.log(0.)", float("-inf")), ("torch.ceil(1.5)", 2), ("torch.neg(3)", -3), ("inf", float("inf")),
        ('torch.format("{}-{}", 1, [2, 3])', "1-[2, 3]"), ('torch.format("{0.__class__}", 1)', "{0.__class__}"),
        ('torch.join(",", torch.split("a b", " ", -1))', "a,b"), ('torch.len("abc")', 3),
        ("torch.__contains__([1, 2], 2)", True), ("torch.__is__(None, None)", True),
        ("torch.slice([1, 2, 3], 1, 3, 1)", [2, 3]), ("torch.size(x)", [3]), ("ops.prim.dtype(x)", 6),
        ("ops.prim.max(1, 2.5)", 2.5), ("torch.keys({1: 2})", [1]), ("annotate(int, torch.numel(x))", 3),
        ("int(torch.sum(x))", 3), ("(x).tolist()", [1.0, 1.0, 1.0]), ("isinstance([1], List[int])", True),
        ("torch.__range_length(0, 7, 2)", 4), ("torch.__derive_index(2, 1, 3)", 7), ("sorted([2, 1])", [1, 2]),
        ('torch.percentFormat("%d", 3)', "3"), ("(torch.max(x, 0))[1]", 0), ("ops.prim.NumToTensor(2)", 2),
    ],
)  # fmt: skip
def test_numbers_texts_and_lists(expression, value):
    found = ran(f"return {expression}")
    if isinstance(value, float) and value != value:
        assert found != found
    else:
        assert found == value


@pytest.mark.parametrize(
    "body",
    [
        "import os\nreturn x", "return (x).__class__", "return open('f')", "return __builtins__",
        "return eval('1')", "return [i for i in [1]]", "return (lambda: 1)()", "return f'{x}'",
        "f = self.forward\nreturn f(x)", "return x.numpy()", "return (x).register_hook(x)", "self = x\nreturn x",
        "return torch.relu(*[x])", "return getattr(x, 'data_ptr')()", "global y\nreturn x", "__t_get = x\nreturn x",
        "return x.shape", "del x\nreturn 1", "return x + 1", "with x:\n  pass\nreturn x", "return b'1'",
        "return self.__dict__", "return (self).register_buffer('a', x)", "return (self).load_state_dict({})",
        "return __torch__.Net.__init__.__globals__()", "return x if True else x", "return (yield x)",
        "return torch.relu.__call__(x)", "x.data = x\nreturn x", "self._modules = {}\nreturn x",
        "print = x\nreturn torch",
        "return ops.prim.__class__(x)", "return torch.__dict__", "try:\n  pass\nexcept:\n  pass\nreturn x",
    ],
)  # fmt: skip
def test_what_is_no_torchscript_is_refused(body):
    with pytest.raises((RuntimeError, AttributeError, NotImplementedError)):
        ran(body)


@pytest.mark.parametrize(
    "call", ['torch.save(x, "f")', 'torch.load("f")', 'torch.from_file("f")', "torch.compile(x)"]
)
def test_files_and_other_functions_are_out_of_reach(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotImplementedError):
        ran(f"return {call}")
    assert not list(tmp_path.iterdir())


def test_operators_that_are_not_there_are_named():
    with pytest.raises(NotImplementedError, match="aten::not_there"):
        ran("return torch.not_there(x)")
    with pytest.raises(NotImplementedError, match="mypkg::op"):
        ran("return ops.mypkg.op(x)")
    with pytest.raises(NotImplementedError, match=r"__torch__\.missing"):
        ran("return __torch__.missing(x)")


def test_operators_of_plugins_are_called():
    lib = taeda.library.Library("scriptpkg", "DEF")
    try:
        lib.define("thrice(Tensor x) -> Tensor")
        lib.impl("thrice", lambda x: x * 3, "CompositeImplicitAutograd")
        assert ran("return ops.scriptpkg.thrice(x)").tolist() == [3.0] * 3
    finally:
        lib._destroy()


def test_division_of_older_archives_truncates():
    body = "return torch.div(torch.to(x, 4, False, False, None), ops.prim.NumToTensor(2))"
    seven = taeda.full((1,), 7.0)
    assert ran(body, seven, version=3).tolist() == [3]
    assert ran(body, seven, version=4).tolist() == [3.5]


def test_objects_of_unknown_classes_are_named():
    other = ScriptObject(ScriptClass("__torch__.torch.classes.quantized.Packed"))
    other.state = {}
    with pytest.raises(NotImplementedError, match=r"torch\.classes\.quantized\.Packed"):
        taeda.jit.load(archive("return x", state={"packed": other}))


def test_modules_are_copied_and_changed():
    net = taeda.jit.load(archive("weight = self.weight\nreturn torch.mul(x, weight)"))
    import copy

    other = copy.deepcopy(net)
    other.load_state_dict({"weight": taeda.full((3,), 5.0)})
    assert net(taeda.ones(3)).tolist() == [1.0] * 3 and other(taeda.ones(3)).tolist() == [5.0] * 3
    assert other.eval().training is False and net.training is True
    with pytest.raises(RuntimeError, match="cannot be pickled"):
        taeda.save(net, io.BytesIO())


def test_cut_off_archives_are_refused():
    data = archive("return x").getvalue()
    for end in range(len(data) // 2, len(data) - 1, 97):
        with pytest.raises((RuntimeError, ValueError)):
            taeda.jit.load(io.BytesIO(data[:end]))
