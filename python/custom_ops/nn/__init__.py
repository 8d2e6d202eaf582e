"""Modules: sites and head of a model with hyper-connections, layers of linear attention."""

from .hyper_connection import HyperConnection
from .linear_attention import GatedDeltaNet, ShortConv

__all__ = ["GatedDeltaNet", "HyperConnection", "ShortConv"]
