"""What a training script does, as functions: config, run, results, pictures."""
