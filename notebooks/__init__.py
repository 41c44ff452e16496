"""Five notebooks to meet the idea in, and what runs them: `make notebooks`."""
