"""Defects that no test notices and that none has to: each was read, and is here with the reason.

A defect that is neither noticed nor here is open: a test is missing, or the tests that were run do not reach it.
"""

from __future__ import annotations

KINDS = {
    "equivalent": "the same results for every input",
    "refuses more": "less is proved, nothing wrong",
    "guess": "what it changes proposes something that is proved or compared afterwards",
    "slower": "the same results in more steps, or in another form",
    "error": "stops with an error of Python where it would refuse",
    "outside": "not on the way to a verdict: a record, a budget",
}
SURVIVORS: dict[str, tuple[str, str]] = {  # key of the defect -> kind, function and reason
    "32fad31a135c": (
        "equivalent",
        "pieces: without the `raise`, `a.cases` meets the same question below and raises it there",
    ),
    "1d758c0a8ebd": (
        "equivalent",
        "_bounded: the guard that goes follows from those that stay, whether or not they bound a variable",
    ),
    "8868481093a1": (
        "guess",
        "_regrouped: x = d k q + (x - d k q) for every k and q; floor_division proves the remainder's range",
    ),
    "4d5d46c5e1ad": ("equivalent", "wrapped: the lowest number of a dtype is 0 or negative"),
    "92c7dbb8de7d": (
        "error",
        "recognise: results that are partly terms are compared with numbers, which numpy refuses",
    ),
    "370adc85e631": ("slower", "_replaced: operations that nothing uses stay in the copied region"),
    "f57bb23a1ff8": (
        "refuses more",
        "_atom_nonnegative: an integer is taken for nonnegative only where it is positive",
    ),
    "b1f395ad919d": ("slower", "nameable: quotients by constants get names of their own, defined as what they are"),
    "256e40647da5": ("equivalent", "_from_facts: coefficients 0 are left out by the next sum of polynomials"),
    "15b4fbbddc1a": ("guess", "_padded: `aligned` and `empty` prove whatever fold it proposes"),
    "db7dbc3a43d7": ("outside", "asking: a record of what was asked, which reports show"),
    "7f97dd42949c": ("slower", "_last: prod[v <= hi] f = f(hi) prod[v <= hi - 1] f holds for every bound hi"),
    "cc01509fe729": (
        "guess",
        "a real function that is tried for a number of the host; `agrees` compares its term with every run",
    ),
    "8f95161e7f15": ("refuses more", "substituted: a power 0 that stays makes equal polynomials look different"),
    "4c891392a955": ("outside", "Run.spend: how many steps a product of matrices costs"),
    "708267821fcc": ("equivalent", "absolute: x and -x are the same at 0"),
    "3a49c2ab39aa": ("equivalent", "_gone: coefficients are not exactly 1e-13"),
    "9dbfb3feb48c": ("refuses more", "flat: `_window` finds no window of a width that is not hi + 1"),
    "fa73fdf24c0e": (
        "equivalent",
        "equated: after t is taken from t ** 2, the value still has t in it and is not used",
    ),
    "3ab52bdddfee": ("error", "logarithm: of a negative factor, math.log raises; positive ones may come out"),
    "5f8fa4bdd9f8": ("refuses more", "floor_division: 0 < R is more than 0 <= R, and R = 0 is seen before"),
    "c80e1a939bcf": ("slower", "_check: numbers that met other questions, which may answer the next one at once"),
    "4c4d9de601be": (
        "guess",
        "real: a term that is tried for a number of the host; `agrees` compares it with every run",
    ),
    "ded9cf6ab344": ("refuses more", "number_of_each: 0 < n + i is less than i < n says, where 0 <= i"),
    "a8ea71d40d09": ("equivalent", "_shifted: by the width of the dtype, a shift gives 0 or the sign, as in PyTorch"),
    "cbafed3a748c": ("guess", "bases: more terms are tried; `agrees` compares what is found with every run"),
    "a4f1e420e944": ("error", "_uniform_of: a value of two sources cannot be unpacked as one"),
    "ef2b63f9647e": ("guess", "_alternatives: `empty` and `_beats` prove what the alternatives are used for"),
    "5b006998b3a3": ("error", "_dot: numpy cannot multiply terms and numbers"),
    "7920d85d195b": ("equivalent", "_where: conditions of `where` are truths, as comparisons and i1 values are"),
    "584d320ac6f6": ("error", "_distances: nothing can be divided by the polynomial 0"),
    "65ea5548919a": ("slower", "_nonlinear: which of two ways of asking z3 is taken"),
    "f93a820f042c": ("guess", "_model: numbers for messages and for runs, which an execution confirms"),
}
