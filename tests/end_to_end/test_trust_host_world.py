"""A size that becomes a text, questions to the world outside, what is kept between calls: no PROVED without its clause.

Right by hand: each wrong host function leaves its reference at one size, for one answer or layout, or in a later call.
"""

from __future__ import annotations

import pytest
import torch

from tests.kernels import host_functions, host_outside, host_world, kept_state
from trilift import case
from trilift.lift.cases.shapes import choose
from trilift.lift.errors import TriliftError
from trilift.lift.pytorch.host.host_run import read_host
from trilift.verify import prove
from trilift.verify.configurations.launches import configurations


@pytest.mark.parametrize("name", host_world.WRONG)
def test_no_wrong_host_function_is_proved_without_its_clause(name):
    clause = host_world.WRONG[name]
    (proof,) = prove(getattr(host_world, name), fallback=False)
    texts = [c.text for c in proof.contract]
    assert proof.verdict.value != "PROVED" or (clause and clause in texts), texts


@pytest.mark.parametrize("name", host_world.RIGHT)
def test_right_host_functions_stay_proved(name):
    (proof,) = prove(getattr(host_world, name), fallback=False)
    assert proof.verdict.value == "PROVED", proof.reason
    said = ("environment", "compute", "address", "requires_grad", "is_grad_enabled", "contiguous", "elsewhere", "x.")
    assert not [c.text for c in proof.contract if any(word in c.text for word in said)]


@pytest.mark.parametrize(
    "name, what",
    [
        ("text_of_size", "N where it cannot be followed"),
        ("chance_by_name", "random.randint()"),
        ("made_on_cpu", "on the CPU"),
        ("moved_to_cpu", "on the CPU"),
        ("sent_to_cpu", "on the CPU"),
        ("sent_to_another_on_cpu", "on the CPU"),
        ("made_like_one_on_cpu", "on the CPU"),
        ("halves_before_it_is_done", "launch_pdl=True"),
        ("starts_before_it_is_done", "launch_pdl=True"),
        ("cooperative", "launch_cooperative_grid=True"),
        ("counted", "`CALLS`, which each call changes"),
        ("counted_in_a_closure", "`calls of tick`, which each call changes"),
    ],
)
def test_what_is_not_followed_is_named_with_its_line(name, what):
    with pytest.raises(TriliftError) as error:
        configurations(getattr(host_world, name))
    assert what in error.value.what and error.value.place.file.endswith("host_world.py")


def test_the_message_of_an_error_leads_nowhere():
    case = host_world.sized_message
    run = read_host(case, choose(case, 3)[2])
    assert run.lost == run.texts == () and not run.raises
    refused = read_host(case, {"N": 1 << 25})
    assert refused.refuses and refused.texts


def test_both_sides_of_a_question_are_read():
    case = host_world.unaligned
    run = read_host(case, choose(case, 3)[2])
    assert [str(d.condition) for d in run.decisions if d.by == "host"] == ["eq(0, mod(address(x), 16))"]


@pytest.mark.parametrize("name", ["negative", "zero"])
def test_scalars_are_drawn_where_they_are_wanted(name):
    case = getattr(host_world, name)
    assert all(d["s"] < 1 for d in choose(case, 3))
    (proof,) = prove(case, fallback=False)
    assert proof.verdict.value == "PROVED", proof.reason


def test_negative_scalars_are_not_taken_for_positive_ones():
    (proof,) = prove(host_world.negative_as_positive, fallback=False)
    assert proof.verdict.value != "PROVED"


@pytest.mark.parametrize("name, call", host_outside.WRONG.items())
def test_a_call_of_an_unknown_module_is_a_clause(name, call):
    (proof,) = prove(getattr(host_outside, name), fallback=False)
    texts = [c.text for c in proof.contract]
    assert proof.verdict.value != "PROVED" or any(f"{call} gives what" in text for text in texts), texts


@pytest.mark.parametrize("name", host_outside.RIGHT)
def test_a_call_that_only_computes_is_no_clause(name):
    (proof,) = prove(getattr(host_outside, name), fallback=False)
    assert proof.verdict.value == "PROVED", proof.reason
    assert not [c.text for c in proof.contract if "gives what" in c.text]


def test_a_tensor_is_not_taken_for_one_that_lay_there_before():
    run = read_host(host_outside.with_constants_that_go, {"N": 101})
    assert run.refused is None
    products = [e.outputs[0] for e in run.trace.events if getattr(e, "func", None) is torch.ops.aten.mul.Tensor]
    assert len({id(p.buffer) for p in products}) == 10 and all(p.buffer.nbytes == 404 for p in products)


@case(x="f32[N]")
def reading(x):
    reading_now["read"]()
    return host_functions.scale(x, 2.0)


reading_now = {"read": lambda: None}


@pytest.mark.parametrize("name", kept_state.READS)
def test_state_of_any_kind_is_named(name, monkeypatch):
    read, sentence = kept_state.READS[name]
    monkeypatch.setitem(reading_now, "read", read)
    said = [n.what for n in read_host(reading, {"N": 5}).asked]
    of_kept = [s for s in said if "reading_now" not in s and (s == sentence or s.startswith(("`", "torch.")))]
    assert of_kept == ([sentence] if sentence else [])
