"""Linear arithmetic over the integers, exact and fast, without a solver: the first to be asked.

Products of symbols are variables of their own, with lemmas (p >= 0 and m >= 0 give p*m >= 0). Rows are decided by
Fourier and Motzkin's elimination with rounding: sum c_i x_i + k >= 0 may be divided by gcd(c_i) and k rounded down
(Gomory's cut); clauses by case distinction. Whatever exceeds a limit is "not known".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import gcd, inf

from trilift.lift.runtime import budget
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import TERMS, Term

from .conditions import core, defined, leaves
from .linear_forms import Clause, Item, Polynomial, Row, closed, factors, items, polynomial, product, to_term

ROWS = 160  # of an elimination
CASES = 24  # of a question
LEMMAS = 80  # products of rows
NARROWING_ROUNDS = 4  # of narrowing intervals

Interval = tuple[float, float]  # of integers, or infinite
Box = dict[int, Interval]
Sparse = tuple[int, dict[int, int]]  # constant + sum >= 0


def contradictory(literals: Iterable[Term]) -> bool:
    """True only if no integers meet all of these core conditions."""
    given = closed(i for t in literals for i in items(t))
    return _Search().closes([i for i in given if isinstance(i, Row)], [i for i in given if isinstance(i, Clause)])


def bounds(term: Term, facts: Iterable[Term]) -> tuple[int | None, int | None]:
    """Numbers low <= term <= high wherever the facts hold; None where none was found. Not always the best ones."""
    lower, upper = _sides(term, facts, None)
    lows = [t.attr for t in lower if t.is_const]
    highs = [t.attr for t in upper if t.is_const]
    return max(lows, default=None), min(highs, default=None)


def upper_terms(
    term: Term, facts: Iterable[Term], eliminate: Collection[Term]
) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
    """Lower and upper bounds of an integer term that do not mention the symbols of `eliminate`.

    Guaranteed: wherever the facts hold, low <= term <= high for every low and every high returned. Not guaranteed: that
    there are any, that one of them is the best, that they are reached. First come those with quotients and minima
    of what remains, then those over symbols and products of symbols alone: pid * 64 + lane for pid < (N + 63) // 64,
    lane < 64 is at most (N + 63) // 64 * 64 - 1 and at most N + 62."""
    gone = frozenset(eliminate)
    first, second = _sides(term, facts, gone), _sides(term, facts, gone, derived=True)
    return _distinct(first[0] + second[0]), _distinct(first[1] + second[1])


def _distinct(ts: Sequence[Term]) -> tuple[Term, ...]:
    return tuple(dict.fromkeys(ts))


# ---- search ----------------------------------------------------------------------------------------------------------


class _Search:
    """Case distinction over clauses, at most CASES eliminations."""

    def __init__(self) -> None:
        self.left = CASES

    def closes(self, rows: list[Row], clauses: list[Clause]) -> bool:
        """Whether the rows and clauses contradict each other."""
        rows, clauses = list(rows), list(clauses)
        while True:
            box = narrow(rows)
            if box is None:
                return True
            forced, clauses = _propagate(clauses, box)
            if forced is None:
                return True
            if not forced:
                break
            rows += [i for i in forced if isinstance(i, Row)]
            clauses += [i for i in forced if isinstance(i, Clause)]
        if self.left <= 0:
            return False
        self.left -= 1
        if infeasible(rows, box):
            return True
        if not clauses:
            return False
        clauses.sort(key=lambda c: len(c.alternatives))
        for alternative in clauses[0].alternatives:
            more = [i for i in alternative if isinstance(i, Row)], [i for i in alternative if isinstance(i, Clause)]
            if not self.closes(rows + more[0], clauses[1:] + more[1]):
                return False
        return True


def _propagate(clauses: list[Clause], box: Box) -> tuple[list[Item] | None, list[Clause]]:
    """The consequences of clauses with one possible alternative (None: a clause has none), and the other clauses."""
    forced: list[Item] = []
    rest: list[Clause] = []
    for c in clauses:
        possible = tuple(a for a in c.alternatives if not any(_excluded(i, box) for i in a))
        if not possible:
            return None, []
        if len(possible) == 1:
            forced += possible[0]
        elif not any(all(_certain(i, box) for i in a) for a in possible):
            rest.append(Clause(possible))
    return forced, rest


