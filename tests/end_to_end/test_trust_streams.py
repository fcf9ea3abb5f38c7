"""Verdicts of host functions that work on several CUDA streams: an order that nothing promises is not assumed."""

from __future__ import annotations

import pytest

from tests.kernels import kernels_streams as K
from trilift.lift.capture.run import capture
from trilift.lift.capture.streams import running
from trilift.lift.errors import Unsupported
from trilift.verify.model.verdict import Verdict
from trilift.verify.pipeline import prove

WRONG = [n for n in vars(K) if n.startswith("wrong_")]
RIGHT = [n for n in vars(K) if n.startswith("right_")]
UNFINISHED = [n for n in vars(K) if n.startswith("unfinished_")]


@pytest.mark.parametrize("name", WRONG)
def test_work_without_an_order_is_refused(name: str) -> None:
    with pytest.raises(Unsupported) as raised:
        capture(getattr(K, name), {"N": 300})
    assert "CUDA stream" in raised.value.what


@pytest.mark.parametrize("name", UNFINISHED)
def test_memory_of_a_copy_that_nobody_waited_for_is_refused(name: str) -> None:
    with pytest.raises(Unsupported) as raised:
        capture(getattr(K, name), {"N": 300})
    assert "non_blocking=True" in raised.value.what and raised.value.place is not None


def test_a_copy_at_one_size_that_nobody_waited_for_is_noticed() -> None:
    (proof,) = prove(K.at_one_size_unfinished, fallback=False)
    assert proof.verdict is Verdict.UNKNOWN and "non_blocking=True" in (proof.reason or "")


@pytest.mark.parametrize("name", [n for n in RIGHT if n.startswith("right_copy")])
def test_a_copy_in_order_is_proved(name: str) -> None:
    (proof,) = prove(getattr(K, name), fallback=False)
    assert proof.verdict is Verdict.PROVED, proof.reason


@pytest.mark.parametrize("name", RIGHT)
def test_work_in_order_is_read(name: str) -> None:
    assert capture(getattr(K, name), {"N": 300}).launches


def test_a_pipeline_on_two_streams_is_proved() -> None:
    (proof,) = prove(K.right_events, fallback=False)
    assert proof.verdict is Verdict.PROVED, proof.reason


def test_there_are_enough() -> None:
    assert len(WRONG) >= 8 and len(RIGHT) >= 5


def test_a_stream_has_a_run() -> None:
    with running() as outer, running() as inner:
        inner.happened(None)
    assert outer.clocks[0] == {} and inner.clocks[0] == {0: 1}
