"""assert_matches: one comparison with one table of bounds for every operator and backend."""

from dataclasses import dataclass

import numpy as np
import torch

import custom_ops
from custom_ops import reference
from custom_ops.reference import round_to, ulps
from custom_ops.reference import to_float64 as to_numpy

F32 = 2.0**-24  # unit roundoff of float32


@dataclass(frozen=True)
class Tolerance:
    rtol: float
    atol: float
    #: Half-width, relative to the sum of the magnitudes that were added, inside which float32 arithmetic may fall on the other
    #: side of a rounding tie. 0: plain tolerance only.
    tie: float = 0.0


#: By dtype of the output.
TOLERANCE = {
    # float32 arithmetic of at most 41 dependent steps on values of order 1.
    torch.float32: Tolerance(1e-5, 1e-5),
    # float32 inside, rounded once. 64 roundoffs cover n = 16 products and sums and the error of the weights (exp, division).
    torch.bfloat16: Tolerance(1e-4, 1e-4, tie=64 * F32),
    torch.float16: Tolerance(1e-4, 1e-4, tie=64 * F32),
}


def assert_matches(name: str, got: torch.Tensor, oracle, tolerance: Tolerance | None = None, *, magnitude=None, where: str = ""):
    """`got` equals the float64 `oracle` rounded to its dtype: shape, then places of nan and +-inf, then values.

    magnitude: float64, what was added up in magnitude to give each element (default |oracle|): cancellation makes an
        absolute error of that size legitimate.
    """
    tolerance = tolerance or TOLERANCE[got.dtype]
    exact = np.asarray(oracle, np.float64)
    label = f"{name} {list(got.shape)} {str(got.dtype).removeprefix('torch.')}{f' ({where})' if where else ''}"
    assert tuple(got.shape) == exact.shape, f"{label}: expected shape {list(exact.shape)}"
    want, have = round_to(exact, got.dtype), to_numpy(got)
    for kind, test in (("nan", np.isnan), ("+inf", np.isposinf), ("-inf", np.isneginf)):
        differ = test(want) != test(have)
        assert not differ.any(), (f"{label}: {kind} at different places, first {_first(differ)}: got {have[differ][0]}, "
                                  f"expected {want[differ][0]}")
    scale = np.abs(exact) if magnitude is None else np.maximum(np.abs(exact), magnitude)
    with np.errstate(all="ignore"):
        error = np.abs(have - want)
        bad = (error > tolerance.atol + tolerance.rtol * np.abs(want)) & np.isfinite(want)
        if tolerance.tie:
            boundary = (have + want) / 2
            at_tie = (ulps(have, want, got.dtype) == 1) & (np.abs(exact - boundary) <= tolerance.tie * scale)
            # Far below the magnitudes that were added, one ulp is less than float32's own error.
            bad &= ~at_tie & (error > tolerance.tie * scale)
        else:
            bad &= error > tolerance.rtol * scale
    if bad.any():
        worst = np.unravel_index(np.argmax(np.where(bad, error, -1)), bad.shape)
        steps = "" if not tolerance.tie else f", {ulps(have[worst][None], want[worst][None], got.dtype)[0]} ulp and not a tie"
        raise AssertionError(
            f"{label}: {bad.sum()} of {bad.size} elements differ ({100 * bad.mean():.3g} %)\n"
            f"  worst at {tuple(map(int, worst))}: got {have[worst]:.9g}, expected {want[worst]:.9g}{steps} (float64 {exact[worst]:.9g})")


def _first(mask: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(mask)[0])


def assert_sinkhorn_matches(got, inputs, n, iters, eps, where=""):
    """All three results of npu_hc_pre_sinkhorn for these inputs."""
    arrays = {name: to_numpy(tensor) for name, tensor in inputs.items()}
    with np.errstate(all="ignore"):
        y, post, comb = reference.hc_pre_sinkhorn(**arrays, hc_mult=n, hc_sinkhorn_iters=iters, hc_eps=eps)
        x = arrays.pop("x")
        magnitude = (reference.pre_weights(**arrays, hc_mult=n, hc_eps=eps)[..., None] * np.abs(x)).sum(-2)
    assert_matches("npu_hc_pre_sinkhorn.post", got[1], post, where=where)
    assert_matches("npu_hc_pre_sinkhorn.comb_frag", got[2], comb, where=where)
    assert_matches("npu_hc_pre_sinkhorn.y", got[0], y, magnitude=magnitude, where=where)


def assert_pre_matches(got, inputs, n, iters=20, norm_eps=1e-6, hc_eps=1e-6, where=""):
    """All three results of npu_hc_pre for these inputs."""
    arrays = {name: to_numpy(tensor) for name, tensor in inputs.items()}
    x, fn = arrays["x"], arrays.pop("hc_fn")
    with np.errstate(all="ignore"):
        rest = {**arrays, "mixes": reference.projection(x, fn), "rsqrt": reference.hc_pre_inv_rms(x, norm_eps)}
        y, post, comb = reference.hc_pre_sinkhorn(**rest, hc_mult=n, hc_sinkhorn_iters=iters, hc_eps=hc_eps)
        rest.pop("x")
        magnitude = (reference.pre_weights(**rest, hc_mult=n, hc_eps=hc_eps)[..., None] * np.abs(x)).sum(-2)
    assert_matches("npu_hc_pre.post", got[1], post, where=where)
    assert_matches("npu_hc_pre.comb_frag", got[2], comb, where=where)
    assert_matches("npu_hc_pre.y", got[0], y, magnitude=magnitude, where=where)


def assert_pre_tokens_are_independent(inputs, splits, rng):
    """Reordered or split, the tokens of hc_pre give the same bits."""
    def rows(index):
        return custom_ops.hc_pre(**{**inputs, "x": inputs["x"][index]})

    whole = rows(slice(None))
    order = torch.randperm(len(inputs["x"]), generator=rng)
    for one, other in zip(rows(order), whole):
        assert torch.equal(one, other[order])
    for split in splits:
        for first, rest, other in zip(rows(slice(0, split)), rows(slice(split, None)), whole):
            assert torch.equal(torch.cat([first, rest]), other)


def assert_post_matches(got, inputs, where=""):
    """The result of npu_hc_post for these inputs. Each of the n + 1 products and n sums rounds once to float32, and the 950 flushes what
    is below float32's smallest normal number."""
    arrays = {name: to_numpy(tensor) for name, tensor in inputs.items()}
    with np.errstate(all="ignore"):
        want = reference.hc_post(**arrays)
        magnitude = reference.hc_post(**{name: np.abs(array) for name, array in arrays.items()})
    roundoff = 2 * (inputs["residual"].shape[-2] + 1) * F32
    narrow = got.dtype != torch.float32
    tolerance = Tolerance(0 if narrow else roundoff, 1e-36, tie=roundoff if narrow else 0)
    assert_matches("npu_hc_post.y", got, want, tolerance, magnitude=magnitude, where=where)
