"""The Z-function and the slack that minimises the augmented Lagrangian (paper, section 2.2).

    z = x + μ (h + r + γV(s') − V(s))          one transition
    Z = E[z | s, a]                            the same with γE[V(s')] in place of γV(s')
    h = [V − r − γE[V(s')] − x/μ]₊             closed form of the minimiser over h ≥ 0
    Z = [x + μ (r + γE[V(s')] − V)]₊           and what it makes of Z

Written for numbers and arrays of any library alike: the exact solvers and the learner share it.
"""

from typing import Any


def z(mu: Any, x: Any, h: Any, target: Any, value: Any) -> Any:
    """z for `target` = r + γV(s'), or Z for `target` = r + γE[V(s')].

    >>> z(mu=2.0, x=1.0, h=0.5, target=3.0, value=4.0)
    0.0
    """
    return x + mu * (h + target - value)


def closed_slack(mu: Any, x: Any, target: Any, value: Any) -> Any:
    """The h ≥ 0 that minimises z².

    >>> closed_slack(mu=2.0, x=1.0, target=3.0, value=4.0)
    0.5
    """
    gap = value - target - x / mu
    return gap * (gap > 0)
