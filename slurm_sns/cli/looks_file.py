"""The file to which `sns observe` appends its looks, and which `sns report` reads: its name and version."""

#: The file in the directory of `sns observe`.
LOOKS = "looks.jsonl"
#: The version of a line's form, json_types.ObserveJson.
VERSION = 2
