"""Words as people mistype them."""

from __future__ import annotations

import random
from typing import Final

# What is misspelt most, and how.
_COMMON: Final = {
    "receive": "recieve", "separate": "seperate", "length": "lenght", "occurred": "occured", "height": "heigth",
    "width": "widht", "parameter": "paramter", "argument": "arguement", "definition": "defintion", "default": "defualt",
    "response": "reponse", "request": "reqeust", "message": "mesage", "address": "adress", "attribute": "atribute",
    "initialize": "intialize", "dependency": "dependancy", "environment": "enviroment", "existing": "exisiting",
    "function": "fucntion", "return": "retrun", "string": "sting", "success": "sucess", "transfer": "tranfer",
    "available": "availible", "calendar": "calender", "column": "colunm", "connection": "conection",
    "destination": "destionation", "directory": "direcotry", "document": "docuemnt", "execute": "exectue",
    "identifier": "identifer", "instance": "instace", "interval": "inteval", "language": "langauge",
    "maximum": "maxiumum", "minimum": "minumum", "option": "opiton", "original": "orignal", "position": "postion",
    "previous": "previuos", "priority": "prioirty", "process": "proccess", "property": "propery", "query": "qeury",
    "reference": "refernce", "register": "regsiter", "result": "reuslt", "schedule": "shcedule", "status": "satus",
    "target": "traget", "temporary": "temporay", "threshold": "threshhold", "transaction": "transacton",
    "value": "vlaue", "version": "verison", "visible": "visable", "window": "widnow", "config": "confg",
}  # fmt: skip
_NEIGHBOURS: Final = {
    "a": "s", "s": "ad", "d": "sf", "f": "dg", "g": "fh", "h": "gj", "j": "hk", "k": "jl", "l": "k", "e": "wr",
    "r": "et", "t": "ry", "y": "tu", "u": "yi", "i": "uo", "o": "ip", "n": "bm", "m": "n", "b": "vn", "v": "cb",
    "c": "xv",
}  # fmt: skip


def misspelt(word: str, rng: random.Random) -> str | None:
    """The word with one slip, in the same case, never in its first letter; None where nothing fits."""
    common = _COMMON.get(word.lower())
    if common is not None and rng.random() < 0.7:  # noqa: PLR2004 (mostly)
        return common if word.islower() else common.upper() if word.isupper() else common.capitalize()
    at = rng.randrange(1, len(word) - 1)
    head, one, two, tail = word[:at], word[at], word[at + 1], word[at + 2 :]
    if not (one.isalpha() and two.isalpha()):
        return None
    slip = rng.random()
    if slip < 0.4:  # noqa: PLR2004
        wrong = head + two + one + tail
    elif slip < 0.7:  # noqa: PLR2004
        wrong = head + two + tail
    elif slip < 0.85:  # noqa: PLR2004
        wrong = head + one + one + two + tail
    else:
        other = rng.choice(_NEIGHBOURS.get(one.lower(), one.lower()))
        wrong = head + (other.upper() if one.isupper() else other) + two + tail
    return None if wrong == word else wrong
