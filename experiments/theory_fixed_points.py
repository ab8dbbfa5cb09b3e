"""docs/figures/theory_fixed_points.svg."""

from experiments.writing import write

if __name__ == "__main__":
    write("fixed-points")
