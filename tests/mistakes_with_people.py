"""Mistakes with contexts, losses and labels: (typed, rule, step, then) for test_mistakes.py."""

NO_NUMBERS = "Pass finite numbers in the order that UnitBall was declared for."
GAP = "Send a value, or declare the feature with stand_in=… or indicator=True."
RANGE = "Declare a fixed public range that holds all losses: Plan(outcome=Loss(low, high))."
EITHER = "losses= for what each action costs, or rewards= for what it earns."

CONTEXTS = [
    ("learner.decide([1, 2, 3])", "context must be of shape (2,) or (n, 2); got (3,)", NO_NUMBERS),
    (
        "learner.decide(['1', '2'])",
        "context must be an array of numbers; got list, not all numbers or not of one length",
        NO_NUMBERS,
    ),
    ("learner.decide([np.nan, 2])", "context must be finite; got NaN or infinity", NO_NUMBERS),
    ("learner.decide(person)", "context must be an array of numbers; got dict", NO_NUMBERS),
    (
        "people.decide([40, 'phone', '2026-03-29'])",
        "row 0: context must be a dict of features; got int",
        "Pass {name: value} with the names of the schema.",
        "people.decide(person)",
    ),
    (
        "people.decide({**person, 'agee': 40})",
        "context must have the features of the schema and no others; got 1 of another name",
        "Leave it out.",
    ),
    (
        "people.decide({'age': 40, 'device': 'phone'})",
        "feature 'seen' must be a date such as '2026-03-29'; got a missing value",
        GAP,
    ),
    (
        "people.decide({**person, 'age': '40'})",
        "feature 'age' must be a finite number; got text",
        "Send one number, neither text nor a flag.",
        "people.decide({**person, 'age': 40})",
    ),
    (
        "people.decide({**person, 'age': None})",
        "feature 'age' must be a finite number; got a missing value",
        GAP,
        "Schema([Number('age', 0, 100, stand_in=40)]).map({'age': None})",
    ),
    (
        "people.decide({**person, 'age': float('nan')})",
        "feature 'age' must be a finite number; got a missing value",
        GAP,
        "Schema([Number('age', 0, 100, indicator=True)]).map({'age': np.nan})",
    ),
    (
        "people.decide({**person, 'age': [40]})",
        "feature 'age' must be a finite number; got a list",
        "Send one number, neither text nor a flag.",
    ),
    (
        "people.decide({**person, 'age': True})",
        "feature 'age' must be a finite number; got a truth value",
        "Send one number, neither text nor a flag.",
    ),
    (
        "people.decide({**person, 'age': 140})",
        "feature 'age' must be in [0, 100]; got a number outside",
        "Clamp it yourself, or declare the number with clip=True.",
        "Schema([Number('age', 0, 100, clip=True)]).map({'age': 140})",
    ),
    (
        "people.decide({**person, 'device': 'fone'})",
        "feature 'device' must be one of ['phone', 'desk']; got text",
        "Compare its type, spelling, capitals and blanks with the list.",
    ),
    (
        "people.decide({**person, 'device': 1})",
        "feature 'device' must be one of ['phone', 'desk']; got a number",
        "Compare its type, spelling, capitals and blanks with the list.",
    ),
    (
        "people.decide({**person, 'seen': '29.03.2026'})",
        "feature 'seen' must be a date such as '2026-03-29'; got text",
        "Send ISO 8601 text with each part, or leave out the part.",
    ),
    (
        "people.decide([person, {**person, 'age': '40'}])",
        "row 1: feature 'age' must be a finite number; got text",
        "Send one number, neither text nor a flag.",
    ),
    (
        "people.decide(frame.drop(columns='device'))",
        "feature 'device' must be a column of the frame; it is absent",
        "Add the column, or rename one.",
        "people.decide(frame)",
    ),
    (
        "people.decide(frame.assign(age=[40, None]))",
        "row 1: feature 'age' must be a finite number; got a missing value",
        GAP,
    ),
    (
        "people.decide(frame.iloc[0])",
        "context must be a dict of features; got Series",
        "Pass {name: value} with the names of the schema.",
        "people.decide(frame.iloc[0].to_dict())",
    ),
    (
        "people.decide(pl.from_pandas(frame).lazy())",
        "frame must be of pandas, polars or pyarrow and hold its rows; got a LazyFrame",
        "Read the file first; call collect() on a lazy frame.",
        "people.decide(pl.from_pandas(frame).lazy().collect())",
    ),
]

