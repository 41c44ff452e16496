"""How scripts and tools are called: flags, options, tables of runs."""
