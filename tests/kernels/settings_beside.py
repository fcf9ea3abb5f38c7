"""A module beside a case file, of no package, which uses neither PyTorch nor Triton: flags, and counters that move."""

OPTIONS = {"factor": 2.0}
CALLS = 0


class Counter:
    calls = 0


def factor():
    return OPTIONS["factor"]


def counted():
    global CALLS
    CALLS += 1
    return 2.0 if CALLS < 100_000 else 3.0


def counted_in_a_class():
    Counter.calls += 1
    return 2.0 if Counter.calls < 100_000 else 3.0


def length(xs):
    return len(xs)


class Factors:
    def __init__(self):
        self.calls = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.calls += 1
        return 2.0 if self.calls < 100_000 else 3.0


FACTORS = [Factors()]
