"""The three printers: text in textbook form, LaTeX, and PyTorch source. `shapes` are the sizes of the inputs'
dimensions."""

from __future__ import annotations

from .latex import latex
from .text import index_form, text
from .torch_source import torch_source as torch

__all__ = ["index_form", "latex", "text", "torch"]
