"""What libraries' tests take from PyTorch's: cases, parameters, switches."""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib.util
import inspect
import itertools
import os
import platform
import random
import sys
import tempfile
import unittest
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import taeda as tc
from taeda.testing import assert_close, make_tensor
from taeda.utils import deterministic as memory

SEED = 1234
IS_LINUX, IS_WINDOWS, IS_MACOS = (sys.platform.startswith(name) for name in ("linux", "win32", "darwin"))
IS_X86 = platform.machine() in ("x86_64", "i386", "AMD64")
IS_ARM64 = platform.machine() in ("arm64", "aarch64")
IS_PPC, IS_S390X, IS_JETSON = platform.machine() == "ppc64le", platform.machine() == "s390x", False
IS_FBCODE = IS_SANDCASTLE = IS_CI = IS_REMOTE_GPU = False
TEST_NUMPY, TEST_SCIPY, TEST_NUMBA, TEST_DILL, TEST_LIBROSA, TEST_OPT_EINSUM, TEST_Z3, TEST_TRANSFORMERS = (
    importlib.util.find_spec(name) is not None
    for name in ("numpy", "scipy", "numba", "dill", "librosa", "opt_einsum", "z3", "transformers")
)
TEST_CUDA, TEST_MPS, TEST_XPU = (getattr(tc, name).is_available() for name in ("cuda", "mps", "xpu"))
TEST_MULTIGPU = TEST_CUDA and tc.cuda.device_count() >= 2
TEST_MKL = TEST_HPU = TEST_WITH_ROCM = TEST_WITH_SLOW = TEST_WITH_TSAN = TEST_WITH_UBSAN = TEST_CUDA_GRAPH = (
    False
)
TEST_WITH_ASAN = TEST_WITH_DEV_DBG_ASAN = TEST_WITH_TORCHDYNAMO = TEST_WITH_TORCHINDUCTOR = (
    TEST_PRIVATEUSE1
) = False
TEST_WITH_CROSSREF = TEST_WITH_AOT_EAGER = TEST_WITH_TV = TEST_SKIP_FAST = TEST_ONEDNN = False
TEST_ACCELERATOR, NATIVE_DEVICES = TEST_CUDA or TEST_MPS or TEST_XPU, ("cpu", "cuda", "xpu", "meta")
GRADCHECK_NONDET_TOL = 0.0
numpy_to_torch_dtype_dict: dict[Any, Any] = {}
torch_to_numpy_dtype_dict: dict[Any, Any] = {}
if TEST_NUMPY:
    import numpy

    for _name in [
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ]:
        numpy_to_torch_dtype_dict[numpy.dtype(_name).type] = getattr(tc, _name)
        torch_to_numpy_dtype_dict[getattr(tc, _name)] = numpy.dtype(_name).type

__all__ = ["make_tensor"]


def set_rng_seed(seed: int | None = None) -> None:
    """Begin the streams of numbers of this library, Python and NumPy anew."""
    seed = SEED if seed is None else seed
    tc.manual_seed(seed)
    random.seed(seed)
    if TEST_NUMPY:
        numpy.random.seed(seed)  # noqa: NPY002


@contextlib.contextmanager
def freeze_rng_state() -> Iterator[None]:
    """A block after which random numbers go on as if it had not been."""
    before = tc.get_rng_state()
    try:
        yield
    finally:
        tc.set_rng_state(before)


@contextlib.contextmanager
def set_default_dtype(dtype: Any) -> Iterator[None]:
    """A block with another default dtype."""
    before = tc.get_default_dtype()
    tc.set_default_dtype(dtype)
    try:
        yield
    finally:
        tc.set_default_dtype(before)


