"""S2, the planner: Qwen3-VL with a predictive-coding head, its prompt, its data and its training."""
