"""What the executor knows of the world: it looks at it with cameras."""
