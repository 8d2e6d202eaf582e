"""GGUF files for llama.cpp, written from any checkpoint that onboarding reads and read back into LlmModel.

    families.py    one class per architecture of llama.cpp: its keys, and the Architecture that a reader takes from them (registry.py: their
                   base class; keys.py, rope.py: how keys are read)
    tensors.toml   GGUF tensor name = parameters of LlmModel, and the transform between them      tensors.py    that table for one model
    transforms.py  the transforms, each with its inverse                                          storage.py    f32, f16, bf16, q8_0
    tokenizer.py   the tokenizer's keys (tokenizer_bpe.py with pretokenizers.toml, tokenizer_spm.py) write.py, read.py
    container.py   the file's bytes, read and checked                                             package.py    gguf, imported when needed
    runtime.py     a file run in llama.cpp, in a process of its own (llama_child.py)

llama.cpp builds a graph from the architecture's name: what a key does not say, it assumes. So before anything is written, the file's keys
are read back the way llama.cpp reads them; where the Architecture that comes out is not the model's own, the export stops and names
what differs (compare.py).
"""
