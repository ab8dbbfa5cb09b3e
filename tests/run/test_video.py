"""Films of greedy episodes."""

import sys

import gymnasium as gym
import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image, ImageSequence

import scal
from scal.cli import main
from scal.run import video
from scal.run.seeds import Seeds

FAST = {"width": 16, "lookahead_width": 16, "batch_size": 16, "warmup": 100}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run on CartPole, where the return counts the steps."""
    folder = tmp_path_factory.mktemp("run")
    scal.SCAL("CartPole-v1", **FAST).save(folder / "checkpoints")
    return folder


def frames(path):
    if path.suffix == ".mp4":
        return imageio_ffmpeg.count_frames_and_secs(path)[0]
    with Image.open(path) as image:  # a frame like the one before only lengthens that one
        seconds = sum(frame.info["duration"] for frame in ImageSequence.Iterator(image)) / 1000
    return round(seconds * gym.make("CartPole-v1").metadata["render_fps"])


@pytest.mark.parametrize("name", ["film.mp4", "film.GIF"])
def test_a_film_shows_the_first_episode(run, name, tmp_path, capsys):
    target = tmp_path / name
    assert main(["eval", str(run), "--episodes", "1", "--video", str(target)]) == 0
    steps = float(capsys.readouterr().out.split()[1])
    assert frames(target) == steps + 1 > 5
    assert list(tmp_path.iterdir()) == [target]


def test_a_film_of_several_seeds_shows_the_first(tmp_path, capsys):
    seeds = Seeds("CartPole-v1", 2, **FAST)
    seeds.save(tmp_path / "run" / "checkpoints")
    target = tmp_path / "film.gif"
    assert main(["eval", str(tmp_path / "run"), "--episodes", "1", "--video", str(target)]) == 0
    assert capsys.readouterr().out.endswith(f"wrote {target}\n")
    assert frames(target) == seeds.agent(0).evaluate(1)[0] + 1


def test_a_film_that_cannot_be_written_is_told(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", "/bin/false")
    target = tmp_path / "film.mp4"
    assert main(["eval", str(run), "--episodes", "1", "--video", str(target)]) == 1
    assert "ffmpeg could not write" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_episode_without_an_end_is_given_up(monkeypatch):
    monkeypatch.setattr(video, "LONGEST", 5)
    env = gym.make("Pendulum-v1", render_mode="rgb_array")
    assert len(list(video.play(env, lambda observation: np.zeros(1), 0))) == 6
    env.close()


def test_odd_sizes(tmp_path):
    picture = np.zeros((11, 15, 3), np.uint8)
    video.write_mp4(tmp_path / "odd.mp4", iter([picture] * 3), 25)
    assert frames(tmp_path / "odd.mp4") == 3


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("film.avi", "is of no known kind; name it .gif or .mp4"),
        ("missing/film.gif", "does not exist; create it first"),
    ],
)
def test_bad_targets_before_anything_else(name, sentence, tmp_path, capsys):
    assert main(["eval", "nowhere", "--video", str(tmp_path / name)]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "name", "sentence"),
    [
        ("imageio_ffmpeg", "film.mp4", 'install it with pip install ".[video]"'),
        ("pygame", "film.gif", 'run `pip install "gymnasium[classic-control]"`'),
    ],
)
def test_missing_packages(run, module, name, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, module, None)
    target = tmp_path / name
    target.write_text("what was there before")
    assert main(["eval", str(run), "--video", str(target)]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
    assert target.read_text() == "what was there before"
    assert list(tmp_path.iterdir()) == [target]


def test_environments_without_pictures(tmp_path):
    agent = scal.SCAL("scal/Inventory-v0", **FAST)
    with pytest.raises(ValueError, match="scal/Inventory-v0 draws no pictures"):
        agent.video(tmp_path / "film.gif")


def test_a_screen_that_is_not_there(tmp_path):
    class Blind(gym.Wrapper):
        def render(self):
            raise OSError("no display")

    env = Blind(gym.make("CartPole-v1", render_mode="rgb_array"))
    with pytest.raises(RuntimeError, match="CartPole-v1 cannot be drawn here: no display"):
        video.film(tmp_path / "film.gif", env, lambda _: 0, seed=0)
    assert not list(tmp_path.iterdir())
