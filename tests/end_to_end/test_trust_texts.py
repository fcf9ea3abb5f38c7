"""Modules beside the case file are read as the file is, and a text of a size or of a tensor is not computed with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trilift.lift.cases.declaration import Case
from trilift.lift.errors import Unsupported
from trilift.verify import prove
from trilift.verify.model.verdict import Proof

sys.path[:0] = [str(Path(__file__).parents[1] / "kernels")]
import kernels_helped as K  # noqa: E402


def proof(c: Case) -> Proof:
    (found,) = prove(c, fallback=False)
    return found


def is_proved(p: Proof) -> bool:
    return p.verdict.value == "PROVED"


@pytest.mark.parametrize("c", [K.flag, K.flag_of_the_reference], ids=lambda c: c.name)
def test_a_flag_of_a_module_beside_the_file_is_named(c: Case) -> None:
    found = proof(c)
    assert is_proved(found) and "`OPTIONS` holds what it held when it was read" in [x.text for x in found.contract]


def test_a_name_that_is_looked_up_is_named() -> None:
    found = proof(K.looked_up)
    assert is_proved(found) and any(x.text.startswith("builtins.globals() gives") for x in found.contract)


@pytest.mark.parametrize("c", [K.counter, K.counter_of_a_class, K.iterator_of_a_class], ids=lambda c: c.name)
def test_a_counter_of_a_module_beside_the_file_is_noticed(c: Case) -> None:
    found = proof(c)
    assert not is_proved(found) and "which each call changes" in str(found.reason)


def test_python_s_functions_know_our_numbers_in_a_module_beside_the_file() -> None:
    assert is_proved(proof(K.length_by_a_helper))


@pytest.mark.parametrize("name", K.TEXTS)
def test_a_reference_that_computes_with_a_text_is_not_read(name: str) -> None:
    with pytest.raises(Unsupported, match="becomes a text") as error:
        proof(K.TEXTS[name])
    assert error.value.place is not None and error.value.place.file.endswith("kernels_helped.py")


def test_a_host_function_that_computes_with_the_text_of_data_is_not_read() -> None:
    with pytest.raises(Unsupported, match="host code reads tensor data"):
        proof(K.text_of_data)


def test_a_text_in_a_message_is_no_computation() -> None:
    assert is_proved(proof(K.text_in_a_message))
