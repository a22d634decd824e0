"""Traces that know shapes: tensors without memory go along with the proxies."""

from __future__ import annotations

import copy
from typing import Any

from taeda.fx._symbolic_trace import Tracer
from taeda.fx.graph_module import GraphModule
from taeda.fx.proxy import Proxy
from taeda_registry.slots import nn, tensor

__all__ = ["MetaDeviceAttribute", "MetaProxy", "MetaTracer", "proxys_to_metas", "symbolic_trace"]


class MetaProxy(Proxy):
    """A proxy that knows the tensor, without memory, that it stands for."""

    def install_tensor_meta(self, tensor_meta: Any) -> None:
        """Keep the tensor."""
        self._tensor_meta = tensor_meta

    def _known(self) -> Any:
        return vars(self).get("_tensor_meta")

    def size(self, dim: int | None = None) -> Any:
        """The size, as numbers where it is known."""
        known = self._known()
        if known is None:
            return self.tracer.create_proxy(
                "call_method", "size", (self,) if dim is None else (self, dim), {}
            )
        return known.size() if dim is None else known.size(dim)

    def dim(self) -> Any:
        """The number of dimensions."""
        known = self._known()
        return self.tracer.create_proxy("call_method", "dim", (self,), {}) if known is None else known.dim()

    @property
    def shape(self) -> Any:
        return self.size()

    @property
    def dtype(self) -> Any:
        known = self._known()
        return (
            self.tracer.create_proxy("call_function", getattr, (self, "dtype"), {})
            if known is None
            else known.dtype
        )

    def __len__(self) -> int:
        known = self._known()
        return super().__len__() if known is None else len(known)

    def __bool__(self) -> bool:
        return super().__bool__() if self._known() is None else True


MetaDeviceAttribute = MetaProxy


def proxys_to_metas(v: Any) -> Any:
    """What a proxy is known to stand for."""
    return v._known() if isinstance(v, MetaProxy) and v._known() is not None else v


def _with_metas(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_with_metas, value))
    if isinstance(value, dict):
        return {key: _with_metas(item) for key, item in value.items()}
    return proxys_to_metas(value)


class MetaTracer(Tracer):
    """A tracer that computes shapes on the way, from those of the inputs."""

    def trace(self, root: Any, meta_args: dict[str, Any], concrete_args: Any = None) -> Any:
        """The graph of a module or function.

        Args:
            root: What is traced. meta_args: By name of the input a tensor of its shape on the device 'meta'.
            concrete_args: Values of inputs that are no tensors.
        """
        self.meta_args = meta_args
        without_memory = copy.deepcopy(root).to("meta") if isinstance(root, nn.Module) else nn.Module()
        self._shapes = dict(without_memory.named_modules())
        return super().trace(root, concrete_args=concrete_args)

    def proxy(self, node: Any) -> MetaProxy:
        """A proxy of a node."""
        return MetaProxy(node, self)

    def create_proxy(self, kind: Any, target: Any, args: Any, kwargs: Any, *rest: Any, **others: Any) -> Any:
        """A proxy of a new node, with what is known of its result."""
        made = super().create_proxy(kind, target, args, kwargs, *rest, **others)
        if kind == "placeholder" and target in self.meta_args:
            made.install_tensor_meta(self.meta_args[target].to("meta"))
            return made
        try:
            found = self._computed(kind, target, _with_metas(args), _with_metas(kwargs))
        except Exception:  # what cannot be known stays a plain proxy
            return made
        if isinstance(found, tensor.Tensor) and isinstance(made, MetaProxy):
            made.install_tensor_meta(found)
        return made

    def _computed(self, kind: str, target: Any, args: Any, kwargs: Any) -> Any:
        if kind == "call_function":
            return target(*args, **kwargs)
        if kind == "call_method":
            return getattr(args[0], target)(*args[1:], **kwargs)
        if kind == "call_module":
            return self._shapes[target].forward(*args, **kwargs)
        if kind == "get_attr":
            path, _, name = target.rpartition(".")
            return getattr(self._shapes[path], name)
        return None


def symbolic_trace(
    root: Any, meta_args: dict[str, Any] | None = None, concrete_args: Any = None
) -> GraphModule:
    """The graph module of a module or function whose shapes are known.

    Args:
        root: What is traced. meta_args: By name of the input a tensor of its shape.
        concrete_args: Values of inputs that are no tensors.
    """
    tracer = MetaTracer()
    graph = tracer.trace(root, meta_args or {}, concrete_args)
    name = type(root).__name__ if isinstance(root, nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
