"""Programs for telephones: there is no compiler of Python programs that would make them."""

from taeda import _absent

optimize_for_mobile = _absent.function(
    "taeda.utils.mobile_optimizer.optimize_for_mobile", "there is no compiler of Python programs"
)
