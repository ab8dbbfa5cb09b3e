"""Learning with SCAL: networks, replay, the update (paper, sections 4 and 6)."""
