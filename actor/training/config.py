"""The config of a training run of the actor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from actor.dataset import SamplingConfig
from actor.hindsight import HindsightConfig
from actor.tiny.auxiliary import AuxiliaryConfig
from actor.weights import ActorConfig
from predimem.core.config import ConfigError
from predimem.core.seeds import ACTOR_DAGGER_SEEDS

PARTS = ("vision", "language_model", "action_expert", "action_head", "locator")
"""What `frozen` may name. The action head is what reads and writes actions around the expert's layers."""
TRACKERS = ("tensorboard", "wandb")
Precision = Literal["float32", "bfloat16", "bfloat16_weights"]


@dataclass(frozen=True)
class OptimiserConfig:
    """AdamW with a linear warm-up, a plateau, and a linear decay to 2 % over the last `decay_share` of the steps.

    ema_decay: the decay of the averaged weights, which are validated and exported; 0 keeps no average.
    """

    learning_rate: float = 1.2e-3
    weight_decay: float = 0.02
    betas: tuple[float, ...] = (0.9, 0.95)
    warmup_steps: int = 60
    decay_share: float = 0.4
    clip_norm: float = 1.0
    ema_decay: float = 0.998

    def learning_rate_at(self, step: int, steps: int) -> float:
        """The rate of the step after `step` steps are done."""
        warm = min(1.0, (step + 1) / max(1, self.warmup_steps))
        left = (steps - step) / max(1.0, self.decay_share * steps)
        return self.learning_rate * warm * min(1.0, max(0.02, left))


@dataclass(frozen=True)
class ComputeConfig:
    """How a training uses the machine. Apart from rounding, none of it changes the result.

    parallel: what several processes share. With `ddp` each has the whole model. With `fsdp` (FSDP2) weights,
        gradients, optimiser state and average are spread over them.
    accumulation: into how many parts each process divides its share of a batch; their gradients are added.
    gradient_checkpointing: whether the layers of the transformers are computed again for the backward pass, in place of
        keeping what they computed. It takes about a third more time.
    workers: how many processes read and prepare batches ahead, for each process that trains; 0: it does so itself.
    """

    parallel: Literal["ddp", "fsdp"] = "ddp"
    accumulation: int = 1
    gradient_checkpointing: bool = False
    workers: int = 0

    def __post_init__(self) -> None:
        if self.accumulation < 1:
            raise ValueError(f"compute.accumulation must be at least 1, got {self.accumulation}")
        if self.workers < 0:
            raise ValueError(f"compute.workers must be at least 0, got {self.workers}")


@dataclass(frozen=True)
class LoraConfig:
    """Low-rank adapters (arXiv:2106.09685) on every projection of attention and MLP; the weights under them stay fixed.

    They are merged into the weights when these are exported. openpi's `gemma_2b_lora` and `gemma_300m_lora` have rank
    and alpha 16 in the prefix, 32 in the expert.

    prefix_rank, prefix_alpha: those of the prefix's language model; with rank 0 it has none.
    expert_rank, expert_alpha: those of the action expert.
    """

    prefix_rank: int = 0
    prefix_alpha: float = 16.0
    expert_rank: int = 0
    expert_alpha: float = 32.0

    def __post_init__(self) -> None:
        for name in ("prefix_rank", "expert_rank"):
            if getattr(self, name) < 0:
                raise ValueError(f"lora.{name} must be at least 0, got {getattr(self, name)}")

    @property
    def on(self) -> bool:
        return bool(self.prefix_rank or self.expert_rank)


