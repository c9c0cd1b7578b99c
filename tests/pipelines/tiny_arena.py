"""`predimem train arena` with as little of everything as works."""

TINY = """
workers: 1
tasks: ["6"]
planners:
  dagger: configs/datagen_dagger.yaml
  dagger_changes: {max_overtime_s: 3.0}
  vision_data: configs/datagen_vision_data.yaml
  vision_data_changes: {episodes: 2, frames: 4}
  rounds: [{episodes: 1, first_seed: 46000}, {episodes: 1, first_seed: 44000}]
  recipes:
    arena-planner: configs/planner/arena.yaml
    arena-planner-recent: configs/planner/arena_recent.yaml
    arena-planner-untrained: configs/planner/arena_untrained.yaml
  recipe_changes:
    vision: {steps: 3, batch_size: 4, max_frames: 60}
    dataset: {samples: 16}
    sft: {batch_size: 4}
actor:
  data: configs/datagen_actor_data.yaml
  data_changes: {tasks: ["2"], episodes: 2, frames: 2}
  recipe: configs/actor/arena.yaml
  variants: {arena-actor-reactive: configs/actor/arena_reactive.yaml}
  recipe_changes:
    steps: 3
    threads: 1
    val_every: 2
    sampling: {frames_per_batch: 2}
    dagger: {rounds: 1, episodes: 1, steps: 2}
"""
