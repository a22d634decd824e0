"""The layers, by family: each family's module says which names are public."""

from taeda_nn.modules.activation import *
from taeda_nn.modules.activation import __all__ as _activation
from taeda_nn.modules.adaptive import *
from taeda_nn.modules.adaptive import __all__ as _adaptive
from taeda_nn.modules.attention import *
from taeda_nn.modules.attention import __all__ as _attention
from taeda_nn.modules.batchnorm import *
from taeda_nn.modules.batchnorm import __all__ as _batchnorm
from taeda_nn.modules.channelshuffle import *
from taeda_nn.modules.channelshuffle import __all__ as _channelshuffle
from taeda_nn.modules.container import *
from taeda_nn.modules.container import __all__ as _container
from taeda_nn.modules.conv import *
from taeda_nn.modules.conv import __all__ as _conv
from taeda_nn.modules.distance import *
from taeda_nn.modules.distance import __all__ as _distance
from taeda_nn.modules.dropout import *
from taeda_nn.modules.dropout import __all__ as _dropout
from taeda_nn.modules.flatten import *
from taeda_nn.modules.flatten import __all__ as _flatten
from taeda_nn.modules.fold import *
from taeda_nn.modules.fold import __all__ as _fold
from taeda_nn.modules.instancenorm import *
from taeda_nn.modules.instancenorm import __all__ as _instancenorm
from taeda_nn.modules.linear import *
from taeda_nn.modules.linear import __all__ as _linear
from taeda_nn.modules.linear_cross_entropy_options import *
from taeda_nn.modules.linear_cross_entropy_options import __all__ as _linear_cross_entropy_options
from taeda_nn.modules.loss import *
from taeda_nn.modules.loss import __all__ as _loss
from taeda_nn.modules.module import Module
from taeda_nn.modules.normalization import *
from taeda_nn.modules.normalization import __all__ as _normalization
from taeda_nn.modules.padding import *
from taeda_nn.modules.padding import __all__ as _padding
from taeda_nn.modules.pixelshuffle import *
from taeda_nn.modules.pixelshuffle import __all__ as _pixelshuffle
from taeda_nn.modules.pooling import *
from taeda_nn.modules.pooling import __all__ as _pooling
from taeda_nn.modules.rnn import *
from taeda_nn.modules.rnn import __all__ as _rnn
from taeda_nn.modules.sparse import *
from taeda_nn.modules.sparse import __all__ as _sparse
from taeda_nn.modules.transformer import *
from taeda_nn.modules.transformer import __all__ as _transformer
from taeda_nn.modules.upsampling import *
from taeda_nn.modules.upsampling import __all__ as _upsampling

__all__ = [
    "Module",
    *_activation,
    *_adaptive,
    *_attention,
    *_batchnorm,
    *_channelshuffle,
    *_container,
    *_conv,
    *_distance,
    *_dropout,
    *_flatten,
    *_fold,
    *_instancenorm,
    *_linear,
    *_linear_cross_entropy_options,
    *_loss,
    *_normalization,
    *_padding,
    *_pixelshuffle,
    *_pooling,
    *_rnn,
    *_sparse,
    *_upsampling,
    *_transformer,
]

from taeda_nn.modules import _passed_on

_passed_on.pass_on()