@dataclass(frozen=True)
class DaggerConfig:
    """Rounds of DAgger after the first training (`actor.rounds`).

    In each round the actor of the last round plays, the expert labels what it met, and training goes on with all data.

    rounds: how many rounds there are; 0 for none.
    expert_episodes: how many seeds of each task the expert plays, with noise, for the first training.
    episodes: how many seeds of each task the actor plays in a round.
    first_seed: the first seed; the expert's seeds begin there, and those of each round follow.
    chain_share: the share of the roll-outs that go on with the next subtask after a success.
    steps: how many steps of training a round adds.
    data: the config of the actor's data, which says how roll-outs are made.
    """

    rounds: int = 0
    expert_episodes: int = 0
    episodes: int = 16
    first_seed: int = ACTOR_DAGGER_SEEDS.start
    chain_share: float = 0.5
    steps: int = 600
    data: str = "configs/datagen_actor_data.yaml"

    def __post_init__(self) -> None:
        if self.rounds < 0:
            raise ValueError(f"dagger.rounds must be at least 0, got {self.rounds}")
        if self.expert_episodes < 0:
            raise ValueError(f"dagger.expert_episodes must be at least 0, got {self.expert_episodes}")
        if self.expert_episodes and not self.rounds:
            raise ValueError(
                "dagger.expert_episodes are played where there are rounds: set it to 0, as dagger.rounds is"
            )
        for name in ("episodes", "steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"dagger.{name} must be at least 1, got {getattr(self, name)}")

    def seeds(self, number: int) -> range:
        """Those of each task that are played for a round; the expert's are those of round 0."""
        if number == 0:
            return range(self.first_seed, self.first_seed + self.expert_episodes)
        first = self.first_seed + self.expert_episodes + (number - 1) * self.episodes
        return range(first, first + self.episodes)


@dataclass(frozen=True)
class ActorTrainConfig:
    """One training run.

    episodes: a folder of episodes.
    out: the folder for everything that the training makes.
    more_episodes: further folders of episodes.
    init_from: a safetensors file with openpi's names to start from; its action head must fit.
    continue_from: a weights folder to start from, such as one that `predimem import actor` wrote. Its tokenizer is
        kept; words that a tiny tokenizer does not know are added to it.
    stats_from: with `continue_from`, whether its statistics are kept (`checkpoint`), or computed from the episodes
        (`data`).
    start_share: the share of the starting weights in those that are exported (WiSE-FT, arXiv:2109.01903); the rest is
        what was trained. A training on few episodes then keeps more of what the actor could do before.
    seed: batches and noise are functions of the seed and the step.
    steps: how many steps the training has.
    device: the torch device.
    precision: `float32`; `bfloat16`, which computes in bfloat16 (autocast) with weights, gradients and optimiser state
        in float32, as openpi does in JAX; or `bfloat16_weights`, where these are in bfloat16 as well, as openpi does in
        PyTorch: all but norms, patch and position embeddings and the action head.
    threads: how many threads torch uses; None leaves them as they are.
    images_gb: images that would take more memory than this, in all processes together, are read from the files for
        each batch.
    val_every: every so manyth scene is for validation, with all episodes of its task and seed.
    flow_samples: how many noise samples each prompt has.
    checkpoint_every, validate_every, log_every: so many steps lie between two of each.
    save_optimiser: whether checkpoints hold the optimiser's state. Without it they are a third as large, and training
        cannot go on from them.
    trackers: `tensorboard`, which writes into `out`, and `wandb`, which follows WANDB_MODE and its like.
    frozen: parts whose weights stay as they are: some of vision, language_model, action_expert, action_head, locator.
    actor: what the actor expects and gives.
    hindsight: where the targets of demonstrations that name none come from; None: they have none.
    sampling: how a batch is drawn.
    auxiliary: the weights of the training-only losses.
    optimiser: how the weights are optimised.
    lora: low-rank adapters in place of the weights.
    compute: how the machine is used.
    dagger: the rounds after this training.
    """

    FORMER_NAMES: ClassVar[dict[str, str]] = {"pictures_gb": "images_gb"}

    episodes: str = "runs/data/mikasa"
    out: str = "runs/train/actor"
    more_episodes: tuple[str, ...] = ()
    init_from: str | None = None
    continue_from: str | None = None
    stats_from: Literal["checkpoint", "data"] = "checkpoint"
    start_share: float = 0.0
    seed: int = 0
    steps: int = 1600
    device: str = "cpu"
    precision: Precision = "float32"
    threads: int | None = None
    images_gb: float = 2.0
    val_every: int = 10
    flow_samples: int = 2
    checkpoint_every: int = 100
    validate_every: int = 200
    log_every: int = 20
    save_optimiser: bool = True
    trackers: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    actor: ActorConfig = field(default_factory=ActorConfig)
    hindsight: HindsightConfig | None = None
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    auxiliary: AuxiliaryConfig = field(default_factory=AuxiliaryConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    lora: LoraConfig = field(default_factory=LoraConfig)
    compute: ComputeConfig = field(default_factory=ComputeConfig)
    dagger: DaggerConfig = field(default_factory=DaggerConfig)

    @staticmethod
    def complete_data(data: dict[str, Any]) -> dict[str, Any]:
        """`bfloat16: true` is the former word for `precision: bfloat16`."""
        if "bfloat16" not in data:
            return data
        if "precision" in data:
            raise ConfigError("'bfloat16' is the former word for 'precision': give that one alone")
        precision = "bfloat16" if data["bfloat16"] else "float32"
        return {name: value for name, value in data.items() if name != "bfloat16"} | {"precision": precision}

    def __post_init__(self) -> None:
        if self.init_from and self.continue_from:
            raise ValueError("init_from and continue_from both say where to start from: give one of them")
        if not 0 <= self.start_share < 1:
            raise ValueError(f"start_share must be at least 0 and less than 1, got {self.start_share}")
        if self.start_share and (self.continue_from is None or self.lora.on):
            raise ValueError("start_share is for continue_from without lora: it mixes the weights with those")
        for name in ("steps", "val_every", "flow_samples", "checkpoint_every", "validate_every", "log_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.val_every == 1:
            raise ValueError("val_every: 1 keeps every episode for the validation, and none for the training")
        for name, known in (("frozen", PARTS), ("trackers", TRACKERS)):
            if unknown := sorted(set(getattr(self, name)) - set(known)):
                raise ValueError(f"{name} may hold {', '.join(known)}, got {unknown[0]!r}")
        if self.precision == "bfloat16_weights" and self.actor.model.vision != "siglip":
            raise ValueError(
                "precision: bfloat16_weights is openpi's, for vision: siglip; say bfloat16 for vision: conv"
            )
        if self.precision == "bfloat16_weights" and self.compute.parallel == "fsdp":
            raise ValueError("fsdp shards weights of one type: say precision: bfloat16, or compute.parallel: ddp")
        if self.hindsight is not None:
            self.hindsight.check(self.actor.state_dim, self.actor.action_dim, self.actor.cameras)
