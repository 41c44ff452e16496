"""Reading data files of others, none of which is trusted.

Needs numpy alone; images need pillow, .array_record files array_record.
"""
