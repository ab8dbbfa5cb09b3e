"""The studies, their committed numbers, and what the documents say of them."""

import json
import re
from pathlib import Path

import pytest

from scal.cli import main
from scal.theory import ntk, report
from scal.theory.report import Slope
from scal.theory.studies import STUDIES, mean_residual
from scal.theory.studies.problems import small

ROOT = Path(__file__).parents[2]


def stem(name):
    return f"theory_{name.replace('-', '_')}"


def committed(name):
    return json.loads((ROOT / "experiments" / "results" / f"{stem(name)}.json").read_text())


@pytest.mark.parametrize("name", STUDIES)
def test_committed_numbers_are_as_predicted(name):
    stored = committed(name)
    assert stored["study"] == name
    assert stored["slopes"]
    missed = [slope for slope in stored["slopes"] if not Slope(**slope).holds]
    assert missed == []
    assert re.fullmatch(r"[0-9a-f]{40}", stored["provenance"]["commit"])


def test_all_studies_together_take_less_than_ten_minutes():
    """Of processor time, so that other work on the machine does not decide."""
    spent = [committed(name)["cpu_seconds"] for name in STUDIES]
    assert min(spent) > 0
    assert sum(spent) < 600


def test_lemmas_hold_in_the_committed_numbers():
    data = committed("lemmas")["data"]
    assert max(data["lemma_1_worst"].values()) < 1e-8
    for slack in ("noisy", "closed"):
        assert data[slack]["iterates"] == 1000
        assert data[slack]["violations"] == 0
        pairs = zip(data[slack]["distance"], data[slack]["bound"], strict=True)
        assert all(distance < bound for distance, bound in pairs)


def test_penalty_forms_hold_to_1e_8_in_the_committed_numbers():
    for rows in committed("penalty")["data"]["problems"].values():
        assert max(rows["violation"]) < 1e-8
        assert min(rows["printed"]) > 1e-10  # the printed form is not exact at any β


def test_the_widths_reach_from_16_to_16384():
    for name in ("linearisation", "width"):
        assert committed(name)["data"]["m"] == [16, 64, 256, 1024, 4096, 16384]


def test_theorem_2_at_small_size():
    """More inner steps bring the mean residual down to that of exact steps, which β lowers."""
    mdp = small()["random"]
    trial = mean_residual.Trial(mdp, ntk.embed(mdp, 8), seed=0)
    base = mean_residual.Point(T=32, m=32, beta=4.0, K=8)
    short, long = (trial.mean(base._replace(T=T)) for T in (32, 2048))
    assert short.shape == (mean_residual.SEEDS,)
    assert len(set(short)) == len(short)
    floor = trial.exact(base)
    assert floor == pytest.approx(trial.at_rest(base.beta))  # from the first step on, at this β
    assert floor < long.min()
    assert long.max() < 1.7 * floor
    excess = (short.mean() - floor) / (long.mean() - floor)
    assert excess > (2048 / 32) ** 0.5  # the bound is T^−1/2
    halved = trial.mean(base._replace(T=2048, beta=2.0))
    assert long.mean() < 0.5 * halved.mean()  # the bound is β⁻¹


def test_mean_residuals_lie_above_their_floors_and_too_large_a_penalty_costs_inner_steps():
    stored = committed("mean-residual")
    assert stored["parameters"]["seeds"] >= 3
    for rows in stored["data"]["problems"].values():
        for row in rows.values():
            for low, mean, high, floor in zip(
                row["low"], row["mean"], row["high"], row["floor"], strict=True
            ):
                assert low < mean < high
                assert mean > floor
        over_T, over_beta = (dict(zip(rows[k]["grid"], rows[k]["mean"], strict=True))
                             for k in ("T", "beta"))  # fmt: skip
        assert over_beta[64] > 3 * over_beta[8]
        assert over_beta[64] == pytest.approx(over_T[128], rel=0.15)  # T/β = 8 in both
        assert over_beta[32] == pytest.approx(over_T[256], rel=0.15)  # T/β = 16 in both
        assert rows["K"]["last"][-1] == pytest.approx(rows["K"]["floor"][-1], rel=0.15)


@pytest.mark.parametrize("name", STUDIES)
def test_figures_are_drawn_from_the_numbers_alone(name, tmp_path):
    stored = committed(name)
    slopes = [Slope(**slope) for slope in stored["slopes"]]
    files = []
    for number in range(2):
        files.append(tmp_path / f"{number}.svg")
        report.save(STUDIES[name].draw(stored["data"], slopes), files[-1])
    assert files[0].read_bytes() == files[1].read_bytes()
    assert len(files[0].read_bytes()) < 400_000
    assert (ROOT / "docs" / "figures" / f"{stem(name)}.svg").is_file()


def test_the_table_in_the_docs_is_the_measured_one():
    """Every slope of every study has its row, with the numbers of the committed files."""
    text = (ROOT / "docs" / "theory.md").read_text()
    rows = re.findall(
        r"^\| ([\w-]+) \| (.+) \| (\S+) \| (\S+) … (\S+) \| (\S+) \| (≤ )?(\S+) \|$",
        text,
        re.MULTILINE,
    )
    expected = [
        (
            name,
            slope["quantity"],
            slope["variable"],
            f"{slope['low']:.4g}",
            f"{slope['high']:.4g}",
            f"{slope['measured']:.2f}".replace("-", "−"),
            "≤ " if slope["kind"] == "bound" else "",
            f"{slope['predicted']:g}".replace("-", "−"),
        )
        for name in STUDIES
        for slope in committed(name)["slopes"]
    ]
    assert rows == expected


def test_slopes_are_judged_by_their_kind():
    def judged(measured, predicted, kind):
        return Slope("", "", measured, predicted, kind, 1, 2).holds

    assert judged(-2.0, -1.0, "bound")
    assert not judged(-0.5, -1.0, "bound")
    assert judged(-1.05, -1.0, "exact")
    assert not judged(-2.0, -1.0, "exact")


def test_command_lists_the_studies(capsys):
    assert main(["theory"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(STUDIES)


def test_command_runs_a_study(capsys, tmp_path):
    assert main(["theory", "penalty", "--out", str(tmp_path / "new")]) == 0
    assert "‖x̃ − x̂‖²" in capsys.readouterr().out
    written = json.loads((tmp_path / "new" / "theory_penalty.json").read_text())
    assert written["slopes"] == committed("penalty")["slopes"]
    assert (tmp_path / "new" / "theory_penalty.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["chess"], "study is 'chess'; use one of lemmas, convergence"),
        (["penalty", "--seed", "-1"], "seed is -1; use a whole number of at least 0"),
        (["penalty", "--out", "FILE"], "is a file or lies in one; name another"),
    ],
)
def test_bad_input_is_one_sentence(capsys, tmp_path, arguments, sentence):
    (tmp_path / "file").touch()
    arguments = [str(tmp_path / "file") if word == "FILE" else word for word in arguments]
    assert main(["theory", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