OBSERVATIONS = [
    ("learner.observe(0, 1.5)", "loss must be a number in [0, 1]; got a number outside", RANGE),
    (
        "learner.observe(0, '1')",
        "loss must be a number in [0, 1]; got text",
        "Report the loss of the decision as a number.",
        "learner.observe(0, 1)",
    ),
    (
        "learner.observe(0, [1.0])",
        "loss must be a number in [0, 1]; got a list",
        "Report the loss of the decision as a number.",
        "learner.observe(0, 1.0)",
    ),
    (
        "learner.observe(0)",
        "observe must get a loss, which the plan declares in [0, 1]; got neither",
        "Call observe(…, loss=…) with the loss alone.",
        "learner.observe(0, loss=0.5)",
    ),
    (
        "learner.observe(0, reward=1.0)",
        "observe must get a loss, which the plan declares in [0, 1]; got a reward",
        "Call observe(…, loss=…) with the loss alone.",
        "learner.observe(0, loss=0.0)",
    ),
    (
        "shop.observe(0, 0.5)",
        "observe must get a reward, which the plan declares in [0, 50]; got a loss",
        "Call observe(…, reward=…) with the reward alone.",
        "shop.observe(0, reward=12.5)",
    ),
    (
        "shop.observe(0, reward=60)",
        "reward must be a number in [0, 50]; got a number outside",
        "Declare a fixed public range that holds all rewards: Plan(outcome=Reward(low, high)).",
        "plan(outcome=Reward(0, 60))",
    ),
    (
        "learner.observe(99, 0.5)",
        "decision id must be one that decide returned here; this one is not",
        "Send it unchanged, to the learner or service that returned it.",
    ),
    (
        "learner.observe(learner.decide, 0.5)",
        "id must be a decision's id or an array of them; got method",
        "Pass decision.id.",
    ),
    (
        "early.observe(0, 0.5)",
        "decision must belong to a batch under way; its batch is over, or not known any more",
        "If losses often come so late, begin with a longer window.",
        "Learner(plan(first_batch=1), window=10_000)",
    ),
    (
        "learner.observe(1, 0.75)",
        "loss must equal the one already stored for that decision; it differs",
        "The first one is kept.",
        "learner.observe(1, 0.25)",
    ),
    (
        "learner.observe([0, 2], [1.0])",
        "losses must be numbers in [0, 1] of shape (2,); got shape (1,)",
        "Report one loss per id, and with full feedback one per action.",
        "learner.observe([0, 2], [1.0, 0.0])",
    ),
    (
        "full.observe(0, 1.0)",
        "losses must be numbers in [0, 1] of shape (3,); got shape ()",
        "Report one loss per id, and with full feedback one per action.",
        "full.observe(0, [1.0, 0.0, 0.5])",
    ),
    (
        "learner.observe([0, 2], pd.Series([1.0, None]))",
        "row 1: loss must be known; got none",
        "Leave out such rows until it is known: dropna in pandas, drop_nulls in polars.",
        "learner.observe([0], pd.Series([1.0, None]).dropna())",
    ),
    (
        "learner.observe([0, 2], [0.5, 1.5])",
        "losses must be numbers in [0, 1] of shape (2,); got row 1: a value outside",
        RANGE,
    ),
    (
        "learner.observe([0, 0], [0.5, 0.5])",
        "decision ids must be distinct in one call; some repeat",
        "Report each id once.",
        "learner.observe([0], [0.5])",
    ),
    (
        "learner.release()",
        "batch must be full to be released; slots are still free",
        "Go on deciding.",
        "learner.decide([0.5, -0.5])",
    ),
    (
        "learner.close()",
        "batch must be sealed before it is closed; slots are still free",
        "Go on deciding: a batch is closed by count, never by who answered.",
        "learner.decide([0.5, -0.5])",
    ),
    (
        "waits.release()",
        "batch must be full, with all losses, to be released; this one lacks some",
        "Observe them, or close().",
        "waits.close() or waits.release()",
    ),
    (
        "learner.save(path + '/none/state')",
        "path must be in a folder that exists",
        "nothing was written, and the learner stays usable.",
        "learner.save(path)",
    ),
]

