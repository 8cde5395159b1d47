"""Names of features, for explanations."""

from __future__ import annotations

from itertools import product

from discreet.features.category import Category
from discreet.features.joint import EVERYTHING, NOTHING, Joint
from discreet.features.schema import Schema
from discreet.features.unit_ball import UnitBall


def feature_names(features: UnitBall | Schema | Joint) -> list[str]:
    """A word for each of the p features, the constant first.

    >>> from discreet.features.number import Number
    >>> feature_names(Schema([Number("age", 0, 100), Category("device", ["phone", "desk"])]))
    ['constant', 'age', 'age²', 'device = phone', 'device = desk']
    """
    if isinstance(features, Joint):
        context, action = _numbers(features.context), _numbers(features.action)
        action = [f"action's {name}" for name in action]
        return ["constant", *context, *action, *_products(features, context, action)]
    return ["constant", *_numbers(features)]


def feature_groups(features: UnitBall | Schema | Joint) -> dict[str, list[int]]:
    """The features of each field, or product of fields.

    >>> from discreet.features.number import Number
    >>> feature_groups(Schema([Number("age", 0, 100), Category("device", ["phone", "desk"])]))
    {'constant': [0], 'age': [1, 2], 'device': [3, 4]}
    """
    groups: dict[str, list[int]] = {}
    for place, name in enumerate(feature_names(features)):
        parts = [part.split(" = ")[0].removesuffix("²") for part in name.split(" × ")]
        parts = [part.removesuffix(" missing").split("[")[0] or part for part in parts]
        groups.setdefault(" × ".join(parts), []).append(place)
    return groups


def _numbers(features: UnitBall | Schema) -> list[str]:
    if isinstance(features, UnitBall):
        return [f"[{column}]" for column in range(features.dimension)]
    names: dict[str, list[str]] = {}
    for field, span in zip(features.fields, features.spans.values(), strict=True):
        parts = [field.name]
        if isinstance(field, Category):
            parts = [f"{field.name} = {value}" for value in field.values]
        elif field.width > 1:
            parts = [f"{field.name}[{place}]" for place in range(field.width)]
        if field.indicator:
            parts.append(f"{field.name} missing")
        if len(parts) < len(span):
            parts.append(f"{field.name}²")
        names[field.name] = parts
    single = [name for parts in names.values() for name in parts]
    multiplied = [
        " × ".join(each)
        for fields in features.products
        for each in product(*(_without_square(names[name]) for name in fields))
    ]
    return single + multiplied


def _without_square(parts: list[str]) -> list[str]:
    return [part for part in parts if not part.endswith("²")]


def _products(joint: Joint, context: list[str], action: list[str]) -> list[str]:
    names = [f"{left} × {right}" for left in context for right in action]
    if joint.interactions == EVERYTHING:
        return names
    if joint.interactions == NOTHING:
        return []
    if isinstance(joint.interactions, int):
        return [f"products {number}" for number in range(joint.interactions)]
    return [names[place] for place in joint.chosen]
