"""Figure 6: locomotion against PPO, TRPO and SAC."""

from experiments.rerun import main

if __name__ == "__main__":
    main("continuous", "fig6_continuous")
