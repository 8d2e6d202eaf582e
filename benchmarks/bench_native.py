"""Native CPU kernels next to PyTorch eager, torch.compile and the memory bandwidth of this machine, all measured in the same rounds.

Bytes are counted as each input read once and each output written once. A ratio is the median over rounds of the ratio within a
round: other work on the machine slows both sides of it.

Targets: hc_pre_sinkhorn at least 20 times eager, twice torch.compile and 80 % of read bandwidth; hc_pre_inv_rms 80 % of read bandwidth;
hc_post twice torch.compile and 80 % of copy bandwidth (it writes nearly as much as it reads); hc_pre twice torch.compile (its projection is
arithmetic, 2 n (n + 2) operations per element of x); at most 10 us per call at T = 1, d = 16.
"""

import ctypes
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

import custom_ops

STREAMS, HIDDEN = 4, 4096
TOKENS = (1024, 8192)
ROUNDS = 9

PROBE = """
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
typedef uint64_t Line __attribute__((vector_size(64)));
constexpr size_t kBlock = 1 << 14;  // lines: 1 MiB

static uint64_t ReadBlock(const Line* from) {  // four streams, as many loads in flight as the core allows
    Line sum[4] = {};
    for (size_t i = 0; i < kBlock / 4; ++i)
        for (int stream = 0; stream < 4; ++stream) sum[stream] += from[stream * (kBlock / 4) + i];
    const Line all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    return all[0] + all[1] + all[2] + all[3] + all[4] + all[5] + all[6] + all[7];
}

static void CopyBlock(const Line* from, Line* to) {  // past the caches: nothing is read that is only written
    for (size_t i = 0; i < kBlock; ++i) {
#if defined(__AVX__)
        const __m256i* source = reinterpret_cast<const __m256i*>(from + i);
        for (int half = 0; half < 2; ++half) _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i) + half, _mm256_loadu_si256(source + half));
#else
        to[i] = from[i];
#endif
    }
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

// `to` null: reads only.
extern "C" uint64_t Stream(const Line* from, Line* to, size_t blocks, int threads) {
    std::atomic<size_t> next{0};
    std::atomic<uint64_t> sum{0};
    const auto work = [&] {
        for (size_t block; (block = next++) < blocks;)
            if (to) CopyBlock(from + block * kBlock, to + block * kBlock);
            else sum += ReadBlock(from + block * kBlock);
    };
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(work);
    work();
    for (std::thread& other : others) other.join();
    return sum;
}
"""


