# What type checkers and editors see: the first-party provider.
from taeda.nn import functional as functional
from taeda.nn import init as init
from taeda.nn import modules as modules
from taeda.nn import parameter as parameter
from taeda.nn import utils as utils
from taeda.nn.modules import *
from taeda_nn import attention as attention
from taeda_nn import common_types as common_types
from taeda_nn import factory_kwargs as factory_kwargs
from taeda_nn import grad as grad
from taeda_nn import parallel as parallel
from taeda_nn._summary import summary as summary
from taeda_nn.parallel import DataParallel as DataParallel
from taeda_nn.parameter import Buffer as Buffer
from taeda_nn.parameter import Parameter as Parameter
from taeda_nn.parameter import UninitializedBuffer as UninitializedBuffer
from taeda_nn.parameter import UninitializedParameter as UninitializedParameter
