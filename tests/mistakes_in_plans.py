"""Mistakes before the first person comes: (typed, rule, step, then) for test_mistakes.py."""

POLICIES = (
    "AdaCB, AdaptivePO, BonusPO, FastCB, Greedy, LinUCB, RegCB, ReplayBonusPO, SquareCB, Uniform"
)

PLANS = [
    (
        "Plan(features=UnitBall(2), budget=Budget.none())",
        "n_actions must be given, or actions; the plan has neither",
        "Write n_actions=3, or actions=['none', 'mail', 'call'].",
        "Plan(actions=['none', 'mail', 'call'], features=UnitBall(2), budget=Budget.none())",
    ),
    (
        "plan(n_actions=['mail', 'call'])",
        "n_actions must be a whole number; got ['mail', 'call']",
        "Give at least 2; names go into actions=[…].",
        "plan(n_actions=None, actions=['mail', 'call'])",
    ),
    (
        "plan(n_actions=None, actions=['mail', 'call', 'mail'])",
        "actions must be two or more distinct words",
        "Write actions=['none', 'mail', 'call'], or --actions none,mail,call.",
        "plan(actions=['none', 'mail', 'call'])",
    ),
    (
        "plan(actions=['mail', 'call'])",
        "n_actions must be 2, the number of names in actions; got 3",
        "Leave n_actions out.",
        "plan(n_actions=None, actions=['mail', 'call'])",
    ),
    (
        "plan(policy='SquareCB')",
        f"policy must be an object of {POLICIES}, VanillaPO; got 'SquareCB'",
        "Pass an object, as SquareCB(...). Write it without quotes.",
        "plan(policy=SquareCB())",
    ),
    (
        "plan(policy='squarecb')",
        f"policy must be an object of {POLICIES}, VanillaPO; got 'squarecb'",
        "Did you mean 'SquareCB'? Write it without quotes.",
        "plan(policy=SquareCB())",
    ),
    (
        "plan(policy=SquareCB)",
        f"policy must be an object of {POLICIES}, VanillaPO; got <class",
        "Pass an object, as SquareCB(...). Write it without quotes.",
        "plan(policy=SquareCB())",
    ),
    (
        "plan(policy=FastCB(), oracle=Ridge())",
        "oracle must predict losses in [0, 1] for FastCB; got Ridge",
        "Use PooledRidge, Logistic or FiniteClass.",
        "plan(policy=FastCB(), oracle=PooledRidge()), plan(policy=FastCB(), oracle=Logistic())",
    ),
    (
        "plan(policy=SquareCB(scale='16'))",
        "scale must be a positive finite number; got '16'",
        "Write a number, without quotes.",
        "plan(policy=SquareCB(scale=16))",
    ),
    (
        "plan(budget=1.0)",
        "budget must be a Budget; got 1.0",
        "Pass Budget(1.0, delta=1e-5), or Budget.none().",
        "plan(budget=Budget(1.0, delta=1e-5)), plan(budget=Budget.none())",
    ),
    (
        "Budget(0)",
        "epsilon must be above 0; got 0",
        "Without privacy it is Budget.none(), or --epsilon inf.",
        "Budget.none()",
    ),
    (
        "Budget(1, delta='1e-5')",
        "delta must be a number in [0, 1); got '1e-5'",
        "Write a number, without quotes.",
        "Budget(1, delta=1e-5)",
    ),
    (
        "plan(budget=Budget(1.0), oracle=Ridge())",
        "delta must be above 0 for Gaussian noise; got 0.0",
        "a delta such as 1e-5, or choose a pure mechanism: FiniteClass, or Logistic without radii.",
        "plan(budget=Budget(1.0), oracle=Logistic()), plan(budget=Budget(1.0, 1e-5))",
    ),
    (
        "plan(features=10)",
        "features must be one of UnitBall, Schema, Joint; got 10",
        "Pass UnitBall(dimension), or Schema([...]) with its fields.",
        "plan(features=UnitBall(10))",
    ),
    (
        "plan(features=[Number('age', 0, 100)])",
        "features must be one of UnitBall, Schema, Joint; got [Number(",
        "Pass UnitBall(dimension), or Schema([...]) with its fields.",
        "plan(features=Schema([Number('age', 0, 100)]))",
    ),
    (
        "plan(outcome='reward')",
        "outcome must be one of Loss, Reward; got 'reward'",
        "Write Reward(low, high), a range.",
        "plan(outcome=Reward(0, 50))",
    ),
    (
        "Reward(50, 0)",
        "range of the reward must be two finite numbers low < high; got 50, 0",
        "Declare a public range.",
        "Reward(0, 50)",
    ),
    (
        "Learner(plan(batches_per_user=10))",
        "batches_per_user and records_per_batch must be given only with unit='user'; got 10 and",
        "Leave both out, or write unit='user'.",
        "Learner(plan(unit='user', batches_per_user=10))",
    ),
    (
        "Learner(plan(), window='7 days')",
        "window must be a number above zero with a unit, s, m, h or d; got '7 days'",
        "Write '90s', '15m', '6h' or '7d'.",
        "Learner(plan(), window='7d')",
    ),
    (
        "Learner(plan(), window=timedelta(days=7))",
        "window must be a whole number of decisions, a time in words, or None",
        "Write 1_000, '6h', or None to close batches yourself.",
        "Learner(plan(), window=1_000), Learner(plan(), window=None)",
    ),
    (
        "Learner(plan(), waiting='pipline')",
        "waiting must be one of 'pipeline', 'gap'; got 'pipline'",
        "Did you mean 'pipeline'?",
        "Learner(plan(), waiting='pipeline')",
    ),
]

SCHEMAS = [
    (
        "Schema([Number('age', 0, 100), Flag('age')])",
        "fields must be one or more, with distinct names; got ['age', 'age']",
        "Give every column a field with a name of its own.",
        "Schema([Number('age', 0, 100), Flag('member')])",
    ),
    (
        "Schema(Number('age', 0, 100))",
        "fields must be a list; got Number",
        "Put it in brackets.",
        "Schema([Number('age', 0, 100)])",
    ),
    (
        "Number('age', 100, 0)",
        "range of 'age' must be two finite numbers low < high; got 100, 0",
        "Declare a public range.",
        "Number('age', 0, 100)",
    ),
    (
        "Category('device', 'phone')",
        "values of 'device' must be a list of distinct words, or of distinct whole numbers; got 'p",
        "List every category once.",
        "Category('device', ['phone'])",
    ),
    (
        "Number('age', 0, 100, stand_in=-1)",
        "stand_in of 'age' must be a legal value of the field, without indicator=True; got -1",
        "Choose one that a context may have.",
        "Number('age', 0, 100, stand_in=50)",
    ),
    (
        "Number('age', 0, 100, stand_in=50, indicator=True)",
        "stand_in of 'age' must be a legal value of the field, without indicator=True; got 50",
        "Choose one that a context may have.",
        "Number('age', 0, 100, indicator=True)",
    ),
    (
        "Number('income', 0, 1e6, log=True)",
        "range of 'income' must be two finite numbers low < high, above 0 and not too narrow",
        "Declare a public range.",
        "Number('income', 1, 1e6, log=True)",
    ),
    (
        "Date('seen', parts=['hours'])",
        "parts of 'seen' must be a list of month, day, weekday, hour, each at most once",
        "Choose the parts that may matter.",
        "Date('seen', parts=['hour'])",
    ),
]
