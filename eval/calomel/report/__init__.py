"""What benches and replays share: held-out data, intervals, journals, and pages of results."""