def bandwidth_probe():
    """A function that reads a tensor once, or copies it into another, on as many threads as torch uses. Blocks go to whoever is free, as
    in the kernels."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "probe.cpp"), Path(folder, "probe.so")
        source.write_text(PROBE)
        compiler = os.environ.get("CXX", "g++")
        subprocess.run([compiler, "-std=c++17", "-O3", "-march=native", "-Wno-psabi", "-shared", "-fPIC", "-pthread", source, "-o", library], check=True)
        stream = ctypes.CDLL(str(library)).Stream
    stream.argtypes, stream.restype = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int), ctypes.c_uint64

    def probe(tensor: torch.Tensor, target: torch.Tensor | None = None):
        return stream(tensor.data_ptr(), None if target is None else target.data_ptr(), size(tensor) >> 20, torch.get_num_threads())

    return probe


def size(*tensors: torch.Tensor) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def sinkhorn_formula(mixes, rsqrt, hc_scale, hc_base, x, n=4, iters=20, eps=1e-6):
    m = mixes * rsqrt
    pre = torch.sigmoid(m[:, :n] * hc_scale[0] + hc_base[:n]) + eps
    post = 2 * torch.sigmoid(m[:, n : 2 * n] * hc_scale[1] + hc_base[n : 2 * n])
    c = torch.softmax((m[:, 2 * n :] * hc_scale[2] + hc_base[2 * n :]).view(-1, n, n), -1) + eps
    c = c / (c.sum(-2, keepdim=True) + eps)
    for _ in range(iters - 1):
        c = c / (c.sum(-1, keepdim=True) + eps)
        c = c / (c.sum(-2, keepdim=True) + eps)
    return (pre.unsqueeze(-1) * x.float()).sum(1).to(x.dtype), post, c


def pre_formula(x, hc_fn, hc_scale, hc_base):
    return sinkhorn_formula(x.flatten(1).float() @ hc_fn.t(), inv_rms_formula(x), hc_scale, hc_base, x)


def inv_rms_formula(x, eps=1e-6):
    return torch.rsqrt(x.float().pow(2).mean((-2, -1)).unsqueeze(-1) + eps)


def post_formula(x, residual, post, comb):
    return (post.unsqueeze(-1) * x.float().unsqueeze(1) + (comb.unsqueeze(-1) * residual.float().unsqueeze(2)).sum(1)).to(x.dtype)


def times_per_round(functions: dict, rounds: int) -> dict[str, list[float]]:
    taken = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            function()  # each is timed after itself, not after what its neighbour left in the caches
            start = time.perf_counter()
            function()
            taken[name].append(time.perf_counter() - start)
    return taken


def median_ratio(slower: list[float], faster: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(slower, faster))


def inputs(tokens: int, d: int) -> tuple[torch.Tensor, ...]:
    rng = torch.Generator().manual_seed(1)
    mix = (2 + STREAMS) * STREAMS
    x = torch.empty(tokens, STREAMS, d, dtype=torch.bfloat16)
    for part in x.split(256):
        part.copy_(torch.randn(part.shape, generator=rng))
    return (torch.randn(tokens, mix, generator=rng), torch.rand(tokens, 1, generator=rng) + 0.5, torch.ones(3),
            torch.randn(mix, generator=rng), x)


def pre_inputs(tokens: int, d: int) -> tuple[torch.Tensor, ...]:
    mixes, _, scale, base, x = inputs(tokens, d)
    fn = torch.randn(mixes.shape[1], STREAMS * d, generator=torch.Generator().manual_seed(3)) / (STREAMS * d) ** 0.5
    return x, fn, scale, base


def post_inputs(tokens: int, d: int) -> tuple[torch.Tensor, ...]:
    *_, residual = inputs(tokens, d)
    rng = torch.Generator().manual_seed(2)
    return (residual[:, 0].contiguous(), residual, torch.rand(tokens, STREAMS, generator=rng),
            torch.rand(tokens, STREAMS, STREAMS, generator=rng))


def throughput(probe) -> Table:
    table = Table("operator", "T", "d", "measured GB/s", "of bandwidth", "x eager", "x torch.compile",
                  title="measured: native kernels, bfloat16; bandwidth: of reading, for hc_post of copying")
    operators = {  # name: arguments, operator, formula
        "hc_pre_sinkhorn": (inputs, lambda *args: custom_ops.hc_pre_sinkhorn(*args, 4, 20, 1e-6), sinkhorn_formula),
        "hc_pre_inv_rms": (lambda tokens, d: inputs(tokens, d)[-1:], lambda x: (custom_ops.hc_pre_inv_rms(x, epsilon=1e-6),),
                           inv_rms_formula),
        "hc_pre": (pre_inputs, lambda *args: custom_ops.hc_pre(*args), pre_formula),
        "hc_post": (post_inputs, lambda *args: (custom_ops.hc_post(*args),), post_formula),
    }
    for name, (arguments, native, formula) in operators.items():
        compiled = torch.compile(formula, dynamic=False)
        for tokens in TOKENS:
            args = arguments(tokens, HIDDEN)
            total = size(*args, *native(*args))
            streams = max(args, key=size)  # [T, n, d]
            copy = torch.empty_like(streams) if name == "hc_post" else None
            taken = times_per_round({"native": lambda: native(*args), "probe": lambda: probe(streams, copy),
                                     "compiled": lambda: compiled(*args), "eager": lambda: formula(*args)}, ROUNDS)
            probed = size(streams) * (1 if copy is None else 2)
            bandwidth = median_ratio(taken["probe"], taken["native"]) * total / probed
            table.add_row(name, str(tokens), str(HIDDEN), f"{total / min(taken['native']) / 1e9:.1f}",
                          f"{100 * bandwidth:.0f} %", f"{median_ratio(taken['eager'], taken['native']):.1f}",
                          f"{median_ratio(taken['compiled'], taken['native']):.1f}")
    return table


def per_call(function, calls: int = 2000, batches: int = 15) -> float:
    best = float("inf")
    for _ in range(batches):
        start = time.perf_counter()
        for _ in range(calls):
            function()
        best = min(best, (time.perf_counter() - start) / calls)
    return best * 1e6


def overhead() -> Table:
    table = Table("call", "measured us", title="measured: one call at T = 1, d = 16")
    args = inputs(1, 16)
    x, small = args[-1], torch.ones(1)
    sinkhorn, inv_rms = torch.ops.custom.npu_hc_pre_sinkhorn, torch.ops.custom.npu_hc_pre_inv_rms
    post, post_args = torch.ops.custom.npu_hc_post, post_inputs(1, 16)
    pre, pre_args = torch.ops.custom.npu_hc_pre, pre_inputs(1, 16)
    calls = {"torch.ops.custom.npu_hc_pre": lambda: pre(*pre_args), "torch.ops.custom.npu_hc_post": lambda: post(*post_args),
             "torch.ops.custom.npu_hc_pre_sinkhorn": lambda: sinkhorn(*args), "torch.ops.custom.npu_hc_pre_inv_rms": lambda: inv_rms(x),
             "custom_ops.hc_pre_sinkhorn": lambda: custom_ops.hc_pre_sinkhorn(*args),
             "for scale: torch.add of two numbers": lambda: torch.add(small, small)}
    for name, function in calls.items():
        table.add_row(name, f"{per_call(function):.1f}")
    with torch.inference_mode():
        table.add_row("npu_hc_pre_sinkhorn in inference_mode", f"{per_call(calls['torch.ops.custom.npu_hc_pre_sinkhorn']):.1f}")
    return table


def projection() -> Table:
    """hc_pre next to its parts with the projection by PyTorch's BLAS."""
    table = Table("T", "fused us", "parts us", "of which BLAS on float32 x", "parts / fused",
                  title="measured: hc_pre and its parts, d = 4096, bfloat16")
    for tokens in (1, 16, 128, 1024):
        x, fn, scale, base = pre_inputs(tokens, HIDDEN)
        wide = x.flatten(1).float()

        def parts():
            rsqrt = custom_ops.hc_pre_inv_rms(x, epsilon=1e-6)
            return custom_ops.hc_pre_sinkhorn(x.flatten(1).float() @ fn.t(), rsqrt, scale, base, x, 4, 20, 1e-6)

        taken = times_per_round({"fused": lambda: custom_ops.hc_pre(x, fn, scale, base), "parts": parts, "blas": lambda: wide @ fn.t()},
                                5 * ROUNDS)
        table.add_row(str(tokens), *(f"{1e6 * min(taken[name]):.0f}" for name in ("fused", "parts", "blas")),
                      f"{median_ratio(taken['parts'], taken['fused']):.1f}")
    return table


def main() -> None:
    console = Console(width=120)
    console.print(overhead())
    console.print(throughput(bandwidth_probe()))
    console.print(projection())
    console.print(f"{torch.get_num_threads()} threads, torch {torch.__version__}")


if __name__ == "__main__":
    main()
