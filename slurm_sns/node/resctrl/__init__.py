"""The kernel's resctrl file system: what it offers, its text, its groups, its errors."""
