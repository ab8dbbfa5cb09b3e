"""Running a learner: environments, evaluation, records."""
