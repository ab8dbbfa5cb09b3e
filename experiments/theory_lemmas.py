"""docs/figures/theory_lemmas.svg."""

from experiments.writing import write

if __name__ == "__main__":
    write("lemmas")
