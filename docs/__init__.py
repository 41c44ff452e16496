"""Programs that make pages and pictures of this folder."""
