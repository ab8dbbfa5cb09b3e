"""An agent repeats, resumes and refuses."""

import dataclasses
import json
import signal
import subprocess
import sys
import time
from functools import partial

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv

import scal
from scal.cli import main, parse
from scal.envs.compiled import functional_env
from scal.learn import scal as learning
from scal.learn.config import PRESETS
from scal.mdp import linear
from scal.run import checkpoint
from scal.run.exact import compare
from scal.run.spaces import encoder
from scal.run.training import FURTHER, load_run, steps_left, train

SMALL = {
    "width": 16, "lookahead_width": 16, "batch_size": 16, "replay_size": 10_000, "warmup": 100,
}  # fmt: skip
FAST = SMALL | {"anneal_steps": 1_000}
AS_WORDS = [
    word for name, value in SMALL.items() for word in (f"--{name.replace('_', '-')}", f"{value}")
]


def test_same_seed_same_parameters_and_two_seeds_differ():
    first = scal.SCAL("CartPole-v1", seed=1, **FAST).learn(600)
    again = scal.SCAL("CartPole-v1", seed=1, **FAST).learn(600)
    other = scal.SCAL("CartPole-v1", seed=2, **FAST).learn(600)
    assert first.digest() == again.digest() != other.digest()


def test_same_seed_in_a_fresh_process():
    code = f"import scal; print(scal.SCAL('CartPole-v1', seed=1, **{FAST}).learn(600).digest())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == scal.SCAL("CartPole-v1", seed=1, **FAST).learn(600).digest()


@pytest.mark.parametrize(
    "env", ["CartPole-v1", "Pendulum-v1", "scal/Inventory-v0", "FrozenLake-v1"]
)
def test_resume_is_exact(env, tmp_path):
    """Train 448 + resume 448 equals train 896, from the middle of an episode."""
    whole = scal.SCAL(env, seed=3, **FAST).learn(896)
    half = scal.SCAL(env, seed=3, **FAST).learn(448)
    half.save(tmp_path)
    resumed = scal.SCAL.load(tmp_path)
    assert resumed.steps == 448
    assert checkpoint.digest(resumed.learner) == checkpoint.digest(half.learner)
    resumed.learn(448)
    assert checkpoint.digest(resumed.learner) == checkpoint.digest(whole.learner)


def test_arguments_of_the_environment_are_saved(tmp_path):
    agent = scal.SCAL(gym.make("scal/Inventory-v0", capacity=10, days=7), **FAST).learn(50)
    agent.save(tmp_path)
    again = scal.SCAL.load(tmp_path)
    assert again.spaces.action_size == 11
    assert again.learn(200).digest() == agent.learn(200).digest()


def timed():
    return gym.wrappers.TimeAwareObservation(gym.make("CartPole-v1"))


def test_an_environment_that_cannot_be_saved_is_given_again(tmp_path):
    agent = scal.SCAL(timed, **FAST).learn(150)
    agent.save(tmp_path)
    with pytest.raises(ValueError, match=r"CartPole-v1 is wrapped .*; pass it as env to scal"):
        scal.SCAL.load(tmp_path)
    with pytest.raises(ValueError, match="has other observations or actions than"):
        scal.SCAL.load(tmp_path, env="CartPole-v1")
    again = scal.SCAL.load(tmp_path, env=timed)
    assert again.learn(150).digest() == agent.learn(150).digest()


