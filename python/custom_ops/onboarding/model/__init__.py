"""LlmModel and its memory."""

from .llm import LlmModel
from .memory import Memory

__all__ = ["LlmModel", "Memory"]