class DeterministicGuard:
    """Context with deterministic algorithms, or without.

    Args:
        deterministic: Whether to use them.
        warn_only: As in `use_deterministic_algorithms`.
        fill_uninitialized_memory: As `utils.deterministic.fill_uninitialized_memory`.
    """

    def __init__(
        self, deterministic: bool, *, warn_only: bool = False, fill_uninitialized_memory: bool = True
    ) -> None:
        self._wanted = deterministic, warn_only, fill_uninitialized_memory

    def __enter__(self) -> None:
        self._before = (
            tc.are_deterministic_algorithms_enabled(),
            tc.is_deterministic_algorithms_warn_only_enabled(),
            memory.fill_uninitialized_memory,
        )
        memory.fill_uninitialized_memory = self._wanted[2]
        tc.use_deterministic_algorithms(self._wanted[0], warn_only=self._wanted[1])

    def __exit__(self, *exception: object) -> None:
        tc.use_deterministic_algorithms(self._before[0], warn_only=self._before[1])
        memory.fill_uninitialized_memory = self._before[2]


class TestCase(unittest.TestCase):
    """A case whose `assertEqual` compares tensors, numbers and containers of them by value.

    Attributes:
        precision, rel_tol: Least tolerances, 0 for those of the dtypes.
    """

    precision: float = 0.0
    rel_tol: float = 0.0
    longMessage = True

    def setUp(self) -> None:
        """Begin random numbers anew."""
        set_rng_seed()

    def assertEqual(  # type: ignore[override]
        self, x: Any, y: Any, msg: Any = None, *, atol: float | None = None, rtol: float | None = None,
        equal_nan: bool = True, exact_dtype: bool = True, exact_device: bool = False, exact_layout: bool = False,
        exact_stride: bool = False, exact_is_coalesced: bool = False,
    ) -> None:  # fmt: skip
        """Two values are the same, tensors within the tolerances of their dtypes.

        Raises:
            AssertionError: They are not.
        """
        if atol is None and rtol is None and (self.precision or self.rel_tol):
            atol, rtol = self.precision, self.rel_tol
        elif (atol is None) != (rtol is None):
            atol, rtol = atol or 0.0, rtol or 0.0
        rules: dict[str, Any] = {
            "atol": atol, "rtol": rtol, "equal_nan": equal_nan, "exact_dtype": exact_dtype,
            "exact_device": exact_device, "exact_layout": exact_layout, "exact_stride": exact_stride,
        }  # fmt: skip
        places: list[Any] = []
        if isinstance(x, dict) and isinstance(y, dict):
            places = [x.keys(), y.keys()]
        elif isinstance(x, list | tuple) and isinstance(y, list | tuple):
            places = [range(len(x)), range(len(y))]
        if places:
            unittest.TestCase.assertEqual(self, places[0], places[1], msg)
            for place in places[0]:
                self.assertEqual(x[place], y[place], msg, **rules)
            return
        if not _holds_tensors(x, y):
            close = isinstance(x, float | complex) and isinstance(y, int | float | complex)
            if not close:
                unittest.TestCase.assertEqual(self, x, y, msg)
                return
        x, y = _alike(x, y)
        assert_close(
            x, y, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=exact_dtype, check_device=exact_device,
            check_layout=exact_layout, check_stride=exact_stride, msg=msg,
        )  # fmt: skip

    def assertNotEqual(  # type: ignore[override]
        self,
        x: Any,
        y: Any,
        msg: Any = None,
        *,
        atol: float | None = None,
        rtol: float | None = None,
        **rules: Any,
    ) -> None:
        """Two values differ."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertEqual(x, y, msg, atol=atol, rtol=rtol, **rules)

    def assertExpectedInline(self, actual: Any, expect: str, skip: int = 0) -> None:
        """A text is as expected."""
        unittest.TestCase.assertEqual(self, str(actual), expect)

    def assertExpectedRaisesInline(
        self, kind: type, function: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> None:
        """A call raises an exception with the text that comes last."""
        *given, expect = args
        with self.assertRaises(kind) as caught:
            function(*given, **kwargs)
        unittest.TestCase.assertEqual(self, str(caught.exception), expect)

    @contextlib.contextmanager
    def assertWarnsOnceRegex(self, category: type[Warning], regex: str = "") -> Iterator[None]:
        """A block warns."""
        with self.assertWarnsRegex(category, regex):
            yield

    def genSparseTensor(
        self, size: Any, sparse_dim: int, nnz: int, is_uncoalesced: bool, device: Any, dtype: Any
    ) -> Any:
        """A sparse tensor with `nnz` places, its places and its values."""
        places = tc.stack([tc.randint(n, (nnz,)) for n in size[:sparse_dim]])
        values = make_tensor((nnz, *size[sparse_dim:]), dtype=dtype, device=device)
        made = tc.sparse_coo_tensor(places, values, tuple(size))
        made = made if is_uncoalesced else made.coalesce()
        return made, made._indices().clone(), made._values().clone()


def _holds_tensors(*values: Any) -> bool:
    return any(
        isinstance(value, tc.Tensor) or (TEST_NUMPY and isinstance(value, numpy.ndarray)) for value in values
    )


def _alike(x: Any, y: Any) -> tuple[Any, Any]:
    """A number beside a tensor, and an array beside one, as tensors."""
    for one, other in ((x, y), (y, x)):
        if isinstance(one, tc.Tensor) and not isinstance(other, tc.Tensor):
            made = tc.as_tensor(other, device=one.device)
            made = made.to(one.dtype) if isinstance(other, int | float | complex) else made
            return (x, made) if one is x else (made, y)
    return x, y


class subtest:
    """Values of one case of `parametrize`, with a name and decorators.

    Args:
        arg_values: A value, or a tuple of one for each parameter.
        name: Stands in the test's name.
        decorators: Go around the test.
    """

    def __init__(self, arg_values: Any, name: str | None = None, decorators: Iterable[Any] = ()) -> None:
        self.arg_values, self.name, self.decorators = arg_values, name, tuple(decorators)


class parametrize:
    """Decorator: the test once for each value; see `instantiate_parametrized_tests`.

    Args:
        arg_str: Names of parameters, with commas.
        arg_values: Values, tuples or `subtest`.
        name_fn: Gives the part of the name from the values.

    Example:
        >>> @parametrize("x,y", [(1, 2), (3, 4)])  # doctest: +SKIP
        ... def test_sum(self, x, y): ...
    """

    def __init__(
        self, arg_str: str, arg_values: Iterable[Any], name_fn: Callable[..., str] | None = None
    ) -> None:
        self.names = [name.strip() for name in arg_str.split(",") if name.strip()]
        self.values, self.name_fn = list(arg_values), name_fn

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        function.__dict__["_parameters"] = [self, *function.__dict__.get("_parameters", [])]
        return function

    def cases(self) -> Iterator[tuple[str, dict[str, Any], tuple[Any, ...]]]:
        """For each value a part of a name, arguments and decorators."""
        for place, value in enumerate(self.values):
            case = value if isinstance(value, subtest) else subtest(value)
            given = case.arg_values if len(self.names) > 1 else (case.arg_values,)
            named = dict(zip(self.names, given, strict=True))
            text = case.name if case.name is not None else None
            if text is None and self.name_fn is not None:
                text = self.name_fn(*given)
            if text is None:
                shown = {name: _shown(item, place) for name, item in named.items()}
                text = "_".join(
                    shown[name] if isinstance(item, tc.dtype) else f"{name}_{shown[name]}"
                    for name, item in named.items()
                )
            yield text, named, case.decorators


def _shown(value: Any, place: int) -> str:
    if isinstance(value, tc.dtype):
        return str(value).rpartition(".")[2]
    if isinstance(value, bool | int | float | str | tc.device):
        return str(value).replace(".", "_").replace("-", "_")
    return getattr(value, "__name__", str(place))


def _spread(function: Callable[..., Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The tests that a test with parameters stands for."""
    for chosen in itertools.product(*(each.cases() for each in function.__dict__.get("_parameters", []))):
        named = {name: value for _, arguments, _ in chosen for name, value in arguments.items()}
        made = _with_arguments(function, named)
        for _, _, decorators in chosen:
            for decorator in decorators:
                made = decorator(made)
        yield "_".join([function.__name__, *(text for text, _, _ in chosen if text)]), made


