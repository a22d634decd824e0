"""Names that programs use beside operators, and taeda under another name."""

from __future__ import annotations

import copy
import importlib
import pickle
import subprocess
import sys
import textwrap

import pytest

import taeda


def run(source: str) -> list[str]:
    """Lines that a program prints in a fresh interpreter."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(source)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_submodules_are_found_under_the_other_name_and_are_the_same():
    shown = run(
        """
        import sys, taeda
        sys.modules["torch"] = taeda
        import torch, torch.nn as nn, torch.nn.functional as F, torch.backends.cudnn as cudnn
        import torch.utils.data, torch.cuda.amp, torch.optim.lr_scheduler, torch.jit.annotations
        from torch.utils.checkpoint import checkpoint
        from torch.autograd.function import Function
        from torch.utils._pytree import tree_map
        from torch.onnx import symbolic_opset11
        print(torch is taeda, nn is taeda.nn, F is taeda.nn.functional, checkpoint is taeda.utils.checkpoint.checkpoint)
        print(Function is taeda.autograd.Function, torch.jit is taeda.jit, sys.modules["torch.jit"] is taeda.jit)
        print(sys.modules["torch.cuda.amp"] is taeda.cuda.amp, cudnn is taeda.backends.cudnn)
        print([name for name in sys.modules if name.startswith("torch.") and sys.modules[name].__name__ == name])
        """
    )
    assert shown == ["True True True True", "True True True", "True True", "[]"]


def test_texts_say_the_other_name():
    shown = run(
        """
        import sys, taeda
        sys.modules["torch"] = taeda
        import torch
        from torch.nn.utils import parametrize
        print(torch.ones(0).untyped_storage(), torch.ones(0).storage())
        print(torch.overrides.resolve_name(torch.Tensor.add), torch.overrides.resolve_name(torch.nn.functional.relu))
        layer = torch.nn.Linear(1, 1)
        parametrize.register_parametrization(layer, "weight", torch.nn.Identity())
        print(type(layer))
        """
    )
    assert shown == [
        " ",
        "[torch.storage.UntypedStorage(device=cpu) of size 0] ",
        "[torch.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 0]",
        "torch.Tensor.add torch.nn.functional.relu",
        "<class 'torch.nn.utils.parametrize.ParametrizedLinear'>",
    ]


def test_functions_of_the_functional_module_are_listed():
    from taeda import functional

    found: dict[str, object] = {}
    exec("from taeda.functional import *", found)
    assert found.keys() >= {"einsum", "stft", "unique", "meshgrid"}
    assert all(found[name] is getattr(taeda, name) for name in functional.__all__)


def test_modules_know_the_whole_library_as_files_that_import_it():
    assert taeda.sparse.torch.eye(2).index_select(0, taeda.tensor([1])).tolist() == [[0, 1]]
    inner = importlib.import_module("taeda.nn.modules.conv")
    for module in (
        taeda.nn.functional,
        taeda.autograd.function,
        taeda.distributions.normal,
        taeda.utils,
        inner,
    ):
        assert module.torch is taeda
    for module in (taeda.nn, taeda.optim, taeda.utils.data):  # PyTorch's do not either
        with pytest.raises(AttributeError, match="torch"):
            _ = module.torch


def test_what_is_missing_is_missing_under_the_other_name():
    shown = run(
        """
        import sys, taeda
        sys.modules["torch"] = taeda
        for name in ("torch.nothing", "torch.nn.nothing", "torch.jit.nothing", "torch.cuda.nothing"):
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                print(error.name)
        """
    )
    assert shown == ["torch.nothing", "torch.nn.nothing", "torch.jit.nothing", "torch.cuda.nothing"]


def test_version_compares_as_libraries_compare_it():
    assert taeda.__version__ >= (2, 0) and taeda.__version__ > "1.13.1" and taeda.__version__ < "3"
    assert taeda.__version__ == "2.13.0" and taeda.__version__ != "2.12" and taeda.__version__ != "no version"
    assert not taeda.__version__ < "2.13"
    major, minor = taeda.__version__.split(".")[:2]
    assert (int(major), int(minor)) == (2, 13)
    assert taeda.__version__.endswith(f"+taeda{taeda.version.taeda}")
    with pytest.raises(ValueError, match="is no version"):
        assert taeda.__version__ < "soon"
    packaging = pytest.importorskip(
        "packaging.version", reason="packaging is what libraries parse versions by"
    )
    assert packaging.parse(taeda.__version__) >= packaging.parse("2.0")
    assert packaging.parse(taeda.__version__).release == (2, 13, 0)


def test_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert taeda.version.taeda == version("taeda")


def f(x):
    return x + 1


@pytest.mark.parametrize(
    "mark",
    [
        taeda.jit.ignore,
        taeda.jit.ignore(),
        taeda.jit.ignore(drop=True),
        taeda.jit.unused,
        taeda.jit.export,
        taeda.jit.interface,
        taeda.jit.script_if_tracing,
        taeda.jit._script_if_tracing,
        taeda.jit._overload_method,
        taeda.compile,
        taeda.compile(mode="max-autotune"),
        taeda.compiler.disable,
        taeda.compiler.disable(recursive=False),
        taeda.compiler.allow_in_graph,
        taeda._dynamo.disable,
        taeda._dynamo.optimize("inductor"),
        taeda.onnx.symbolic_helper.parse_args("v"),
    ],
)
def test_marks_give_the_function_itself(mark):
    assert mark(f) is f


def test_compile_takes_modules_and_refuses_what_cannot_be_called():
    module = taeda.nn.Linear(2, 2)
    assert taeda.compile(module, disable=True) is module
    with pytest.raises(RuntimeError, match="mode or options"):
        taeda.compile(f, mode="default", options={})
    with pytest.raises(RuntimeError, match="expected a function or a module, found int"):
        taeda.compile(3)


def test_questions_have_true_answers():
    assert not taeda.jit.is_scripting() and not taeda.jit.is_tracing()
    assert not taeda.compiler.is_compiling() and not taeda.compiler.is_exporting()
    assert taeda.distributed.is_available() and not taeda.distributed.is_initialized()
    assert not taeda.onnx.is_in_onnx_export()
    assert (
        not taeda.cuda.is_available() and taeda.cuda.device_count() == 0 and not taeda.cuda.is_initialized()
    )
    assert not taeda.backends.mps.is_available() and not taeda.backends.cuda.is_built()
    assert taeda.version.cuda is None and taeda.backends.cudnn.version() is None
    assert taeda.cuda.memory_allocated() == 0 and not taeda.cuda.is_bf16_supported()
    with pytest.raises(ValueError, match="has not been initialized"):
        taeda.distributed.get_rank()


@pytest.mark.parametrize(
    "use",
    [
        lambda: taeda.jit.export_opnames(f),
        lambda: taeda.utils.cpp_extension.SyclExtension("name", []),
    ],
)
def test_what_would_have_to_act_says_that_it_is_not_there(use):
    with pytest.raises(NotImplementedError, match=r"taeda\.\S+ is not there: there |functions|extensions"):
        use()


def test_nothing_is_of_the_classes_that_are_not_there():
    module = taeda.nn.Linear(1, 1)
    for cls in (
        taeda.jit.ScriptModule, taeda.fx.GraphModule, taeda.distributed.tensor.DTensor, taeda.SymInt,
    ):  # fmt: skip
        assert not isinstance(module, cls) and not isinstance(taeda.ones(1), cls)


def test_a_compiled_module_calls_the_one_within():
    within = taeda.nn.Sequential(taeda.nn.Linear(2, 2), taeda.nn.Dropout())
    compiled = taeda.compile(within)
    assert isinstance(compiled, taeda._dynamo.OptimizedModule) and taeda.compile(compiled) is compiled
    assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert [name for name, _ in compiled.named_modules()] == ["", "_orig_mod", "_orig_mod.0", "_orig_mod.1"]
    assert compiled._orig_mod is within and len(compiled) == 2
    assert repr(compiled).startswith("OptimizedModule(\n  (_orig_mod): Sequential(")
    compiled.note = 3
    assert within.note == 3 and compiled.note == 3
    del compiled.note
    assert not hasattr(compiled, "note") and not hasattr(within, "note")
    compiled.eval()
    assert not within.training and not within[1].training and not compiled.training
    seen = []
    within.register_forward_hook(lambda *_: seen.append("within"))
    compiled.register_forward_hook(lambda *_: seen.append("compiled"))
    x = taeda.ones(1, 2)
    assert taeda.equal(compiled(x), within(x)) and seen == ["within", "compiled", "within"]
    for copied in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(taeda.compile(taeda.nn.Linear(2, 2))))):
        assert type(copied) is taeda._dynamo.OptimizedModule and copied._orig_mod is not within
    with pytest.raises(AttributeError, match="nothing"):
        compiled.nothing  # noqa: B018


def test_settings_are_kept_and_flags_are_for_a_block():
    cudnn = taeda.backends.cudnn
    cudnn.benchmark = True
    with cudnn.flags(enabled=False, benchmark=False):
        assert not cudnn.enabled and not cudnn.benchmark
    assert cudnn.enabled and cudnn.benchmark
    cudnn.benchmark = False
    taeda.backends.cuda.matmul.allow_tf32 = True
    assert taeda.backends.cuda.matmul.allow_tf32
    taeda.backends.cuda.matmul.allow_tf32 = False
    taeda.backends.cuda.enable_flash_sdp(False)
    assert not taeda.backends.cuda.flash_sdp_enabled()
    taeda.backends.cuda.enable_flash_sdp(True)
    with pytest.raises(TypeError, match="unknown setting 'speed'"):
        cudnn.set_flags(speed=1)


def test_reserved_devices_can_be_named_but_not_used():
    device = taeda.device("cuda:1")
    assert (device.type, device.index, str(device)) == ("cuda", 1, "cuda:1")
    assert taeda.device("cuda").index is None and taeda.device("cuda") != taeda.device("cuda", 0)
    assert taeda.device("cuda") == taeda.device("cuda") and taeda.device("cuda", 0) == taeda.device("cuda:0")
    assert len({taeda.device("cuda"), taeda.device("cuda:0"), taeda.device("cuda", 0)}) == 2
    assert device != taeda.device("xpu:1")
    assert repr(taeda.device("mps")) == "device(type='mps')"
    import pickle

    for other in (device, taeda.device("hpu"), taeda.device("xla", 1), taeda.device("privateuseone:3")):
        assert pickle.loads(pickle.dumps(other)) == other and other.type != "cpu"
    assert len({taeda.device(name) for name in ("hpu", "ipu", "mtia", "xla", "hip", "vulkan", "hpu")}) == 6
    with pytest.raises(RuntimeError, match="unknown device 'hpu'"):
        taeda.ones(1, device=taeda.device("hpu"))
    for use in (
        lambda: taeda.ones(1, device=device),
        lambda: taeda.ones(1).to(device),
        lambda: taeda.ones(1).cuda(),
    ):
        with pytest.raises(RuntimeError, match="device 'cuda"):
            use()
    with pytest.raises(RuntimeError, match="unknown device 'gpu'"):
        taeda.device("gpu")


def test_what_is_not_there_says_that_it_is_not_available():
    assert not taeda.profiler.itt.is_available()
    with pytest.raises(NotImplementedError, match=r"profiler\.itt\.range_push is not there"):
        taeda.profiler.itt.range_push("step")


def test_an_interrupt_in_a_callback_leaves_no_future_waiting():
    def interrupted(future):
        raise KeyboardInterrupt

    first = taeda.futures.Future()
    interrupts, after = first.then(interrupted), first.then(lambda done: done.value() + 1)
    with pytest.raises(KeyboardInterrupt):
        first.set_result(1)
    assert first.value() == 1 and after.value() == 2
    with pytest.raises(RuntimeError, match="KeyboardInterrupt"):
        interrupts.wait()


def test_future():
    future = taeda.futures.Future()
    after = future.then(lambda done: done.value() + 1)
    assert not future.done()
    future.set_result(1)
    assert after.wait() == 2
    with pytest.raises(RuntimeError, match="only be marked completed once"):
        future.set_result(2)
    failed = taeda.futures.Future()
    failed.set_exception(KeyError("gone"))
    with pytest.raises(KeyError, match="gone"):
        failed.wait()
    assert taeda.futures.wait_all([future, after]) == [1, 2]
    assert taeda.jit.wait(taeda.jit.fork(f, 1)) == 2


def test_checks_and_names_of_types():
    taeda._assert(True, "fine")
    with pytest.raises(AssertionError, match="wrong"):
        taeda._assert(False, "wrong")
    with pytest.raises(RuntimeError, match="bad"):
        taeda._check(False, lambda: "bad")
    with pytest.raises(ValueError, match="Expected cond to be True"):
        taeda._check_value(False)
    assert taeda.typename(taeda.ones(1)) == "torch.FloatTensor" and taeda.typename(3) == "int"
    assert taeda.jit.isinstance([1, 2], list[int]) and not taeda.jit.isinstance([1, "a"], list[int])


def test_import_stays_light():
    shown = run(
        """
        import sys, taeda
        print([name for name in sys.modules if name.startswith("taeda")])
        """
    )
    assert "_tensor_core" not in shown[0] and "taeda.jit" not in shown[0]


def test_plan_of_a_profiler():
    plan = taeda.profiler.schedule(wait=1, warmup=1, active=2, repeat=1, skip_first=1)
    names = [plan(step).name for step in range(7)]
    assert names == ["NONE", "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE", "NONE"]
    with taeda.profiler.record_function("step"):
        pass
    with pytest.raises(AssertionError, match="Invalid profiler schedule"):
        taeda.profiler.schedule(wait=0, warmup=0, active=0)
