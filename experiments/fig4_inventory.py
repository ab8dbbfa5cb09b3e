"""Figure 4: inventory control, with the exact gap and the policies."""

from experiments.rerun import main

if __name__ == "__main__":
    main("inventory", "fig4_inventory", lambda panel: panel.up != "return of greedy episodes")
