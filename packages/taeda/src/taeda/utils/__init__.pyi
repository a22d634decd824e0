# What type checkers and editors see: the first-party provider.
from taeda.utils import checkpoint as checkpoint
from taeda.utils import cpp_extension as cpp_extension
from taeda.utils import data as data
from taeda.utils import deterministic as deterministic
from taeda.utils import dlpack as dlpack
from taeda.utils import flop_counter as flop_counter
from taeda.utils import hooks as hooks
from taeda.utils import model_zoo as model_zoo
from taeda.utils._swap import swap_tensors as swap_tensors

def set_module(obj: object, mod: str) -> None: ...
