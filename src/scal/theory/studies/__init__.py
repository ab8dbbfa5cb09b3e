"""All studies by name: `scal theory NAME` and `experiments/` run them from here."""

from scal.theory.report import Study
from scal.theory.studies import (
    convergence,
    fixed_points,
    lemmas,
    linearisation,
    mean_residual,
    networks,
    penalty,
)

STUDIES = {
    study.name: study
    for study in (
        Study(
            "lemmas",
            "Lemmas 1 and 2 on 200 random MDPs: the bound 2ε_x + 4με_L and its slack",
            lemmas.measure,
            lemmas.draw,
        ),
        Study(
            "convergence",
            "Theorem 1: inexact ALM follows its errors, and where finite sums are not enough",
            convergence.measure,
            convergence.draw,
        ),
        Study(
            "penalty",
            "the penalty step against the proximal step over β, for c = 1/2 and c = 1",
            penalty.measure,
            penalty.draw,
        ),
        Study(
            "fixed-points",
            "mass of x and bias of V where SCAL comes to rest, over κ, μ, flow and s0_mix",
            fixed_points.measure,
            fixed_points.draw,
        ),
        Study(
            "linearisation",
            "distance of two-layer networks from their linearisations, over m and R",
            linearisation.measure,
            linearisation.draw,
        ),
        Study(
            "width",
            "one outer iteration of networks with 16 to 16,384 units, and of their linear twins",
            networks.measure_width,
            networks.draw_width,
        ),
        Study(
            "residual",
            "the parts of Theorem 2: one outer iteration over T, exact steps over β and K",
            networks.measure_residual,
            networks.draw_residual,
        ),
        Study(
            "mean-residual",
            "Theorem 2 itself: the mean residual of networks over T, m, β and K",
            mean_residual.measure,
            mean_residual.draw,
        ),
    )
}
