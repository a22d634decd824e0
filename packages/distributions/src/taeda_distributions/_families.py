"""All distributions, by name."""

from taeda_distributions.bernoulli import Bernoulli
from taeda_distributions.beta import Beta
from taeda_distributions.binomial import Binomial
from taeda_distributions.categorical import Categorical
from taeda_distributions.cauchy import Cauchy
from taeda_distributions.chi2 import Chi2
from taeda_distributions.continuous_bernoulli import ContinuousBernoulli
from taeda_distributions.dirichlet import Dirichlet
from taeda_distributions.distribution import Distribution
from taeda_distributions.exp_family import ExponentialFamily
from taeda_distributions.exponential import Exponential
from taeda_distributions.fishersnedecor import FisherSnedecor
from taeda_distributions.gamma import Gamma
from taeda_distributions.generalized_pareto import GeneralizedPareto
from taeda_distributions.geometric import Geometric
from taeda_distributions.gumbel import Gumbel
from taeda_distributions.half_cauchy import HalfCauchy
from taeda_distributions.half_normal import HalfNormal
from taeda_distributions.independent import Independent
from taeda_distributions.inverse_gamma import InverseGamma
from taeda_distributions.kumaraswamy import Kumaraswamy
from taeda_distributions.laplace import Laplace
from taeda_distributions.lkj_cholesky import LKJCholesky
from taeda_distributions.log_normal import LogNormal
from taeda_distributions.logistic_normal import LogisticNormal
from taeda_distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from taeda_distributions.mixture_same_family import MixtureSameFamily
from taeda_distributions.multinomial import Multinomial
from taeda_distributions.multivariate_normal import MultivariateNormal
from taeda_distributions.negative_binomial import NegativeBinomial
from taeda_distributions.normal import Normal
from taeda_distributions.one_hot_categorical import OneHotCategorical, OneHotCategoricalStraightThrough
from taeda_distributions.pareto import Pareto
from taeda_distributions.poisson import Poisson
from taeda_distributions.relaxed_bernoulli import RelaxedBernoulli
from taeda_distributions.relaxed_categorical import RelaxedOneHotCategorical
from taeda_distributions.studentT import StudentT
from taeda_distributions.transformed_distribution import TransformedDistribution
from taeda_distributions.uniform import Uniform
from taeda_distributions.von_mises import VonMises
from taeda_distributions.weibull import Weibull
from taeda_distributions.wishart import Wishart

__all__ = [
    "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli", "Dirichlet",
    "Distribution", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto",
    "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "InverseGamma", "Kumaraswamy",
    "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal", "LowRankMultivariateNormal",
    "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal",
    "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "RelaxedBernoulli",
    "RelaxedOneHotCategorical", "StudentT", "TransformedDistribution", "Uniform", "VonMises", "Weibull",
    "Wishart",
]  # fmt: skip
