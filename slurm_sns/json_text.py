"""A value that is JSON already, so that a large answer is encoded once for all who ask for it."""


class JsonText(str):
    """JSON of one value, in one line. A socket's answer takes it as it is (sockets.unix_socket)."""

    __slots__ = ()