def _excluded(item: Item, box: Box) -> bool:
    if isinstance(item, Clause):
        return all(any(_excluded(i, box) for i in a) for a in item.alternatives)
    low, high = _interval(item.polynomial, box)
    return high < 0 or (item.equal and low > 0)


def _certain(item: Item, box: Box) -> bool:
    if isinstance(item, Clause):
        return any(all(_certain(i, box) for i in a) for a in item.alternatives)
    low, high = _interval(item.polynomial, box)
    return low >= 0 and (not item.equal or high <= 0)


# ---- intervals -------------------------------------------------------------------------------------------------------

EVERYTHING: Interval = (-inf, inf)


def _times(c: float, x: float) -> float:
    return 0 if c == 0 or x == 0 else c * x


def _interval(p: Polynomial, box: Box) -> Interval:
    low: float = p.constant
    high: float = p.constant
    for m, c in p.terms.items():
        a, b = box.get(m, EVERYTHING)
        low += c * a if c > 0 else c * b  # c is not 0, and inf - inf cannot occur
        high += c * b if c > 0 else c * a
    return low, high


def narrow(rows: Sequence[Row]) -> Box | None:
    """Intervals of the monomials that follow from single rows, in a few rounds; None if one is empty."""
    box: Box = {}
    both = [p for row in rows for p in (row.polynomial, *((row.polynomial.scaled(-1),) if row.equal else ()))]
    sides = [(p.constant, tuple(p.terms.items())) for p in both]
    for _ in range(NARROWING_ROUNDS):
        changed = False
        for constant, terms in sides:
            step = _tighten(constant, terms, box)
            if step is None:
                return None
            changed |= step
        changed |= _multiply(rows, box)
        if not changed:
            break
    return box if all(low <= high for low, high in box.values()) else None


