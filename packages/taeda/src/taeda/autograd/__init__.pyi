# What type checkers and editors see: the first-party provider.
from taeda_autograd import *
from taeda_autograd import grad_mode as grad_mode
from taeda_autograd.grad_mode import set_multithreading_enabled as set_multithreading_enabled
