"""Frames are stored once, and stacks are what Gymnasium's own wrapper would have shown."""

import dataclasses

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.wrappers import FrameStackObservation

from scal.envs.functional import Spaces
from scal.learn import convolution, frames, replay, scal, terms
from scal.learn import networks as nets
from scal.learn.config import PRESETS, Config, usual
from scal.learn.replay import Transition

SIDE = 4


def spaces(stack=3, side=SIDE, planes=1):
    size = stack * planes * side**2
    return Spaces(size, 2, discrete=True, image=(planes, side, side), stack=stack)


def frame(number):
    """A frame that shows its number."""
    return np.full((1, SIDE, SIDE), number % 256, np.uint8)


def told(learner, lanes, config, ended_at, terminated_at=frozenset(), steps=30):
    """A learner after some steps of environments whose frames are numbered; what they showed.

    Lane i shows 10·i, 10·i + 1, …, and a number of its own at the start of every episode. Every
    transition is told by its reward.
    """
    count = np.zeros(lanes, int)
    shown = [[100 * lane] for lane in range(lanes)]
    truth = {}
    start = np.stack([frame(lane[-1]) for lane in shown])
    stored = replay.store_initial(learner.replay, jnp.asarray(start), jnp.ones(lanes, bool))
    learner = learner._replace(replay=stored)
    for t in range(steps):
        after, ended, starts = [], [], []
        for lane, numbers in enumerate(shown):
            count[lane] += 1
            new = 100 * lane + int(count[lane])
            truth[t, lane] = (list(numbers), [*numbers, new])
            after.append(frame(new))
            numbers.append(new)
            ended.append((t, lane) in ended_at)
            if ended[-1]:
                count[lane] += 1
                numbers[:] = [100 * lane + int(count[lane])]
            starts.append(frame(numbers[-1]))
        row = Transition(
            observation=jnp.zeros((lanes, 1)),
            action=jnp.zeros(lanes, jnp.int32),
            log_prob=jnp.full(lanes, jnp.log(0.5)),
            reward=jnp.arange(lanes) + 100.0 * t,
            next_observation=jnp.asarray(np.stack(after)),
            terminated=jnp.array([(t, lane) in terminated_at for lane in range(lanes)]),
            ended=jnp.array(ended),
        )
        learner = scal.observe(learner, row, jnp.asarray(np.stack(starts)), config)
    return learner, truth


