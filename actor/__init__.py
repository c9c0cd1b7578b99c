"""S1, the actor: π0.5 in PyTorch, sized by config, with its training and its policy."""
