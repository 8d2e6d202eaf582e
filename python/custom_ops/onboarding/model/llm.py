"""LlmModel: every architecture of the maps in plain PyTorch, with the linear attention layers on this package's operator."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...nn import HyperConnection
from ...nn.few_tokens import Linear
from ..architecture import Architecture
from .call import Call
from .decoder import Decoder
from .kv import PIECE
from .layer_inputs import LayerInputs
from .memory import Memory
from .norms import Norm
from .rotary import Rotary
from .step import is_step


class LlmModel(nn.Module):
    """embed, blocks, final_layernorm, lm; with hyper-connections also head_hc, which merges the streams before final_layernorm; with inputs
    of the layers layer_inputs.

    Args:
        architecture: what to build. See architecture.py; build.build_architecture reads it from a checkpoint.
        device, dtype: of the parameters. Norms, A_log and dt_bias, and the parameters of hyper-connections are float32 always. A meta
                       device is fine: weights.load fills the model tensor by tensor.
    Weights are not initialised for use; load them.

    Example:
        >>> logits = model(tokens)                                        # doctest: +SKIP
        >>> memory = model.new_memory()
        >>> logits = model(prompt, memory); next = model(token, memory)
    """

    def __init__(self, architecture: Architecture, device=None, dtype=torch.float32):
        super().__init__()
        a = self.architecture = architecture
        options = {"device": device, "dtype": dtype}
        self.embed = nn.Embedding(a.vocab, a.hidden, **options)
        self.layer_inputs = None if a.layer_inputs is None else LayerInputs(a.hidden, len(a.layers), a.layer_inputs, **options)
        self.blocks = nn.ModuleList(Decoder(a.hidden, i, spec, a.streams, a.layer_inputs, **options) for i, spec in enumerate(a.layers))
        self.head_hc = None
        if a.streams is not None:
            self.head_hc = HyperConnection.for_head(a.hidden, a.streams.hc_mult, norm_eps=a.streams.norm_eps, hc_eps=a.streams.hc_eps,
                                                    device=device)
        self.final_layernorm = Norm(a.hidden, a.norm, device)
        self.lm = Linear(a.hidden, a.vocab, bias=a.lm_bias, **options)
        self._share_rotaries()
        self._share_keys()
        self.tie()

    def tie(self) -> None:
        """The head's weight is the embedding's where they are tied; again after what makes new parameters (to_empty)."""
        if self.architecture.tied:
            self.lm.weight = self.embed.weight

    def _share_keys(self) -> None:
        """Layers whose keys and values later ones use are told so."""
        layers = self.architecture.layers
        for index, layer in enumerate(layers):
            own = layer.mixer
            if not layer.is_attention or own.shares is None:
                continue
            theirs = layers[own.shares] if 0 <= own.shares < index else layer
            if not theirs.keeps_keys or any(getattr(own, name) != getattr(theirs.mixer, name) for name in ("span", "kv_heads", "head_dim")):
                raise RuntimeError(f"block {index} shares keys and values of block {own.shares}, which must be an earlier block of "
                                   "attention with its own, of the same span, kv_heads and head_dim")
            self.blocks[own.shares].self_attn.is_shared = True

    def _share_rotaries(self) -> None:
        """Layers with equal specifications share the tables."""
        rotaries: list[Rotary] = []
        for block in self.blocks:
            spec = getattr(block.spec.mixer, "rotary", None)
            if spec is None:
                continue
            found = next((rotary for rotary in rotaries if rotary.spec == spec), None)
            if found is None:
                found = Rotary(spec)
                rotaries.append(found)
            block.self_attn.rotary = found

    @property
    def device(self) -> torch.device:
        return self.embed.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.embed.weight.dtype

    def new_memory(self, batch: int = 1, capacity: int = 256) -> Memory:
        """An empty memory for `batch` sequences; capacity: tokens it has room for before it first grows."""
        return Memory(self.architecture, batch, capacity=capacity, dtype=self.dtype, device=self.device)

    def forward(self, tokens: Tensor, memory: Memory | None = None, attention_mask: Tensor | None = None, *,
                last_only: bool = False) -> Tensor:
        """Logits [B, L, vocab], dtype of the model; with last_only [B, 1, vocab].

        Args:
            tokens:         [B, L] int32 | int64.
            memory:         continued and written; without one the sequences start here and nothing is kept.
            attention_mask: [B, L], 0 at padding, which stands before the first token of a row and in its first call.
        Raises: RuntimeError where tokens, memory or mask do not fit; the memory is then unchanged.
        """
        mask = self._check(tokens, memory, attention_mask)
        pieces = self._pieces(tokens, memory)
        if len(pieces) > 1 and mask is None:
            logits = [self._run(piece, memory, None, last_only) for piece in pieces]
            return logits[-1] if last_only else torch.cat(logits, 1)
        return self._run(tokens, memory, mask, last_only)

    def hidden_states(self, tokens: Tensor, memory: Memory | None = None, attention_mask: Tensor | None = None) -> Tensor:
        """What final_layernorm gives, [B, L, hidden]; arguments as of forward."""
        mask = self._check(tokens, memory, attention_mask)
        return torch.cat([self._hidden(piece, memory, mask) for piece in self._pieces(tokens, memory)], 1)

    def _run(self, tokens: Tensor, memory: Memory | None, mask: Tensor | None, last_only: bool) -> Tensor:
        x = self._hidden(tokens, memory, mask)
        return self.head(x[:, -1:] if last_only else x)

    def head(self, x: Tensor) -> Tensor:
        """Logits of what final_layernorm gave."""
        a, logits = self.architecture, self.lm(x)
        if a.logit_scale != 1:
            logits = logits * a.logit_scale
        return logits if a.softcap is None else torch.tanh(logits / a.softcap) * a.softcap

    def embedded(self, tokens: Tensor) -> Tensor:
        """[B, L, hidden], scaled."""
        x, scale = self.embed(tokens), self.architecture.embed_scale
        return x if scale == 1 else x * torch.tensor(scale, dtype=x.dtype)

    def begin(self, tokens: Tensor, call: Call) -> Tensor:
        """What the first block gets, [B, L, hidden]; the call gets what every block has beside it."""
        x = self.embedded(tokens)
        if self.layer_inputs is not None:
            call.layer_inputs = self.layer_inputs(tokens, x)
        return x

    def _hidden(self, tokens: Tensor, memory: Memory | None, mask: Tensor | None) -> Tensor:
        batch, length = tokens.shape
        call = Call(batch, length, memory, self._starts(batch, memory, mask), mask, tokens.device, self.dtype)
        x = self.begin(tokens, call)
        call.is_step = is_step(call, x)
        if self.head_hc is not None:
            x = x.unsqueeze(2).expand(-1, -1, self.architecture.streams.hc_mult, -1).contiguous()
        for block in self.blocks:
            x = block(x, call)
        call.finish()
        return self.final_layernorm(x if self.head_hc is None else self.head_hc(x))

    def _starts(self, batch: int, memory: Memory | None, mask: Tensor | None) -> list[int]:
        if mask is not None:
            return (~mask).sum(1).tolist()
        return memory.starts if memory is not None else [0] * batch

    def _pieces(self, tokens: Tensor, memory: Memory | None) -> tuple[Tensor, ...]:
        """Rows of unequal lengths take few tokens at a time where a window limits what is kept."""
        unequal = memory is not None and len(set(memory.lengths)) > 1
        return tokens.split(PIECE, 1) if unequal and tokens.shape[1] > PIECE else (tokens,)

    def _check(self, tokens: Tensor, memory: Memory | None, attention_mask: Tensor | None) -> Tensor | None:
        """The mask as bool, None where nothing is padding."""
        if tokens.dim() != 2 or tokens.shape[1] < 1 or tokens.dtype not in (torch.int32, torch.int64):
            raise RuntimeError(f"LlmModel: tokens must be [B, L] int32 or int64 with L >= 1, got {list(tokens.shape)} {tokens.dtype}")
        if memory is not None and memory.batch != tokens.shape[0]:
            raise RuntimeError(f"LlmModel: the memory has {memory.batch} rows, tokens are {list(tokens.shape)}")
        if memory is not None and not memory.fits(self.architecture):
            raise RuntimeError("LlmModel: the memory is another model's; model.new_memory() makes one of this")
        low, high = tokens.min().item(), tokens.max().item()
        if low < 0 or high >= self.architecture.vocab:
            raise RuntimeError(f"LlmModel: tokens must be 0 to {self.architecture.vocab - 1}, got {low} to {high}")
        if attention_mask is None:
            return None
        if attention_mask.shape != tokens.shape:
            raise RuntimeError(f"LlmModel: attention_mask must be like tokens {list(tokens.shape)}, got {list(attention_mask.shape)}")
        mask = attention_mask != 0
        if not (mask.cummax(1).values == mask).all() or not mask[:, -1].all():
            raise RuntimeError("LlmModel: padding must stand before the first token of a row (pad on the left)")
        if mask.all():
            return None
        if memory is not None and any(memory.lengths):
            raise RuntimeError("LlmModel: padding comes with the first tokens of a sequence, the memory has some already")
        return mask

    def extra_repr(self) -> str:
        return f"{self.architecture.model_type}, memory: {self.architecture.memory_kind()}"
