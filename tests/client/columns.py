"""Schemas with every kind of column: contexts that they map, and contexts that they refuse."""

import discreet as dc

LONE = "\ud800"  # half of a pair: JSON can hold it, UTF-8 cannot
WORDS = ["", "Bern", "naïve ☃ 😀\x7f", "a=b", LONE, "x" * 300, 0, -17, 3000, 2**53 - 1, 4.0]
TIMES = [
    "2026-03-29T14:05",
    "2026-12-31 23:59:59",
    "2024-02-29T00:00:00.000001Z",
    "1000-01-01T12:30+0200",
    "9999-10-05T06:00:00.5-11:30",
    "2000-07-16T18:00",
]
DATES = ["2026-03-29", "2024-02-29", "1900-01-01", "2000-12-31T05:00", "1969-12-31"]
NO_DATES = [
    *("", "yesterday", "2026-3-29", "2026-02-30", "2023-02-29", "2026-13-01", "2026-00-10"),
    *("20260329", "0999-01-01", "2026-03-29T24:00", "2026-03-29T10:60", "2026-03-29T10:00:60"),
    *("2026-03-29T10:00z", "2026-03-29T10", "2026-03-29t10:00", "2026-03-29T10:00+2"),
    *("2026-03-29T10:00\n", " 2026-03-29T10:00", "2026-03-29T10:00:00.", 1774792800, True, []),
]
GAPS = [
    dc.Number("n", -1, 1, indicator=True),
    dc.Number("m", 1, 100, log=True, stand_in=10),
    dc.Flag("f", indicator=True),
    dc.Flag("g", stand_in=True),
    dc.Category("c", ["x", "y"], indicator=True),
    dc.Category("d", [1, 2], other=True, stand_in=7),
    dc.Hashed("h", 5, indicator=True),
    dc.Hashed("i", 5, stand_in="none"),
    dc.Date("t", indicator=True),
    dc.Date("u", ["month"], stand_in="2026-06-01"),
]
WHOLE = {
    **{"n": 0.5, "m": 99, "f": True, "g": 0, "c": "y", "d": 2, "h": "a", "i": "b"},
    **{"t": "2026-03-29T14:05", "u": "2026-03-29"},
}

_income = [dc.Number("income", 10, 1e6, log=True), dc.Number("size", 0.5, 2, clip=True, log=True)]
_member = [dc.Flag("member"), dc.Number("age", 0, 100)]
_rank = [dc.Category("rank", [3, -1, 10]), dc.Category("floor", [0, 1], other=True)]
_crossed = [
    dc.Number("age", 0, 100, indicator=True),
    dc.Category("device", ["phone", "desk"]),
    dc.Flag("member"),
    dc.Date("at"),
]
_products = [("age", "device"), ("at", "member"), ("device", "age", "at")]


def _each(name, values, rest=None):
    return [{name: value, **(rest or {})} for value in values]


COLUMNS = {
    "logarithms": (
        dc.Schema(_income),
        [
            {"income": 10, "size": 1},
            {"income": 1e6, "size": -4},
            {"income": 31_622.7766, "size": 1e300},
        ],
        _each("income", [9.99, 0, -5, 1e6 + 1, "100", [100], {}], {"size": 1}),
    ),
    "flags": (
        dc.Schema(_member),
        _each("member", [True, False, 1, 0, 1.0], {"age": 50}),
        _each("member", ["true", "", 2, -1, 0.5, None, [], [1]], {"age": 50}),
    ),
    "whole numbers": (
        dc.Schema(_rank),
        [*_each("rank", [3, -1, 10, 3.0], {"floor": 1}), *_each("floor", [0, 9, -3], {"rank": 3})],
        [
            *_each("rank", ["3", 4, 2.5, True, None, [3]], {"floor": 1}),
            *_each("floor", ["1", 0.5, False, None, {}], {"rank": 3}),
        ],
    ),
    "words": (
        dc.Schema([dc.Category("device", ["phone", "1"], other=True)]),
        _each("device", ["phone", "1", "", "watch"]),
        _each("device", [1, True, None, 1.5, ["phone"]]),
    ),
    "hashes": (
        dc.Schema([dc.Hashed("town", 64)]),
        _each("town", WORDS),
        _each("town", [2**53, -(2**53), 0.5, True, None, ["Bern"], {}]),
    ),
    "a hash of another name": (
        dc.Schema([dc.Hashed("Ort ☃", 3), dc.Hashed("town", 997)]),
        _each("town", WORDS, {"Ort ☃": "Bern"}),
        [{"town": "Bern"}],
    ),
    "times": (dc.Schema([dc.Date("at")]), _each("at", TIMES), _each("at", [*NO_DATES, DATES[0]])),
    "dates": (
        dc.Schema([dc.Date("day", ["day", "month", "weekday"])]),
        _each("day", [*DATES, *TIMES]),
        _each("day", NO_DATES),
    ),
    "gaps": (
        dc.Schema(GAPS),
        [
            WHOLE,
            {},
            *({**WHOLE, name: None} for name in WHOLE),
            *({key: WHOLE[key] for key in WHOLE if key != name} for name in WHOLE),
        ],
        [None, [7], 7, "n", True, *({**WHOLE, name: [1]} for name in WHOLE), {"nn": 1}],
    ),
    "products": (
        dc.Schema(_crossed, squares=True, products=_products),
        [
            {"age": 10, "device": "phone", "member": True, "at": TIMES[0]},
            {"age": 77.5, "device": "desk", "member": False, "at": TIMES[2]},
            {"device": "desk", "member": 0, "at": TIMES[1]},
        ],
        [{"age": 10, "device": "phone", "member": True}],
    ),
}
