"""docs/figures/theory_width.svg."""

from experiments.writing import write

if __name__ == "__main__":
    write("width")
