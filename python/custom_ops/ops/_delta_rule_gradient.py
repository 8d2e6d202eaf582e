"""The gradient of the (gated, Kimi) delta rule, a chunk of tokens at a time by matrix products.

In a chunk of n tokens that starts with state S, with G = cumsum of g, D[i, j] = exp(G[i] - G[j]) for i >= j and 0 above:

    kk[i, j] = sum_d k[i] k[j] D[i, j] below the diagonal;   qk[i, j] = sum_d q[i] k[j] D[i, j]
    R  = beta * (v - (k * exp(G)) S);   (1 + beta * kk) delta = R
    out = (q * exp(G)) S + qk delta;    S' = exp(G[n]) * S + (k * exp(G[n] - G))^T delta

No exponent is positive, so nothing overflows. G is [n, 1] where a head decays as a whole, [n, dk] where its channels do so apart.
"""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 64          # tokens between two states that the forward pass keeps
CHANNEL_CHUNK = 16  # tokens of a chunk whose D has dk values per pair


class _Chunk:
    """q, k [..., n, dk], v [..., n, dv], g [..., n, 1 or dk], beta [..., n, 1] and the state [..., dk, dv] before them."""

    def __init__(self, q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor):
        self.q, self.k, self.v, self.beta, self.state = q, k, v, beta, state
        n = k.shape[-2]
        pairs = torch.ones(n, n, dtype=torch.bool, device=k.device)
        here, above = pairs.triu().unsqueeze(-1), pairs.triu(1).unsqueeze(-1)
        # G[i] - G[j] as a sum of its own: the difference of two long sums has lost its digits where the decay is strong.
        steps = g.unsqueeze(-2).expand(*g.shape[:-1], n, g.shape[-1]).masked_fill(here, 0)
        self.between = steps.cumsum(-3).masked_fill(above, -torch.inf).exp()  # D
        self.into, self.out = g.cumsum(-2).exp(), self.between[..., -1, :, :]
        self.whole = self.into[..., -1:, :]
        self.kk, self.qk = self._pairs(k).tril(-1), self._pairs(q)
        self.residual = v - (k * self.into) @ state
        self.delta = torch.linalg.solve_triangular(beta * self.kk, beta * self.residual, upper=False, unitriangular=True)

    def next_state(self) -> Tensor:
        return self.whole.mT * self.state + (self.k * self.out).mT @ self.delta

    def gradient(self, dout: Tensor, dnext: Tensor) -> tuple[Tensor, ...]:
        """(dq, dk, dv, dg, dbeta, dstate) of dout [..., n, dv] and the gradient of the next state."""
        q, k, state, delta = self.q, self.k, self.state, self.delta
        ddelta = self.qk.mT @ dout + (k * self.out) @ dnext
        dR = torch.linalg.solve_triangular((self.beta * self.kk).mT, ddelta, upper=True, unitriangular=True)
        dsystem = -(dR @ delta.mT).tril(-1)  # of beta * kk
        dbeta = (dR * self.residual).sum(-1, keepdim=True) + (dsystem * self.kk).sum(-1, keepdim=True)
        dv, dkk, dqk = self.beta * dR, self.beta * dsystem, dout @ delta.mT

        # By the place of q and k in their products: G[i] counts where the token reads, -G[j] where it is read. What a token reads of itself
        # and what the last one leaves do not decay: kept apart, they do not have to cancel in the gradient of G.
        own, dqk = dqk.diagonal(dim1=-2, dim2=-1).unsqueeze(-1), dqk.tril(-1)
        dk_last = (delta @ dnext.mT) * self.out
        dk_left = dk_last.clone()
        dk_left[..., -1, :] = 0
        dq_reads = self._rows(dqk) + (dout @ state.mT) * self.into
        dk_reads = self._rows(dkk) - (dv @ state.mT) * self.into
        dk_read = self._columns(dqk, q) + self._columns(dkk, k)
        dtotal = q * dq_reads + k * (dk_reads - dk_read - dk_left)
        dtotal[..., -1, :] += (k * dk_left).sum(-2) + self.whole.squeeze(-2) * (state * dnext).sum(-1)
        if self.into.shape[-1] == 1:
            dtotal = dtotal.sum(-1, keepdim=True)
        dg = dtotal.flip(-2).cumsum(-2).flip(-2)
        dstate = (q * self.into).mT @ dout - (k * self.into).mT @ dv + self.whole.mT * dnext
        return dq_reads + own * k, dk_reads + dk_read + dk_last + own * q, dv, dg, dbeta, dstate

    def _pairs(self, x: Tensor) -> Tensor:
        """[..., n, n]: sum_d x[i] k[j] D[i, j]"""
        if self.between.shape[-1] == 1:
            return (x @ self.k.mT) * self.between.squeeze(-1)
        return (x.unsqueeze(-2) * self.k.unsqueeze(-3) * self.between).sum(-1)

    def _rows(self, c: Tensor) -> Tensor:
        """[..., n, dk]: sum_j c[i, j] k[j] D[i, j]"""
        if self.between.shape[-1] == 1:
            return (c * self.between.squeeze(-1)) @ self.k
        return (c.unsqueeze(-1) * self.k.unsqueeze(-3) * self.between).sum(-2)

    def _columns(self, c: Tensor, x: Tensor) -> Tensor:
        """[..., n, dk]: sum_i c[i, j] x[i] D[i, j], of index j"""
        if self.between.shape[-1] == 1:
            return (c * self.between.squeeze(-1)).mT @ x
        return (c.unsqueeze(-1) * x.unsqueeze(-2) * self.between).sum(-3)


def delta_rule_gradient(dout: Tensor, q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor) -> tuple[Tensor, ...]:
    """(dq, dk, dv, dg, dbeta) of out = the delta rule from `state` [B, H, dk, dv], which counts as a constant.

    q, k [B, L, H, dk], v [B, L, H, dv], g [B, L, H, 1 or dk], beta [B, L, H, 1]; gradients have their shapes.
    States are kept every BLOCK tokens, those between are computed again.
    """
    inputs = [tensor.transpose(1, 2) for tensor in (q, k, v, g, beta)]  # [B, H, L, ...]
    dout = dout.transpose(1, 2)
    length = dout.shape[2]
    chunk = BLOCK if g.shape[-1] == 1 else CHANNEL_CHUNK
    gradients = [torch.empty_like(tensor) for tensor in inputs]
    kept = [state]
    for first in range(0, length - BLOCK, BLOCK):
        kept.append(_chunks(inputs, first, BLOCK, chunk, kept[-1])[-1].next_state())
    dstate = torch.zeros_like(state)
    for first in reversed(range(0, length, BLOCK)):
        chunks = _chunks(inputs, first, min(BLOCK, length - first), chunk, kept.pop())
        end = min(first + BLOCK, length)
        for part in reversed(chunks):
            begin = end - part.q.shape[-2]
            *grads, dstate = part.gradient(dout[:, :, begin:end], dstate)
            for whole, gradient in zip(gradients, grads):
                whole[:, :, begin:end] = gradient
            end = begin
    return tuple(gradient.transpose(1, 2) for gradient in gradients)


def _chunks(inputs: list[Tensor], first: int, tokens: int, size: int, state: Tensor) -> list[_Chunk]:
    chunks = []
    for begin in range(first, first + tokens, size):
        end = min(begin + size, first + tokens)
        chunks.append(_Chunk(*(tensor[:, :, begin:end] for tensor in inputs), state))
        if end < first + tokens:
            state = chunks[-1].next_state()
    return chunks
