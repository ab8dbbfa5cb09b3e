"""Figure 2: variance of the two estimators of the gradient, without and with noise."""

from experiments.rerun import main

if __name__ == "__main__":
    main("gradient", "fig2_gradients")
