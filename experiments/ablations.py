"""What every deviation from the paper buys; `python -m experiments.tables` has the table."""

from experiments.rerun import main

if __name__ == "__main__":
    main("ablation", None)
