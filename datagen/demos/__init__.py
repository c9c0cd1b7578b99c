"""From tasks and seeds to annotated episodes of the arena."""