def stack_of(numbers, k):
    """The newest k numbers, the first repeated while there are fewer."""
    return ([numbers[0]] * k + numbers)[-k:]


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("capacity", [100, 16])
def test_stacks_never_cross_episodes_and_final_frames_are_kept(lanes, capacity):
    config = Config(replay_size=capacity, environments=lanes)
    kind = spaces()
    ended = {(4, 0), (5, 0), (17, 0), (18, 0), (9, 1), (28, 1)}
    learner = scal.init(jax.random.key(0), kind, config)
    learner, truth = told(learner, lanes, config, ended)
    batch = replay.sample(jax.random.key(1), learner.replay, 512, 2, 1.0)
    seen = set()
    for row in range(512):
        for j in range(2):
            if not batch.valid[row, j]:
                continue
            t, lane = divmod(int(batch.window.reward[row, j]), 100)
            before, after = truth[t, lane]
            found = np.asarray(batch.window.observation[row, j])
            assert found.dtype == np.uint8
            assert (found == found[:, :1, :1]).all()
            assert found[:, 0, 0].tolist() == stack_of(before, 3)
            found = np.asarray(batch.window.next_observation[row, j])
            assert found[:, 0, 0].tolist() == stack_of(after, 3)
            seen.add((t, lane))
    newest = {(t, lane) for t, lane in truth if t > 29 - capacity // lanes}
    if capacity == 100:
        assert seen == set(truth)
    else:  # frames of new episodes take up places too
        assert seen <= newest
        assert {(29, lane) for lane in range(lanes)} <= seen
        assert len(seen) >= 0.8 * len(newest)
    current = replay.current(learner.replay, None)[:, :, 0, 0]
    assert current[0].tolist() == stack_of(truth[29, 0][1], 3)


def test_a_frame_is_stored_once():
    """30 steps and 2 episodes more: 1 + 30 + 2 frames, and a byte for every pixel."""
    config = Config(replay_size=1_000)
    learner = scal.init(jax.random.key(0), spaces(stack=4), config)
    learner, _ = told(learner, 1, config, {(4, 0), (20, 0)})
    kept = learner.replay.frames
    assert int(kept.written) == 33
    assert kept.pixels.dtype == jnp.uint8
    assert len(np.unique(np.asarray(kept.pixels[:33, 0]))) == 33
    assert not np.asarray(kept.pixels[33:]).any()
    assert kept.pixels.nbytes == (1_000 + 2 * 4 + 2) * SIDE**2
    per_row = learner.replay.ring.nbytes / 1_000
    assert per_row == 4 * (2 * 4 + 5)  # two stacks of places, action, and four numbers more


def test_a_window_of_very_short_episodes_is_shorter_and_right():
    """Every step ends an episode: two frames a step, so that half of the rows have theirs."""
    config = Config(replay_size=20)
    learner = scal.init(jax.random.key(0), spaces(), config)
    learner, truth = told(learner, 1, config, {(t, 0) for t in range(60)}, steps=60)
    batch = replay.sample(jax.random.key(1), learner.replay, 256, 1, 1.0)
    rows = {int(reward) // 100 for reward in np.asarray(batch.window.reward[:, 0])}
    assert rows == set(range(60 - len(rows), 60))
    assert 10 <= len(rows) <= 15
    for row in range(256):
        t = int(batch.window.reward[row, 0]) // 100
        after = batch.window.next_observation[row, 0, :, 0, 0]
        assert after.tolist() == stack_of(truth[t, 0][1], 3)


def test_initial_frames_outlive_the_window():
    config = Config(replay_size=8)
    learner = scal.init(jax.random.key(0), spaces(), config)
    learner, _ = told(learner, 1, config, {(4, 0), (20, 0)})
    starts = np.asarray(replay.sample(jax.random.key(1), learner.replay, 64, 1, 0.0).starts)
    assert starts.shape == (64, 3, SIDE, SIDE)
    assert (starts == starts[:, :1, :1, :1]).all()
    assert set(starts[:, 0, 0, 0].tolist()) == {0, 6, 23}


class Counter(gym.Env):
    """Shows how often it was stepped."""

    observation_space = gym.spaces.Box(0, 255, (SIDE, SIDE), np.uint8)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.count = 7
        return frame(7)[0], {}

    def step(self, action):
        self.count += 1
        return frame(self.count)[0], 0.0, False, False, {}


def test_stacks_are_those_of_gymnasium():
    env, kind = FrameStackObservation(Counter(), 3), spaces()
    stack, _ = env.reset()
    ours = frames.first_stack(jnp.asarray(frame(7)), kind)
    learner = scal.init(jax.random.key(0), kind, Config())
    kept = replay.store_initial(learner.replay, jnp.asarray(frame(7))[None], jnp.ones(1, bool))
    for number in range(8, 13):
        np.testing.assert_array_equal(ours, stack)
        np.testing.assert_array_equal(replay.current(kept, None)[0], stack)
        stack, *_ = env.step(0)
        ours = frames.next_stack(ours, jnp.asarray(frame(number)), kind)
        kept = dataclasses.replace(
            kept, frames=frames.follow(kept.frames, jnp.asarray(frame(number))[None])
        )


def test_bytes_are_seen_as_numbers_up_to_one():
    learner = scal.init(jax.random.key(0), spaces(), Config())
    seen = terms.perceive(learner.statistics, jnp.array([0, 51, 255], jnp.uint8), Config())
    np.testing.assert_allclose(seen, [0.0, 0.2, 1.0], rtol=1e-6)


@pytest.mark.parametrize("side", [4, 8, 10])
def test_both_ways_to_convolve_agree(side):
    layer = convolution.init_convolution(jax.random.key(0), spaces(2, side))[0]
    pixels = jax.random.uniform(jax.random.key(1), (5, side, side, 2))
    found = convolution._convolve_patches(layer, pixels)
    assert found.shape == (5, (side - 4) // 2 + 1, (side - 4) // 2 + 1, 16)
    np.testing.assert_allclose(found, convolution._convolve(layer, pixels), atol=1e-5)


@pytest.mark.parametrize("side", [4, 5, 7, 10, 37])
def test_every_pixel_is_seen(side):
    layers = convolution.init_convolution(jax.random.key(0), spaces(1, side))
    layers = [layer._replace(weight=jnp.abs(layer.weight)) for layer in layers]
    pixels = jnp.zeros((1, side, side))
    assert convolution.embed(layers, pixels).shape == (convolution.embedded_size(spaces(1, side)),)
    slope = jax.grad(lambda pixels: convolution.embed(layers, pixels + 1.0).sum())(pixels)
    assert (slope > 0.0).all()


@pytest.mark.parametrize(("side", "stack"), [(10, 2), (84, 4)])
@pytest.mark.parametrize("preset", PRESETS)
def test_gradients_of_all_networks_reach_the_filters(side, stack, preset):
    kind = spaces(stack, side)
    config = dataclasses.replace(usual(preset, kind), width=16, replay_size=50, batch_size=4)
    networks = nets.init_networks(jax.random.key(0), kind, config)
    for part in networks:
        layers = part.layers.convolution
        assert [layer.weight.shape[0] for layer in layers] == ([8, 4] if side == 84 else [4])
    pixels = jax.random.uniform(jax.random.key(1), (4, stack, side, side))

    def total(networks):
        mass, head = nets.heads(networks.multiplier, pixels, kind, config)
        h = nets.slack(networks.slack, pixels, jnp.zeros(4, jnp.int32), True, 1.0)
        return nets.value(networks.value, pixels).sum() + h.sum() + mass.sum() + head[:, 0].sum()

    for part in jax.grad(total)(networks):
        for layer in part.layers.convolution:
            assert np.isfinite(np.asarray(layer.weight)).all()
            assert float(jnp.abs(layer.weight).max()) > 0.0


def test_screens_have_options_of_their_own():
    assert usual("default", spaces(2, 10)) == PRESETS["replayed"].discrete
    assert usual("default", spaces(4, 84)).update_every == 4
    assert not spaces(4, 35).screen
    assert spaces(4, 36).screen


def test_more_frames_than_can_be_numbered_are_refused():
    with pytest.raises(ValueError, match="replay_size is 20,000,000, more frames than"):
        replay.init_replay(spaces(), 20_000_000, 1, 10)
