"""Pure functions of JAX as an environment of Gymnasium, and learning in those of a user."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import scal
from scal.envs.compiled import FUNCTIONAL
from scal.envs.functional import FunctionalEnv, Spaces
from scal.envs.stepped import as_gymnasium, check
from scal.run.seeds import Seeds

SMALL = {"width": 8, "lookahead_width": 8, "batch_size": 8, "replay_size": 1_000, "warmup": 100}


def reset(key):
    return {"place": jax.random.uniform(key, (), minval=-1.0, maxval=1.0), "speed": jnp.zeros(())}


def observe(state):
    return jnp.stack([state["place"], state["speed"]])


def step(key, state, action):
    speed = state["speed"] + 0.1 * action[0]
    state = {"place": state["place"] + 0.1 * speed, "speed": speed}
    return state, -jnp.sum(observe(state) ** 2), jnp.abs(state["place"]) > 3.0


SPACES = Spaces(2, 1, discrete=False, action_scale=(2.0,))
SLEDGE = FunctionalEnv("sledge", SPACES, 30, reset, observe, step)


@pytest.mark.filterwarnings("ignore:.*WARN.*:UserWarning")
@pytest.mark.parametrize("env", [*FUNCTIONAL.values(), SLEDGE], ids=lambda env: env.name)
def test_it_is_an_environment_of_gymnasium(env):
    made = as_gymnasium(env)
    check_env(made.unwrapped, skip_render_check=True)
    paths = []
    for _ in range(2):
        observation, _ = made.reset(seed=7)
        made.action_space.seed(7)
        path = [observation]
        over = False
        while not over:
            observation, _, terminated, truncated, _ = made.step(made.action_space.sample())
            over = terminated or truncated
            path.append(observation)
        paths.append(path)
    np.testing.assert_array_equal(*paths)
    assert len(paths[0]) - 1 <= env.time_limit


def test_seeds_learn_in_an_environment_of_ones_own(tmp_path):
    """The agent of a seed plays the same environment, stepped by Python."""
    seeds = Seeds(SLEDGE, 2, 5, **SMALL).learn(240)
    assert seeds.config.normalize_observations == "yes"  # no bounds are known
    assert seeds.evaluate(3).shape == (2, 3)
    agent = seeds.agent(1)
    assert agent.env.action_space.high == [2.0]
    assert (agent.evaluate(2) < 0.0).all()
    seeds.save(tmp_path)
    with pytest.raises(ValueError, match=r"hill is not what the seeds .* is sledge with"):
        Seeds.load(tmp_path, env=SLEDGE._replace(name="hill"))
    with pytest.raises(ValueError, match="seeds in sledge, whose functions no checkpoint has"):
        Seeds.load(tmp_path)
    again = Seeds.load(tmp_path, env=SLEDGE).learn(240)
    np.testing.assert_array_equal(again.evaluate(2), seeds.learn(240).evaluate(2))
    assert agent.name == "sledge"
    alone = scal.SCAL(lambda: as_gymnasium(SLEDGE), seed=5, **SMALL).learn(240)
    assert alone.spaces.action_size == 1


def test_what_is_listed_is_the_same_by_name_and_by_itself():
    by_name, itself = (Seeds(env, 1) for env in ("CartPole-v1", FUNCTIONAL["CartPole-v1"]))
    assert by_name.config == itself.config
    with pytest.raises(ValueError, match="env is 42; pass the id of an environment"):
        Seeds(42, 1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"observe": lambda s: observe(s)[:1]}, r"32\[1\]; its spaces promise float32\[2\]"),
        ({"step": lambda *given: (observe(given[1]), 0.0, False)}, "returns a state"),
        ({"step": lambda key, state, _: (state, jnp.zeros(2), jnp.array(False))}, "the reward"),
        ({"step": lambda key, state, _: (state, jnp.zeros(()), jnp.zeros(()))}, "end is a bool"),
        ({"step": lambda *given: given[:2]}, r"no function of JAX .* not enough values"),
        ({"spaces": SPACES._replace(action_scale=())}, "an action_scale for 0; give one for each"),
    ],
)  # fmt: skip
def test_functions_that_do_not_fit_are_refused(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        check(SLEDGE._replace(**change))