def _with_arguments(function: Callable[..., Any], named: dict[str, Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def test(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs, **named)

    signature = inspect.signature(function)
    test.__dict__.pop("_parameters", None)
    rest = [each for name, each in signature.parameters.items() if name not in named]
    test.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
    del test.__wrapped__  # type: ignore[attr-defined]
    return test


def instantiate_parametrized_tests(generic_cls: type) -> type:
    """Put the tests that `parametrize` stands for into a class."""
    for name, value in list(vars(generic_cls).items()):
        if callable(value) and "_parameters" in getattr(value, "__dict__", {}):
            delattr(generic_cls, name)
            for full, test in _spread(value):
                test.__name__ = full
                setattr(generic_cls, full, test)
    return generic_cls


def decorateIf(
    decorator: Callable[..., Any], predicate_fn: Callable[[dict[str, Any]], bool]
) -> Callable[..., Any]:
    """Decorator for the cases of a test whose arguments `predicate_fn` accepts."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def test(self: Any, *args: Any, **kwargs: Any) -> Any:
            chosen = decorator(function) if predicate_fn(kwargs) else function
            return chosen(self, *args, **kwargs)

        return test

    return decorate


def run_tests(argv: list[str] | None = None) -> None:
    """Run the tests of the program's own module, as `unittest.main` does."""
    unittest.main(argv=argv or sys.argv)


def load_tests(loader: Any, tests: Any, pattern: Any) -> Any:
    """The tests as they were found."""
    return tests


def slowTest(function: Any) -> Any:
    """Decorator of tests that take long: they are left out."""
    return unittest.skipUnless(TEST_WITH_SLOW, "test is slow")(function)


def _left_out(reason: str) -> Callable[..., Any]:
    return unittest.skip(reason)


def _as_it_is(*args: Any, **kwargs: Any) -> Any:
    """Decorator that changes nothing, with or without arguments."""
    if len(args) == 1 and callable(args[0]) and not kwargs:
        return args[0]
    return lambda function: function


skipIfTorchDynamo = skipIfTorchInductor = skipIfCrossRef = skipIfRocm = xfailIfTorchDynamo = _as_it_is
skipIfXpu = skipIfHpu = skipIfMPS = markDynamoStrictTest = unMarkDynamoStrictTest = serialTest = _as_it_is
skip_but_pass_in_sandcastle = skipIfRocmArch = skipIfSlowGradcheckEnv = skipCUDAMemoryLeakCheckIf = _as_it_is
skipCUDANonDefaultStreamIf = retry_on_connect_failures = wrapDeterministicFlagAPITest = runOnRocm = _as_it_is
skipIfNoSciPy = unittest.skipUnless(TEST_SCIPY, "SciPy is not there")
skipIfCompiledWithoutNumpy = unittest.skipUnless(TEST_NUMPY, "NumPy is not there")
skipIfNoDill = unittest.skipUnless(TEST_DILL, "dill is not there")
skipIfWindows = unittest.skipIf(IS_WINDOWS, "not on Windows")
skipIfNoLapack = _as_it_is
skipIfNoXNNPACK = _left_out("XNNPACK is not there")
requires_cuda = unittest.skipUnless(TEST_CUDA, "there is no GPU")


def skip_but_pass_in_sandcastle_if(condition: bool, reason: str) -> Callable[..., Any]:
    """Decorator: left out where the condition holds."""
    return unittest.skipIf(condition, reason)


def skipIfPythonVersionMismatch(predicate: Callable[[Any], bool]) -> Callable[..., Any]:
    """Decorator: left out unless `predicate` accepts Python's version."""
    return unittest.skipUnless(predicate(sys.version_info), "another version of Python")


def suppress_warnings(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: nothing is warned of inside."""

    @functools.wraps(function)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **kwargs)

    return quiet


@contextlib.contextmanager
def TemporaryFileName(*args: Any, **kwargs: Any) -> Iterator[str]:
    """A name of a file that is there, and goes after the block."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        with open(path, "w", encoding="utf-8"):
            pass
        yield path


@contextlib.contextmanager
def TemporaryDirectoryName(suffix: str | None = None) -> Iterator[str]:
    """A folder that goes after the block."""
    with tempfile.TemporaryDirectory(suffix=suffix) as folder:
        yield folder


@contextlib.contextmanager
def disable_gc() -> Iterator[None]:
    """A block without Python's collector of cycles."""
    import gc

    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def find_free_port() -> int:
    """A port of this machine that nobody listens at."""
    import socket

    with socket.socket() as place:
        place.bind(("localhost", 0))
        return int(place.getsockname()[1])


def dtype_name(dtype: Any) -> str:
    """ "float32" """
    return str(dtype).rpartition(".")[2]


def to_gpu(obj: Any, type_map: Any = None) -> Any:
    """A copy on the GPU, of a tensor or what holds some."""
    if isinstance(obj, tc.Tensor):
        return obj.detach().cuda().requires_grad_(obj.requires_grad)
    if isinstance(obj, list | tuple):
        return type(obj)(to_gpu(item) for item in obj)
    return copy.deepcopy(obj)


def iter_indices(tensor: Any) -> Iterator[Any]:
    """All places of a tensor."""
    if tensor.dim() == 1:
        return iter(range(tensor.size(0)))
    return itertools.product(*map(range, tensor.size()))


def is_iterable(obj: Any) -> bool:
    """Whether `iter` takes it."""
    try:
        iter(obj)
    except TypeError:
        return False
    return True


def noncontiguous_like(t: Any) -> Any:
    """The same values with gaps between them."""
    if not t.is_contiguous():
        return t
    spread = tc.zeros((*t.shape, 2), dtype=t.dtype, device=t.device)
    spread[..., 0] = t.detach()
    return spread[..., 0].requires_grad_(t.requires_grad)


def gradcheck(fn: Callable[..., Any], inputs: Any, **kwargs: Any) -> bool:
    """`autograd.gradcheck`."""
    from taeda import autograd

    return bool(autograd.gradcheck(fn, inputs, **kwargs))


def gradgradcheck(fn: Callable[..., Any], inputs: Any, grad_outputs: Any = None, **kwargs: Any) -> bool:
    """`autograd.gradgradcheck`."""
    from taeda import autograd

    return bool(autograd.gradgradcheck(fn, inputs, grad_outputs, **kwargs))


def random_symmetric_matrix(size: int, *batch: int, dtype: Any = None, device: Any = "cpu") -> Any:
    """A real symmetric matrix, or a batch."""
    made = tc.randn(*batch, size, size, dtype=dtype or tc.float64, device=device)
    return (made + made.mT) / 2


def random_hermitian_matrix(size: int, *batch: int, dtype: Any = None, device: Any = "cpu") -> Any:
    """A Hermitian matrix, or a batch."""
    made = tc.randn(*batch, size, size, dtype=dtype or tc.float64, device=device)
    return (made + made.mH) / 2


def random_hermitian_pd_matrix(size: int, *batch: int, dtype: Any, device: Any) -> Any:
    """A positive definite Hermitian matrix, or a batch."""
    made = tc.randn(*batch, size, size, dtype=dtype, device=device)
    return made @ made.mH + tc.eye(size, dtype=dtype, device=device)


random_symmetric_pd_matrix = random_hermitian_pd_matrix


def random_well_conditioned_matrix(
    *shape: int, dtype: Any, device: Any, mean: float = 1.0, sigma: float = 0.001
) -> Any:
    """A matrix whose singular values lie around `mean`."""
    u, _, vh = tc.linalg.svd(tc.randn(*shape, dtype=dtype, device=device), full_matrices=False)
    real = dtype.to_real() if dtype.is_complex else dtype
    values = tc.randn(*shape[:-2], min(shape[-2:]), dtype=real, device=device) * sigma + mean
    return (u * values.sort(-1, descending=True)[0].to(dtype).unsqueeze(-2)) @ vh
