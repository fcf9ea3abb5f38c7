"""The printed forms of a formula: text, LaTeX and PyTorch source."""

from __future__ import annotations

from collections.abc import Mapping

from lift import Case
from lift.spec import Formula

FORMS = ("text", "latex", "torch")
Forms = dict[str, str]


def printed(formula: Formula, case: Case) -> Forms:
    """One formula in each form."""
    from lift import printer

    shapes = {name: case.dims(name) for name in case.tensors}
    return {
        "text": printer.text(formula, shapes),
        "latex": printer.latex(formula),
        "torch": printer.torch(formula, shapes),
    }


def joined(outputs: Mapping[str, Forms]) -> Forms:
    """All outputs of a case in each form: a single one as it is, several as one equation each."""
    if len(outputs) == 1:
        return next(iter(outputs.values()))
    equations = {name: _equation(name, forms) for name, forms in outputs.items()}
    gap = {"text": "\n", "latex": "\n", "torch": "\n\n\n"}
    return {form: gap[form].join(e[form] for e in equations.values()) for form in FORMS}


def _equation(name: str, forms: Forms) -> Forms:
    """`out0 = softmax(x, -1)`; index notation names its output itself, PyTorch source is a function."""
    text = forms["text"] if forms["text"].startswith(f"{name}[") else f"{name} = {forms['text']}"
    latex = forms["latex"] if "=" in forms["latex"].split("\\", 1)[0] else rf"\mathrm{{{name}}} = {forms['latex']}"
    return {"text": text, "latex": latex, "torch": forms["torch"]}
