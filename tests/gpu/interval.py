"""The 95 % interval of a median, by the order of the values."""


def interval(values):
    """Between which of the values their median lies with 95 %: those that a fair coin passes with 2.5 %."""
    values, below, passed, share = sorted(values), 0, 0.0, 0.5 ** len(values)
    while passed + share <= 0.025:
        passed += share
        share *= (len(values) - below) / (below + 1)
        below += 1
    return (values[below - 1], values[-below]) if below else (values[0], values[-1])
