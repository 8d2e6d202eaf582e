"""From a Hugging Face checkpoint to a proven, exported, running model on these operators: `custom-ops onboard`.

    checkpoint.py    config.json and headers, no weights             mapping.py     families as data: which name of a checkpoint is what
    vocabulary.py    every key a map may use                         maps/          the families
    resolve.py       a map applied to config.json (layer_types.py and blocks.py: block by block; report.py: what was found and what not)
    names.py         a map applied to tensor names                   rope.py        the rotary base and where it came from
    source.py        all of these for one model directory            shapes.py      what shapes its tensors must have
    analyze.py       what a model is and what is missing (tiers.py, questions.py, propose.py, propose_names.py; show.py prints it)
    architecture.py  a model as numbers                              build.py       these numbers from a Source
    model/           LlmModel, built from those numbers              weights.py     a checkpoint's weights into it
    verify.py        LlmModel against transformers (taps.py; locate.py and causes.py: where they differ and why; page.py: as a page)
    generate.py      text (text.py: the tokenizer, sampling.py)      perplexity.py  of a text (page_perplexity.py: as a page)
    export/          the files of other runtimes                     output.py      files that appear whole or not at all

Nothing here is imported with `custom_ops`.
"""

from .errors import OnboardingError, UnknownFamily

__all__ = ["OnboardingError", "UnknownFamily"]
