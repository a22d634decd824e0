"""What classes and functions say of their home, and what follows for pickles, copies and processes."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

ALIAS = "import sys, taeda\nsys.modules['torch'] = taeda\nimport torch\n"


def run(source: str, *arguments: object) -> str:
    """What a program prints in a fresh interpreter."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(source), *map(str, arguments)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_homes_are_where_the_names_are():
    shown = run(
        ALIAS
        + """
import functools, importlib, types
import torch.distributed, torch.distributions, torch.export, torch.fx, torch.jit, torch.package, torch.profiler
import torch.ao.quantization, torch.func, torch.nn.utils.parametrize, torch.optim.lr_scheduler, torch.quasirandom
import torch.sparse, torch.testing, torch.utils.benchmark, torch.utils.checkpoint, torch.utils.data
import torch.nn.utils.prune
kinds = (type, types.FunctionType, types.BuiltinFunctionType)
count, seen = 0, set()
for name, module in sys.modules.copy().items():
    if name.partition(".")[0].partition("_")[0] != "taeda":
        continue
    for value in vars(module).copy().values():
        if not isinstance(value, kinds) or id(value) in seen or "<" in value.__qualname__:
            continue
        seen.add(id(value))
        home = value.__module__
        if isinstance(home, str) and home.partition(".")[0] == "torch":
            assert importlib.import_module(home) is sys.modules[home], home
            found = functools.reduce(getattr, value.__qualname__.split("."), sys.modules[home])
            assert found is value, (home, value)
            functools.reduce(getattr, home.split(".")[1:], torch)  # also by attributes
            count += 1
print(count > 2000)
"""
    )
    assert shown == "True\n"


def test_each_package_is_loaded_once_however_it_is_first_reached():
    for name in (
        "utils.data.dataset",
        "nn.modules.linear",
        "optim.adagrad",
        "distributions.normal",
        "autograd.graph",
    ):
        shown = run(
            ALIAS
            + f"""
import torch.{name}
for name, module in sys.modules.copy().items():
    if name.startswith("taeda") and getattr(module, "__spec__", None) and module.__spec__.name == name:
        parent, _, child = name.rpartition(".")
        found = vars(sys.modules[parent]).get(child) if parent else module
        assert found is module or not isinstance(found, type(sys)), name
assert torch.utils.data is sys.modules["taeda_data"] and torch.nn is sys.modules["taeda_nn"]
print(torch.utils.data.dataset is sys.modules["taeda_data.dataset"])
"""
        )
        assert shown == "True\n"


def test_names_of_their_own_without_the_other_name():
    assert (
        run(
            """
        import pickle, sys, taeda_nn
        layer = taeda_nn.Linear(2, 3)
        assert b"taeda_nn.modules.linear" in pickle.dumps(layer) and b"torch" not in pickle.dumps(layer)
        assert "taeda" not in sys.modules
        import taeda
        print(taeda.nn.Linear.__module__, taeda.nn.functional.relu.__module__, taeda.Tensor)
        """
        )
        == "taeda_nn.modules.linear taeda_nn.functional.activation <class 'taeda_tensor_core.Tensor'>\n"
    )


def test_homes_follow_the_name_of_the_library():
    assert run(
        """
        import sys, taeda, pickle
        layer, classes = taeda.nn.Linear(2, 2), [taeda.nn.Linear, taeda.Tensor, taeda.optim.Adagrad, taeda.no_grad]
        before = [kind.__module__ for kind in classes]
        own = pickle.dumps(layer)
        sys.modules["torch"] = taeda
        import json.tool
        print(*[kind.__module__ for kind in classes], taeda.add.__module__)
        assert type(pickle.loads(own)) is type(layer) and b"taeda" not in pickle.dumps(layer)
        assert "torch.nn.modules.linear" in sys.modules
        del sys.modules["torch"]
        import html.parser
        assert [kind.__module__ for kind in classes] == before and pickle.dumps(layer) == own
        assert "torch.nn.modules.linear" not in sys.modules
        sys.modules["torch"] = taeda
        import xml.dom
        print(taeda.nn.Linear.__module__, taeda.utils.data.Subset.__module__)
        """
    ) == (
        "torch.nn.modules.linear torch torch.optim.adagrad torch.autograd.grad_mode torch\n"
        "torch.nn.modules.linear torch.utils.data.dataset\n"
    )


def test_another_providers_names_are_left_alone(tmp_path):
    text = "from taeda_optim import *\nfrom taeda_optim import SGD as _S\nclass SGD(_S): pass\n"
    tmp_path.joinpath("their_optim.py").write_text(text + "from taeda_optim import lr_scheduler, Optimizer\n")
    assert (
        run(
            """
        import os, sys
        sys.path.insert(0, sys.argv[1])
        os.environ["TAEDA_OPTIM"] = "their_optim"
        import pickle, taeda
        sys.modules["torch"] = taeda
        import torch
        print(torch.optim.SGD.__module__, torch.optim.Adam.__module__)
        for kind in (torch.optim.SGD, torch.optim.Adam):
            assert pickle.loads(pickle.dumps(kind)) is kind
        """,
            tmp_path,
        )
        == "their_optim taeda_optim.adam\n"
    )


