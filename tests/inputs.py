"""Inputs of the hyper-connection operators: the data laws that show the published kernels' defects (facts on mHC, sections 5 and 10)."""

import ctypes
import mmap

import torch

SIMULATED = ("ascend910b", "ascend910_93", "ascend950")
DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}


def uniform(rng, *shape, low, high):
    return torch.rand(shape, generator=rng) * (high - low) + low


def spread(rng, tokens):
    """One factor per token, 1e-3 to 1e3: shows rows that are mixed up."""
    return 10 ** uniform(rng, *tokens, low=-3, high=3)


def x_of(law: str, rng: torch.Generator, tokens: tuple, n: int, d: int, dtype: torch.dtype) -> torch.Tensor:
    shape = (*tokens, n, d)
    if law == "zeros":
        x = torch.zeros(shape)
    elif law == "constant":
        x = torch.full(shape, 0.75)
    elif law == "streams":  # x[t, i, :] = i + 1: shows streams weighted by another stream's weight
        x = torch.arange(1.0, n + 1).reshape(n, 1).expand(shape)
    elif law == "rows":
        x = uniform(rng, *shape, low=-1, high=1) * spread(rng, tokens)[..., None, None]
    elif law == "subnormal":  # of bfloat16 and float32; float16 rounds them to zero
        x = uniform(rng, *shape, low=-1, high=1) * 1e-39
    elif law == "normal":
        x = torch.randn(shape, generator=rng)
    else:
        x = uniform(rng, *shape, low=-2, high=2)
    return x.to(dtype).contiguous()


def sinkhorn_inputs(law: str, rng: torch.Generator, tokens: tuple, n: int, d: int, dtype: torch.dtype,
                    rsqrt_keepdim: bool = True) -> dict[str, torch.Tensor]:
    mix = (2 + n) * n
    mixes = uniform(rng, *tokens, mix, low=-2, high=2)
    rsqrt = uniform(rng, *tokens, low=0.1, high=2)
    scale = uniform(rng, 3, low=-2, high=2)
    base = uniform(rng, mix, low=-2, high=2)
    if law == "rows":  # mixes are normalised by rsqrt, as in the model
        factors = spread(rng, tokens)
        mixes, rsqrt = mixes * factors[..., None], rsqrt / factors
    elif law == "saturated":  # logits of +-50
        mixes, rsqrt = mixes.sign() * 50, torch.ones_like(rsqrt)
        scale, base = torch.ones(3), torch.zeros(mix)
    elif law == "closed":  # pre -> hc_eps, post -> 0
        base[: 2 * n] = -40
    elif law == "normal":
        mixes, base = torch.randn(*tokens, mix, generator=rng), torch.randn(mix, generator=rng)
    x = x_of(law, rng, tokens, n, d, dtype)
    return {"mixes": mixes, "rsqrt": rsqrt[..., None] if rsqrt_keepdim else rsqrt, "hc_scale": scale, "hc_base": base, "x": x}


def pre_inputs(law: str, rng: torch.Generator, tokens: tuple, n: int, d: int, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    mix, elements = (2 + n) * n, n * d
    scale, base = uniform(rng, 3, low=-2, high=2), uniform(rng, mix, low=-2, high=2)
    fn = torch.randn(mix, elements, generator=rng) / elements**0.5  # mixes of order 1, as the rows of x are normalised
    if law == "published":  # the published test
        x, fn = uniform(rng, *tokens, n, d, low=0, high=2).to(dtype), uniform(rng, mix, elements, low=0, high=1 / elements)
        scale, base = uniform(rng, 3, low=0, high=2), uniform(rng, mix, low=0, high=2)
    elif law == "exact":  # small integers: every sum of the projection is exact in float32, in any order
        x = torch.randint(-4, 5, (*tokens, n, d), generator=rng).to(dtype)
        fn = torch.randint(-8, 9, (mix, elements), generator=rng) / 64
    else:
        x = x_of(law, rng, tokens, n, d, dtype)
    if law == "saturated":  # logits of +-50
        fn, scale, base = torch.zeros_like(fn), torch.ones(3), (torch.rand(mix, generator=rng) - 0.5).sign() * 50
    elif law == "closed":  # pre -> hc_eps, post -> 0
        base[: 2 * n] = -40
    return {"x": x, "hc_fn": fn, "hc_scale": scale, "hc_base": base}


def post_inputs(law: str, rng: torch.Generator, tokens: tuple, n: int, d: int, dtype: torch.dtype,
                weights: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    # Far from doubly stochastic, so that a transposed comb shows.
    post, comb = uniform(rng, *tokens, n, low=0, high=2), uniform(rng, *tokens, n, n, low=-1, high=1)
    if law == "ten":  # the published test
        x, residual, post, comb = (uniform(rng, *tokens, *shape, low=-10, high=10) for shape in ((d,), (n, d), (n,), (n, n)))
    elif law == "streams":  # residual[t, i, :] = i + 1, x = -1: shows a stream, or a part of one, with another one's weight
        x, residual = torch.full((*tokens, d), -1.0), torch.arange(1.0, n + 1).reshape(n, 1).expand(*tokens, n, d)
    elif law == "cancel":  # equal streams, and comb's columns sum to 0
        x, residual = torch.zeros(*tokens, d), uniform(rng, *tokens, 1, d, low=-100, high=100).expand(*tokens, n, d)
        comb = comb - comb.mean(-2, keepdim=True)
    else:
        both = x_of(law, rng, tokens, n + 1, d, torch.float32)
        x, residual = both[..., 0, :], both[..., 1:, :]
    inputs = {"x": x.to(dtype), "residual": residual.to(dtype), "post": post.to(weights), "comb": comb.to(weights)}
    return {name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in inputs.items()}


def before_guard(tensor: torch.Tensor) -> torch.Tensor:
    """A copy that ends where an unreadable page begins."""
    page = mmap.PAGESIZE
    data = tensor.contiguous().view(torch.uint8).flatten()
    pages = -(-data.numel() // page) + 1
    memory = mmap.mmap(-1, pages * page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + (pages - 1) * page), page, 0) == 0
    guarded = torch.frombuffer(memory, dtype=torch.uint8)[(pages - 1) * page - data.numel() : (pages - 1) * page]
    return guarded.copy_(data).view(tensor.dtype).view(tensor.shape)


def on_threads(call, counts=(1, 2, 3, 7)) -> list:
    """What the call gives on so many threads of PyTorch each."""
    before, results = torch.get_num_threads(), []
    try:
        for count in counts:
            torch.set_num_threads(count)
            results.append(call())
    finally:
        torch.set_num_threads(before)
    return results


def refusal(call) -> str:
    """The message of the RuntimeError or ValueError that `call` must raise."""
    try:
        call()
    except (RuntimeError, ValueError) as error:
        return str(error)
    raise AssertionError("the call was accepted")
