"""Specs as users write them: what they mean, what samples look like, what is refused and how."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from trilift.lift.capture.case_files import load, load_all
from trilift.lift.cases.declaration import case, input_of_stride, make_case, stride_terms
from trilift.lift.cases.shapes import choose
from trilift.lift.errors import CaseError
from trilift.lift.pipeline import lift
from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import value

DIMS = {"M": 3, "N": 5, "V": 7, "H": 4, "p": 0.25, "k": 2}


@case(x="f32[M,N]", y="f32[2*H,N+1] strided", i="i32[M] < V", w="f16[N] > 0", m="bool[M]", u="f32[M] in (2, 3)",
      p="f32 in (0, 1)", k="i32", xs=["bf16[H//2]", "i64[M]"], eps=1e-6, mode="'llama'",
      where="N <= 64 and H % 2 == 0")  # fmt: skip
def example(x, y, i, w, m, u, p, k, xs, eps, mode, extra=3):
    return x


def test_shapes_are_terms_over_dims():
    assert example.dims("y") == (T.mul(2, T.size("H")), T.add(T.size("N"), 1))
    assert example.shape("xs0", DIMS) == (2,)
    assert example.names == ("M", "N", "H", "V")
    assert list(example.scalars) == ["p", "k"]
    assert list(example.tensors) == ["x", "y", "i", "w", "m", "u", "xs0", "xs1"]


def test_constants_stay_what_they_are():
    assert (example.params["eps"], example.params["mode"]) == (1e-6, "llama")


def test_where():
    assert example.holds(DIMS)
    assert not example.holds({**DIMS, "N": 65})
    assert not example.holds({**DIMS, "H": 3})


def test_samples_meet_their_specs():
    a = example.sample(DIMS, np.random.default_rng(0))
    assert a["x"].shape == (3, 5) and a["x"].dtype == torch.float32 and a["x"].is_contiguous()
    assert a["y"].shape == (8, 6) and not a["y"].is_contiguous() and a["y"].stride(1) != 1 and a["y"].stride(0) != 12
    assert a["i"].min() >= 0 and a["i"].max() < 7 and a["i"].dtype == torch.int32
    assert (a["w"] > 0).all() and a["w"].dtype == torch.float16
    assert ((a["u"] >= 2) & (a["u"] < 3)).all()
    assert (a["p"], a["k"], a["eps"], a["mode"]) == (0.25, 2, 1e-6, "llama")
    assert [t.dtype for t in a["xs"]] == [torch.bfloat16, torch.int64]
    assert "extra" not in a


def test_the_same_seed_gives_the_same_sample():
    a, b = (example.sample(DIMS, np.random.default_rng(7)) for _ in range(2))
    assert torch.equal(a["x"], b["x"]) and a["y"].stride() == b["y"].stride()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("f32[M", "cannot read"),
        ("f33[M]", "cannot read x='f33[M]'"),
        ("f32[M] upside down", "cannot read 'upside down'"),
        ("f32[1.5]", "'1.5' is not an integer"),
        ("f32[N**N]", "'N**N' is not an integer"),
        ("f32[-3]", "'-3' is below 0"),
        ("f32[M!]", "cannot read 'M!'"),
        ("f32 in (1)", "a range needs two ends"),
        ("llama", "cannot read x='llama'"),
        ("f32[N] in (1, 0)", "no value meets x='f32[N] in (1, 0)'"),
        ("f32[N] in (1, 1)", "no value meets"),
        ("i32[N] < 0", "no value meets"),
        ("i32[N] in (0.2, 0.9)", "no value meets"),
        ("f32[10**40]", "more elements than any memory holds"),
        ("f32[10**9, 10**9]", "more elements than any memory holds"),
    ],
)
def test_bad_specs_name_the_case_the_text_and_the_place(spec, message):
    with pytest.raises(CaseError, match="case wrong: ") as caught:

        @case(x=spec)
        def wrong(x): ...

    assert message in str(caught.value)
    assert caught.value.place.file == __file__
    assert caught.value.help


def test_a_sample_keeps_limits_below_zero():
    @case(x="i32[N] in (-5, -2)", y="i32[N] < K - 3", where="K >= 3")
    def f(x, y): ...

    x = f.sample({"N": 100, "K": 5}, np.random.default_rng(0))["x"]
    assert int(x.min()) >= -5 and int(x.max()) == -3
    with pytest.raises(CaseError, match="no value"):
        f.sample({"N": 100, "K": 3}, np.random.default_rng(0))


def test_bad_where():
    with pytest.raises(CaseError, match="is not a condition"):
        make_case("g", lambda x: x, {"x": "f32[M]"}, "M + 1")


def test_parameters_must_exist_and_be_described():
    with pytest.raises(CaseError, match="no parameter is called y"):
        make_case("g", lambda x: x, {"x": "f32[M]", "y": "f32[M]"})
    with pytest.raises(CaseError, match="parameter z has no specification"):
        make_case("g", lambda x, z: x, {"x": "f32[M]"})


@pytest.mark.parametrize("specs", [{"xs": ["f32[M]"], "xs0": "f32[M]"}, {"x": "f32[x]"}])
def test_a_name_means_one_thing(specs):
    with pytest.raises(CaseError, match="is used twice"):
        make_case("g", lambda **_: 0, specs)


def test_reference_is_kept():
    @case(x="f32[M]")
    def double(x): ...

    assert not double.reference

    @double.reference
    def _(x):
        return x + x

    assert double.reference and double.reference.fn(2) == 4


# ---- shapes


def test_small_shapes_are_distinct_and_change_parity():
    a, b = choose(make_case("c", lambda **_: 0, {"x": "f32[M,K]", "y": "f32[K,N]"}), 2)
    assert len(set(a.values())) == len(set(b.values())) == 3
    assert all(n in (3, 5, 7, 11, 13) for n in a.values()) and all(3 <= n <= 13 for n in b.values())
    assert all(a[n] % 2 != b[n] % 2 for n in a)  # N // 2 is (N - 1) / 2 for every odd N


@pytest.mark.parametrize(
    ("specs", "where"),
    [
        ({"q": "f32[B,H,T,D]"}, "D % 16 == 0 and D <= 128 and T % 64 == 0"),
        ({"q": "f32[B,H,T,D]", "k": "f32[B,G,T,D]"}, "H % G == 0"),
        ({"a": "f32[M,K]", "b": "i32[K//8,N]", "s": "f32[K//G,N]"}, "K % G == 0 and G % 32 == 0"),
        ({"x": "f32[M]", "k": "i32 in (2, 5)"}, "k < M"),
        ({"x": "f32[M]", "p": "f32 in (0, 1)"}, "M == 4 or M == 6"),
        ({"x": "f32[]"}, "True"),
    ],
)
def test_shapes_meet_where(specs, where):
    c = make_case("c", lambda **_: 0, specs, where)
    found = choose(c, 5)
    assert len(found) == 5 and all(c.holds(d) for d in found)


def test_the_third_shape_crosses_blocks_and_later_ones_are_long():
    found = choose(make_case("c", lambda **_: 0, {"x": "f32[M,N]"}), 5)
    assert min(found[2].values()) > 64
    assert found[3]["M"] > 1024 and found[4]["N"] > 1024


def test_scalars_change_and_are_exact_in_f32():
    found = [d["eps"] for d in choose(make_case("c", lambda **_: 0, {"x": "f32[M]", "eps": "f32 in (0, 1)"}), 4)]
    assert len(set(found)) == 4 and all(float(np.float32(v)) == v and 0 < v < 1 for v in found)


def test_no_shape_is_an_error_that_shows_where():
    with pytest.raises(CaseError, match="no sizes of N were found that its tensors can have") as e:
        choose(case(x="f32[-N]")(lambda x: x), 2)
    assert "where" not in str(e.value)
    with pytest.raises(CaseError, match="no sizes of M were found that meet where='M > 5 and M < 4'"):
        choose(make_case("c", lambda **_: 0, {"x": "f32[M]"}, "M > 5 and M < 4"), 1)


def test_the_same_seed_gives_the_same_shapes():
    c = make_case("c", lambda **_: 0, {"x": "f32[M,N]", "eps": "f32"})
    assert choose(c, 4, seed=3) == choose(c, 4, seed=3)


# ---- .ttir files


TTIR = """\
module {
  tt.func public @twice(%y: !tt.ptr<f32>, %x: !tt.ptr<f32>, %n: i32) {
    %0 = tt.get_program_id x : i32
    %1 = tt.addptr %x, %0 : !tt.ptr<f32>, i32
    %2 = tt.load %1 : !tt.ptr<f32>
    %3 = arith.addf %2, %2 : f32
    %4 = tt.addptr %y, %0 : !tt.ptr<f32>, i32
    tt.store %4, %3 : !tt.ptr<f32>
    tt.return
  }
}
"""
LAUNCH = {
    "inputs": {"x": "f32[N]"},
    "outputs": {"out": "f32[N]"},
    "args": ["out", "x", "N*stride(x, 0)"],
    "grid": ["N"],
}


def trace_of(path: Path):
    from trilift.lift.capture import ttir_case
    from trilift.lift.capture.run import capture

    return capture(ttir_case.load(path), {"N": 5})


@pytest.mark.parametrize("sidecar", [True, False])
def test_ttir_file_with_a_launch_description(tmp_path, sidecar):
    path = tmp_path / "twice.ttir"
    path.write_text(TTIR if sidecar else f"// trilift: {json.dumps(LAUNCH)}\n{TTIR}")
    if sidecar:
        (tmp_path / "twice.json").write_text(json.dumps(LAUNCH))
    (launch,) = trace_of(path).launches
    assert (launch.kernel, launch.grid) == ("twice", (5, 1, 1))
    assert [a.type.element for a in launch.module().entry.args] == ["ptr", "ptr", "i32"]
    y, x, n = launch.operands
    assert (y.buffer.origin, x.buffer.origin, n) == ("aten.empty", "input:x", 5)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"args": ["out", "x"]}, "do not fit the kernel"), ({"grid": ["Q"]}, "uses an unknown name")],
)
def test_wrong_launch_descriptions(tmp_path, change, message):
    path = tmp_path / "twice.ttir"
    path.write_text(f"// trilift: {json.dumps({**LAUNCH, **change})}\n{TTIR}")
    with pytest.raises(CaseError, match=message):
        trace_of(path)


def test_ttir_without_a_description(tmp_path):
    path = tmp_path / "twice.ttir"
    path.write_text(TTIR)
    with pytest.raises(CaseError, match="no launch description"):
        trace_of(path)


def test_expressions_have_values():
    c = make_case("c", lambda **_: 0, {"x": "f32[cdiv(N, 4), next_power_of_2(N), max(N, 8) - min(N, 2)]"})
    assert [value(e, {"N": 5}) for e in c.dims("x")] == [2, 8, 6]


def test_limits_of_scalars_are_kept():
    def f(x, n): ...

    c = make_case("f", f, {"x": "f32[R]", "n": "i32 in (1, R + 1)"})
    assert c.holds({"R": 3, "n": 3})
    assert not c.holds({"R": 1, "n": 3})
    assert not c.holds({"R": 3, "n": 0})


def test_the_input_of_a_stride_is_the_one_that_its_name_was_made_of() -> None:
    c = case(größe="f32[M,N] strided")(lambda größe: größe)
    named = [input_of_stride(str(t.attr)) for n, s in c.tensors.items() for t in stride_terms(n, s)]
    assert named == ["größe", "größe"] and input_of_stride("N") == ""


def test_a_wrong_declaration_leaves_the_other_cases_of_a_file(tmp_path) -> None:
    """Alone it raises; in a file that is read for its cases it is one of them, and says what is wrong."""
    lines = (
        'from trilift import case\n\n@case(x="f32[N]")\ndef good(x):\n    return x\n',
        '@case(x="f33[N]")\ndef bad(x):\n    return x\n\n@bad.reference\ndef _(x):\n    return x\n',
        "@case\ndef bare(x):\n    return x\n",
    )
    path = tmp_path / "three.py"
    path.write_text("\n".join(lines))
    found = {c.name: c for c in load_all(str(path))}
    assert list(found) == ["good", "bad", "bare"]
    assert found["good"].mistake is None
    assert str(found["bad"].mistake).startswith("case bad: cannot read x='f33[N]'")
    assert "needs the name of its parameter" in str(found["bare"].mistake)
    assert [c.name for c in load(str(path), ["good"])] == ["good"]
    with pytest.raises(CaseError, match="f33"):
        load(str(path))
    with pytest.raises(CaseError, match="f33"):
        lift(found["bad"])
    with pytest.raises(CaseError, match="f33"):
        case(x="f33[N]")(found["good"].fn)


def test_an_object_that_is_not_a_function_is_refused() -> None:
    with pytest.raises(CaseError, match="not an object of type partial"):
        case(x="f32[N]")(partial(example.fn))
