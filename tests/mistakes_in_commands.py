"""Mistakes on the command line: (typed, rule, step, then) for test_mistakes.py."""

FIELD = '[[fields]]\nkind = "Number"\nname = "age"\nlow = 0\nhigh = 100\n'
SALES = "age,device,bought\n" + "20,phone,no\n30,desk,yes\n" * 30
BUDGET = "budget = { epsilon = 1.0, delta = 1e-5 }\n"
FILES = {
    "sales.csv": SALES,
    "sales.txt": SALES,
    "schema.toml": FIELD,
    "key.toml": FIELD.replace("high", "hi"),
    "kind.toml": FIELD.replace("Number", "number"),
    "misspelt.toml": 'data = "sales.csv"\npolcy = "SquareCB"\n' + BUDGET,
    "text.toml": 'data = "sales.csv"\npolicy = "SquareCB"\n' + BUDGET,
    "number.toml": 'data = "sales.csv"\nbudget = 1.0\n',
    "good.toml": 'data = "sales.csv"\nseeds = 1\npolicy = { kind = "SquareCB" }\n' + BUDGET,
}

COMMANDS = [
    ("rnu", "command must be one of 'demo', 'run'", "Did you mean 'run'?"),
    (
        "run",
        "data must be the name of a set or a path; got None",
        "Add --data fried, --data FILE.csv, or the key data to the experiment file.",
        "run --data fried --rows 60 --seeds 1",
    ),
    (
        "run sales.csv",
        "experiment file must be TOML; got 'sales.csv'",
        "For data write --data sales.csv.",
        "run --data sales.csv --seeds 1",
    ),
    ("run --data freid", "data must be one of fried, linear", "Did you mean 'fried'?"),
    ("run --data sale.csv", "file must be readable; sale.csv is not", "Check the path."),
    (
        "run --data sales.csv --sedes 1",
        "arguments must be those of discreet run; got '--sedes'",
        "Did you mean '--seeds'? See discreet run --help.",
        "run --data sales.csv --seeds 1",
    ),
    (
        "run --data sales.csv --epsilon one",
        "arguments must be those of discreet run; argument --epsilon: invalid float value",
        "See discreet run --help.",
    ),
    (
        "run --data sales.csv --epsilon 0",
        "epsilon must be above 0; got 0.0",
        "Without privacy it is Budget.none(), or --epsilon inf.",
        "run --data sales.csv --epsilon inf --seeds 1",
    ),
    (
        "run --data sales.csv --delta 0",
        "delta must be above 0 for Gaussian noise; got 0.0",
        "a delta such as 1e-5, or choose a pure mechanism: FiniteClass, or Logistic without radii.",
        "run --data sales.csv --delta 0 --oracle Logistic --seeds 1",
    ),
    (
        "run --data sales.csv --policy SquareBC",
        "plan.policy.kind must be one of AdaCB",
        "Did you mean 'SquareCB'?",
        "run --data sales.csv --policy SquareCB --seeds 1",
    ),
    (
        "run --data sales.csv --set bonus",
        "--set must be key=value; got 'bonus'",
        "Write --set bonus=value.",
        "run --data sales.csv --set bonus=0.1 --seeds 1",
    ),
    (
        "run --data sales.csv --set bonus=big",
        "plan.policy.bonus must be a number; got 'big'",
        "Write a number, without quotes.",
    ),
    (
        "run --data sales.csv --target bougth",
        "target must be one of the 3 columns of sales.csv, by its name or by its number from 1",
        "Did you mean 'bought'?",
        "run --data sales.csv --target bought --seeds 1",
    ),
    (
        "run --data sales.csv --schema none.toml",
        "schema file must be readable; cannot read none.toml",
        "Check the path.",
        "run --data sales.csv --schema schema.toml --seeds 1",
    ),
    (
        "run --data sales.csv --schema key.toml",
        "fields[0] must have only known keys; got 'hi'",
        "Did you mean 'high'?",
    ),
    (
        "run --data sales.csv --schema kind.toml",
        "fields[0].kind must be one of 'Number', 'Flag', 'Category', 'Hashed', 'Date'",
        "Did you mean 'Number'?",
    ),
    (
        "run misspelt.toml",
        "experiment must have only known keys; got 'polcy'",
        "Did you mean 'policy'?",
    ),
    (
        "run text.toml",
        "plan.policy must be a table with a kind; got 'SquareCB'",
        "SquareCB, Uniform, VanillaPO.",
    ),
    (
        "run number.toml",
        "plan.budget must be a table; got 1.0",
        "Write budget = { epsilon = …, delta = … }.",
        "run good.toml",
    ),
    (
        "curve",
        "arguments must be those of discreet curve; the following arguments are required: --d",
        "See discreet curve --help.",
    ),
    (
        "campaign run --data fried --out results --preset pape",
        "preset must be one of 'paper', 'quick', 'default', 'rivals'; got 'pape'",
        "Did you mean 'paper'?",
    ),
    (
        "plan --actions 3",
        "features must be known; no data were named",
        "Add --data fried, or --actions and --dimension to plan without data.",
        "plan --actions 3 --dimension 10",
    ),
    (
        "plan --actions mail --dimension 10",
        "actions must be two or more distinct words",
        "Write actions=['none', 'mail', 'call'], or --actions none,mail,call.",
        "plan --actions none,mail,call --dimension 10",
    ),
    (
        "schema sales.txt",
        "sample must be a .csv or .parquet file; got 'sales.txt'",
        "Save it as CSV (UTF-8).",
        "schema sales.csv",
    ),
]