def test_an_id_is_saved_as_it_was_given(tmp_path, monkeypatch):
    """With the module that registers it, so that another process can make it."""
    code = (
        "import gymnasium as gym\n"
        "gym.register('Mine-v0', 'gymnasium.envs.classic_control:CartPoleEnv', "
        "max_episode_steps=50)\n"
    )
    (tmp_path / "my_envs.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    scal.SCAL("my_envs:Mine-v0", **FAST).learn(150).save(tmp_path / "saved")
    del gym.registry["Mine-v0"], sys.modules["my_envs"]
    assert scal.SCAL.load(tmp_path / "saved").learn(50).steps == 200


class Elsewhere(gym.Wrapper):
    """Shows what no other instance shows."""

    made = 0

    def __init__(self, env):
        super().__init__(env)
        Elsewhere.made += 1
        self.shift = 1e-3 * Elsewhere.made

    def reset(self, **options):
        observation, facts = self.env.reset(**options)
        return observation + np.float32(self.shift), facts

    def step(self, action):
        observation, *rest = self.env.step(action)
        return observation + np.float32(self.shift), *rest


def test_what_cannot_go_on_exactly_can_be_evaluated(tmp_path):
    def make():
        return Elsewhere(gym.make("CartPole-v1"))

    agent = scal.SCAL(make, **FAST).learn(150)
    agent.save(tmp_path / "a")
    again = scal.SCAL.load(tmp_path / "a", env=make)
    assert again.digest() == agent.digest()
    assert again.evaluate(2).min() > 0
    again.save(tmp_path / "b")  # with the episodes that it was left in
    facts = [checkpoint.latest(tmp_path / name)[1] for name in "ab"]
    assert facts[0] == facts[1]
    with pytest.raises(ValueError, match="does not come back to where it was"):
        again.learn(1)


def test_the_last_saved_is_loaded_however_few_its_steps(tmp_path):
    for steps in (150, 130, 120):
        scal.SCAL("CartPole-v1", **FAST).learn(steps).save(tmp_path)
    assert scal.SCAL.load(tmp_path).steps == 120
    assert len(list(tmp_path.iterdir())) == 2


class Interrupting(gym.Wrapper):
    """Somebody presses Ctrl-C in the middle of step 333."""

    count = 0

    def step(self, action):
        Interrupting.count += 1
        if Interrupting.count == 333:
            signal.raise_signal(signal.SIGINT)
        return self.env.step(action)


def test_an_interrupt_takes_effect_between_records(tmp_path, capsys):
    def make():
        return Interrupting(gym.make("CartPole-v1"))

    Interrupting.count = 0
    before = signal.getsignal(signal.SIGINT)
    agent = scal.SCAL(make, **FAST, environments=3)
    with pytest.raises(KeyboardInterrupt):
        agent.learn(900, every=300)
    assert "stopping at the next record" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before
    assert agent.steps == 600
    agent.save(tmp_path)
    again = scal.SCAL.load(tmp_path, env=make).learn(300)
    whole = scal.SCAL("CartPole-v1", **FAST, environments=3).learn(900)
    assert again.digest() == agent.learn(300).digest() == whole.digest()


def test_evaluation_leaves_no_trace():
    plain = scal.SCAL("CartPole-v1", seed=1, **FAST).learn(600)
    watched = scal.SCAL("CartPole-v1", seed=1, **FAST).learn(300)
    returns = watched.evaluate(3)
    np.testing.assert_array_equal(returns, watched.evaluate(3))
    assert len(watched.evaluate(2, deterministic=False)) == 2
    with pytest.raises(ValueError, match="episodes is 0; use a whole number of at least 1"):
        watched.evaluate(0)
    assert watched.learn(300).digest() == plain.digest()


def test_sampled_actions_are_those_of_the_policy():
    """Not of the behaviour, which is all uniform here."""
    agent = scal.SCAL("CartPole-v1", **FAST, epsilon=1.0)
    averaged = agent.learner.averaged
    sure = dataclasses.replace(averaged, vector=1e4 * averaged.vector)
    agent._learner = agent.learner._replace(averaged=sure)
    seen = np.full(4, 0.5)
    drawn = {agent.predict(seen, deterministic=False) for _ in range(30)}
    assert drawn == {agent.predict(seen)}


def test_records_carry_the_metrics():
    lines = []
    scal.SCAL("CartPole-v1", **FAST).learn(600, record=lines.append, every=200)
    assert [line["step"] for line in lines] == [200, 400, 600]
    for name in ("primal_value", "dual_value", "violation", "complementarity", "mass"):
        assert np.isfinite(lines[-1][name])
    assert lines[-1]["mass_predicted"] == pytest.approx(1.0, abs=0.1)
    assert lines[-1]["return"] > 5


def test_predict_in_the_units_of_the_environment():
    agent = scal.SCAL("Pendulum-v1", **FAST).learn(300)
    action = agent.predict(np.array([1.0, 0.0, 0.0]))
    assert action.shape == (1,)
    assert gym.make("Pendulum-v1").action_space.contains(action.astype(np.float32))
    assert scal.SCAL("CartPole-v1", **FAST).predict(np.zeros(4)) in (0, 1)
    with pytest.raises(ValueError, match="observation has 3 entries; CartPole-v1 has 4"):
        scal.SCAL("CartPole-v1", **FAST).predict(np.zeros(3))
    for strange in (np.array([0.0, np.nan, 0.0]), ["a", "b", "c"]):
        with pytest.raises(ValueError, match="observation has entries that are no finite numbers"):
            agent.predict(strange)
    lake = scal.SCAL("FrozenLake-v1", **FAST)
    assert lake.predict(15) in range(4)
    for strange in (16, -1, 1.7):
        with pytest.raises(ValueError, match=rf"observation is {strange}; FrozenLake-v1 has"):
            lake.predict(strange)


def test_a_function_that_makes_no_environment():
    with pytest.raises(ValueError, match="env is a NoneType; pass a single Gymnasium environment"):
        scal.SCAL(lambda: None)


def test_certificate_of_a_learned_policy():
    agent = scal.SCAL("scal/Inventory-v0", **FAST).learn(200)
    proof = agent.certificate(gamma=0.9)
    exact = scal.solve(scal.Inventory().mdp(0.9)).certificate
    assert proof.lower <= exact.upper
    with pytest.raises(ValueError, match="no known MDP"):
        scal.SCAL("CartPole-v1", **FAST).certificate()


def test_accepts_ids_environments_and_functions():
    digests = {
        scal.SCAL(env, **FAST).learn(200).digest()
        for env in ("CartPole-v1", gym.make("CartPole-v1"), lambda: gym.make("CartPole-v1"))
    }
    assert len(digests) == 1


class Broken(gym.Env):
    """Goes wrong at step 5 in the way it is told to."""

    observation_space = gym.spaces.Box(-1, 1, (2,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self, how):
        self.how, self.count = how, 0

    def reset(self, *, seed=None, options=None):
        if self.how == "reset":
            raise KeyError("no robot")
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.count += 1
        wrong = self.count == 5
        if wrong and self.how == "raise":
            raise OSError("the robot fell over")
        bad = float("nan") if wrong and self.how == "observation" else 0.0
        pay = {"reward": float("inf"), "nothing": None}.get(self.how, 0.0) if wrong else 0.0
        size = 3 if wrong and self.how == "shape" else 2
        return np.array([0.0, bad, 0.0][:size], np.float32), pay, False, False, {}


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("raise", "raised OSError at step 4 of episode 0: the robot fell over"),
        ("reset", "raised KeyError at step 0 of episode 0: 'no robot'"),
        ("observation", r"returned nan as observation \[1\] at step 5 of episode 0"),
        ("reward", "returned the reward inf at step 4 of episode 0"),
        ("nothing", "returned the reward None at step 4 of episode 0"),
        ("shape", r"an observation of shape \(3,\) at step 5 of .*; its space promises \(2,\)"),
    ],
)
def test_broken_environments(how, sentence):
    with pytest.raises(RuntimeError, match=sentence):
        scal.SCAL(lambda: Broken(how), **FAST).learn(10)


