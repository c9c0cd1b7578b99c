"""What people look at: the HTML report, charts, videos and clips."""
