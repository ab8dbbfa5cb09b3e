"""docs/figures/theory_convergence.svg."""

from experiments.writing import write

if __name__ == "__main__":
    write("convergence")
