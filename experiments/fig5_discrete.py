"""Figure 5: CartPole and Acrobot against DQN, PPO and TRPO."""

from experiments.rerun import main

if __name__ == "__main__":
    main("discrete", "fig5_discrete")
