"""Images of scenes with what they show, for towers that learn to see: set without physics, no demonstrations."""
