"""A value that is JSON already, so that a large answer is encoded once for all who ask for it, or part by part."""

import json


class JsonText(str):
    """JSON of one value, in one line. A socket's answer takes it as it is (sockets.unix_socket)."""

    __slots__ = ()


def encoded(answer: object) -> str:
    """The answer as JSON, in one line."""
    return answer if isinstance(answer, JsonText) else json.dumps(answer)
