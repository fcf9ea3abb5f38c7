"""Stand-ins for parts that a machine may lack: this package, and in Triton's interpreter its tuners, libdevice,
bf16."""

from __future__ import annotations

from collections.abc import Sequence

from .facts import Facts

BITS = "Triton's interpreter computes on the bits of bf16 and fp8 as if they were whole numbers"
STAND_IN = """try:
    import trilift  # noqa: F401
except ImportError:  # it only says what the functions take

    def case(**_specs: Any) -> Any:
        return lambda fn: types.SimpleNamespace(fn=fn, reference=lambda reference: reference)

    sys.modules["trilift"] = types.ModuleType("trilift")
    sys.modules["trilift"].case = case"""

NUMPY = {name: f"np.{name}" for name in ("tanh", "rint", "sqrt", "exp", "exp2", "log", "log2", "log10", "log1p",
         "expm1", "sin", "cos", "tan", "sinh", "cosh", "floor", "ceil", "trunc", "fmod", "hypot")}  # fmt: skip
NUMPY |= {"asin": "np.arcsin", "acos": "np.arccos", "atan": "np.arctan", "atan2": "np.arctan2", "asinh": "np.arcsinh",
          "acosh": "np.arccosh", "atanh": "np.arctanh", "fabs": "np.abs", "abs": "np.abs", "pow": "np.power",
          "isnan": "np.isnan", "isinf": "np.isinf", "isfinited": "np.isfinite", "finitef": "np.isfinite",
          "rsqrt": "lambda x: 1 / np.sqrt(x)", "add_rn": "np.add", "sub_rn": "np.subtract",
          "mul_rn": "np.multiply", "div_rn": "np.divide", "rcp_rn": "np.reciprocal", "sqrt_rn": "np.sqrt",
          "copysign": "np.copysign",
          "fast_expf": "np.exp", "fast_logf": "np.log", "fast_dividef": "np.divide", "round": "np.round",
          "cbrt": "np.cbrt", "signbit": "np.signbit", "nearbyint": "np.rint", "fmax": "np.fmax", "fmin": "np.fmin",
          "erf": "lambda x: torch.special.erf(torch.from_numpy(np.array(x))).numpy()",
          "erfc": "lambda x: torch.special.erfc(torch.from_numpy(np.array(x))).numpy()",
          "erfinv": "lambda x: torch.special.erfinv(torch.from_numpy(np.array(x))).numpy()"}  # fmt: skip


LOAD = "interpreter.InterpreterBuilder.create_masked_load"
ASSIGN = "interpreter.ASTTransformer.visit_Assign"
COMPUTE = "interpreter.InterpreterBuilder.binary_op"


def installed(facts: Sequence[Facts]) -> str:
    """The function that puts the stand-ins in place."""
    lines = [f"{LOAD} = guarded({LOAD})"]
    imports = ["from triton.runtime import interpreter"]
    if any(f.configs > 1 for f in facts):
        imports.append("from triton.runtime.autotuner import Autotuner")
        lines.append("Autotuner.run = without_timing")
    for wanted, name, stand_in in (
        (any(f.narrow for f in facts), "_convert_float", "rounding_to_nearest"),
        (any(f.floats for f in facts), "_implicit_cvt", "with_floats"),
        (any(n in NUMPY for f in facts for n in f.libdevice), "_patch_lang", "with_copies"),
        (any("unnamed" in f.uses for f in facts), "_patch_lang", "with_language"),
    ):
        if wanted:
            imports.append("from triton.runtime import interpreter")
            lines.append(f"interpreter.{name} = {stand_in}(interpreter.{name})")
    if any("truth" in f.uses for f in facts):
        lines.append(f"{COMPUTE} = comparing({COMPUTE})")
    visits = (
        ("not", "visit_UnaryOp", "not_of_tensors"),
        ("and", "visit_BoolOp", "connected_tensors"),
        ("attribute", "visit_Attribute", "attributes_of_numbers"),
        ("least", "visit_Call", "least_of_blocks"),
    )
    used = [(visit, stand_in) for use, visit, stand_in in visits if any(use in f.uses for f in facts)]
    lines += [f"interpreter.ASTTransformer.{visit} = {stand_in}" for visit, stand_in in used]
    if used:
        lines.append(f"{ASSIGN} = visiting_what_is_assigned({ASSIGN})")
    for name in sorted({n for f in facts for n in f.libdevice}):
        if name not in NUMPY:
            continue
        imports.append("from triton.language.extra import cuda, libdevice")
        lines.append(f"libdevice.{name} = cuda.libdevice.{name} = elementwise({NUMPY[name]})")
    body = [*dict.fromkeys(imports), "", *lines]
    doc = '"""Call this before importing the kernels: they may import functions by name."""'
    head = f"def complete_interpreter() -> None:\n    {doc}\n"
    return head + "\n".join(f"    {line}" for line in body)


def lacking(facts: Facts) -> str:
    """Why Triton's interpreter cannot run the kernels, "" where it can."""
    missing = [n for n in facts.libdevice if n not in NUMPY]
    return BITS if facts.raw else f"Triton's interpreter has no libdevice.{missing[0]}" if missing else ""
