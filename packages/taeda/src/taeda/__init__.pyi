# What type checkers and editors see: the first-party providers; a test holds it to what is there.
from typing import Any

from taeda import ao as ao
from taeda import autograd as autograd
from taeda import classes as classes
from taeda import compiler as compiler
from taeda import distributed as distributed
from taeda import distributions as distributions
from taeda import export as export
from taeda import func as func
from taeda import futures as futures
from taeda import fx as fx
from taeda import hub as hub
from taeda import jit as jit
from taeda import models as models
from taeda import mtia as mtia
from taeda import multiprocessing as multiprocessing
from taeda import nn as nn
from taeda import onnx as onnx
from taeda import optim as optim
from taeda import package as package
from taeda import profiler as profiler
from taeda import quantization as quantization
from taeda import torch_version as torch_version
from taeda import types as types
from taeda import utils as utils
from taeda import version as version
from taeda._checks import set_vital as set_vital
from taeda._checks import typename as typename
from taeda._ops import Tag as Tag
from taeda.compiler import compile as compile
from taeda.func._vmap import vmap as vmap
from taeda.futures import Future as Future
from taeda.jit import fork as fork
from taeda.jit import wait as wait
from taeda.jit._modules import CompilationUnit as CompilationUnit
from taeda.jit._modules import ScriptFunction as ScriptFunction
from taeda.jit._modules import ScriptModule as ScriptModule
from taeda.utils import data as data
from taeda_autograd import *
from taeda_profiler import memory as memory
from taeda_tensor_core import *
from taeda_tensor_core.device_module import DeviceModule
from taeda_tensor_core.device_module import get_device_module as get_device_module

cpu: DeviceModule
cuda: DeviceModule
mps: DeviceModule
xpu: DeviceModule
AnyType: type[Any]
BoolType: type[Any]
ClassType: type[Any]
ComplexType: type[Any]
DeviceObjType: type[Any]
DictType: type[Any]
EnumType: type[Any]
FloatType: type[Any]
IntType: type[Any]
InterfaceType: type[Any]
ListType: type[Any]
NoneType: type[Any]
NumberType: type[Any]
OptionalType: type[Any]
StringType: type[Any]
TensorType: type[Any]
TupleType: type[Any]
UnionType: type[Any]
__version__: str
