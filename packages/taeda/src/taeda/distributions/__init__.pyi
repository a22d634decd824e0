# What type checkers and editors see: the first-party provider.
from taeda_distributions import constraints as constraints
from taeda_distributions import transforms as transforms
from taeda_distributions._families import *
from taeda_distributions.constraint_registry import biject_to as biject_to
from taeda_distributions.constraint_registry import transform_to as transform_to
from taeda_distributions.kl import kl_divergence as kl_divergence
from taeda_distributions.kl import register_kl as register_kl
from taeda_distributions.transforms import *