EVALUATIONS = [
    (
        "evaluate(plan(), x, y + 1)",
        "labels must be actions 0 … 2; got 1 … 3",
        "Number the classes: pass np.unique(labels, return_inverse=True)[1].",
        "evaluate(plan(), x, np.asarray(y + 1) - 1)",
    ),
    (
        "evaluate(plan(), x, 10 * y + 10)",
        "labels must be actions 0 … 2; got 10 … 30",
        "Number the classes: pass np.unique(labels, return_inverse=True)[1].",
        "evaluate(plan(), x, np.unique(10 * y + 10, return_inverse=True)[1])",
    ),
    (
        "evaluate(plan(), x, ['a', 'b', 'c', 'd'] * 3)",
        "labels must be of 3 classes, one for each action; got 4: a, b, c, d",
        "Make the plan with n_actions=4.",
        "evaluate(plan(n_actions=4), x, ['a', 'b', 'c', 'd'] * 3)",
    ),
    (
        "evaluate(plan(), x, ['a', 'b'] * 6)",
        "labels must be of 3 classes, one for each action; got 2: a, b",
        "Encode the classes as 0 … 2 yourself.",
        "evaluate(plan(), x, [0, 1] * 6)",
    ),
    (
        "evaluate(plan(actions=['none', 'mail', 'call']), x, ['none', 'mial', 'call'] * 4)",
        "labels must be names of actions, 'none', 'mail', 'call'; got 'mial'",
        "Did you mean 'mail'?",
    ),
    (
        "evaluate(plan(), x, pd.Series([0, 1, None] * 4))",
        "row 2: labels must be known; got none",
        "Leave out such rows until it is known: dropna in pandas, drop_nulls in polars.",
        "evaluate(plan(), x[y < 2], pd.Series([0, 1, None] * 4).dropna())",
    ),
    (
        "evaluate(plan(), x, y + 0.5)",
        "labels must be classes; got fractions or infinity",
        "for example with np.digitize(labels, borders).",
        "evaluate(plan(), x, np.digitize(y + 0.5, [1, 2]))",
    ),
    (
        "evaluate(plan(), x, losses=np.zeros((12, 2)))",
        "losses must be numbers of shape (12, 3), a row per context and a column per action",
        "With one class per context, pass labels instead.",
    ),
    (
        "evaluate(plan(), x, losses=np.full((12, 3), 50.0))",
        "losses must be numbers in [0, 1]; some are not",
        "(losses - low) / (high - low). Rewards go into rewards=, in their own units.",
        "evaluate(plan(), x, losses=(np.full((12, 3), 50.0) - 0) / (100 - 0))",
    ),
    (
        "evaluate(plan(), x)",
        "labels, losses or rewards must be given, and only one of them; got none",
        EITHER,
    ),
    (
        "evaluate(plan(), x, y, losses=np.zeros((12, 3)))",
        "labels, losses or rewards must be given, and only one of them; got labels and losses",
        EITHER,
        "evaluate(plan(), x, losses=np.zeros((12, 3)))",
    ),
    (
        "evaluate(plan(outcome=Reward(0, 9)), x, y, rewards=np.zeros((12, 3)))",
        "labels, losses or rewards must be given, and only one of them; got labels and rewards",
        EITHER,
        "evaluate(plan(outcome=Reward(0, 9)), x, rewards=np.zeros((12, 3)))",
    ),
    (
        "evaluate(plan(), x, rewards=np.zeros((12, 3)))",
        "rewards must be of a plan that declares a range of rewards; got Loss(0, 1)",
        "Make it with Plan(…, outcome=Reward(low, high)), or pass losses=.",
        "evaluate(plan(outcome=Reward(0, 1)), x, rewards=np.zeros((12, 3)))",
    ),
    (
        "evaluate(plan(outcome=Reward(0, 1)), x, rewards=np.zeros((12, 2)))",
        "rewards must be numbers of shape (12, 3), a row per context and a column per action",
        "With one class per context, pass labels instead.",
    ),
    (
        "evaluate(plan(outcome=Reward(0, 1)), x, rewards=np.full((12, 3), 1.5))",
        "rewards must be numbers in [0, 1] of shape (12, 3); got row 0: a value outside",
        "Declare a fixed public range that holds all rewards: Plan(outcome=Reward(low, high)).",
        "evaluate(plan(outcome=Reward(0, 2)), x, rewards=np.full((12, 3), 1.5))",
    ),
    (
        "evaluate(learner, x, y)",
        "plan must be a Plan; got Learner(…)",
        "Make a Plan; that of a learner is learner.plan.",
        "evaluate(learner.plan, x, y)",
    ),
]
