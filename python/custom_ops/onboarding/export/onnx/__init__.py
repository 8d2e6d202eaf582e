"""ONNX files of any checkpoint that onboarding reads, with one node LlmExporter::FusedLinearAttention for each linear layer.

    traceable.py   LlmModel as the exporters of torch take it, without weights       node.py       the node, for each of the two exporters
    graph.py       both exporters: an ONNX graph whose parameters are inputs         write.py      checks it and streams the weights in
    function.py    the node's meaning in ONNX operators, which onnxruntime runs      reference.py  the node in onnx's ReferenceEvaluator
    package.py     onnx and its like, imported when they are needed
"""
