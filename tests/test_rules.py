"""Rules of the codebase that no type checker and no import contract states.

``LIMITS`` may be lowered. One rises only with a feature that is worth it, and never for a rule that
the code obeys, whose limit is 0. [docs/decisions/0024-how-large-the-code-may-be.md]
"""

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "discreet"
LIMITS = {
    "modules at the top": 9,
    "files": 286,
    "files of the service": 59,
    "lines": 54_740,
    "lines of tests": 58_600,
    "lines with Any": 417,
    "small files with one importer": 0,
    "public classes of one name": 1,
    "public functions of one name": 1,
    "module names used twice": 2,
    "casts to a class of ours": 0,
    "checks for a mechanism outside oracles": 0,
    "docstrings that begin with a question word": 0,
    "lines of documents above 120 characters": 307,
}
SMALL, LONG = 60, 400
LONG_FILES: dict[str, str] = {
    "learner.py": "one public class, whose methods are short and mostly documentation",
    "plan/plan.py": "one public class, whose arguments are documented in one place",
    "simulate/engine.py": "one loop over batches for learners, campaigns and curves",
}
"""Files above 400 lines, and why they are not split."""
ONE_EACH = ("policies/", "lab/rivals/", "features/", "oracles/", "cli/")
"""Folders where one algorithm, one kind of column or one command has a file."""
QUESTION = re.compile(r"(what|who|whom|whose|how|where|whether|why|which|when)\b", re.IGNORECASE)


class Module:
    """One file of the package: its place, its syntax tree and what it imports."""

    def __init__(self, path):
        self.place = path.relative_to(SOURCE).as_posix()
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        self.name = ".".join(parts).removesuffix(".__init__")
        self.package = parts[1] if len(parts) > 2 else ""
        self.is_package = path.name == "__init__.py"
        self.text = path.read_text(encoding="utf-8")
        self.lines = self.text.splitlines()
        self.tree = ast.parse(self.text)

    def __str__(self):
        return self.place

    def definitions(self, *kinds):
        """Public names of the module."""
        return [
            node.name
            for node in self.tree.body
            if isinstance(node, kinds) and not node.name.startswith("_")
        ]

    @property
    def imports(self):
        """Pairs of a module and a name in it, wherever the import stands."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for each in node.names:
                    yield node.module, each.name
            elif isinstance(node, ast.Import):
                for each in node.names:
                    yield each.name, ""


@cache
def modules():
    return [Module(path) for path in sorted(SOURCE.rglob("*.py"))]


@cache
def importers():
    """Modules that import a module, by its name."""
    names = {module.name for module in modules()}
    found = defaultdict(set)
    for module in modules():
        for source, name in module.imports:
            inner = f"{source}.{name}"
            found[inner if inner in names else source].add(module.name)
    return found


def calls(function):
    """Calls of a function by its plain name, outside and inside of functions."""
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == function:
                yield module, node


def words(node):
    """Names in an expression; a string is an expression as well."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = ast.parse(node.value)
    return {
        each.id if isinstance(each, ast.Name) else each.attr
        for each in ast.walk(node)
        if isinstance(each, (ast.Name, ast.Attribute))
    }


def top_modules():
    return [module.place for module in modules() if "/" not in module.place]


def small_files():
    return [
        f"{module.place} ({len(module.lines)} lines)"
        for module in modules()
        if len(module.lines) < SMALL
        and len(importers()[module.name]) < 2
        and not module.is_package
        and not module.place.startswith(ONE_EACH)
    ]


def classes_defined_twice():
    places = defaultdict(list)
    for module in modules():
        for name in module.definitions(ast.ClassDef):
            places[name].append(module.place)
    return twice(places)


def functions_defined_twice():
    """Functions of one name in two modules, both imported from other packages."""
    packages = {module.name: module.package for module in modules()}
    foreign = {
        imported
        for module in modules()
        for imported in module.imports
        if packages.get(imported[0], module.package) != module.package
    }
    places = defaultdict(list)
    for module in modules():
        for name in module.definitions(ast.FunctionDef, ast.AsyncFunctionDef):
            if (module.name, name) in foreign:
                places[name].append(module.place)
    return twice(places)


def twice(places):
    return [f"{name}: {', '.join(at)}" for name, at in sorted(places.items()) if len(at) > 1]


