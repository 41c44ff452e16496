"""One HTML page about all runs below a folder: `python -m nam_jax.report`.

`find` reads the folders, a module for each kind of run (`algorithmic`, `lra`,
`fewshot`, `bench`) makes its tables, `curves` draws, `page` puts it together.
The page needs nothing but itself: no network, no scripts.
"""
