"""docs/figures/theory_mean_residual.svg."""

from experiments.writing import write

if __name__ == "__main__":
    write("mean-residual")
