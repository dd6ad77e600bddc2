"""When waiting jobs will start: a look ahead under the live policy, run times of the past, and a calibrated range."""
