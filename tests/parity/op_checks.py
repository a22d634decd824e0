"""What is asked of an operator on PyTorch's samples, in both libraries: values, gradients, views, forms, refusals."""

from __future__ import annotations

import functools
import itertools
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from op_agreement import Differs, check, flat
from op_functions import SEED, Missing, NoCounterpart, counterpart, function_of, method, named
from op_samples import DTYPES, RANDOM, convert, theirs

import taeda

# Forms are driven on the first samples of each dtype: they share the computation with the function.
FORMS = 6
# Results that are not unique (signs, phases) are compared as PyTorch's tests of gradients compare them.
AMBIGUOUS = {
    "linalg.eig", "linalg.eigh", "linalg.svd", "pca_lowrank", "svd", "svd_lowrank",
}  # fmt: skip


# Where multi_head_attention_forward has its chance, behind the first argument.
DROPOUT_AT = 9
# PyTorch writes beyond the memory of a target whose elements overlap.
WRITES_BEYOND = {"narrow_copy", "nn.functional.avg_pool2d", "nn.functional.avg_pool3d"}

# Equal values may stand in any order, so indices are not unique.
TIED = {"argsort", "kthvalue", "median", "mode", "msort", "nanmedian", "sort", "topk"}
Called = tuple[Callable[..., Any], list[Any], list[Any]]


class Skip(Exception):
    """A sample that both libraries cannot be compared on."""


@dataclass
class Tally:
    """How many samples of one kind agreed, and on what the first others differed."""

    passed: int = 0
    failed: int = 0
    differences: list[str] = field(default_factory=list)

    KEPT = 4

    def add(self, text: str | None) -> None:
        if text is None:
            self.passed += 1
            return
        self.failed += 1
        if len(self.differences) < self.KEPT and all(
            kernel(text) != kernel(kept) for kept in self.differences
        ):
            self.differences.append(text)


def label(record: Any) -> str:
    """The name of a record and of its variant."""
    return record.name + (f".{record.variant_test_name}" if record.variant_test_name else "")


def kernel(text: str) -> str:
    """What a difference says apart from its dtype, sample and numbers."""
    return re.sub(r"\b(bool|u?int\d+|b?float\d+|complex\d+)\b|[-+.\d]+", "", text.partition("): ")[2])


