"""One HTML page about all runs in a folder: `python -m report`.

`find` reads the folders; each experiment's `section.py` says how its runs are
recognised and shown; `pictures` draws; `page` puts it all together. The page
is one file: no network, no scripts.
"""
