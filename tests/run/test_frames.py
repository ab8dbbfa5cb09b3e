"""Frames in both loops: learned, resumed exactly, announced, and refused when they cannot fit."""

import dataclasses
import sys

import gymnasium as gym
import jax
import numpy as np
import pytest
from gymnasium.wrappers import FrameStackObservation

import scal
from scal.cli import main, parse
from scal.learn import replay
from scal.run import checkpoint, memory
from scal.run.seeds import Seeds
from scal.run.spaces import adapt, image_of, make, observer

ENV = "scal/Catch-v0"
FAST = {"width": 16, "batch_size": 8, "warmup": 100, "anneal_steps": 1_000, "replay_size": 150}


def test_resume_is_exact(tmp_path):
    """Train 220 + resume 220 equals train 440, from the middle of an episode, over a full ring."""
    whole = scal.SCAL(ENV, seed=3, **FAST).learn(440)
    half = scal.SCAL(ENV, seed=3, **FAST).learn(220)
    half.save(tmp_path)
    resumed = scal.SCAL.load(tmp_path)
    assert checkpoint.digest(resumed.learner) == checkpoint.digest(half.learner)
    resumed.learn(220)
    assert checkpoint.digest(resumed.learner) == checkpoint.digest(whole.learner)


def test_several_seeds_resume_exactly(tmp_path):
    options = FAST | {"update_every": 4}
    whole = Seeds(ENV, 2, seed=3, **options)
    assert [line["step"] for line in whole.iterate(400, every=100)] == [100, 200, 300, 400]
    half = Seeds(ENV, 2, seed=3, **options)
    list(half.iterate(200, every=100))
    half.save(tmp_path)
    resumed = Seeds.load(tmp_path)
    list(resumed.iterate(200, every=100))
    assert checkpoint.digest(resumed.runs) == checkpoint.digest(whole.runs)
    assert whole.runs.learner.updates.tolist() == [75, 75]
    agent = resumed.agent(1).learn(30)
    assert int(agent.learner.updates) == 75 + 30 // 4
    assert [line["step"] for line in whole.iterate(50, every=50)] == [452]
    assert whole.runs.learner.updates.tolist() == [88, 88]


def test_updates_are_counted_by_interactions():
    every = scal.SCAL(ENV, **FAST, update_every=3).learn(160)
    assert int(every.learner.updates) == 160 // 3 - 100 // 3
    lanes = scal.SCAL(ENV, **FAST, update_every=3, environments=2).learn(160)
    assert int(lanes.learner.updates) == 160 // 3 - 100 // 3


def test_the_replay_shows_what_gymnasium_shows():
    """Its stacks against those of Gymnasium's own wrapper, for the same seeds and actions."""
    agent = scal.SCAL(ENV, seed=0, **FAST)
    env, _ = adapt(make(ENV), stacked=True)
    for _ in range(12):  # places 5, 1, 6, 2, … of an episode of nine steps
        agent.learn(5)
        episode = agent.stage.episodes[0]
        sequence = np.random.SeedSequence([0, 0, episode.number])
        stack, _ = env.reset(seed=int(sequence.generate_state(1)[0]))
        for action in episode.actions:
            stack, *_ = env.step(action)
        np.testing.assert_array_equal(replay.current(agent.learner.replay, None)[0], stack)
    batch = replay.sample(jax.random.key(0), agent.learner.replay, 64, 1, 1.0)
    first = jax.tree.map(lambda field: np.asarray(field[:, 0]), batch.window)
    np.testing.assert_array_equal(first.observation[:, 1], first.next_observation[:, 0])
    landed = first.next_observation[:, 1, :9].any(axis=(1, 2))
    np.testing.assert_array_equal(first.ended, ~landed)  # above the bat there is no ball any more


def test_evaluation_is_the_same_in_both_loops():
    """The same policy in 60 episodes each; the compiled ones see stacks of their own making."""
    seeds = Seeds(ENV, 1, **FAST)
    ours, theirs = seeds.evaluate(60)[0], seeds.agent(0).evaluate(60)
    assert set(ours) | set(theirs) <= {-1.0, 1.0}
    error = np.sqrt((ours.var() + theirs.var()) / 60)
    assert abs(ours.mean() - theirs.mean()) < 5 * error + 0.1


def test_predict_takes_what_the_environment_shows():
    agent = scal.SCAL(ENV, **FAST)
    stack, _ = agent.env.reset(seed=0)
    assert agent.predict(stack) in (0, 1, 2)
    with pytest.raises(ValueError, match="observation has 80 entries; scal/Catch-v0 has 160"):
        agent.predict(stack[0])


@pytest.mark.parametrize(
    ("shape", "image"),
    [((10, 12), (1, 10, 12)), ((3, 10, 12), (3, 10, 12)), ((10, 12, 3), (3, 10, 12)), ((3, 3), ())],
)
def test_which_observations_are_frames(shape, image):
    assert image_of(gym.spaces.Box(0, 255, shape, np.uint8)) == image
    assert image_of(gym.spaces.Box(0, 1, shape, np.uint8)) == ()
    assert image_of(gym.spaces.Box(0.0, 255.0, shape, np.float32)) == ()


