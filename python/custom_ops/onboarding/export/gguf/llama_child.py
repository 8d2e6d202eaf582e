"""Runs jobs in llama.cpp: `python llama_child.py FILE.gguf < jobs.json > results.npz`. A process of its own, because ggml ends the process
where an assumption of its own does not hold; runtime.py starts it. Keys, values and activations are float32, flash attention is off."""

import ctypes
import io
import json
import sys

import llama_cpp as llama
import numpy as np

_F32 = 0  # ggml's type


class Model:
    def __init__(self, path: str):
        params = llama.llama_model_default_params()
        params.use_extra_bufts = False  # repacked weights take instructions (AMX) that a virtual machine may name and not have
        self.model = llama.llama_model_load_from_file(path.encode(), params)
        if not self.model:
            raise SystemExit("llama.cpp cannot load the file")
        self.vocabulary = llama.llama_model_get_vocab(self.model)
        self.words = llama.llama_vocab_n_tokens(self.vocabulary)

    def context(self, tokens: int, sequences: int, threads: int):
        params = llama.llama_context_default_params()
        params.n_ctx = max(256, tokens) * sequences
        params.n_batch = params.n_ubatch = max(256, tokens * sequences)
        params.n_seq_max = sequences
        params.n_threads = params.n_threads_batch = threads
        params.type_k = params.type_v = _F32
        params.flash_attn_type = 0
        context = llama.llama_init_from_model(self.model, params)
        if not context:
            raise SystemExit("llama.cpp cannot make a context")
        return context

    def logits(self, calls: list[list[list[int]]], threads: int) -> np.ndarray:
        """calls[c][s]: tokens of sequence s in call c. [all tokens, vocab], sequence after sequence."""
        sequences = len(calls[0])
        lengths = [sum(len(call[s]) for call in calls) for s in range(sequences)]
        context = self.context(max(lengths), sequences, threads)
        parts: list[list[np.ndarray]] = [[] for _ in range(sequences)]
        places = [0] * sequences
        for call in calls:
            rows = self._decode(context, call, places)
            for s, tokens in enumerate(call):
                parts[s].append(rows[: len(tokens)])
                rows, places[s] = rows[len(tokens) :], places[s] + len(tokens)
        llama.llama_free(context)
        return np.concatenate([part for sequence in parts for part in sequence])

    def _decode(self, context, call: list[list[int]], places: list[int]) -> np.ndarray:
        total = sum(map(len, call))
        batch = llama.llama_batch_init(total, 0, 1)
        batch.n_tokens, row = total, 0
        for s, tokens in enumerate(call):
            for i, token in enumerate(tokens):
                batch.token[row], batch.pos[row] = token, places[s] + i
                batch.n_seq_id[row], batch.seq_id[row][0], batch.logits[row] = 1, s, 1
                row += 1
        if llama.llama_decode(context, batch):
            raise SystemExit("llama.cpp cannot decode the tokens")
        pointer = ctypes.cast(llama.llama_get_logits(context), ctypes.POINTER(ctypes.c_float))
        rows = np.ctypeslib.as_array(pointer, (total, self.words)).copy()
        llama.llama_batch_free(batch)
        return rows

    def tokens(self, text: str, special: bool) -> np.ndarray:
        data = text.encode()
        ids = (llama.llama_token * (len(data) + 16))()
        count = llama.llama_tokenize(self.vocabulary, data, len(data), ids, len(ids), True, special)
        if count < 0:
            raise SystemExit("llama.cpp cannot tokenize the text")
        return np.array(ids[:count], np.int32)


def main() -> None:
    jobs = json.load(sys.stdin)
    model = Model(sys.argv[1])
    results = {}
    for number, job in enumerate(jobs):
        if "calls" in job:
            results[str(number)] = model.logits(job["calls"], job["threads"])
        else:
            results[str(number)] = model.tokens(job["text"], job["special"])
    content = io.BytesIO()
    np.savez(content, **results)
    sys.stdout.buffer.write(content.getvalue())


if __name__ == "__main__":
    main()
