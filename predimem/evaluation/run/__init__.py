"""Playing the episodes of an evaluation, in worker processes, with a journal to resume from."""
