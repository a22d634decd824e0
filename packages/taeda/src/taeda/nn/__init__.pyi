# What type checkers and editors see: the first-party provider.
from taeda.nn import functional as functional
from taeda.nn import init as init
from taeda.nn import parameter as parameter
from taeda.nn import utils as utils
from taeda_nn import attention as attention
from taeda_nn import common_types as common_types
from taeda_nn import factory_kwargs as factory_kwargs
from taeda_nn import parallel as parallel
from taeda_nn._summary import summary as summary
from taeda_nn.modules.activation import *
from taeda_nn.modules.adaptive import *
from taeda_nn.modules.attention import *
from taeda_nn.modules.batchnorm import *
from taeda_nn.modules.channelshuffle import *
from taeda_nn.modules.container import *
from taeda_nn.modules.conv import *
from taeda_nn.modules.distance import *
from taeda_nn.modules.dropout import *
from taeda_nn.modules.flatten import *
from taeda_nn.modules.fold import *
from taeda_nn.modules.instancenorm import *
from taeda_nn.modules.linear import *
from taeda_nn.modules.linear_cross_entropy_options import *
from taeda_nn.modules.loss import *
from taeda_nn.modules.module import *
from taeda_nn.modules.normalization import *
from taeda_nn.modules.padding import *
from taeda_nn.modules.pixelshuffle import *
from taeda_nn.modules.pooling import *
from taeda_nn.modules.rnn import *
from taeda_nn.modules.sparse import *
from taeda_nn.modules.transformer import *
from taeda_nn.modules.upsampling import *
from taeda_nn.parallel import DataParallel as DataParallel
from taeda_nn.parameter import Buffer as Buffer
from taeda_nn.parameter import Parameter as Parameter
from taeda_nn.parameter import UninitializedBuffer as UninitializedBuffer
from taeda_nn.parameter import UninitializedParameter as UninitializedParameter
