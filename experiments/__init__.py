"""One short script per figure of the paper and per study of its theory."""
