"""Neural-network computations as functions: what the layers of ``nn`` call.

Each family's module says which names are public.
"""

from taeda_nn._bind import overridable as _overridable
from taeda_nn._bind import placed as _placed
from taeda_nn.functional.activation import *
from taeda_nn.functional.activation import __all__ as _activation
from taeda_nn.functional.attention import *
from taeda_nn.functional.attention import __all__ as _attention
from taeda_nn.functional.conv import *
from taeda_nn.functional.conv import __all__ as _conv
from taeda_nn.functional.dropout import *
from taeda_nn.functional.dropout import __all__ as _dropout
from taeda_nn.functional.linear import *
from taeda_nn.functional.linear import __all__ as _linear
from taeda_nn.functional.loss import *
from taeda_nn.functional.loss import __all__ as _loss
from taeda_nn.functional.norm import *
from taeda_nn.functional.norm import __all__ as _norm
from taeda_nn.functional.pooling import *
from taeda_nn.functional.pooling import __all__ as _pooling
from taeda_nn.functional.scaled import *
from taeda_nn.functional.scaled import __all__ as _scaled
from taeda_nn.functional.spatial import *
from taeda_nn.functional.spatial import __all__ as _spatial

__all__ = [
    *_activation,
    *_attention,
    *_conv,
    *_dropout,
    *_linear,
    *_loss,
    *_norm,
    *_pooling,
    *_scaled,
    *_spatial,
]
# Operators that are declared to stand here need no function around them.
_declared = {
    _name: _function for _name, _function in _placed("nn.functional").items() if _name not in __all__
}
globals().update(_declared)
__all__.extend(_declared)
#: What is an operator in PyTorch: whoever answers for it gets the arguments as they were given.
_AS_GIVEN = {
    *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
    *("adaptive_avg_pool1d", "gelu", "grouped_mm", "rrelu_", "scaled_grouped_mm", "scaled_mm", "softshrink"),
}
_overridable(globals()[name] for name in __all__ if name in _AS_GIVEN)
_overridable((globals()[name] for name in __all__ if name not in _AS_GIVEN), spelled=True)

from taeda_nn.functional import _private  # noqa: E402

globals().update({_name: getattr(_private, _name) for _name in _private.__all__})

# Programs find the gradients of convolutions here too. A module that asks for missing names would be slower to read for
# all others: the interpreter remembers the places of names only in modules without `__getattr__`.
from taeda_nn import grad  # noqa: E402, F401
