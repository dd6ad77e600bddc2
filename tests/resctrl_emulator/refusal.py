"""What the emulated kernel refuses: an errno for the caller, and a message for info/last_cmd_status."""

import os


class Refusal(OSError):
    """`message` is what info/last_cmd_status reads then; "" is `ok`, None leaves it as it was."""

    def __init__(self, number: int, message: str | None = None) -> None:
        super().__init__(number, os.strerror(number))
        self.message = message
