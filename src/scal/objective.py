"""The objective, once, for one transition: numbers, or arrays of any library (paper, 2.2 and 4).

    z  = x̄ + μ (h + y − V(s))                  y = r + γV̄(s'), bars mark targets
    L̂ = V(s₀) + x z/μ + β/2 (x − z)²           (comp-func-targ), one sample of it

The exact solvers take Z = E[z], with y = r + γE[V(s')], and its closed forms over h ≥ 0:

    h = [V − y − x/μ]₊                          Z = [x + μ(y − V)]₊

The learner takes the minibatch mean of `composite` and differentiates it.
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


def composite(mu: Any, beta: Any, initial_value: Any, x: Any, z: Any) -> Any:
    """One sample of the composite objective V(s₀) + x z/μ + β/2 (x − z)².

    >>> composite(mu=2.0, beta=4.0, initial_value=1.0, x=3.0, z=2.0)
    6.0
    """
    return initial_value + x * z / mu + 0.5 * beta * (x - z) ** 2
