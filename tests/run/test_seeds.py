"""Several seeds in one program repeat, resume, and tell the same story as one agent."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scal
from scal.cli import main
from scal.envs.compiled import FUNCTIONAL
from scal.learn import networks, policy
from scal.learn.metrics import Metrics
from scal.run import compiled, record, training
from scal.run.compiled import Trace
from scal.run.seeds import Seeds
from scal.run.siblings import Siblings
from tests.run.events import scalars

FAST = {
    "width": 16, "lookahead_width": 16, "batch_size": 16, "replay_size": 10_000, "warmup": 1_000,
    "anneal_steps": 4_000,
}  # fmt: skip
SMALL = [
    "--width", "16", "--lookahead-width", "16", "--batch-size", "16", "--anneal-steps", "4000",
    "--quiet",
]  # fmt: skip


def test_from_training_to_evaluation(tmp_path, monkeypatch, capsys):
    """Train 2,000 + resume 2,000 equals train 4,000, in every array and every record."""
    monkeypatch.chdir(tmp_path)
    train = ["train", "CartPole-v1", "--seed", "3", "--seeds", "2", *SMALL]
    assert main([*train, "--steps", "2000", "--out", "half", "--tensorboard"]) == 0
    assert "over 2 seeds after 2,000" in capsys.readouterr().out
    assert main(["resume", "half", "--steps", "2000", "--quiet"]) == 0
    assert main([*train, "--steps", "4000"]) == 0
    whole = tmp_path / "runs" / "CartPole-v1-3-4"
    assert training.digest(tmp_path / "half") == training.digest(whole)
    log = whole / "log.jsonl"
    assert (tmp_path / "half/log.jsonl").read_text() == log.read_text()
    assert (whole / "curve.png").stat().st_size > 1_000
    written = {step for step, name, _ in scalars(tmp_path / "half/tensorboard") if name == "mass"}
    assert written == {1_000, 2_000, 3_000, 4_000}

    capsys.readouterr()
    assert main(["eval", "half", "--episodes", "3", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert list(report) == ["mean", "std", "min", "episodes", "returns", "seeds"]
    assert np.shape(report["returns"]) == (2, 3)
    np.testing.assert_allclose(report["seeds"], np.mean(report["returns"], axis=1))
    assert (report["mean"], report["min"]) == (np.mean(report["seeds"]), min(report["seeds"]))
    assert main(["eval", "half", "--episodes", "3"]) == 0
    expected = f"return {report['mean']:.1f} ± {report['std']:.1f} over 2 seeds, worst seed "
    assert capsys.readouterr().out.startswith(expected + f"{report['min']:.1f}, 3 episodes each")

    with pytest.raises(ValueError, match="holds several seeds; use"):
        scal.SCAL.load(tmp_path / "half" / "checkpoints")
    one, *_ = record.read(log)
    lines = []
    scal.SCAL("CartPole-v1", **FAST).learn(1_000, record=lines.append)
    assert list(one) == [*lines[0], "returns"]


def test_seeds_follow_the_first_and_differ():
    """During warm-up nothing but the seed decides, whoever else is in the program."""
    pair = next(Seeds("CartPole-v1", 2, seed=3, **FAST).iterate(1_000))["returns"]
    alone = next(Seeds("CartPole-v1", 1, seed=4, **FAST).iterate(1_000))["returns"]
    assert pair[0] != pair[1] == alone[0]


def test_environments_side_by_side_share_the_steps_and_the_updates():
    """Four copies make the interactions of one, with as many updates, as in the other loop."""
    options = FAST | {"environments": 4, "warmup": 100}
    seeds = Seeds("CartPole-v1", 2, seed=3, **options)
    assert [line["step"] for line in seeds.iterate(400, every=200)] == [200, 400]
    learner = seeds.runs.learner
    assert learner.updates.tolist() == [300, 300]
    assert learner.statistics.steps.tolist() == [400, 400]
    assert learner.replay.stored.tolist() == [100, 100]
    fewer = Seeds("CartPole-v1", 1, **options, update_every=2)
    list(fewer.iterate(400, every=200))
    assert fewer.runs.learner.updates.tolist() == [150]
    more = Seeds("CartPole-v1", 1, **options, update_every=2, updates=3)
    list(more.iterate(400, every=200))
    assert more.runs.learner.updates.tolist() == [450]
    agent = seeds.agent(1).learn(40)
    assert int(agent.learner.updates) == 340
    assert int(more.agent(0).learn(40).learner.updates) == 510
    rounded_up = [line["step"] for line in seeds.iterate(10, every=5)]
    assert rounded_up == [408, 412]
    with pytest.raises(ValueError, match="environments is 4 and update_every 3; in a compiled run"):
        next(Seeds("CartPole-v1", 1, **options, update_every=3).iterate(400))


@pytest.fixture
def stretches(monkeypatch):
    """What `advance` is asked for; it answers with returns nan and 5, and metrics 1 and 3."""
    calls = []

    def advance(runs, options, env, config, steps, learning):
        calls.append((steps, learning))
        metrics = Metrics(*(jnp.array([1.0, 3.0]) for _ in Metrics._fields)) if learning else ()
        return runs, Trace(metrics, jnp.array([jnp.nan, 5.0]))

    monkeypatch.setattr(compiled, "advance", advance)
    return calls


def test_one_length_of_stretches(stretches):
    seeds = Seeds("CartPole-v1", 2, **FAST | {"warmup": 300})
    steps = [line["step"] for line in seeds.iterate(1_200, every=500)]
    assert steps == [500, 1_000]
    assert stretches == [(100, False)] * 3 + [(100, True)] * 9
    assert [line["step"] for line in seeds.iterate(300, every=500)] == [1_500]
    assert seeds.steps == 1_500


def test_records_leave_out_what_has_not_happened(stretches):
    seeds = Seeds("CartPole-v1", 2, **FAST)
    filling, learning = seeds.iterate(2_000)
    assert filling["returns"] == learning["returns"] == [None, 5.0]
    assert filling["return"] == learning["return"] == 5.0
    assert {filling[name] for name in Metrics._fields} == {0.0}
    assert {learning[name] for name in Metrics._fields} == {2.0}


@pytest.mark.parametrize("env", sorted(FUNCTIONAL))
def test_both_loops_have_the_same_options(env):
    assert Seeds(env, 1, **FAST).config == scal.SCAL(env, **FAST).config


def test_first_episodes_are_cut_off():
    """As in the other loop; returns of what was cut are not told."""
    options = FAST | {"first_episode": 10, "lookahead_width": 16, "replay_size": 2_000}
    seeds = Seeds("Pendulum-v1", 2, environments=2, **options)
    lines = list(seeds.iterate(1_200, every=600))
    assert lines[0]["return"] is None
    assert lines[1]["return"] < 0.0
    ended = np.asarray(seeds.runs.learner.replay.ring)[:, :600, :, -1] > 0
    cuts = np.cumsum([10, 20, 40, 80, 160])
    for lane in ended.transpose(0, 2, 1).reshape(-1, 600):
        assert np.flatnonzero(lane)[:5].tolist() == (cuts - 1).tolist()


def test_an_agent_of_its_own():
    seeds = Seeds("Pendulum-v1", 2, **FAST)
    agents = [seeds.agent(number) for number in range(2)]
    observation = np.array([0.6, 0.8, 1.0], np.float32)
    heads = jax.vmap(networks.heads, (0, None, None, None))(
        seeds.runs.learner.networks.multiplier, observation, seeds.env.spaces, seeds.config
    )
    torques = policy.environment_action(heads[1].mean, seeds.env.spaces)
    for agent, torque in zip(agents, torques, strict=True):
        np.testing.assert_allclose(agent.predict(observation), torque, atol=1e-6)
    assert agents[0].digest() != agents[1].digest()
    assert agents[1].seed == 1


def test_evaluation_agrees_with_gymnasium():
    """A greedy policy that knows nothing falls over at once, in either environment."""
    seeds = Seeds("CartPole-v1", 2, **FAST)
    returns = seeds.evaluate(40)
    np.testing.assert_array_equal(returns, seeds.evaluate(40))
    for number in range(2):
        other = seeds.agent(number).evaluate(40)
        error = np.sqrt((returns[number].var() + other.var()) / 40)
        assert abs(returns[number].mean() - other.mean()) < 5 * error + 0.1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("MountainCar-v0", 2),
            "only Acrobot-v1, CartPole-v1, Pendulum-v1, scal/Catch-v0, scal/Inventory-v0, "
            "scal/NoisyAcrobot-v0 have",
        ),
        (("Foo-v0", 2), "environment 'Foo-v0' cannot be made"),
        (("CartPole-v1", 0), "seeds is 0; use a whole number of at least 1"),
        (("CartPole-v1", "4"), "seeds is '4'; use a whole number of at least 1"),
        (("CartPole-v1", 2, -1), "seed is -1; use one between 0 and"),
        (("CartPole-v1", 2, 2**31 - 2), "seed is 2147483646; use one between 0 and"),
    ],
)
def test_bad_input_is_one_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        Seeds(*arguments)


@pytest.mark.parametrize("kind", [Seeds, Siblings])
def test_there_are_agents_of_these_seeds_only(kind):
    learners = kind("CartPole-v1", 2, **FAST)
    assert learners.agent(1).seed == 1
    for number in (-1, 2):
        with pytest.raises(ValueError, match=f"number is {number}; use one between 0 and 1"):
            learners.agent(number)


def test_an_agent_is_not_several_seeds(tmp_path):
    scal.SCAL("CartPole-v1", **FAST).save(tmp_path)
    with pytest.raises(ValueError, match=r"holds one agent; load it with scal\.SCAL\.load"):
        Seeds.load(tmp_path)
