"""From recorded episodes to figures: success rates with intervals, causes of failure, memory errors."""