def test_environments_that_cannot_be_made():
    gym.register("Needy-v0", entry_point=Broken)
    with pytest.raises(ValueError, match=r"'Needy-v0' cannot be made .*missing 1 required"):
        scal.SCAL("Needy-v0")
    del gym.registry["Needy-v0"]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: scal.SCAL("Nowhere-v0"), "environment 'Nowhere-v0' cannot be made"),
        (lambda: scal.SCAL(7), "env is 7; pass an id"),
        (lambda: scal.SCAL("CartPole-v1", seed=-1), "seed is -1; use a whole number"),
        (lambda: scal.SCAL("CartPole-v1", preset="best"), "preset is 'best'; use one of"),
        (lambda: scal.SCAL("CartPole-v1", speed=3), "option 'speed' is unknown"),
        (lambda: scal.SCAL("CartPole-v1").learn(-1), "steps is -1"),
        (
            lambda: scal.SCAL(lambda: gym.wrappers.TransformAction(
                gym.make("CartPole-v1"), lambda a: a[0], gym.spaces.MultiDiscrete([2, 2])
            )),
            "SCAL takes Discrete, or a Box of one dimension",
        ),
        (
            lambda: scal.SCAL(lambda: gym.wrappers.TransformAction(
                gym.make("Pendulum-v1"), lambda a: a, gym.spaces.Box(-np.inf, np.inf, (1,))
            )),
            "has unbounded actions",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_damaged_checkpoint_falls_back_to_the_one_before(tmp_path):
    agent = scal.SCAL("CartPole-v1", **FAST).learn(120)
    agent.save(tmp_path)
    agent.learn(10).save(tmp_path)
    newest = agent.learn(10).save(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    arrays = newest / "arrays.safetensors"
    blob = bytearray(arrays.read_bytes())
    blob[-1] ^= 1
    arrays.write_bytes(bytes(blob))
    assert scal.SCAL.load(tmp_path).steps == 130
    for path in tmp_path.glob("*/manifest.json"):
        path.write_text("{")
    with pytest.raises(ValueError, match=r"checkpoint .* is damaged .*; restore it"):
        scal.SCAL.load(tmp_path)
    for path in tmp_path.glob("*/manifest.json"):
        path.write_text('{"format": "scal-checkpoint-1"}')
    with pytest.raises(ValueError, match=r"another version of scal \(scal-checkpoint-1, here"):
        scal.SCAL.load(tmp_path)
    with pytest.raises(ValueError, match="there is no folder"):
        scal.SCAL.load(tmp_path / "empty")


def test_command_line_from_training_to_evaluation(tmp_path):
    def run(*words):
        command = [sys.executable, "-m", "scal.cli", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    small = [*AS_WORDS, "--anneal-steps", "2000"]
    trained = run("train", "CartPole-v1", "--steps", "1000", "--out", "a", "--quiet", *small)
    assert trained.returncode == 0, trained.stderr
    again = run("train", "CartPole-v1", "--out", "a")
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert run("resume", "a", "--steps", "1000", "--quiet").returncode == 0
    assert scal.SCAL.load(tmp_path / "a").steps == 2_000
    whole = run("train", "CartPole-v1", "--steps", "2000", "--out", "b", "--quiet", *small)
    assert whole.returncode == 0
    prints = [
        json.loads(next(tmp_path.glob(f"{name}/checkpoints/*-step-2000/manifest.json")).read_text())
        for name in "ab"
    ]
    assert prints[0]["sha256"] == prints[1]["sha256"]
    assert (tmp_path / "a/log.jsonl").read_text() == (tmp_path / "b/log.jsonl").read_text()
    report = json.loads(run("eval", "a", "--episodes", "2", "--json").stdout)
    assert list(report) == ["mean", "std", "min", "episodes", "returns"]
    assert (tmp_path / "a/curve.png").exists()
    assert run("eval", "nowhere").returncode == 2


def test_a_signal_saves_and_ends_cleanly(tmp_path):
    command = [sys.executable, "-m", "scal.cli", "train", "CartPole-v1", "--steps", "10000000"]
    process = subprocess.Popen([*command, "--out", tmp_path / "run", "--quiet"])
    log = tmp_path / "run" / "log.jsonl"
    for _ in range(600):
        if log.exists() and log.read_text().count("\n") >= 2:
            break
        time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == 130
    agent = load_run(tmp_path / "run")
    assert agent.steps == json.loads(log.read_text().splitlines()[-1])["step"]
    assert steps_left(tmp_path / "run", agent) == 10_000_000 - agent.steps


def test_a_run_can_be_resumed_from_its_very_beginning(tmp_path):
    agent = scal.SCAL("CartPole-v1", **SMALL)
    agent.iterate = lambda *_: (1 / 0 for _ in "k")  # killed before anything was learned
    with pytest.raises(ZeroDivisionError):
        train(agent, 500, tmp_path / "run", progress=False)
    again = load_run(tmp_path / "run")
    assert again.steps == 0
    assert steps_left(tmp_path / "run", again) == 500
    assert again.learn(500).digest() == scal.SCAL("CartPole-v1", **SMALL).learn(500).digest()


def test_a_finished_run_is_extended(tmp_path):
    agent = scal.SCAL("CartPole-v1", **FAST)
    train(agent, 150, tmp_path / "run", progress=False)
    assert steps_left(tmp_path / "run", load_run(tmp_path / "run")) == FURTHER
    (tmp_path / "run" / "run.json").write_text('{"until": 900}')  # as if it had been stopped
    train(agent, 50, tmp_path / "run", progress=False)
    assert steps_left(tmp_path / "run", agent) == 700
    agent.save(tmp_path / "by hand")  # not a run, but an agent nevertheless
    assert load_run(tmp_path / "by hand").steps == 200
    assert steps_left(tmp_path / "by hand", agent) == FURTHER


def test_several_environments_resume_exactly(tmp_path):
    """Three lanes with seeds of their own, one update per interaction, no fake transitions."""
    options = FAST | {"environments": 3}
    whole = scal.SCAL("CartPole-v1", seed=3, **options).learn(900)
    half = scal.SCAL("CartPole-v1", seed=3, **options).learn(450)
    half.save(tmp_path)
    resumed = scal.SCAL.load(tmp_path).learn(450)
    assert checkpoint.digest(resumed.learner) == checkpoint.digest(whole.learner)
    assert int(whole.learner.updates) == 900 - FAST["warmup"] + 1  # the round of step 102 counts
    assert whole.steps == 900
    ring = np.asarray(whole.learner.replay.ring)[:300]
    observation, ended = ring[..., :4], ring[..., -1] > 0
    after = ring[..., 7:11]
    goes_on = ~ended[:-1]
    np.testing.assert_array_equal(observation[1:][goes_on], after[:-1][goes_on])
    assert not np.array_equal(observation[1:][~goes_on], after[:-1][~goes_on])
    assert len({episode.actions.__len__() for episode in whole.stage.episodes}) > 1
    with pytest.raises(ValueError, match="environments is 0; use a whole number of at least 1"):
        scal.SCAL("CartPole-v1", environments=0)
    with pytest.raises(ValueError, match=r"environments is 1.5; use a whole number of at least 1"):
        scal.SCAL("CartPole-v1", environments=1.5)


def test_an_array_that_an_environment_uses_again_is_copied():
    """The last observation of a truncated episode is not the first one of the next."""
    agent = scal.SCAL("tests.run.failing:Reusing-v0", **FAST).learn(20)
    rows = np.asarray(agent.learner.replay.ring)[:20, 0]
    now, after = rows[:, 0], rows[:, -3]
    assert len(np.unique(now)) == 5
    np.testing.assert_allclose(after - now, now[1] - now[0], rtol=1e-5)


def test_environments_of_an_evaluation_are_closed(monkeypatch):
    closed = []
    monkeypatch.setattr(CartPoleEnv, "close", lambda env: closed.append(env))
    scal.SCAL("CartPole-v1", **FAST).evaluate(3)
    assert len(closed) == 3


def test_first_episodes_are_cut_off(tmp_path):
    """After 10 steps, 20 more, 40 more and so on, as by a limit; only whole episodes count."""
    options = FAST | {"environments": 2, "first_episode": 10, "lookahead_width": 16}
    options["replay_size"] = 2_000
    agent = scal.SCAL("Pendulum-v1", seed=3, **options)
    lines = list(agent.iterate(600, every=600))
    assert lines[0]["return"] is None
    agent.save(tmp_path)
    lines = list(scal.SCAL.load(tmp_path).iterate(600, every=600))
    assert lines == list(agent.iterate(600, every=600))
    assert lines[0]["return"] < 0.0
    *_, terminated, ended = np.moveaxis(np.asarray(agent.learner.replay.ring)[:600], -1, 0)
    assert not terminated.any()
    cuts = np.cumsum([10, 20, 40, 80, 160])  # the one after them is longer than Pendulum's limit
    for lane in range(2):
        assert np.flatnonzero(ended[:, lane])[:5].tolist() == (cuts - 1).tolist()


def test_both_loops_make_the_same_learner():
    """The update of the Gymnasium loop and that of the compiled one, from the same data."""
    agent = scal.SCAL("CartPole-v1", seed=0, **FAST).learn(120)
    learner, env = agent.learner, functional_env("CartPole-v1")
    single, _ = jax.jit(partial(learning.update, spaces=agent.spaces, config=agent.config))(learner)
    many = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), learner)
    both, _ = jax.jit(jax.vmap(partial(learning.update, spaces=env.spaces, config=agent.config)))(
        many
    )
    for one, two in zip(jax.tree.leaves(single), jax.tree.leaves(both), strict=True):
        np.testing.assert_allclose(two[0], one, rtol=2e-4, atol=2e-6)
        np.testing.assert_array_equal(two[0], two[1])


def test_learned_policy_against_the_optimum():
    agent = scal.SCAL("scal/Inventory-v0", **FAST).learn(200)
    found = compare(agent)
    assert found.relative_gap >= 0.0
    assert found.optimum.V[0] == pytest.approx(49.77, abs=0.01)
    assert (found.values <= found.optimum.V + 1e-6).all()
    never = dataclasses.replace(
        found,
        values=linear.values(*scal.Inventory().mdp(0.99).under(np.zeros(101, int)), 0.99),
    )
    assert never.relative_gap == pytest.approx(0.158, abs=0.001)
    assert compare(scal.SCAL("CartPole-v1", **FAST)) is None


def test_a_toy_text_environment_knows_its_mdp():
    """Where CliffWalking ends is a state of the MDP that no agent ever sees."""
    agent = scal.SCAL("CliffWalking-v1", **FAST)
    found = compare(agent)
    exact = scal.solve(scal.FiniteMDP.from_gymnasium(agent.env, 0.99))
    assert found.optimum.V[36] == pytest.approx(exact.V[36]) == pytest.approx(-12.2478977)
    assert len(found.values) == len(exact.V) == agent.env.observation_space.n + 1
    assert found.policy.tolist()[:-1] == [int(agent.predict(state)) for state in range(48)]


def test_whole_numbers_are_seen_as_levels():
    numbers = gym.spaces.Box(np.array([0, -2]), np.array([3, 1]), dtype=np.int64)
    encode = encoder(numbers, "a store")
    assert encode([1, 1]).tolist() == [1, -1, -1, 1, 1, 1]
    assert encode([3, -2]).tolist() == [1, 1, 1, -1, -1, -1]
    real = gym.spaces.Box(0.0, 1.0, (2, 2))
    assert encoder(real, "a grid")(np.arange(4.0).reshape(2, 2)).tolist() == [0, 1, 2, 3]
    many = encoder(gym.spaces.Box(0, 200, (8, 8), np.uint8), "a chart")
    assert many(np.zeros((8, 8))).tolist() == [-1.0] * 64
    assert many(np.full((8, 8), 200)).max() == 1.0
    small = gym.spaces.Box(-100, 100, (1,), np.int8)
    assert encoder(small, "a dial")([-98]).tolist() == [1, 1] + [-1] * 198
    assert encoder(gym.spaces.Discrete(4), "a lake")(2).tolist() == [0, 0, 1, 0]


def test_one_compiled_program_ends_in_time():
    """A version of JAX that hangs in long vmapped scans is noticed here (0.10 does)."""
    code = (
        "from scal.run.seeds import Seeds\n"
        "seeds = Seeds('CartPole-v1', 2)\n"
        "print([line['step'] for line in seeds.iterate(4000)])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert run.stdout.strip() == "[1000, 2000, 3000, 4000]"


def test_divergence_is_one_sentence():
    agent = scal.SCAL("CartPole-v1", seed=0, preset="paper", lr_value=1e30, clip=1e30, warmup=100)
    with pytest.raises(RuntimeError, match="learning diverged before step 1000"):
        agent.learn(1_000)


def test_a_small_kappa_is_warned_about():
    with pytest.warns(UserWarning, match=r"mu\*beta is 3 with theta_step='penalty'"):
        scal.SCAL("CartPole-v1", mu=0.3, beta=10.0, theta_step="penalty")


def test_evaluation_draws_the_policy_beside_the_optimum(tmp_path, capsys):
    common = ["--steps", "200", *AS_WORDS, "--quiet"]
    for env in ("scal/Inventory-v0", "CartPole-v1"):
        assert main(["train", env, *common, "--out", str(tmp_path / env)]) == 0
    capsys.readouterr()
    picture = tmp_path / "policy.png"
    run = str(tmp_path / "scal/Inventory-v0")
    assert main(["eval", run, "--episodes", "1", "--plot", str(picture)]) == 0
    shown = capsys.readouterr().out
    assert "value at stock 0" in shown
    assert "stock 1–100: order 0" in shown
    assert picture.stat().st_size > 10_000
    assert main(["eval", run, "--episodes", "1", "--json"]) == 0
    exact = json.loads(capsys.readouterr().out)["exact"]
    assert exact["best_policy"] == [7] + [0] * 100
    assert exact["relative_gap"] > 0.0
    assert main(["eval", str(tmp_path / "CartPole-v1"), "--plot", str(picture)]) == 2
    assert "CartPole-v1 has no known MDP to compare with" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("space", "sentence"),
    [
        (gym.spaces.Box(0, 3, (2,), np.int64), "that cannot be scaled; use Discrete"),
        (gym.spaces.Box(np.zeros(2, "f4"), np.array([1, 0], "f4")), "that cannot be scaled"),
    ],
)
def test_actions_that_cannot_be_scaled(space, sentence):
    env = Broken("")
    env.action_space = space
    with pytest.raises(ValueError, match=sentence):
        scal.SCAL(lambda: env)


def test_a_function_must_make_environments_anew():
    env = gym.make("CartPole-v1")
    agent = scal.SCAL(lambda: env, **FAST)
    with pytest.raises(ValueError, match="returned the same environment twice"):
        agent.evaluate(1)
    with pytest.raises(ValueError, match="returned the same environment twice"):
        scal.SCAL(lambda: env, environments=2)


def test_rates_fall_over_the_first_call_of_learn():
    agent = scal.SCAL("CartPole-v1", **SMALL)
    assert agent.learn(0).config.anneal_steps is None
    assert agent.learn(150).config.anneal_steps == 150
    assert agent.learn(50).config.anneal_steps == 150
    assert scal.SCAL("CartPole-v1", **FAST).learn(50).config.anneal_steps == 1_000


def test_options_that_do_not_go_together(tmp_path, capsys):
    out = ["--out", str(tmp_path / "run")]
    both = ["--environments", "2", "--update-every", "3"]
    assert main(["train", "CartPole-v1", "--seeds", "2", *both, *out]) == 2
    assert "one has to divide the other" in capsys.readouterr().err
    assert parse(["train", "CartPole-v1", "--preset=paper"]).config == PRESETS["paper"].discrete
    assert parse(["train", "Pendulum-v1"]).config == PRESETS["default"].continuous
    assert parse(["train", "Pendulum-v1", "--gamma", "0.99"]).config.gamma == 0.99
    assert main(["train", "CartPole-v1", "--steps", "-5", "--quiet", *out]) == 2
    assert "steps is -5" in capsys.readouterr().err