def words(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


@dataclass
class Outcome:
    """What a call gave: a result or an error."""

    result: Any = None
    error: Exception | None = None


def attempt(call: Callable[[], Any]) -> Outcome:
    try:
        return Outcome(call())
    except (NoCounterpart, Missing):
        raise
    except Exception as error:
        return Outcome(error=error)


class Operator:
    """One record of PyTorch's and what of taeda is held against it."""

    def __init__(self, record: Any, samples: int | None = None) -> None:
        self.record = record
        self.samples = samples
        self.values = record.name not in RANDOM and not (
            "dropout" in record.name and "without_train" not in label(record)
        )
        self.tallies: dict[str, Tally] = {}
        self.left_out: set[str] = set()
        self.missing: str | None = None

    def tally(self, kind: str) -> Tally:
        return self.tallies.setdefault(kind, Tally())

    def run(self, dtypes: set[torch.dtype] | None = None, kinds: set[str] | None = None) -> None:
        """Drive all samples of all dtypes that both libraries know."""
        try:
            self.ours = function_of(self.record)
        except Missing as missing:
            self.missing = str(missing)
            return
        supported = sorted(self.record.supported_dtypes("cpu"), key=str)
        for dtype in supported:
            if dtype not in DTYPES:
                self.left_out.add(str(dtype))
            elif not dtypes or dtype in dtypes:
                self.run_dtype(dtype, kinds)
                if self.missing:
                    return
        if not kinds or "errors" in kinds:
            self.run_errors()

    def run_dtype(self, dtype: torch.dtype, kinds: set[str] | None) -> None:
        name = str(dtype).removeprefix("torch.")
        for kind, ask in self.asked(dtype):
            if kinds and kind not in kinds:
                continue
            records = ask == self.gradient
            for number, sample in enumerate(self.drawn(dtype, records)):
                if ask not in (self.forward, self.gradient) and number >= FORMS:
                    break
                self.one(kind, ask, sample, f"{name} sample {number}")
                if self.missing:
                    return

    def drawn(self, dtype: torch.dtype, requires_grad: bool) -> Iterator[Any]:
        torch.manual_seed(SEED)
        samples = self.record.sample_inputs("cpu", dtype, requires_grad=requires_grad)
        return itertools.islice(samples, self.samples)

    def asked(self, dtype: torch.dtype) -> Iterator[tuple[str, Callable]]:
        """The kinds of checks and the functions that do them."""
        r = self.record
        yield "forward", self.forward
        if r.supports_autograd and dtype in r.supported_backward_dtypes("cpu"):
            yield "gradient", self.gradient
        if r.method_variant is not None:
            yield "method", self.method
        if r.operator_variant is not None:
            yield "operator", self.operator
        if r.inplace_variant is not None:
            yield "in-place", self.in_place
        if r.inplace_operator_variant is not None:
            yield "in-place", self.in_place_operator
        if r.supports_out:
            yield "out=", self.out
            yield "out= refusals", self.out_refusals
        if dtype in (torch.float64, torch.int64):
            yield "views", self.views
        if r.aliases:
            yield "aliases", self.aliases

    def one(self, kind: str, ask: Callable, sample: Any, where: str) -> None:
        if any(
            isinstance(t, torch.Tensor) and t.layout != torch.strided
            for t in flat([sample.input, sample.args])
        ):
            self.left_out.add("sparse samples")
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                ask(sample)
            except Skip:
                return
            except NoCounterpart as unknown:
                self.left_out.add(str(unknown))
                return
            except Missing as missing:
                self.tally(kind).add(f"missing: {missing}")
                return
            except Differs as difference:
                self.tally(kind).add(f"{where} ({shown(sample)}): {difference}")
                return
            except Exception as error:
                if kind == "forward" and self.says_missing(error):
                    self.missing = str(error)
                    return
                self.tally(kind).add(f"{where} ({shown(sample)}): {words(error)}")
                return
        self.tally(kind).add(None)

    def says_missing(self, error: Exception) -> bool:
        """Whether a call ended at a name that taeda does not have, before anything had passed."""
        return (
            isinstance(error, AttributeError)
            and "has no attribute" in str(error)
            and not self.tally("forward").passed
        )

    # -- calls ---------------------------------------------------------------------------------

    def their_call(self, sample: Any, function: Callable | None = None) -> Called:
        """A call of PyTorch's, its leaves and its arguments."""
        leaves: list[Any] = []
        arguments = [theirs(v, leaves) for v in (sample.input, *sample.args)]
        keywords = theirs(dict(sample.kwargs), leaves)
        function = function or self.record.op
        return lambda **more: function(*arguments, **keywords, **more), leaves, arguments

    def our_call(self, sample: Any, function: Callable | None = None) -> Called:
        """The same call of taeda's, its leaves and its arguments."""
        leaves: list[Any] = []
        arguments = [convert(v, leaves) for v in (sample.input, *sample.args)]
        keywords = convert(dict(sample.kwargs), leaves)
        function = function or self.ours
        return lambda **more: function(*arguments, **keywords, **more), leaves, arguments

    def expected(self, call: Callable[[], Any]) -> Any:
        """PyTorch's result; its own refusals are nothing to compare with."""
        torch.manual_seed(SEED)
        outcome = attempt(call)
        if outcome.error is not None:
            raise Skip(words(outcome.error))
        return outcome.result

    def processed(self, sample: Any, result: Any, here: bool) -> Any:
        """The part of a result that is unique."""
        function = sample.output_process_fn_grad
        return (counterpart(function) if here else function)(result)

    def references(self, sample: Any) -> list[Callable[[], Any]]:
        """What is more exact than PyTorch's result: its own in double precision, and the function of NumPy or SciPy
        that its record of an element-wise function of one operand names."""

        def doubly() -> Any:
            return self.their_call(sample.transform(doubled))[0]()

        def elsewhere() -> Any:
            wide = sample.transform(doubled)
            return torch.as_tensor(self.record.ref(wide.input.numpy(), *wide.args, **wide.kwargs))

        named = type(self.record).__name__ == "UnaryUfuncInfo" and self.record.ref is not None
        return [doubly, elsewhere] if named else [doubly]

    # -- checks --------------------------------------------------------------------------------

    def forward(self, sample: Any) -> None:
        wanted = self.expected(self.their_call(sample)[0])
        found = self.our_call(sample)[0]()
        if self.record.name in AMBIGUOUS:
            check([describe_only(t) for t in flat(found)], [describe_only(t) for t in flat(wanted)])
            found, wanted = self.processed(sample, found, True), self.processed(sample, wanted, False)
        self.same(sample, found, wanted) if self.record.name in TIED else check(
            found, wanted, self.references(sample), values=self.values and not drops_out(self.record, sample)
        )

    def gradient(self, sample: Any) -> None:
        if self.record.name in TIED and tied(sample):
            raise Skip
        call, their_leaves, _ = self.their_call(sample)
        wanted = self.processed(sample, self.expected(call), False)
        call, our_leaves, _ = self.our_call(sample)
        found = self.processed(sample, call(), True)
        compare_gradients(found, our_leaves, wanted, their_leaves, self, sample)

    def method(self, sample: Any) -> None:
        if not isinstance(sample.input, torch.Tensor):
            raise Skip
        wanted = self.expected(self.their_call(sample, self.record.method_variant)[0])
        ours = counterpart(self.record.method_variant)
        self.same(sample, self.our_call(sample, ours)[0](), wanted)

    def operator(self, sample: Any) -> None:
        function = self.record.operator_variant
        if sample.kwargs:
            raise Skip
        wanted = self.expected(self.their_call(sample, function)[0])
        self.same(sample, self.our_call(sample, function)[0](), wanted)

    def same(self, sample: Any, found: Any, wanted: Any, made: list[torch.dtype] | None = None) -> None:
        """Results of a form; what is ambiguous has been compared as a function."""
        name = self.record.name
        values = self.values and name not in AMBIGUOUS
        references = self.references(sample)
        if name in TIED and tied(sample):
            values = values and name != "argsort"
            found, wanted, references = without_indices(found), without_indices(wanted), []
        check(found, wanted, references, values=values, made=made)

    def in_place(self, sample: Any) -> None:
        self.changed(
            sample, self.record.inplace_variant, lambda: counterpart_of_call(self.record.inplace_variant)
        )

    def in_place_operator(self, sample: Any) -> None:
        if sample.kwargs:
            raise Skip
        function = self.record.inplace_operator_variant
        self.changed(sample, function, lambda: function)

    def changed(self, sample: Any, function: Callable, ours: Callable[[], Callable]) -> None:
        """Both change their first argument in the same way, or both refuse to."""
        if not isinstance(sample.input, torch.Tensor):
            raise Skip
        sample = sample.transform(lambda v: v.detach() if isinstance(v, torch.Tensor) else v)
        call, _, given = self.their_call(sample, function)
        given[0] = given[0].clone()
        wanted = attempt(call)
        call, _, mine = self.our_call(sample, ours())
        mine[0] = mine[0].clone()
        found = attempt(call)
        if not alike(found, wanted):
            return
        if isinstance(wanted.result, torch.Tensor):
            if (wanted.result is given[0]) and found.result is not mine[0]:
                raise Differs("in place: the result is not the tensor itself")
            check(mine[0], given[0], self.references(sample), values=self.values)

    def out(self, sample: Any) -> None:
        """Results written to tensors of the right size, empty ones and ones with other strides."""
        wanted = self.expected(self.their_call(sample)[0])
        if not all(isinstance(t, torch.Tensor) for t in flat(wanted)):
            raise Skip
        for what, make in (("same", filled), ("empty", empty_out), ("strided", strided_out)):
            self.written(sample, wanted, what, make)

    def out_refusals(self, sample: Any) -> None:
        """Outputs of other dtypes, and ones whose elements overlap: written or refused as PyTorch does."""
        wanted = self.expected(self.their_call(sample)[0])
        if not all(isinstance(t, torch.Tensor) for t in flat(wanted)):
            raise Skip
        for dtype in (torch.int64, torch.float32, torch.float64, torch.complex128):
            if any(t.dtype != dtype for t in flat(wanted)):
                self.written(sample, wanted, f"of {dtype}", lambda t, d=dtype: filled(t).to(d))
        if self.record.name not in WRITES_BEYOND and all(t.numel() > 1 and t.dim() for t in flat(wanted)):
            self.written(sample, wanted, "overlapping", overlapping)

    def written(self, sample: Any, wanted: Any, what: str, make: Callable) -> None:
        many = isinstance(wanted, (tuple, list))
        outs = [make(t) for t in flat(wanted)]
        mine = [convert(t, []) for t in outs]
        call = self.their_call(sample)[0]
        reference = attempt(lambda: call(out=tuple(outs) if many else outs[0]))
        if reference.error is not None and what in ("same", "empty", "strided"):
            return
        call = self.our_call(sample)[0]
        found = attempt(lambda: call(out=tuple(mine) if many else mine[0]))
        try:
            if not alike(found, reference):
                return
            self.same(sample, mine, outs, [t.dtype for t in flat(wanted)])
        except Differs as difference:
            raise Differs(f"out= {what}: {difference}") from None
        for a, b in zip(mine, outs, strict=True):
            if b.numel() and steps(a) != steps(b):
                raise Differs(f"out= {what}: strides {steps(a)}, expected {steps(b)}")

    def views(self, sample: Any) -> None:
        """The same results share memory with an argument."""
        call, _, given = self.their_call(sample)
        wanted = self.expected(call)
        call, _, mine = self.our_call(sample)
        found = call()
        if (a := shares(mine, found)) != (b := shares(given, wanted)):
            raise Differs(f"results share memory: {a}, expected {b}")

    def aliases(self, sample: Any) -> None:
        """Further names give the same."""
        wanted = self.expected(self.their_call(sample)[0])
        for alias in self.record.aliases:
            self.same(sample, self.our_call(sample, named(alias.name.removeprefix("torch.")))[0](), wanted)
            for variant in (alias.method_variant, alias.inplace_variant):
                if variant is not None:
                    method(variant.__name__)

    def run_errors(self) -> None:
        """What PyTorch refuses is refused, with the same class."""
        if self.record.error_inputs_func is None:
            return
        torch.manual_seed(SEED)
        for number, wrong in enumerate(self.record.error_inputs("cpu")):
            sample = wrong.sample_input
            if any(
                isinstance(t, torch.Tensor) and t.layout != torch.strided
                for t in flat([sample.input, sample.args])
            ):
                self.left_out.add("sparse samples")
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                reference = attempt(self.their_call(sample)[0])
                if reference.error is None:
                    continue
                where = f"wrong call {number} ({shown(sample)})"
                try:
                    found = attempt(self.our_call(sample)[0])
                except NoCounterpart as unknown:
                    self.left_out.add(str(unknown))
                    continue
            if found.error is None:
                self.tally("errors").add(f"{where}: accepted; PyTorch: {words(reference.error)}")
                continue
            self.tally("errors").add(None)
            same = isinstance(found.error, type(reference.error))
            text = f"{where}: {words(found.error)}; PyTorch: {words(reference.error)}"
            self.tally("error classes").add(None if same else text)


def doubled(value: Any) -> Any:
    """Floating-point tensors and dtypes in double precision."""
    dtype = value.dtype if isinstance(value, torch.Tensor) else value
    if not isinstance(dtype, torch.dtype) or not (dtype.is_floating_point or dtype.is_complex):
        return value
    widest = torch.complex128 if dtype.is_complex else torch.float64
    return value.detach().to(widest) if isinstance(value, torch.Tensor) else widest


def sparse(sample: Any) -> bool:
    """Whether a sample has tensors of another layout, which taeda does not have."""
    given = flat([sample.input, *sample.args, *sample.kwargs.values()])
    return any(isinstance(t, torch.Tensor) and t.layout != torch.strided for t in given)


def tied(sample: Any) -> bool:
    """Whether values stand more than once in the first argument."""
    return isinstance(sample.input, torch.Tensor) and sample.input.unique().numel() < sample.input.numel()


def without_indices(result: Any) -> Any:
    """A result whose index tensors are told by their shape alone."""
    kinds = (torch.int64, taeda.int64)
    return [tuple(t.shape) if i > 0 and t.dtype in kinds else t for i, t in enumerate(flat(result))]


def shown(sample: Any) -> str:
    try:
        text = sample.summary()
    except Exception:  # an argument that PyTorch cannot print
        return "?"
    text = text.removeprefix("SampleInput(").removesuffix(")").partition(", broadcasts_input=")[0]
    return (
        text.replace('device="cpu", ', "")
        .replace("dtype=torch.", "")
        .replace("size=", "")
        .removesuffix(", kwargs={}")[:200]
    )


def drops_out(record: Any, sample: Any) -> bool:
    """Whether a call of attention leaves out elements by chance."""
    if record.name == "nn.functional.multi_head_attention_forward":
        return sample.args[DROPOUT_AT] > 0
    return "attention" in record.name and sample.kwargs.get("dropout_p", 0) > 0


def describe_only(t: Any) -> Any:
    """Shape of a result whose values are compared otherwise."""
    return tuple(t.shape) if hasattr(t, "shape") else t


def counterpart_of_call(function: Any) -> Callable[..., Any]:
    """taeda's function for one of PyTorch's or for a partial call of it."""
    if not isinstance(function, functools.partial):
        return counterpart(function)
    arguments = (counterpart(a) if callable(a) else a for a in function.args)
    return functools.partial(counterpart(function.func), *arguments, **function.keywords)


def alike(found: Outcome, wanted: Outcome) -> bool:
    """Whether both gave results; `Differs` when one of them refused."""
    if (found.error is None) == (wanted.error is None):
        return found.error is None
    if found.error is None:
        raise Differs(f"accepted; PyTorch: {words(wanted.error)}")
    raise Differs(words(found.error))


def filled(t: torch.Tensor) -> torch.Tensor:
    """A tensor like it with other values."""
    return torch.ones(t.shape, dtype=t.dtype)


def empty_out(t: torch.Tensor) -> torch.Tensor:
    return torch.empty((0,), dtype=t.dtype)


def strided_out(t: torch.Tensor) -> torch.Tensor:
    """Right in shape, with its dimensions in the opposite order in memory."""
    return torch.ones(tuple(reversed(t.shape)), dtype=t.dtype).permute(tuple(reversed(range(t.dim()))))


def overlapping(t: torch.Tensor) -> torch.Tensor:
    return torch.ones((1,) * t.dim(), dtype=t.dtype).expand(t.shape)


def steps(t: Any) -> list[int]:
    """The strides that matter: of dimensions with more than one element."""
    return [stride for size, stride in zip(t.shape, t.stride(), strict=True) if size > 1]


def shares(given: list[Any], results: Any) -> list[bool]:
    """For each result whether it lies in the memory of an argument."""
    kinds = (taeda.Tensor, torch.Tensor)
    places = {t.untyped_storage().data_ptr() for t in flat(given) if isinstance(t, kinds) and t.numel()}
    return [
        t.numel() > 0 and t.untyped_storage().data_ptr() in places
        for t in flat(results)
        if isinstance(t, kinds)
    ]


def uneven(i: int, t: torch.Tensor) -> torch.Tensor:
    """Weights of the sum whose gradient is compared."""
    values = (torch.arange(t.numel()) * 7 + 3 * i + 1) % 11 / 11 + 0.25
    return values.reshape(t.shape).to(t.dtype)


def differentiable(result: Any) -> list[torch.Tensor]:
    return [t for t in flat(result) if isinstance(t, torch.Tensor) and t.requires_grad]


def like(value: Any, old: Any) -> Any:
    """The value, differentiable if the old one was."""
    return value.requires_grad_(old.requires_grad) if isinstance(old, torch.Tensor) else value


def compare_gradients(found, our_leaves, wanted, their_leaves, operator, sample) -> None:
    """Gradients of all differentiable results under uneven weights."""
    theirs_out = differentiable(wanted)
    ours_out = [t for t in flat(found) if isinstance(t, taeda.Tensor) and t.requires_grad]
    if not theirs_out:
        if ours_out and any(t.is_floating_point() or t.is_complex() for t in ours_out):
            raise Differs("a gradient is recorded, expected none")
        raise Skip
    if len(ours_out) != len(theirs_out):
        raise Differs(f"{len(ours_out)} results with a gradient, expected {len(theirs_out)}")
    weights = [uneven(i, t) for i, t in enumerate(theirs_out)]
    try:
        b = torch.autograd.grad(theirs_out, their_leaves, weights, allow_unused=True, materialize_grads=True)
    except RuntimeError as error:
        raise Skip(words(error)) from None
    mine = [convert(w, []) for w in weights]
    a = taeda.autograd.grad(ours_out, our_leaves, mine, allow_unused=True)
    a = [taeda.zeros_like(x) if g is None else g for g, x in zip(a, our_leaves, strict=True)]

    def exact() -> Any:
        again = sample.transform(lambda v: like(doubled(v), v))
        call, leaves, _ = operator.their_call(again)
        outs = differentiable(operator.processed(again, call(), False))
        into = [doubled(w) for w in weights]
        return torch.autograd.grad(outs, leaves, into, allow_unused=True, materialize_grads=True)

    try:
        check(a, list(b), [exact], values=operator.values and not drops_out(operator.record, sample))
    except Differs as difference:
        raise Differs(f"gradient: {difference}") from None
