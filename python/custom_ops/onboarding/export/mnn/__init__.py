"""MNN files of any checkpoint that onboarding reads: prompts and decode, with LinearAttention operators for the linear layers.

    graph.py    LlmModel as an ONNX graph with keys and values as inputs and outputs, without weights
    convert.py  MNN's converter, in a process of its own      rebuild.py  its result with MNN's operators in the place of our nodes
    weights.py  the file of weights beside the graph          write.py    all of it
    runtime.py  a file run in MNN                             package.py  MNN, imported without its greeting
"""