def test_texts_copies_and_pickles_of_a_programs_own_classes(tmp_path):
    tmp_path.joinpath("layers.py").write_text(
        "import torch\n"
        "from torch import nn\n"
        "class Net(nn.Sequential):\n"
        "    def __init__(self):\n"
        "        super().__init__(nn.Linear(2, 3), nn.ReLU())\n"
        "class Rows(torch.utils.data.Dataset):\n"
        "    def __len__(self):\n"
        "        return 3\n"
        "    def __getitem__(self, index):\n"
        "        return index\n"
        "class Marked(torch.Tensor):\n"
        "    pass\n"
    )
    assert run(
        ALIAS
        + """
import copy, inspect, pickle, typing
sys.path.insert(0, sys.argv[1])
import layers
net, x = layers.Net(), torch.ones(1, 2)
for other in (copy.copy(net), copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
    assert type(other) is layers.Net and other(x).equal(net(x))
assert len(pickle.loads(pickle.dumps(layers.Rows()))) == 3
marked = pickle.loads(pickle.dumps(torch.ones(2).as_subclass(layers.Marked)))
assert type(marked) is layers.Marked and marked.sum() == 2
assert inspect.getmodule(torch.nn.Linear).Linear is torch.nn.Linear
assert "class Linear" in inspect.getsource(torch.nn.Linear)
assert typing.get_type_hints(torch.nn.Linear)
assert torch.nn.Linear.forward.__module__ == "torch.nn.modules.linear"
print(str(type(x)), str(torch.nn.Linear), torch.typename(net[0]))
""",
        tmp_path,
    ) == ("<class 'torch.Tensor'> <class 'torch.nn.modules.linear.Linear'> torch.nn.modules.linear.Linear\n")


def test_traced_programs_and_packages(tmp_path):
    assert (
        run(
            ALIAS
            + """
import pickle
from torch import fx, nn
net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2, 3))
traced = fx.symbolic_trace(net)
assert [node.op for node in traced.graph.nodes] == ["placeholder", *["call_module"] * 4, "output"]
def program(x):
    return nn.functional.relu(torch.add(x, 1))
made = fx.symbolic_trace(program)
assert "torch.nn.functional.relu(add" in made.code and "torch.add(x, 1)" in made.code
x = torch.ones(1, 1, 3, 3)
for graph in (traced, pickle.loads(pickle.dumps(traced))):
    assert graph(x).allclose(net(x))
assert pickle.loads(pickle.dumps(made))(x).equal(program(x))
assert fx.node._get_qualified_name(nn.functional.relu) == "torch.nn.functional.relu"
from torch.package import PackageExporter, PackageImporter
with PackageExporter(sys.argv[1]) as exporter:
    exporter.save_pickle("net", "net.pkl", net)
again = PackageImporter(sys.argv[1]).load_pickle("net", "net.pkl")
assert type(again) is nn.Sequential and again(x).allclose(net(x))
torch.save(net, sys.argv[1] + ".pt")
assert torch.load(sys.argv[1] + ".pt", weights_only=False)(x).allclose(net(x))
print("done")
""",
            tmp_path / "net.zip",
        )
        == "done\n"
    )


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_have_the_name_that_their_parent_has(tmp_path, method):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import multiprocessing, sys
            from concurrent.futures import ProcessPoolExecutor

            def work(queue, layer, function):
                torch = sys.modules["torch"]
                queue.put((type(layer).__module__, torch.__name__, function(layer(torch.ones(1, 2))).shape[1]))

            if __name__ == "__main__":
                import taeda

                sys.modules["torch"] = taeda
                import torch
                import torch.multiprocessing

                method = sys.argv[1]
                for found in (multiprocessing, torch.multiprocessing):
                    context = found.get_context(method)
                    queue = context.Queue()
                    given = queue, torch.nn.Linear(2, 3), torch.nn.functional.relu
                    process = context.Process(target=work, args=given)
                    process.start()
                    print(*queue.get(timeout=300))
                    process.join()
                data = torch.utils.data.TensorDataset(torch.arange(6.0))
                loader = torch.utils.data.DataLoader(data, num_workers=1, multiprocessing_context=method)
                print(len([float(row) for (row,) in loader]))
                with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
                    print(pool.submit(torch.nn.functional.relu, torch.ones(1)).result().item())
            """
        )
    )
    result = subprocess.run(
        [sys.executable, program, method], capture_output=True, text=True, timeout=600, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "torch.nn.modules.linear torch 3\n" * 2 + "6\n1.0\n"


def test_children_of_a_process_without_the_name_have_none(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing, sys\n"
        "def work(queue):\n"
        "    queue.put([name for name in sys.modules if name.partition('.')[0] in ('taeda', 'torch')])\n"
        "if __name__ == '__main__':\n"
        "    import taeda\n"
        "    sys.modules['torch'] = taeda\n"
        "    import json.tool\n"
        "    import multiprocessing.popen_spawn_posix\n"
        "    del sys.modules['torch']\n"
        "    queue = multiprocessing.get_context('spawn').Queue()\n"
        "    multiprocessing.get_context('spawn').Process(target=work, args=(queue,)).start()\n"
        "    print(queue.get(timeout=300))\n"
    )
    result = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
