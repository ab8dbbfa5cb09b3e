"""docs/figures/theory_residual.svg."""

from experiments.writing import write

if __name__ == "__main__":
    write("residual")
