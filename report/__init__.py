"""One HTML page about all runs below a folder: `python -m report`.

`find` reads the folders; the `section.py` of every experiment says how its runs
are recognised and shown; `pictures` draws; `page` puts it all together. The
page is one file: no network, no scripts.
"""
