"""From a Hugging Face checkpoint to a proven, exported, running model on these operators: `custom-ops onboard`.

    mapping.py     families as data: which name of a checkpoint is what           vocabulary.py    every key a map may use
    resolve.py     a map applied to config.json                                   names.py         a map applied to tensor names
    rope.py        the rotary base and where it came from                         checkpoint.py    config.json and headers, no weights
    architecture.py  a model as numbers                                           model/           LlmModel, built from those numbers

Nothing here is imported with `custom_ops`.
"""

from .errors import OnboardingError, UnknownFamily

__all__ = ["OnboardingError", "UnknownFamily"]
