"""Looking at stored episodes: statistics, plots and videos."""