class Colours(gym.Env):
    """Shows a frame of three planes that differ."""

    observation_space = gym.spaces.Box(0, 255, (5, 6, 3), np.uint8)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.count = 0
        return self._frame(), {}

    def step(self, action):
        self.count += 1
        return self._frame(), 0.0, False, self.count == 5, {}

    def _frame(self):
        return np.full((5, 6, 3), [10, 20, 30 + self.count], np.uint8)


def test_colours_and_stacks():
    env = FrameStackObservation(Colours(), 2)
    stack, _ = env.reset()
    stack, *_ = env.step(0)
    assert observer(env, "colours")(stack)[:, 0, 0].tolist() == [10, 20, 30, 10, 20, 31]
    agent = scal.SCAL(lambda: FrameStackObservation(Colours(), 2), **FAST)
    assert agent.spaces.image == (3, 5, 6)
    assert agent.spaces.stack == 2
    agent.learn(8)
    shown = replay.current(agent.learner.replay, None)[0, :, 0, 0]
    assert shown.tolist() == [10, 20, 32, 10, 20, 33]
    assert agent.evaluate(1).tolist() == [0.0]


def test_memory_is_announced_and_refused(monkeypatch, tmp_path, capsys):
    agent = scal.SCAL(ENV, replay_size=2_000_000, width=16)
    stored = sum(leaf.nbytes for leaf in jax.tree.leaves(agent.learner.replay))
    assert stored == memory.replay_bytes(agent.spaces, agent.config) > 2e8
    assert agent.memory == f"replay: 2,000,000 frames of 10×8, {stored / 1e9:.1f} GB"
    monkeypatch.setattr(memory, "available_bytes", lambda: 10_000_000)
    out = ["--out", str(tmp_path / "run")]
    assert main(["train", ENV, "--replay-size", "2000000", *out]) == 2
    assert capsys.readouterr().err == (
        f"scal: a replay of 2,000,000 frames of 10×8 takes {stored / 1e9:.1f} GB and 10.0 MB of "
        "memory are free; use a smaller --replay-size\n"
    )
    assert not (tmp_path / "run").exists()
    with pytest.raises(ValueError, match="a replay of 20 × 10,000 frames"):
        Seeds(ENV, 20)
    assert scal.SCAL("CartPole-v1", replay_size=10_000).memory is None
    with pytest.raises(ValueError, match=r"a replay of 1,000,000 transitions takes 52\.0 MB and"):
        scal.SCAL("CartPole-v1", replay_size=1_000_000)


def test_free_memory_is_some_of_this_machine():
    assert 1e8 < memory.available_bytes() < 1e14


def test_frames_are_never_normalised():
    with pytest.raises(ValueError, match="frames are always divided by 255; leave it out"):
        scal.SCAL(ENV, normalize_observations="yes")


def test_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small = ["--width", "16", "--batch-size", "8", "--warmup", "100", "--quiet"]
    assert main(["train", ENV, "--steps", "150", "--out", "a", *small]) == 0
    assert capsys.readouterr().out.startswith("replay: 10,000 frames of 10×8, 1.3 MB\n")
    assert main(["resume", "a", "--steps", "50", "--quiet"]) == 0
    assert main(["eval", "a", "--episodes", "2", "--video", "a.gif"]) == 0
    assert (tmp_path / "a.gif").stat().st_size > 300


def test_catch_is_learned():
    """6,000 steps are enough; by chance one ball in three is caught."""
    seeds = Seeds(ENV, 1, seed=1)
    list(seeds.iterate(6_000, every=3_000))
    assert seeds.evaluate(200).mean() >= 0.95


def test_missing_extra_is_one_sentence(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "ale_py", None)
    assert main(["train", "ALE/Pong-v5", "--out", str(tmp_path / "run")]) == 2
    sentence = 'package ale_py is missing; install it with pip install ".[atari]" in a clone'
    assert capsys.readouterr().err == f"scal: {sentence} of scal\n"


def test_pong(tmp_path):
    """The usual preparation, options for screens, and exact resume."""
    pytest.importorskip("ale_py")
    pytest.importorskip("cv2")
    config = parse(["train", "ALE/Pong-v5"]).config
    assert (config.update_every, config.replay_size) == (4, 40_000)
    small = {"warmup": 20, "batch_size": 2, "width": 8, "replay_size": 60, "anneal_steps": 100}
    whole = scal.SCAL("ALE/Pong-v5", **small)
    assert whole.env.observation_space.shape == (4, 84, 84)
    assert whole.spaces.image == (1, 84, 84)
    whole.learn(60)
    half = scal.SCAL("ALE/Pong-v5", **small).learn(30)
    half.save(tmp_path)
    resumed = scal.SCAL.load(tmp_path).learn(30)
    assert checkpoint.digest(resumed.learner) == checkpoint.digest(whole.learner)
    assert dataclasses.asdict(resumed.config) == dataclasses.asdict(whole.config)
