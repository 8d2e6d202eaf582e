"""Decoding one sequence on the CPU: LlmModel next to transformers (eager), llama.cpp and MNN, with the same weights, in the same rounds.

Models of about 90 million parameters with random weights, one as LFM2 and one as Qwen3.5 is made: two thirds or three quarters of their
layers are linear. Every engine is a process of its own, reads the same prompt and then, round after round, decodes the same number of
tokens; rounds of the engines alternate (bench_native.py says how ratios are made). "of bandwidth" is the bytes of all weights over the time
of a token, next to what the probe of bench_native.py reads in the same rounds: a token cannot take less. MNN files hold float32 only.

Target: twice the tokens per second of transformers.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent))

PROMPT, TOKENS, ROUNDS = 112, 16, 7
DTYPES = {"float32": "f32", "bfloat16": "bf16"}
SIZES = dict(vocab_size=65536, hidden_size=512, num_hidden_layers=12, num_attention_heads=8, max_position_embeddings=4096,
             pad_token_id=0, bos_token_id=1, eos_token_id=2, tie_word_embeddings=True)
MODELS = {
    "lfm2": ("Lfm2Config", dict(intermediate_size=2560, num_key_value_heads=4, layer_types=["conv", "conv", "full_attention"] * 4,
                                block_auto_adjust_ff_dim=False)),
    "qwen3_5_text": ("Qwen3_5TextConfig", dict(intermediate_size=2048, num_key_value_heads=2, head_dim=64, linear_key_head_dim=64,
                                               linear_value_head_dim=64, linear_num_key_heads=8, linear_num_value_heads=8,
                                               layer_types=(["linear_attention"] * 3 + ["full_attention"]) * 3)),
}


def prompt() -> list[int]:
    return torch.randint(3, SIZES["vocab_size"], (PROMPT,), generator=torch.Generator().manual_seed(1)).tolist()


# --- engines: read the prompt, then give a function that takes a token and returns the next

def _llm_model(folder: Path, dtype: str):
    from custom_ops.onboarding.weights import load

    model = load(folder)
    memory = model.new_memory()
    model(torch.tensor([prompt()]), memory, last_only=True)
    return lambda token: model(torch.tensor([[token]]), memory, last_only=True)[0, -1].argmax().item()


def _transformers(folder: Path, dtype: str):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype), attn_implementation="eager").eval()
    cache = model(torch.tensor([prompt()]), use_cache=True, logits_to_keep=1).past_key_values
    return lambda token: model(torch.tensor([[token]]), past_key_values=cache, use_cache=True).logits[0, -1].argmax().item()


def _llama_cpp(folder: Path, dtype: str):
    from custom_ops.onboarding.export.gguf.llama_child import Model

    model = Model(str(folder / "model.gguf"))
    context = model.context(1024, 1, torch.get_num_threads())
    places = [0]

    def decode(tokens: list[int]):
        logits = model._decode(context, [tokens], places)[-1]
        places[0] += len(tokens)
        return logits

    decode(prompt())
    return lambda token: int(decode([token]).argmax())


def _mnn(folder: Path, dtype: str):
    from custom_ops.onboarding.export.mnn.runtime import MnnModel

    model = MnnModel(folder / "model.mnn", torch.get_num_threads())
    memory = model.new_memory()
    model(torch.tensor([prompt()]), memory, last_only=True)
    return lambda token: model(torch.tensor([[token]]), memory, last_only=True)[0, -1].argmax().item()


def _bandwidth(folder: Path, dtype: str):
    """A "token" reads as many bytes as the weights have."""
    from bench_native import bandwidth_probe

    weights = torch.ones((folder / "model.safetensors").stat().st_size, dtype=torch.uint8)
    probe = bandwidth_probe()
    return lambda token: probe(weights) and token


ENGINES = {"LlmModel": (_llm_model, "custom_ops"), "transformers eager": (_transformers, "transformers"),
           "llama.cpp": (_llama_cpp, "llama_cpp"), "MNN": (_mnn, "MNN"), "bandwidth probe": (_bandwidth, "torch")}


def serve(name: str, folder: str, dtype: str) -> None:
    """Decodes TOKENS tokens for every line of the input and prints the seconds of each."""
    sys.stdout.flush()
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no result
    with torch.inference_mode():
        step, token = ENGINES[name][0](Path(folder), dtype), 5
        print("ready", file=results, flush=True)
        for _ in sys.stdin:
            seconds = []
            for _ in range(TOKENS):
                begin = time.perf_counter()
                token = step(token)
                seconds.append(time.perf_counter() - begin)
            print(json.dumps(seconds), file=results, flush=True)


class Engine:
    def __init__(self, name: str, folder: Path, dtype: str):
        command = [sys.executable, __file__, "--engine", name, str(folder), dtype]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def line(self) -> str:
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.communicate()[1][-2000:])
        return line

    def round(self) -> float:
        """Seconds of a token, the median."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return statistics.median(json.loads(self.line()))

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def save_model(kind: str, dtype: str, folder: Path) -> int:
    """Random weights; returns the bytes of them."""
    import transformers

    from custom_ops.onboarding.export import export

    name, own = MODELS[kind]
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(getattr(transformers, name)(**SIZES, **own)).to(getattr(torch, dtype))
    model.save_pretrained(folder)
    if "llama.cpp" in engines():
        export(folder, "gguf", folder / "model.gguf", type=DTYPES[dtype], tokenizer=False)
    if "MNN" in engines(dtype):
        export(folder, "mnn", folder / "model.mnn")
    return sum(parameter.nbytes for parameter in model.parameters())


def engines(dtype: str = "float32") -> list[str]:
    import importlib.util

    return [name for name, (_, package) in ENGINES.items() if importlib.util.find_spec(package) and (name, dtype) != ("MNN", "bfloat16")]


def compare(kind: str, dtype: str, table: Table) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        nbytes = save_model(kind, dtype, folder)
        running = {}
        try:
            for engine in engines(dtype):
                running[engine] = Engine(engine, folder, dtype)
                running[engine].line()
            times = {engine: [] for engine in running}
            for number in range(1 + ROUNDS):
                for engine, process in running.items():
                    taken = process.round()
                    if number:  # the first warms up
                        times[engine].append(taken)
        finally:
            for process in running.values():
                process.close()
    for engine, taken in times.items():
        def ratio(other: str) -> float:
            return statistics.median(a / b for a, b in zip(times[other], taken))

        median = statistics.median(taken)
        table.add_row(kind, dtype, engine, f"{1e3 * median:.2f}", "" if engine == "bandwidth probe" else f"{1 / median:.0f}",
                      f"{nbytes / median / 1e9:.1f}", f"{100 * ratio('bandwidth probe'):.0f} %",
                      "" if engine == "bandwidth probe" else f"{ratio('transformers eager'):.2f}")


def main() -> None:
    console = Console(width=140)
    if "transformers eager" not in engines():
        console.print("bench_decode.py needs pip install 'custom_ops[onboard]'")
        return
    context = f"{PROMPT + TOKENS} to {PROMPT + (1 + ROUNDS) * TOKENS} tokens"
    table = Table("model", "dtype", "engine", "measured ms/token", "tokens/s", "GB/s of weights", "of bandwidth", "x transformers",
                  title=f"measured: decoding one sequence, {context}, {torch.get_num_threads()} threads")
    for kind in MODELS:
        for dtype in DTYPES:
            compare(kind, dtype, table)
    console.print(table)


if __name__ == "__main__":
    serve(*sys.argv[2:]) if sys.argv[1:2] == ["--engine"] else main()
