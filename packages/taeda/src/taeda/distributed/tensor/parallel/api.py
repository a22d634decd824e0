"""A module by a plan that says how its parts lie over processes."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

from taeda.distributed.device_mesh import DeviceMesh, _mesh_resources
from taeda.distributed.tensor.parallel.style import ParallelStyle

__all__ = ["parallelize_module"]


def parallelize_module(
    module: Any,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Any:
    """Lets the parameters of a module lie over a mesh as a plan says.

    Args:
        module: Changed in place.
        device_mesh: A mesh of one dimension; None for the one in force.
        parallelize_plan: A style for the module, or styles by names of modules in it, which may have ``*`` in them.
        src_data_rank: Whose values count; None for each process's own.

    Raises:
        TypeError: A plan of another kind. ValueError: A mesh of several dimensions.

    Example:
        >>> parallelize_module(net, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})  # doctest: +SKIP
    """
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    if mesh.ndim != 1:
        raise ValueError(f"parallelize_module: expected a mesh of one dimension, found {mesh}")
    if parallelize_plan is None:
        import warnings

        warnings.warn(
            "No parallelize_plan is provided and auto-parallel is not supported at the moment, so this "
            "parallelize_module call will do nothing.",
            stacklevel=2,
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        if path == "":
            parallelize_module(module, mesh, style, src_data_rank=src_data_rank)
            continue
        found = _matching(module, path.split("."))
        if not found:
            import warnings

            warnings.warn(
                f"Parallelize plan key '{path}' could not be resolved: no submodule matching token "
                f"'{path.split('.')[0]}' in module {module}, skipping this plan entry.",
                stacklevel=2,
            )
        for part in found:
            parallelize_module(part, mesh, style, src_data_rank=src_data_rank)
    return module


def _matching(module: Any, tokens: list[str]) -> list[Any]:
    found = [module]
    for token in tokens:
        found = [child for part in found for name, child in part.named_children() if fnmatch(name, token)]
    return found
