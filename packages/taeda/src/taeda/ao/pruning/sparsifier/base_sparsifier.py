"""What sparsifiers share: which tensors of a model are masked, the masks, and making them final."""

from __future__ import annotations

import abc
import copy
from collections import defaultdict
from typing import Any

from taeda.ao.pruning.sparsifier.utils import (
    FakeSparsity,
    get_arg_info_from_tensor_fqn,
    module_contains_param,
    module_to_fqn,
    swap_module,
)
from taeda_registry.slots import nn, tensor

__all__ = ["BaseSparsifier"]

SUPPORTED_MODULES: set[type] = {nn.Linear}
KEYS_NOT_IN_STATE_DICT = ["module", "module_fqn", "tensor_name"]


class BaseSparsifier(abc.ABC):
    """Base class: a subclass defines ``update_mask(module, tensor_name, **settings)``.

    Args:
        defaults: Settings of tensors whose entry in the configuration has none of its own.

    Attributes:
        groups: A dict for every tensor: its names, its module, and its settings.
        state: By the tensors' names, with their masks.
    """

    def __init__(self, defaults: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.defaults: dict[str, Any] = defaults or {}
        self.state: dict[str, dict[str, Any]] = defaultdict(dict)
        self.groups: list[dict[str, Any]] = []
        self.enable_mask_update = True

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "groups": self.groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for i, group in enumerate(self.groups):
            text += f"\n\tGroup {i}\n\t    module: {group['module']}\n"
            text += "".join(f"\t    {key}: {group[key]}\n" for key in sorted(group) if key != "module")
        return text + ")"

    def state_dict(self) -> dict[str, Any]:
        """Masks, and the settings of every tensor under its name."""
        groups = [
            {k: v for k, v in group.items() if k not in KEYS_NOT_IN_STATE_DICT} for group in self.groups
        ]
        return {"state": self.state, "groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Masks the tensors of the prepared model as a state says.

        Raises:
            RuntimeError: A tensor that the model does not have, when strict.
        """
        groups = copy.deepcopy(state_dict["groups"])
        states = {name: dict(state) for name, state in state_dict["state"].items()}
        places = {name: get_arg_info_from_tensor_fqn(self.model, name) for name in states}
        missing = [name for name, place in places.items() if place["module"] is None]
        if strict and missing:
            raise RuntimeError(f"Error loading {missing[0]} into the model")
        for name, state in states.items():
            place = places[name]
            if place["module"] is not None and state.get("mask") is not None:
                _masking(place["module"], place["tensor_name"]).mask = state["mask"]
            for group in groups:
                if group["tensor_fqn"] == name:
                    group.update(place)
        self.__setstate__({"state": defaultdict(dict, states), "groups": groups})

    def make_config_from_model(
        self, model: nn.Module, SUPPORTED_MODULES: set[type] = SUPPORTED_MODULES
    ) -> None:
        """Takes the weights of all modules of these classes for the configuration."""
        self.config: list[dict[str, Any]] = []
        stack = [model]
        while stack:
            for child in stack.pop().children():
                if type(child) in SUPPORTED_MODULES:
                    self.config.append({"tensor_fqn": f"{module_to_fqn(model, child)}.weight"})
                else:
                    stack.append(child)

    def prepare(self, model: nn.Module, config: list[dict[str, Any]] | None) -> None:
        """Puts masks of ones before tensors of a model, in place.

        Args:
            model: The model.
            config: A dict for every tensor, with its name as ``tensor_fqn`` and settings; None for the weights of all
                linear layers.

        Raises:
            AssertionError: An entry that is no dict, has no ``tensor_fqn``, or contradicts it.
        """
        self.model = model
        if config is None:
            self.make_config_from_model(model)
        else:
            self.config = config
        for entry in self.config:
            if not isinstance(entry, dict):
                raise AssertionError(
                    "config elements should be dicts not modules i.e.: "
                    "[{`tensor_fqn`: `foo.bar.weight`}, {`tensor_fqn`: ... }, ...]"
                )
            group = {**copy.deepcopy(self.defaults), **entry}
            name = group.get("tensor_fqn")
            if name is None:
                raise AssertionError("prepare: tensor_fqn is a required argument in the sparsity config")
            place = get_arg_info_from_tensor_fqn(model, name.removeprefix("."))
            for key in place.keys() & group.keys() - {"tensor_fqn"}:
                if place[key] != group[key]:
                    raise AssertionError(
                        f"Given both `{key}` and `tensor_fqn` in the config, it is expected them to agree!"
                    )
            self.groups.append({**group, **place})
        self._prepare()

    def _prepare(self, *args: Any, **kwargs: Any) -> None:
        """Registers the parametrizations."""
        for group in self.groups:
            module, name = group["module"], group["tensor_name"]
            mask = group.get("mask")
            mask = tensor.ones_like(getattr(module, name)) if mask is None else mask
            self.state[group["tensor_fqn"]]["mask"] = mask
            masking = group.get("parametrization", FakeSparsity)(mask)
            nn.utils.parametrize.register_parametrization(module, name, masking)

    def squash_mask(
        self,
        params_to_keep: tuple[str, ...] | None = None,
        params_to_keep_per_layer: dict[str, tuple[str, ...]] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Leaves the masked tensors in the places of the tensors, without parametrizations.

        Args:
            params_to_keep: Settings that modules keep in a dict ``sparse_params``.
            params_to_keep_per_layer: The same by names of modules.
        """
        for group in self.groups:
            module = group["module"]
            nn.utils.parametrize.remove_parametrizations(
                module, group["tensor_name"], leave_parametrized=True
            )
            names = [*(params_to_keep or ()), *(params_to_keep_per_layer or {}).get(group["module_fqn"], ())]
            if names:
                module.sparse_params = {name: group[name] for name in names}

    def convert(
        self,
        module: nn.Module,
        mapping: dict[type[nn.Module], Any] | None = None,
        inplace: bool = False,
        parameterization: type[nn.Module] = FakeSparsity,
    ) -> nn.Module:
        """Puts modules of other classes in the places of those with masks.

        Args:
            module: What is gone through.
            mapping: From classes of modules to classes with a method ``from_dense``.
            inplace: Whether the module itself is changed.
            parameterization: The class of the masks.

        Raises:
            NotImplementedError: No mapping.
        """
        if mapping is None:
            raise NotImplementedError("convert: argument 'mapping' must be given")
        if not inplace:
            module = copy.deepcopy(module)
        kind = nn.utils.parametrize.type_before_parametrizations
        for name, child in list(module.named_children()):
            if module_contains_param(child, parameterization) and kind(child) in mapping:
                module._modules[name] = swap_module(child, mapping)
            else:
                self.convert(child, mapping, True, parameterization)
        return module

    def step(self, use_path: bool = True) -> None:
        """Renews all masks, unless ``enable_mask_update`` is False."""
        if not self.enable_mask_update:
            return
        with tensor.no_grad():
            for group in self.groups:
                self.update_mask(**group)

    @abc.abstractmethod
    def update_mask(self, module: nn.Module, tensor_name: str, **kwargs: Any) -> None:
        """Changes the mask of one tensor."""


def _masking(module: Any, name: str) -> Any:
    """The parametrization with the mask of a tensor; a new one where there is none."""
    parametrize = nn.utils.parametrize
    if parametrize.is_parametrized(module, name):
        for one in module.parametrizations[name]:
            if isinstance(one, FakeSparsity):
                return one
    made = FakeSparsity(tensor.ones(getattr(module, name).shape))
    parametrize.register_parametrization(module, name, made)
    return made
