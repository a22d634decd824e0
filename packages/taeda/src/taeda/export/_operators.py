"""Exported programs in operators: parameters and buffers among the inputs, sizes that vary as expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from taeda._subclasses import FakeTensor, FakeTensorMode
from taeda.export import graph_signature as signature
from taeda.export._assemble import Held, NeedsRuns, assembled
from taeda.export._guards import ValueRanges
from taeda.export._runs import CannotTrace, Run
from taeda.export._same_way import SameWay, SizeTakenError
from taeda.fx._keeping import left_alone
from taeda.fx._record import SizeDecidedError, holds
from taeda.fx.interpreter import Interpreter
from taeda.utils import _pytree
from taeda_registry.slots import tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from taeda.export._guards import Guards, Size
    from taeda.fx import GraphModule

__all__ = ["InOperators", "in_operators"]

#: How far sizes are from those of the example in further runs: moved by so much, or multiplied.
_MOVED: tuple[Callable[[int, int], int], ...] = (
    lambda size, place: size + 1 + place,
    lambda size, place: size + 5 + 2 * place,
    lambda size, place: size + 14 + 3 * place,
)
_NEAR: tuple[Callable[[int, int], int], ...] = tuple(
    (lambda size, place, number=number: size + ((1, -1, 2) if size > 2 else (1, 3, 2))[(number + place) % 3])
    for number in range(3)
)
_MULTIPLIED: tuple[Callable[[int, int], int], ...] = (
    lambda size, place: size * (2 + place),
    lambda size, place: size * (3 + place),
    lambda size, place: size * (5 + place),
)
#: Still further runs, where few do not tell enough.
_MORE = {
    _MOVED: tuple((lambda size, place, by=by: size + by + place) for by in (3, 8, 25)),
    _MULTIPLIED: tuple((lambda size, place, by=by: size * (by + place)) for by in (4, 7, 11)),
}


#: How far above the example's a size is tried, and up to where each is; sizes of 0 and 1 are not, which many refuse.
_FAR, _CLOSE, _LEAST = 256, 16, 2


class InOperators(NamedTuple):
    """A program in operators.

    Attributes:
        module: The graph module.
        signature: What its inputs and outputs are.
        constants: Tensors that it has besides those of the program, by path.
        names: Names of the arguments.
        in_spec, out_spec: The containers of the arguments and of the result.
    """

    module: GraphModule
    signature: signature.ExportGraphSignature
    constants: dict[str, Any]
    names: list[str]
    in_spec: Any
    out_spec: Any


def in_operators(
    program: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    constants: Collection[str],
    guards: Guards,
    apart: bool = False,
    decompositions: Any = None,
    again: Callable[[list[Any]], GraphModule | None] | None = None,
) -> InOperators:
    """The program as a graph of operators.

    Args:
        program: A module of a graph.
        args, kwargs: The inputs that it runs with.
        constants: Paths of the tensors that are neither parameters nor buffers.
        guards: Which sizes vary; those of them that turn out not to are fixed there.
        apart: Let operators stand in the graph as what they consist of.
        decompositions: Functions that stand for operators, by overload.
        again: What the program itself does with other inputs, as a graph: where it is another one, a size was taken
            for a number.

    Raises:
        CannotTrace: It cannot be told in operators.
        UserError: A size that is to vary cannot.
    """
    held = _held(program, constants)
    leaves = _pytree.tree_leaves((*args, *kwargs.values()))
    names = [node.target for node in program.graph.nodes if node.op == "placeholder"]
    with left_alone(program, leaves):
        work = _Sampling(program, [one.value for one in held], leaves, guards, (apart, decompositions), again)
        runs = work.runs()
        try:
            made = assembled(runs, held, names, work.inputs, work.symbols)
        except NeedsRuns:
            runs += work.more()
            made = assembled(runs, held, names, work.inputs, work.symbols)
    spec = _pytree.tree_structure((*args, *kwargs.values()))
    return InOperators(*made, [*guards.names, *kwargs], spec, runs[0].spec)


def _held(program: Any, constants: Collection[str]) -> list[Held]:
    """Parameters, then buffers, then constants."""
    kept, kinds = program.state_dict().keys(), signature.InputKind
    found = [
        Held(kinds.PARAMETER, path, value, None)
        for path, value in program.named_parameters(remove_duplicate=False)
    ]
    buffers = list(program.named_buffers(remove_duplicate=False))
    found += [Held(kinds.BUFFER, p, value, p in kept) for p, value in buffers if p not in constants]
    return found + [Held(kinds.CONSTANT_TENSOR, p, value, None) for p, value in buffers if p in constants]


class _Sampling:
    """Runs of a program with inputs of several sizes."""

    def __init__(
        self,
        program: Any,
        held: list[Any],
        leaves: list[Any],
        guards: Guards,
        form: tuple[bool, Any],
        again: Callable[[list[Any]], GraphModule | None] | None,
    ) -> None:
        self.way = None if again is None else SameWay(program, again, leaves)
        self.program, self.held, self.leaves, self.guards = program, held, leaves, guards
        fakes = [value for value in (*leaves, *held) if isinstance(value, FakeTensor)]
        self.mode = fakes[0].fake_mode if fakes else FakeTensorMode(allow_non_fake_inputs=True)
        if fakes:  # whose operators meet fake tensors in the place of what the program holds
            self.held = [self.mode.from_tensor(value) for value in held]
        self.form = form
        self.ways: Any = None  # how sizes were chosen; nothing where none varies
        self.inputs: list[list[Any]] = []
        self.symbols: dict[str, list[int]] = {}
        self.asks = any(node.target is holds for node in program.graph.nodes)  # sizes, by which it goes on

    def runs(self) -> list[Run]:
        """The run of the example, and further ones."""
        try:
            first = self._run(0, self.leaves)
        except CannotTrace:
            self._check_way()
            raise
        except Exception as error:  # whatever a program does that runs once but not again
            raise CannotTrace(f"it does not run again: {type(error).__name__}: {error}") from error
        sizes = self.guards.sizes()
        further = self._further(sizes)
        if further is None:
            self._settle(sizes)
            sizes = self.guards.sizes()
            further = self._further(sizes)
        if further is None:
            raise CannotTrace("its sizes vary together")
        if self.asks and (narrowed := self._narrowed(sizes)) != sizes:
            sizes = narrowed
            further = self._further(sizes) or []
        self.inputs.insert(0, self.leaves)
        for symbol, size in {size.symbol: size.root for size in sizes}.items():
            self.symbols[symbol].insert(0, size)
        if further or not any(call.target is tensor.ops.aten.item.default for call in first.calls):
            return [first, *further]
        self.inputs.append(self.leaves)
        return [first, self._run(1, self.leaves)]  # numbers out of tensors vary alone

    def _check_way(self) -> None:
        """Find the sizes that were taken for numbers where the graph itself cannot run.

        Raises:
            UserError: It was said that one varies.
        """
        sizes = self.guards.sizes()
        for symbol in dict.fromkeys(size.symbol for size in sizes) if self.way is not None else ():
            size = next(one for one in sizes if one.symbol == symbol)
            lengths = {one.symbol: one.root for one in sizes} | _chosen([size], _MOVED)[0]
            try:
                self.way.check(_all_resized(self.leaves, sizes, lengths))  # type: ignore[union-attr]
            except (SizeTakenError, SizeDecidedError) as error:
                self.refusal = error
                if size.hint != "AUTO":
                    self._refuse(size)
                self.guards.fix(symbol)
            except Exception:  # whatever a program raises for a size, which may go with another one's
                continue

    def _run(self, number: int, inputs: list[Any]) -> Run:
        return Run(self.program, number, self.mode, *self.form).trace(self.held, inputs)

    def _further(self, sizes: list[Size]) -> list[Run] | None:
        """Runs with other sizes; None where the program does not run with them."""
        self.inputs, self.symbols = [], {}
        if not sizes:
            return []
        for ways in (_MOVED, _NEAR, _MULTIPLIED):
            try:
                found = self._sampled(sizes, ways)
                self.ways = ways
                return found
            except CannotTrace:
                raise
            except Exception as error:  # whatever a program raises for a size
                self.refusal = error
        return None

    def _narrowed(self, sizes: list[Size]) -> list[Size]:
        """The sizes that may vary, within those for which the program goes the way of the example.

        Raises:
            UserError: It was said that one varies further.
        """
        for symbol in dict.fromkeys(size.symbol for size in sizes):
            size = next(one for one in sizes if one.symbol == symbol)
            bounds = self._reach(sizes, size)
            if bounds == size.bounds:
                continue
            if not size.hint or (bounds is None and size.hint == "DYNAMIC"):
                self._refuse(size, bounds)
            if bounds is None:
                self.guards.fix(symbol)
            else:
                self.guards.narrow(symbol, bounds)
        return self.guards.sizes()

    def _reach(self, sizes: list[Size], size: Size) -> ValueRanges | None:
        """The bounds within which the way is the same; None where they have gaps."""
        own, root = size.bounds, size.root

        def same(length: int) -> bool:
            lengths = {one.symbol: one.root for one in sizes} | {size.symbol: length}
            return self._goes(_all_resized(self.leaves, sizes, lengths))

        least = max(own.lower, min(_LEAST, root))
        lower = own.lower if same(least) else _last(same, root, least)
        most = root + _FAR if own.upper is None else min(own.upper, root + _FAR)
        steps = [root + 2**k for k in range(_FAR.bit_length()) if root + 2**k < most] + [most]
        failing = next((length for length in steps if not same(length)), None)
        upper = own.upper if failing is None else _last(same, root, failing)
        between = range(max(lower, least), min(most if upper is None else upper, root + _CLOSE) + 1)
        return ValueRanges(lower, upper) if all(map(same, between)) else None

    def _goes(self, inputs: list[Any]) -> bool:
        """Whether the program goes the way of the example; without elements, where it does not ask for them."""
        mode = FakeTensorMode(allow_non_fake_inputs=True)
        fakes = [mode.from_tensor(one) if isinstance(one, tensor.Tensor) else one for one in inputs]
        try:
            with tensor.no_grad(), mode:
                Interpreter(self.program).run(*fakes, enable_io_processing=False)
        except SizeDecidedError as error:
            self.refusal = error
            return False
        except Exception:  # whatever a program raises for a size, or without elements
            try:
                self._run(1, inputs)
            except Exception as error:  # with elements too
                self.refusal = error
                return False
        return True

    def more(self) -> list[Run]:
        """Runs with sizes that there were not yet.

        Raises:
            CannotTrace: The program does not run with them.
        """
        if self.ways not in _MORE:
            raise CannotTrace("its sizes are too narrow to tell how those within hang on them")
        before = self.inputs, self.symbols
        try:
            runs = self._sampled(self.guards.sizes(), _MORE[self.ways])
        except Exception as error:  # whatever a program raises for a size
            raise CannotTrace(f"it does not run with further sizes: {error}") from error
        self.inputs = before[0] + self.inputs
        self.symbols = {name: sizes + self.symbols.get(name, []) for name, sizes in before[1].items()}
        return runs

    def _sampled(self, sizes: list[Size], ways: Any) -> list[Run]:
        chosen = _chosen(sizes, ways)
        self.inputs, self.symbols = [], {}
        runs = []
        for number, lengths in enumerate(chosen, 1):
            inputs = _all_resized(self.leaves, sizes, lengths)
            self.inputs.append(inputs)
            for symbol, length in lengths.items():
                self.symbols.setdefault(symbol, []).append(length)
            if self.way is not None and number == 1:
                self.way.check(inputs)
            runs.append(self._run(number, inputs))
        return runs

    def _settle(self, sizes: list[Size]) -> None:
        """Find the sizes that cannot vary alone, and let them vary together or not at all."""
        bad = [s for s in dict.fromkeys(size.symbol for size in sizes) if self._fails(sizes, {s})]
        firsts = {size.symbol: size for size in reversed(sizes)}
        settled: set[str] = set()
        for symbol in bad:
            if symbol in settled:
                continue
            alike = {s for s in bad if firsts[s].size == firsts[symbol].size}
            hinted = all(firsts[s].hint for s in alike)
            if hinted and len(alike) > 1 and not self._fails(sizes, alike):
                self.guards.unite([s for s in bad if s in alike])
                settled |= alike
            elif (bounds := self._wider(sizes, firsts[symbol])) is not None:
                self.guards.narrow(symbol, bounds)
            elif firsts[symbol].hint == "AUTO":
                self.guards.fix(symbol)
            else:
                self._refuse(firsts[symbol])

    def _wider(self, sizes: list[Size], size: Size) -> ValueRanges | None:
        """The bounds within which the way is the same, if nothing else was said and they hold more than one size."""
        bounds = self._reach(sizes, size) if self.asks and size.hint else None
        return None if bounds is None or bounds.lower == bounds.upper else bounds

    def _fails(self, sizes: list[Size], symbols: set[str]) -> bool:
        found = [size for size in sizes if size.symbol in symbols]
        if len(symbols) > 1:
            found = [size._replace(symbol=min(symbols)) for size in found]
        return self._further(found) is None

    def _refuse(self, size: Size, bounds: ValueRanges | None = None) -> None:
        from taeda._dynamo.exc import UserError

        said = repr(size.size)
        failed = f"Not all values of {size.name} = {size.text} in the specified range satisfy what the program asks: "
        if isinstance(self.refusal, SizeTakenError):
            failed = (
                f"You marked {size.name} as dynamic but your code specialized it to be a constant ({size.size}). "
                "If you're using Dim.DYNAMIC, replace it with either Dim.STATIC or Dim.AUTO; a size that goes through "
                "int(), len() or range(), or indexes a list, is such a constant: "
            )
        if bounds is not None:
            upper = "" if bounds.upper is None else f", max={bounds.upper}"
            said = f"Dim({size.name!r}, min={bounds.lower}{upper})"

        raise UserError(
            f'Constraints violated ({size.name})! For more information, run with TORCH_LOGS="+dynamic".\n'
            f"  - {failed}{type(self.refusal).__name__}: {self.refusal}\n"
            f"Suggested fixes:\n  {size.name} = {said}"
        )


def _last(good_at: Callable[[int], bool], good: int, bad: int) -> int:
    """The size next to those that do not hold, between one that does and one that does not."""
    while abs(bad - good) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if good_at(middle) else (good, middle)
    return good


def _chosen(sizes: list[Size], ways: Any) -> list[dict[str, int]]:
    """The sizes of each symbol in further runs, within their bounds and, where that goes, all different."""
    firsts = {size.symbol: size for size in reversed(sizes)}
    found: list[dict[str, int]] = [{} for _ in ways]
    for place, (symbol, size) in enumerate(sorted(firsts.items())):
        free = [n for n in range(size.root + 40, 0, -1) if n in size.bounds and n != size.root]
        for number, way in enumerate(ways):
            wanted = way(size.root, place)
            if wanted not in size.bounds:
                wanted = free[number % len(free)] if free else size.root
            found[number][symbol] = wanted
    return found


def _all_resized(leaves: list[Any], sizes: list[Size], lengths: dict[str, int]) -> list[Any]:
    """Inputs with other sizes."""
    return [_resized(leaf, index, sizes, lengths) for index, leaf in enumerate(leaves)]


def _resized(leaf: Any, index: int, sizes: list[Size], lengths: dict[str, int]) -> Any:
    """An input with other sizes: its elements again, or fewer of them."""
    for size in sizes:
        if size.leaf == index:
            places = tensor.arange(size.at(lengths[size.symbol]), device=leaf.device) % max(1, size.size)
            leaf = leaf.detach().index_select(size.dim, places).requires_grad_(leaf.requires_grad)
    return leaf