def _tighten(constant: int, terms: tuple[tuple[int, int], ...], box: Box) -> bool | None:
    """constant + sum >= 0 bounds each of its monomials by the largest value of the rest."""
    free: tuple[int, int] | None = None
    top = constant
    for m, c in terms:
        interval = box.get(m, EVERYTHING)
        reach = interval[c > 0]
        if reach == inf or reach == -inf:
            if free is not None:
                return False
            free = m, c
        else:
            top += c * reach  # type: ignore[assignment]  # what is finite is an int
    if free is None and top < 0:
        return None
    changed = False
    for m, c in terms if free is None else (free,):
        a, b = box.get(m, EVERYTHING)
        rest = top if free is not None else top - c * int(b if c > 0 else a)
        if c > 0 and (new := -(rest // c)) > a:  # c*x >= -rest
            box[m], changed = (new, b), True
        elif c < 0 and (new := rest // -c) < b:
            box[m], changed = (a, new), True
    return changed


def _multiply(rows: Sequence[Row], box: Box) -> bool:
    """Intervals of products from those of their factors."""
    changed = False
    for m in {m for row in rows for m in row.polynomial.terms if m < 0}:
        exact: Interval = (1, 1)
        for i in factors(m):
            a, b = box.get(i, EVERYTHING)
            corners = [_times(x, y) for x in exact for y in (a, b)]
            exact = min(corners), max(corners)
        low, high = exact
        a, b = box.get(m, EVERYTHING)
        if low > a or high < b:
            box[m], changed = (max(a, low), min(b, high)), True
    return changed


# ---- elimination -----------------------------------------------------------------------------------------------------


def infeasible(rows: Sequence[Row], box: Box) -> bool:
    """True only if the rows have no solution in the box."""
    return _eliminate(_system(_solved(rows, box), box), None) is None


def _solved(rows: Sequence[Row], box: Box) -> list[Row]:
    """The same without symbols that an equation gives and no product mentions: what is known of min(a, b) = a is known
    of a, whose products occur."""
    multiplied = {i for row in rows for m in row.polynomial.terms if m < 0 for i in factors(m)}
    equations = [row.polynomial for row in rows if row.equal]
    others = [row.polynomial for row in rows if not row.equal]
    kept: list[Polynomial] = []
    while equations:
        p = equations.pop()
        alone = (m for m, c in p.terms.items() if c in (1, -1) and m >= 0 and m not in multiplied)
        if (variable := next(alone, None)) is None:
            kept.append(p)
            others += _transferred(p, box)
            continue
        others += _inside(variable, box)
        for system in (equations, others, kept):
            for k, q in enumerate(system):
                if c := q.terms.get(variable):
                    system[k] = q + p.scaled(-c * p.terms[variable])
    return [*(Row(True, p) for p in kept), *(Row(False, p) for p in others)]


def _transferred(p: Polynomial, box: Box) -> list[Polynomial]:
    """p = x + r = 0: what the box says of x, said of -r."""
    units = [(m, c) for m, c in p.terms.items() if c in (1, -1) and m >= 0]
    return [q + p.scaled(-c * q.terms[m]) for m, c in units for q in _inside(m, box)]


def _inside(m: int, box: Box) -> list[Polynomial]:
    """The bounds of a monomial in the box: polynomials that are at least 0."""
    low, high = box.get(m, EVERYTHING)
    below = [Polynomial(-int(low), {m: 1})] if low != -inf else []
    return below + ([Polynomial(int(high), {m: -1})] if high != inf else [])


def _system(rows: Sequence[Row], box: Box) -> list[Row]:
    """The rows, the products that follow from them, and the box."""
    every = list(rows) + _lemmas(rows, box)
    for m in sorted({m for row in every for m in row.polynomial.terms}):
        every += [Row(False, p) for p in _inside(m, box)]
    return every


def _lemmas(rows: Sequence[Row], box: Box) -> list[Row]:
    """p >= 0 and m >= 0 give p*m >= 0; p = 0 gives p*m = 0. Only products whose monomials occur, or are of lower degree
    than the one that asks for them, so that this ends."""
    known = {m for row in rows for m in row.polynomial.terms}
    queue = sorted(m for m in known if m < 0)
    out: list[Row] = []
    done: set[tuple[int, int]] = set()
    for asked in queue:
        degree = len(factors(asked))
        for k, row in enumerate(rows):
            for m in row.polynomial.terms:
                rest = _cofactor(asked, m)
                if rest is None or (k, rest) in done:
                    continue
                if not row.equal and any(box.get(i, EVERYTHING)[0] < 0 for i in factors(rest)):
                    continue
                p = row.polynomial * Polynomial(0, {rest: 1})
                new = [n for n in p.terms if n not in known]
                if any(len(factors(n)) >= degree for n in new):
                    continue
                done.add((k, rest))
                known.update(new)
                queue += [n for n in new if n < 0]
                out.append(Row(row.equal, p))
                if len(out) >= LEMMAS:
                    return out
    return out


def _cofactor(m: int, divisor: int) -> int | None:
    """The monomial m / divisor, if it is one and not 1."""
    left = list(factors(m))
    for i in factors(divisor):
        if i not in left:
            return None
        left.remove(i)
    return product(*left) if left else None


def _eliminate(rows: Sequence[Row], keep: Collection[int] | None) -> list[Sparse] | None:
    """The consequences for the kept monomials once the others are eliminated; None if the rows have no solution. `keep`
    None: only whether they have. Rows that an exceeded limit drops are consequences that are not drawn."""
    kept = keep or ()
    solved = _substitute_equal(rows, kept)
    if solved is None:
        return None
    table: dict[tuple[tuple[int, int], ...], int] = {}
    for row in solved:
        if not _put(table, row):
            return None
    while True:
        variable = _cheapest(table, kept)
        if variable is None:
            return [(k, dict(key)) for key, k in table.items()]
        if not _remove(table, variable):
            return None
        if len(table) > ROWS:
            return [(k, dict(key)) for key, k in table.items() if all(m in kept for m, _ in key)]


def _substitute_equal(rows: Sequence[Row], kept: Collection[int]) -> list[Sparse] | None:
    """Inequalities only: equations with a coefficient 1 or -1 are solved, others become two inequalities."""
    equations = [(r.polynomial.constant, dict(r.polynomial.terms)) for r in rows if r.equal]
    others = [(r.polynomial.constant, dict(r.polynomial.terms)) for r in rows if not r.equal]
    while equations:
        constant, terms = equations.pop()
        if not terms:
            if constant:
                return None
            continue
        g = gcd(*terms.values())
        if constant % g:
            return None
        constant, terms = constant // g, {m: c // g for m, c in terms.items()}
        variable = next((m for m, c in terms.items() if c in (1, -1) and m not in kept), None)
        if variable is None:
            others += [(constant, terms), (-constant, {m: -c for m, c in terms.items()})]
            continue
        sign = terms[variable]
        for system in (equations, others):
            for k, (constant_, terms_) in enumerate(system):
                if c := terms_.get(variable):
                    system[k] = _sum(constant_, terms_, 1, constant, terms, -c * sign)
    return others


def _sum(k: int, x: dict[int, int], a: int, n: int, y: dict[int, int], b: int) -> Sparse:
    """a*x + b*y."""
    out = {m: a * c for m, c in x.items()} if a != 1 else dict(x)
    for m, c in y.items():
        s = out.get(m, 0) + b * c
        if s:
            out[m] = s
        else:
            del out[m]
    return a * k + b * n, out


def _put(table: dict[tuple[tuple[int, int], ...], int], row: Sparse) -> bool:
    """Adds a row, rounded; only the strongest of parallel rows is kept. False if it contradicts the table."""
    constant, terms = row
    if not terms:
        return constant >= 0
    g = gcd(*terms.values())
    if g > 1:
        constant, terms = constant // g, {m: c // g for m, c in terms.items()}
    key = tuple(sorted(terms.items()))
    old = table.get(key)
    if old is None or constant < old:
        table[key] = constant
        opposite = table.get(tuple((m, -c) for m, c in key))
        return opposite is None or constant + opposite >= 0
    return True


def _cheapest(table: dict[tuple[tuple[int, int], ...], int], kept: Collection[int]) -> int | None:
    """The variable whose elimination is exact and adds fewest rows."""
    counts: dict[int, list[int]] = {}
    for key in table:
        for m, c in key:
            if m not in kept:
                n = counts.setdefault(m, [0, 0, 0])
                n[c > 0] += 1
                n[2] |= c not in (1, -1)
    cost = lambda m: (counts[m][0] * counts[m][1] - counts[m][0] - counts[m][1] + 4 * counts[m][2], m)  # noqa: E731
    return min(counts, key=cost) if counts else None


def _remove(table: dict[tuple[tuple[int, int], ...], int], variable: int) -> bool:
    """Replaces the rows with the variable by the sums in which it cancels; False at a contradiction."""
    lower: list[Sparse] = []
    upper: list[Sparse] = []
    for key in [key for key in table if any(m == variable for m, _ in key)]:
        terms = dict(key)
        (lower if terms[variable] > 0 else upper).append((table.pop(key), terms))
    budget.count("row", len(lower) * len(upper))
    for k, x in lower:
        for n, y in upper:
            a, b = -y[variable], x[variable]
            g = gcd(a, b)
            if not _put(table, _sum(k, x, a // g, n, y, b // g) if a == g else _sum(n, y, b // g, k, x, a // g)):
                return False
        if len(table) > ROWS:
            return True
    return True


# ---- bounds ----------------------------------------------------------------------------------------------------------


def _sides(
    term: Term, facts: Iterable[Term], gone: frozenset[Term] | None, derived: bool = False
) -> tuple[list[Term], list[Term]]:
    """Lower and upper bounds of the term once symbols are eliminated: all of them for None."""
    value = T.node("size", (), ("value", term.id), T.INT)
    p = polynomial(core(term))
    given = closed(
        [Row(True, p - Polynomial(0, {value.id: 1})), *(i for f in facts if defined(f) for i in items(core(f)))]
    )
    rows = [i for i in given if isinstance(i, Row)]
    clauses = [i for i in given if isinstance(i, Clause)]
    while True:
        box = narrow(rows)
        if box is None:
            return [], []
        forced, clauses = _propagate(clauses, box)
        if not forced:
            break
        rows += [i for i in forced if isinstance(i, Row)]
        clauses += [i for i in forced if isinstance(i, Clause)]
    system = _system(rows, box)
    keep = {m for row in system for m in row.polynomial.terms if _stays(m, gone, derived)} | {value.id}
    table = _eliminate(system, keep) or []
    lower: list[Term] = []
    upper: list[Term] = []
    for constant, terms in table:
        c = terms.pop(value.id, 0)
        rest = Polynomial(constant, terms)
        if c > 0:  # c*value >= -rest
            lower.append(T.mul(-1, T.make("floordiv", to_term(rest), c)) if c > 1 else to_term(rest.scaled(-1)))
        elif c < 0:
            upper.append(T.make("floordiv", to_term(rest), -c) if c < -1 else to_term(rest))
    return lower, upper


def _stays(m: int, gone: frozenset[Term] | None, derived: bool) -> bool:
    if gone is None:
        return False
    terms = [TERMS[i] for i in factors(m)]
    return not any(leaves(t) & gone or (derived and t.args and leaves(t) != {t}) for t in terms)
