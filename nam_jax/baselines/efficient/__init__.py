"""The efficient attentions of the Long Range Arena, one per file."""
