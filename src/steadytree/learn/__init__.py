"""Everything with fit; each learner ends in a Tree."""
