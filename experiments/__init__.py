"""One script per figure; `experiments/results` holds the numbers, `docs/figures` the pictures."""
