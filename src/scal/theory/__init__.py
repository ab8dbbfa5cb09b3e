"""What the paper proves (section 5), as functions and measurements; docs/theory.md explains."""
