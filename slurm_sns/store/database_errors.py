"""The text of a database error in one line, with a remedy for the admin where we know one."""

from sqlalchemy.exc import SQLAlchemyError

MOVE_IT_AWAY = "stop the scheduler, move the file away, start: what it did with a job stands in the job"

#: A part of SQLite's error text -> the remedy.
_REMEDIES = {
    "not a database": MOVE_IT_AWAY,
    "malformed": MOVE_IT_AWAY,
    "readonly": "the file and its directory must belong to SlurmUser and be writable",
    "unable to open": "the file and its directory must belong to SlurmUser and be writable",
    "disk is full": "make room there",
    "disk I/O error": "make room there, or check the disk",
}


def in_words(problem: SQLAlchemyError) -> str:
    """The error and its remedy, without the SQL statement, which can hold text that users wrote."""
    text = " ".join(str(problem.args[0] if problem.args else problem).split())
    remedy = next((each for part, each in _REMEDIES.items() if part in text), "")
    return f"{text}; {remedy}" if remedy else text
