"""All figures of docs/theory.md."""

from experiments.writing import write
from scal.theory.studies import STUDIES

if __name__ == "__main__":
    write(*STUDIES)
