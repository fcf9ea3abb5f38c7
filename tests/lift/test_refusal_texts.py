"""Texts of errors."""

from __future__ import annotations

import pytest

from trilift.lift.errors import Unsupported


@pytest.mark.smoke
def test_frames_of_another_language_are_left_out() -> None:
    text = "RuntimeError: no numel()\nException raised from f at /c10/core/TensorImpl.cpp:340:\nframe #0: c10::Error"
    error = Unsupported("an operation", why=text)
    assert error.why == "RuntimeError: no numel()" and "frame" not in str(error)
