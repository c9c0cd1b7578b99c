"""Names the subtasks of episodes that came without, by a vision-language model that looks at them."""
