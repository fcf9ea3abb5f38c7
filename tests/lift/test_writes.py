"""Which arguments a kernel writes through: the operators' kernels write what their names say."""

from __future__ import annotations

from pathlib import Path

import pytest

from trilift.lift.capture.case_files import load
from trilift.lift.capture.run import capture
from trilift.lift.cases.shapes import choose
from trilift.lift.ttir.written_pointers import written

OPERATORS = Path(__file__).parents[2] / "corpus" / "operators"
WRITTEN = {
    ("softmax", "softmax2"): [{"%out_ptr"}],
    ("matmul", "matmul"): [{"%c_ptr"}],
    ("reduce", "column_sum"): [{"%out_ptr"}],
    ("layer_norm", "layer_norm_backward"): [{"%dx_ptr", "%dw_partial_ptr", "%db_partial_ptr"}, {"%dw_ptr", "%db_ptr"}],
}


@pytest.mark.smoke
@pytest.mark.parametrize(("file", "name"), WRITTEN)
def test_pointers_written(file: str, name: str) -> None:
    [case] = load(str(OPERATORS / f"{file}.py"), (name,))
    modules = [launch.module() for launch in capture(case, choose(case, 1)[0]).launches]
    found = [{m.entry.args[k].name for k in written(m) or ()} for m in modules]
    assert found == WRITTEN[file, name]
