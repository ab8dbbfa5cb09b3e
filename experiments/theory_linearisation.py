"""docs/figures/theory_linearisation.svg."""

from experiments.writing import write

if __name__ == "__main__":
    write("linearisation")