def module_names_used_twice():
    stems = Counter(module.name.rsplit(".")[-1] for module in modules() if not module.is_package)
    return [name for name, count in stems.items() if count > 1]


def casts():
    ours = {node.name for module in modules() for node in ast.walk(module.tree)
            if isinstance(node, ast.ClassDef)} | {"Self"}  # fmt: skip
    return [
        f"{module.place}:{node.lineno}"
        for module, node in calls("cast")
        if node.args and words(node.args[0]) & ours
    ]


def mechanism_checks():
    mechanisms = {
        name
        for module in modules()
        if module.place.startswith("oracles/mechanisms/")
        or module.name.endswith("oracles.contract")
        for name in module.definitions(ast.ClassDef)
    }
    return [
        f"{module.place}:{node.lineno}"
        for module, node in calls("isinstance")
        if module.package != "oracles" and words(node.args[1]) & mechanisms
    ]


def questions():
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        f"{module.place}:{getattr(node, 'lineno', 1)}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, kinds) and QUESTION.match(ast.get_docstring(node) or "")
    ]


def lines_with_any():
    return [
        f"{module.place}:{number}"
        for module in modules()
        for number, line in enumerate(module.lines, 1)
        if re.search(r"\bAny\b", line)
    ]


def long_document_lines():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    made = ROOT / "docs" / "results" / "audit" / "sabotage.md"  # by a program, with long rows
    return [
        f"{page.relative_to(ROOT)}:{number}"
        for page in pages
        if page != made
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 120
    ]


FOUND = {
    "modules at the top": top_modules,
    "files": modules,
    "files of the service": lambda: [each for each in modules() if each.package == "service"],
    "lines": lambda: [line for module in modules() for line in module.lines],
    "lines of tests": lambda: [
        line for path in ROOT.glob("tests/**/*.py") for line in path.read_text().splitlines()
    ],
    "lines with Any": lines_with_any,
    "small files with one importer": small_files,
    "public classes of one name": classes_defined_twice,
    "public functions of one name": functions_defined_twice,
    "module names used twice": module_names_used_twice,
    "casts to a class of ours": casts,
    "checks for a mechanism outside oracles": mechanism_checks,
    "docstrings that begin with a question word": questions,
    "lines of documents above 120 characters": long_document_lines,
}


@pytest.mark.parametrize("rule", LIMITS)
def test_limits(rule):
    found = FOUND[rule]()
    few = "\n  ".join(map(str, found[:80])) if len(found) < 500 else ""
    assert len(found) <= LIMITS[rule], f"{len(found)} {rule}, at most {LIMITS[rule]}:\n  {few}"


def test_long_files_have_a_reason():
    long = {module.place: len(module.lines) for module in modules() if len(module.lines) > LONG}
    unexplained = {place: count for place, count in long.items() if not LONG_FILES.get(place)}
    assert not unexplained, "split them, or write the reason into LONG_FILES"


def test_only_commands_and_audits_import_the_lab():
    allowed = {"lab", "audit", "cli"}
    wrong = [
        f"{module.place} imports {source}"
        for module in modules()
        for source, _ in module.imports
        if source.startswith("discreet.lab") and module.package not in allowed
    ]
    assert not wrong


def test_the_dashboard_does_not_import_http():
    wrong = [
        f"{module.place} imports {source}"
        for module in modules()
        for source, _ in module.imports
        if source.startswith("discreet.service.http") and "service/dashboard/" in module.place
    ]
    assert not wrong


def names_of(tree):
    """Names that a module has: definitions, assignments and imports at its top."""
    found = set()
    for node in tree.body:
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                found.add(each.id)
            elif isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found.add(each.name)
            elif isinstance(each, ast.alias):
                found.add(each.asname or each.name)
    return found


def test_scripts_import_names_that_exist():
    known = {module.name: names_of(module.tree) for module in modules()}
    stars = {name for name, names in known.items() if "*" in names}  # they have more names
    wrong = []
    for path in (*ROOT.glob("bench/*.py"), *ROOT.glob("examples/*.py"), *ROOT.glob("docs/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("discreet"):
                names = {each.name for each in node.names}
                inner = {name for name in names if f"{node.module}.{name}" in known}
                missing = names - inner - known.get(node.module, set())
                if missing and node.module not in stars:
                    wrong.append(f"{path.relative_to(ROOT)}: {node.module} has no {missing}")
    assert not wrong
