"""A site of a model with hyper-connections, and its head."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .. import functional
from .._fake import MAX_STREAMS, MOST, check_finite_non_negative, check_range

#: Standard deviation of fn at the start: initializer_range of the published configurations.
INITIALIZER_RANGE = 0.02


class HyperConnection(nn.Module):
    """The parameters of one mHC site, or of the head, and what is computed with them.

    A site stands around a block (attention, feed-forward): `pre` merges the n residual streams into the block's input, `post` puts its
    output back into the streams. The head merges the streams into one after the last layer. Streams are [T, n, d] or [b, s, n, d].

    Args of both constructors:
        hidden_size: d.
        hc_mult:     n, the number of residual streams, 1 to 16.
        norm_eps, hc_eps: rms_norm_eps and hc_eps of the model's configuration.
        sinkhorn_iters:   of a site; hc_sinkhorn_iters of the configuration.
    Raises: RuntimeError naming the argument that does not fit.
    Parameters, float32 (used as such also when the model was converted to another type):
        fn [(2 + n) * n, n * d], scale [3], base [(2 + n) * n] of a site; fn [n, n * d], scale [1], base [n] of the head.

    Example:
        >>> import torch, custom_ops
        >>> from custom_ops.nn import HyperConnection
        >>> site, head = HyperConnection.for_site(64), HyperConnection.for_head(64)
        >>> block = torch.nn.Linear(64, 64)
        >>> streams = torch.randn(7, 1, 64).expand(7, 4, 64)   # an embedding, once per stream
        >>> streams = site(streams, block)                     # site.pre, the block, site.post
        >>> head(streams).shape
        torch.Size([7, 64])
    """

    def __init__(self, hidden_size: int, hc_mult: int, *, sinkhorn_iters: int | None, norm_eps: float, hc_eps: float, device=None):
        name = type(self).__name__
        check_range(name, "hidden_size", hidden_size, 1, MOST)
        check_range(name, "hc_mult", hc_mult, 1, MAX_STREAMS)
        check_finite_non_negative(name, "norm_eps", norm_eps)
        check_finite_non_negative(name, "hc_eps", hc_eps)
        rows, groups = (hc_mult, 1) if sinkhorn_iters is None else ((2 + hc_mult) * hc_mult, 3)
        super().__init__()
        self.hidden_size, self.hc_mult = hidden_size, hc_mult
        self.sinkhorn_iters, self.norm_eps, self.hc_eps = sinkhorn_iters, norm_eps, hc_eps
        self.fn = nn.Parameter(torch.empty(rows, hc_mult * hidden_size, dtype=torch.float32, device=device))
        self.scale = nn.Parameter(torch.empty(groups, dtype=torch.float32, device=device))
        self.base = nn.Parameter(torch.empty(rows, dtype=torch.float32, device=device))
        self.reset_parameters()

    @classmethod
    def for_site(cls, hidden_size: int, hc_mult: int = 4, *, sinkhorn_iters: int = 20, norm_eps: float = 1e-6, hc_eps: float = 1e-6,
                 device=None) -> HyperConnection:
        check_range(cls.__name__, "sinkhorn_iters", sinkhorn_iters, 1, MOST)
        return cls(hidden_size, hc_mult, sinkhorn_iters=sinkhorn_iters, norm_eps=norm_eps, hc_eps=hc_eps, device=device)

    @classmethod
    def for_head(cls, hidden_size: int, hc_mult: int = 4, *, norm_eps: float = 1e-6, hc_eps: float = 1e-6, device=None) -> HyperConnection:
        return cls(hidden_size, hc_mult, sinkhorn_iters=None, norm_eps=norm_eps, hc_eps=hc_eps, device=device)

    @property
    def is_head(self) -> bool:
        return self.sinkhorn_iters is None

    def reset_parameters(self) -> None:
        """fn normal with standard deviation 0.02, scale 1, base 0: weights near 1/2 (pre), 1 (post) and 1/n (comb)."""
        nn.init.normal_(self.fn, std=INITIALIZER_RANGE)
        nn.init.ones_(self.scale)
        nn.init.zeros_(self.base)

    def pre(self, streams: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(the block's input [..., d], post [..., n], comb [..., n, n]): see functional.hc_pre."""
        self._check_role(False, "pre")
        return functional.hc_pre(streams, *self._parameters_float32(), hc_mult=self.hc_mult, hc_sinkhorn_iters=self.sinkhorn_iters,
                                 norm_eps=self.norm_eps, hc_eps=self.hc_eps)

    def post(self, x: Tensor, streams: Tensor, post: Tensor, comb: Tensor) -> Tensor:
        """The streams after the block gave x [..., d]: see functional.hc_post. Under torch.autocast x may have another floating type than
        the streams, and is converted to theirs."""
        self._check_role(False, "post")
        if torch.is_autocast_enabled(streams.device.type):
            x = x.to(streams.dtype)
        return functional.hc_post(x, streams, post, comb)

    def head(self, streams: Tensor) -> Tensor:
        """[..., d]: see functional.hc_head."""
        self._check_role(True, "head")
        return functional.hc_head(streams, *self._parameters_float32(), norm_eps=self.norm_eps, hc_eps=self.hc_eps)

    def forward(self, streams: Tensor, block: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """A site: the streams after `block`. The head, without a block: one stream."""
        if self.is_head != (block is None):
            raise RuntimeError("HyperConnection: the head is called with the streams alone" if self.is_head else
                               "HyperConnection: a site is called with the streams and the block it stands around")
        if self.is_head:
            return self.head(streams)
        y, post, comb = self.pre(streams)
        return self.post(block(y), streams, post, comb)

    def extra_repr(self) -> str:
        kind = "head" if self.is_head else f"sinkhorn_iters={self.sinkhorn_iters}"
        return f"hidden_size={self.hidden_size}, hc_mult={self.hc_mult}, {kind}, norm_eps={self.norm_eps:g}, hc_eps={self.hc_eps:g}"

    def _parameters_float32(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.fn.float(), self.scale.float(), self.base.float()

    def _check_role(self, head: bool, method: str) -> None:
        if self.is_head != head:
            raise RuntimeError(f"HyperConnection.{method}: this one is {'the head' if self.is_head else 'a site'}, made by "
                               f"{'for_head' if self.is_head else 'for_site'}")
