"""What only planners trained from scratch need: a tokenizer, a vision tower and its pretraining."""
