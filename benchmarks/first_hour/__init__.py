"""What a stranger meets in the first hour: the commands of README and guides, run in a fresh clone and watched."""
