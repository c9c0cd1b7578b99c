"""How the actor is trained: on one CPU core as on many GPUs."""
