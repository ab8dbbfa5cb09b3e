"""docs/figures/theory_penalty.svg."""

from experiments.writing import write

if __name__ == "__main__":
    write("penalty")
