"""Extending taeda from Python: operators, kernels, devices and layers of your own.

What is added here is added to the one operator table that everything uses, so that it works with gradients,
with `nn` and on every device. Each registration is a handle: `handle.remove()` takes it away again, and
`with handle:` does so at the end of the block. Built-in operators are not slowed by any of this.

Example:
    >>> lib = taeda.library.Library("mypkg")
    >>> @lib.operator("mypkg::scale(Tensor self, float k) -> Tensor")
    ... def scale(self, k):
    ...     return self * k
    >>> taeda.ops.mypkg.scale(taeda.ones(2), 3.0)
    tensor([3., 3.])
"""

from taeda_tensor_core.library._aten_calls import aten_call, traces
from taeda_tensor_core.library._autograd import attach_state, attached_state, install_autograd, mark_tracked
from taeda_tensor_core.library._backend import CAPABILITIES, Backend
from taeda_tensor_core.library._checks import OpCheckError, opcheck
from taeda_tensor_core.library._custom import (
    BatchInfo,
    CustomOpDef,
    custom_op,
    define,
    fallthrough_kernel,
    get_ctx,
    get_kernel,
    impl,
    impl_abstract,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_torch_dispatch,
    register_vmap,
    triton_op,
    wrap_triton,
)
from taeda_tensor_core.library._custom import _scoped_library as _scoped_library
from taeda_tensor_core.library._custom_results import Named, use_batches
from taeda_tensor_core.library._dtypes import NumberFormat, define_dtype
from taeda_tensor_core.library._layers import POSITIONS, Layer, below
from taeda_tensor_core.library._levels import Level, any_example, for_each_example, use_examples
from taeda_tensor_core.library._operators import Library, NewOperator, batched_operators, defined
from taeda_tensor_core.library._registration import Kernel, Registration
from taeda_tensor_core.library._schemas import infer_schema
from taeda_tensor_core.library._table import Argument, Operator, Overload, Plain, Result, op, operators
from taeda_tensor_core.library._tags import use_tags

__all__ = [
    "CAPABILITIES",
    "POSITIONS",
    "Argument",
    "Backend",
    "BatchInfo",
    "CustomOpDef",
    "Kernel",
    "Layer",
    "Level",
    "Library",
    "Named",
    "NewOperator",
    "NumberFormat",
    "OpCheckError",
    "Operator",
    "Overload",
    "Plain",
    "Registration",
    "Result",
    "any_example",
    "aten_call",
    "attach_state",
    "attached_state",
    "batched_operators",
    "below",
    "custom_op",
    "define",
    "define_dtype",
    "defined",
    "fallthrough_kernel",
    "for_each_example",
    "get_ctx",
    "get_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "install_autograd",
    "mark_tracked",
    "op",
    "opcheck",
    "operators",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "traces",
    "triton_op",
    "use_batches",
    "use_examples",
    "use_tags",
    "wrap_triton",
]
