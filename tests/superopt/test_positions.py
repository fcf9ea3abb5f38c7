"""Masks and biases of positions, and choices by element: read from formulas, computed in tiles, proved as emitted."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from trilift.lift.capture.case_files import load
from trilift.lift.cases.declaration import Case
from trilift.superopt.emit.codegen import source
from trilift.superopt.jobs import formulas_of
from trilift.superopt.mugraph.graph import MuGraph
from trilift.superopt.mugraph.json import from_json, to_json
from trilift.superopt.program import numpy_program
from trilift.superopt.program.abstract import templates
from trilift.superopt.program.program import Program, from_formulas
from trilift.superopt.search.best_first import graphs, search
from trilift.superopt.search.stabilise import stabilised, unstable
from trilift.superopt.search.verifier import verify
from trilift.verify import prove

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("helpers", "kernels")]
import kernels_positions as K  # noqa: E402

CASES = [K.causal, K.biased, K.lower, K.chosen, K.clipped, K.weighted, K.prefix]
SIZES = {"G": 8, "M": 512, "N": 512, "K": 64, "D": 64}


def program(c: Case, sizes: dict[str, int]) -> Program:
    formulas, _ = formulas_of(c)
    return from_formulas(formulas, {n: x.dtype for n, x in c.tensors.items()}, {n: sizes[n] for n in c.names})


def best(c: Case) -> MuGraph:
    return stabilised(next(iter(graphs(search(program(c, SIZES))))))


def emitted(c: Case) -> str:
    g = best(c)
    return source(g, c.name, templates(g.program), g.program.extents, [], list(c.tensors))


def verdicts(text: str, folder: Path) -> set[str]:
    path = folder / "emitted.py"
    path.write_text(text)
    return {p.verdict.value for c in load(str(path)) for p in prove(c, fallback=False, timeout=60)}


@pytest.mark.parametrize("c", CASES, ids=lambda c: c.name)
def test_the_program_is_the_function(c: Case) -> None:
    small = {"G": 2, "M": 5, "N": 7, "K": 3, "D": 4}
    p = program(c, small)
    xs = c.sample({n: small[n] for n in c.names}, np.random.default_rng(0))
    wide = {n: x.double() for n, x in xs.items()}
    found = numpy_program.values(p, {n: x.numpy() for n, x in wide.items()}, small)
    (name, *_), *_ = p.outputs
    assert np.allclose(found[name], c.fn(**wide).numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("c", CASES, ids=lambda c: c.name)
def test_graphs_are_their_programs(c: Case) -> None:
    g = next(iter(graphs(search(program(c, SIZES)))))
    assert all(o.equal for o in verify(g, templates(g.program)).outcomes)
    assert from_json(to_json(g)) == g


def test_a_mask_is_not_read() -> None:
    g = best(K.causal)
    (mask,) = (x for x in g.program.inputs if x.element is not None)
    assert mask not in g.program.read and "positions" not in {x.name for x in g.program.read}
    assert len(g.kernels) == 1 and unstable(g) == ""
    assert "positions_ptr" not in emitted(K.causal)


def test_a_tensor_keeps_its_name() -> None:
    p = program(K.biased, SIZES)
    assert [x.name for x in p.inputs if x.element is None and x.tensor == "positions"] == ["positions"]
    assert len({x.name for x in p.inputs}) == len(p.inputs) == 4


def test_causal_attention_is_proved_as_emitted(tmp_path: Path) -> None:
    text = emitted(K.causal)
    assert verdicts(text, tmp_path) == {"PROVED"}
    (mask,) = (line for line in text.splitlines() if "positions_tile = tl.where" in line)
    wrong = text.replace(mask, mask.replace(" < ", " <= "))
    assert wrong != text and "PROVED" not in verdicts(wrong, tmp_path)


@pytest.mark.parametrize("c", [K.lower, K.chosen, K.clipped, K.prefix], ids=lambda c: c.name)
def test_choices_are_proved_as_emitted(c: Case, tmp_path: Path) -> None:
    assert verdicts(emitted(c), tmp_path) == {"PROVED"}


def test_a_whole_tile_may_be_masked() -> None:
    """A row of an online softmax may meet no element in its first tile."""
    text = emitted(K.causal)
    assert "tl.where(m_top_new ==" in text or "for " not in text
    assert torch.isfinite(K.causal.fn(*(torch.randn(1, 5, 4) for _ in range(3)))).all()
