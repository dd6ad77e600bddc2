"""A partition whose jobs share cores: by which part of its cores a job goes on, and what its time limit means there."""
