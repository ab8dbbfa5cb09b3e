"""The options of learning: one frozen dataclass, three presets.

The preset `default` is the form that learns best, `paper` the paper's own, and `replayed` lies
between: it has no lookahead. docs/deviations.md says what each difference buys. An option exists
because presets differ in it, or because a problem needs it. Nothing depends on the environment but
for the few numbers that depend on the kind of actions, and on whether frames are watched.
"""

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin

if TYPE_CHECKING:
    from scal.envs.functional import Spaces


@dataclass(frozen=True)
class Config:
    """Options of the learner; μ, β and C count in `units` of the TD error."""

    # what they are here is the preset `replayed` for discrete actions

    algorithm: Literal["scal", "deep-alm"] = "scal"
    """Algorithm 2, or the deep parameterised ALM of section 3, which has no target of V and leaves
    beta, flow, theta_step, order, targets and all periods unused."""
    inner_steps: int = 200
    """Updates per outer iteration of deep-alm, at most; 1: single steps."""
    inner_tolerance: float = 0.0
    """An outer iteration of deep-alm ends early when the error of x against z, over ten updates,
    has not fallen by this share since the ten before; 0: never."""
    auxiliary: bool = False
    """Whether deep-alm approximates Z with a network y_τ of its own, to which x is fitted."""
    gamma: float = 0.99
    """Discount factor γ."""
    gamma_start: float | None = None
    """γ at the start of the run, if that is less; from there the horizon 1/(1 − γ) grows by a
    constant rate. None: the same γ throughout."""
    mu: float = 0.3
    """Penalty parameter μ of the augmented Lagrangian: how far x moves per unit of advantage."""
    beta: float = 5 / 0.3
    """Weight β of the term that ties x to z; κ = μβ must exceed 1 with the penalty step."""
    slack_scale: float = 0.3
    """C: the scale of the slack h, if it is a network."""
    flow: float = 0.5
    """Share of γ∇V(s') that the linear term keeps; the paper's semi-gradient drops all of it."""
    s0_mix: float = 1.0
    """Share of replayed states among the initial states; the paper has initial states only."""
    units: Literal["state", "all", "raw"] = "state"
    """What TD errors are divided by before they enter z: their root mean square under the policy,
    in that state or in all states, or nothing."""
    slack: Literal["closed", "lookahead", "network"] = "closed"
    """Whether h is its closed form [V − y − x̄/μ]₊ for the y of every sample, or for a network
    of E[y] at actions that the policy would choose now, or a network."""
    multiplier: Literal["ratio", "density"] = "ratio"
    """x = x₁·π/π_b, so that w·x ∝ π, or the paper's x = x₁·π."""
    theta_step: Literal["regression", "penalty"] = "regression"
    """Whether x sees only the quadratic term, fitted to [z]₊, or the whole objective."""
    order: Literal["jacobi", "gauss_seidel"] = "jacobi"
    """Whether V, h and x are updated from one gradient or one after another."""
    n_steps: int = 3
    """Length l of the multi-step target."""
    cuts: bool = True
    """Whether later steps of the target are weighed by min(1, π/π_b)."""
    clip_targets: bool = True
    """Whether V̄ is kept inside [r_min, r_max]/(1 − γ), as seen so far."""
    scale_rewards: bool = True
    """Whether rewards are divided by the running standard deviation of the discounted return."""
    normalize_observations: Literal["auto", "yes", "no"] = "auto"
    """Whether observations are centred and scaled; auto: where none has a declared bound."""
    lr_value: float = 1e-3
    """Adam's rate for V."""
    lr_slack: float = 1e-3
    """Adam's rate for h, or for the lookahead."""
    lr_multiplier: float = 1e-3
    """Adam's rate for x."""
    anneal_steps: int | None = None
    """Interactions over which the rates fall linearly to a tenth; None: those of the first call of
    `learn`."""
    clip: float = 10.0
    """Largest norm of a layer's gradient."""
    targets: Literal["polyak", "copy"] = "polyak"
    """Whether targets follow a little every update or are copied now and then."""
    period_value: int = 40
    """T of V̄: it moves by 1/T per update, or is copied every T."""
    period_multiplier: int = 200
    """T of x̄."""
    period_share: float = 0.0
    """Share of the run so far that T of x̄ is, if that is longer and targets are not copied."""
    average_share: float = 0.1
    """Share of the run so far over which weights are averaged for the policy that is evaluated and
    used; 0: the last ones."""
    sampling: Literal["uniform", "proportional"] = "uniform"
    """Whether transitions are drawn evenly or in proportion to [r + γV̄(s') − V(s)]₊."""
    batch_size: int = 128
    """Transitions per update."""
    replay_size: int = 10_000
    """Transitions that are kept."""
    replay_share: float = 0.1
    """Share of the run so far, its last part, that is replayed; at least 10,000 transitions."""
    warmup: int = 1_000
    """Interactions before the first update."""
    environments: int = 1
    """Copies of the environment that are stepped together, each in an episode of its own."""
    first_episode: int | None = None
    """Steps after which the first episode of every copy is cut off, the second after twice as many,
    and so on; None: episodes end by themselves."""
    update_every: int = 1
    """Interactions between updates."""
    updates: int = 1
    """Updates that are made then."""
    epsilon: float = 0.05
    """Share of uniform actions in the behaviour, for discrete actions."""
    sigma: float = 0.7
    """Standard deviation of the policy before the tanh, for continuous actions."""
    learn_sigma: bool = True
    """Whether that is only where σ starts (lower with more than three dimensions), and each
    dimension learns its own."""
    policy_step: float = 5.0
    """ν: how far the policy moves per unit of advantage, where it follows the lookahead."""
    entropy: float = 0.2
    """Worth of the policy's entropy in units of the TD error, less where there are more than three
    dimensions, where it follows the lookahead."""
    width: int = 64
    """Units of a hidden layer."""
    lookahead_width: int = 256
    """Units of a hidden layer of the lookahead."""
    depth: int = 2
    """Hidden layers."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            _check(field, getattr(self, field.name))
        if isinstance(self.kappa, int | float) and self.penalized and self.kappa <= 1.0:
            raise ValueError(
                f"mu*beta is {self.kappa:g} with theta_step='penalty', so that x would flip sign; "
                "choose beta > 1/mu, or theta_step='regression'"
            )

    @property
    def kappa(self) -> Any:
        """κ = μβ."""
        return self.mu * self.beta

    @property
    def penalized(self) -> bool:
        """Whether x sees the whole objective, so that κ matters to it."""
        return self.algorithm == "scal" and self.theta_step == "penalty"


_TINY, _BELOW_ONE, _INFINITY = 1e-12, 1.0 - 1e-9, float("inf")
_BOUNDS = {
    "gamma": (0.0, _BELOW_ONE),
    "gamma_start": (0.0, _BELOW_ONE),
    "inner_tolerance": (0.0, 1.0),
    "flow": (0.0, 1.0),
    "replay_share": (0.0, 1.0),
    "period_share": (0.0, 1.0),
    "average_share": (0.0, 1.0),
    "s0_mix": (0.0, 1.0),
    "epsilon": (0.0, 1.0),
    "warmup": (0, _INFINITY),
    "slack_scale": (0.0, _INFINITY),
    "entropy": (0.0, _INFINITY),
}
"""Of all others, whole numbers are at least 1 and numbers are positive."""


def _check(field: "dataclasses.Field[Any]", value: Any) -> None:
    """Raise ValueError if an option cannot have this value."""
    name, kinds = field.name, get_args(field.type) or (field.type,)
    if get_origin(field.type) is Literal:
        if value not in kinds:
            raise ValueError(f"{name} is {value!r}; use one of {', '.join(kinds)}")
    elif bool in kinds:
        if not isinstance(value, bool):
            raise ValueError(f"{name} is {value!r}; use True or False")
    elif isinstance(value, str | int | float) or (value is None and type(None) not in kinds):
        _check_number(name, value, whole=int in kinds)  # numbers of a sweep are traced


def _check_number(name: str, value: Any, whole: bool) -> None:
    low, high = _BOUNDS.get(name, (1 if whole else _TINY, _INFINITY))
    fits = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if not fits or not low <= value <= high:
        wanted = "a positive number" if low == _TINY else f"a number of at least {low:g}"
        most = f" and at most {high:g}" if high == 1.0 else ""
        most = " and less than 1" if high == _BELOW_ONE else most
        wanted = wanted.replace("number", "whole number") if whole else wanted
        raise ValueError(f"{name} is {value!r}; use {wanted}{most}")


SCREEN: dict[str, Any] = {
    "update_every": 4,
    "updates": 1,
    "batch_size": 32,
    "replay_size": 40_000,
    "replay_share": 1.0,
    "warmup": 4_000,
    "width": 256,
}
"""What differs for screens: an update costs hundreds of times as much, so that there are fewer, and
the window holds the interactions of as many updates as otherwise."""


class Preset(NamedTuple):
    """Options for each kind of actions."""

    discrete: Config
    continuous: Config


REPLAYED_CONTINUOUS = Config(
    gamma=0.998,
    gamma_start=0.99,
    lr_multiplier=3e-4,
    period_share=0.002,
    batch_size=64,
    replay_size=100_000,
    environments=8,
)

DISCRETE = Config(
    flow=0.0,
    slack="lookahead",
    period_value=15,
    replay_size=100_000,
    replay_share=1.0,
    entropy=0.1,
    lookahead_width=128,
)

CONTINUOUS = dataclasses.replace(
    REPLAYED_CONTINUOUS,
    flow=0.0,
    units="all",
    slack="lookahead",
    n_steps=5,
    updates=2,
    lr_multiplier=1e-3,
    average_share=0.03,
    replay_size=1_000_000,
    replay_share=1.0,
    first_episode=50,
)

PAPER = Config(
    gamma=0.98,
    beta=100 / 0.3,
    slack_scale=0.5,
    flow=0.0,
    s0_mix=0.0,
    units="raw",
    slack="network",
    multiplier="density",
    theta_step="penalty",
    n_steps=1,
    cuts=False,
    clip_targets=False,
    scale_rewards=False,
    lr_slack=3e-3,
    lr_multiplier=1e-3,
    clip=1.0,
    targets="copy",
    period_value=384,
    period_multiplier=384,
    average_share=0.0,
    batch_size=64,
    sampling="proportional",
    replay_size=50_000,
    replay_share=1.0,
    learn_sigma=False,
)

PRESETS = {
    "default": Preset(DISCRETE, CONTINUOUS),
    "replayed": Preset(Config(), REPLAYED_CONTINUOUS),
    "paper": Preset(PAPER, PAPER),
}


def usual(preset: str, spaces: "Spaces", algorithm: str = "scal") -> Config:
    """The options of a preset for such an environment.

    The default has no lookahead for deep-alm, and none for discrete actions where frames are seen.
    """
    if preset == "default" and (algorithm != "scal" or (spaces.discrete and spaces.image)):
        preset = "replayed"
    kinds = PRESETS[preset]
    config = kinds.discrete if spaces.discrete else kinds.continuous
    return dataclasses.replace(config, **SCREEN) if spaces.screen else config
