# What type checkers and editors see: the first-party provider.
from taeda.optim import lr_scheduler as lr_scheduler
from taeda_optim.adam import Adam as Adam
from taeda_optim.adam import AdamW as AdamW
from taeda_optim.adam_family import Adamax as Adamax
from taeda_optim.adam_family import NAdam as NAdam
from taeda_optim.adam_family import RAdam as RAdam
from taeda_optim.adaptive import Adadelta as Adadelta
from taeda_optim.adaptive import Adagrad as Adagrad
from taeda_optim.adaptive import RMSprop as RMSprop
from taeda_optim.adaptive import Rprop as Rprop
from taeda_optim.optimizer import Optimizer as Optimizer
from taeda_optim.sgd import SGD as SGD
