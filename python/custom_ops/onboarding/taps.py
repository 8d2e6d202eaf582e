"""The five checkpoints of LlmModel and of a transformers model, read by hooks while they run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import torch
from torch import Tensor, nn

from .errors import OnboardingError, first_line, load
from .model import LlmModel
from .source import Source

#: Where the two models are compared, in the order a token meets them.
CHECKPOINTS = ("embedding", "first layer", "last layer", "final norm", "logits")


def first_tensor(value) -> Tensor:
    """Modules return a tensor, or a tuple that begins with it."""
    while isinstance(value, (tuple, list)):
        value = value[0]
    return value


def block_input(arguments: tuple, keywords: dict) -> Tensor:
    return arguments[0] if arguments else keywords["hidden_states"]


class Taps:
    """Copies of what modules get and give, by name, while the context is open; a module that is called again is overwritten."""

    def __init__(self):
        self.seen: dict[str, Tensor] = {}
        self._hooks = ExitStack()

    def output(self, name: str, module: nn.Module, pick: Callable = first_tensor) -> None:
        self._keep(module.register_forward_hook(lambda _, __, out: self._take(name, pick(out))))

    def input(self, name: str, module: nn.Module) -> None:
        self._keep(module.register_forward_pre_hook(lambda _, args, kwargs: self._take(name, block_input(args, kwargs)), with_kwargs=True))

    def _keep(self, handle) -> None:
        self._hooks.callback(handle.remove)

    def _take(self, name: str, tensor: Tensor) -> None:
        self.seen[name] = tensor.detach().clone()

    def __enter__(self) -> dict[str, Tensor]:
        return self.seen

    def __exit__(self, *_) -> None:
        self._hooks.close()


class Reference:
    """A model of transformers: its blocks and final norm, found where the checkpoint's names say they are, and its calls.

    model: what AutoModelForCausalLM gives; default: loaded from the source's folder, in eager attention, never running its code."""

    def __init__(self, source: Source, dtype: torch.dtype, model: nn.Module | None = None):
        self.source = source
        self.model = (model if model is not None else _load(source.checkpoint.folder, dtype)).eval()
        self.blocks = self._blocks()
        self.norm = self._module(source.paths.model["final_layernorm"])

    def _blocks(self) -> nn.ModuleList:
        """At the path of the checkpoint; or, where transformers moved it, of the same last name with embedding and norm beside it: towers
        of other modalities may have as many blocks."""
        count, path, paths = len(self.source.paths.layers), self.source.paths.model["blocks"], self.source.paths.model
        for name, module in self.model.named_modules():
            if not isinstance(module, nn.ModuleList) or len(module) != count or not name.endswith(path.rpartition(".")[2]):
                continue
            beside = (_beside(name, paths[key]) for key in ("embed", "final_layernorm"))
            if name == path or all(self.find(self.model, one) is not None for one in beside):
                self.prefix = name
                return module
        raise OnboardingError(f"the reference {type(self.model).__name__} has no list of {count} blocks called {path}")

    def _module(self, path: str) -> nn.Module:
        """At the path of the checkpoint; or, where transformers moved it, beside the blocks under the same last name."""
        beside = _beside(self.prefix, path)
        for name in (path, beside):
            found = self.find(self.model, name)
            if found is not None:
                return found
        raise OnboardingError(f"the reference {type(self.model).__name__} has neither {path} nor {beside}")

    @staticmethod
    def find(root: nn.Module, path: str) -> nn.Module | None:
        for step in path.split("."):
            root = getattr(root, step, None)
            if not isinstance(root, nn.Module):
                return None
        return root

    def child(self, block: int, path: str) -> nn.Module | None:
        """The part of a block whose tensors the checkpoint has at `path`."""
        prefix = f"{self.source.paths.model['blocks']}.{block}."
        return self.find(self.blocks[block], path.removeprefix(prefix))

    @torch.no_grad()
    def run(self, tokens: Tensor, cache=None) -> tuple[Tensor, object]:
        """(logits, cache)"""
        out = self.model(input_ids=tokens, use_cache=True, **({} if cache is None else {"cache": cache}))
        return out.logits, out.cache

    def checkpoints(self) -> Taps:
        return _checkpoints(self.blocks, self.norm)


def _beside(name: str, path: str) -> str:
    """The last step of `path` where `name` is."""
    return ".".join([*name.split(".")[:-1], path.rpartition(".")[2]])


def checkpoints(model: LlmModel) -> Taps:
    return _checkpoints(model.blocks, model.final_layernorm)


def _checkpoints(blocks, norm: nn.Module) -> Taps:
    taps = Taps()
    taps.input("embedding", blocks[0])
    taps.output("first layer", blocks[0])
    taps.output("last layer", blocks[-1])
    taps.output("final norm", norm)
    return taps


def _load(folder: Path, dtype: torch.dtype) -> nn.Module:
    transformers = load("transformers")
    bars = transformers.utils.logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    local = {"trust_remote_code": False, "local_files_only": True}
    try:
        kind = type(transformers.AutoConfig.from_pretrained(folder, **local))
        # Models of text and images or sound have no causal class of their own; their text part runs without these.
        classes = transformers.AutoModelForCausalLM, transformers.AutoModelForImageTextToText, transformers.AutoModelForMultimodalLM
        auto = next((auto for auto in classes if kind in auto._model_mapping.keys()), classes[0])
        return auto.from_pretrained(folder, dtype=dtype, attn_implementation="eager", use_safetensors=True, **local)
    except Exception as error:  # whatever its code makes of somebody else's files
        raise OnboardingError(f"{folder}: transformers {transformers.__version__} cannot load it, so there is no reference: "
                              f"{first_line(error)}\nOne that you load yourself can be it: docs/onboarding/verify.md") from error
    finally:
        if shown:
            bars.enable_progress_bar()
