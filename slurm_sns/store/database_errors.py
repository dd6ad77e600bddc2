"""A database's complaint in one line, with what an admin can do about it where we know."""

from sqlalchemy.exc import SQLAlchemyError

MOVE_IT_AWAY = "stop the scheduler, move the file away, start: held and placed jobs are known from Slurm too"

#: By what the complaint contains; SQLite's words.
_REMEDIES = {
    "not a database": MOVE_IT_AWAY,
    "malformed": MOVE_IT_AWAY,
    "readonly": "the file and its directory must belong to SlurmUser and be writable",
    "unable to open": "the file and its directory must belong to SlurmUser and be writable",
    "disk is full": "make room there",
    "disk I/O error": "make room there, or look after the disk",
}


def in_words(problem: SQLAlchemyError) -> str:
    """The complaint and the remedy. Without the statement, which can hold what users write."""
    text = " ".join(str(problem.args[0] if problem.args else problem).split())
    remedy = next((each for sign, each in _REMEDIES.items() if sign in text), "")
    return f"{text}; {remedy}" if remedy else text
