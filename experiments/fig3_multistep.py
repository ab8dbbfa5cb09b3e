"""Figure 3: lengths of the multi-step target."""

from experiments.rerun import main

if __name__ == "__main__":
    main("multistep", "fig3_multistep")
