"""Mistakes of newcomers, for test_mistakes.py: a blank line ends each.

The first line is typed. The second is how the message begins. The third is what a reader of the
message types next, where it gives advice to type.
"""

PYTHON = """\
Plan(features=UnitBall(2), budget=Budget.none())
n_actions must be given, or actions; the plan has neither
Plan(actions=['none', 'mail', 'call'], features=UnitBall(2), budget=Budget.none())

plan(n_actions=None, actions=['mail', 'call', 'mail'])
actions must be two or more distinct words
plan(actions=['none', 'mail', 'call'])

plan(actions=['mail', 'call'])
n_actions must be 2, the number of names in actions; got 3
plan(n_actions=None, actions=['mail', 'call'])

plan(policy='SquareCB')
policy must be an object of AdaCB, AdaptivePO, BonusPO
plan(policy=SquareCB())

plan(policy=FastCB(), oracle=Ridge())
oracle must predict losses in [0, 1] for FastCB; got Ridge
plan(policy=FastCB(), oracle=PooledRidge()), plan(policy=FastCB(), oracle=Logistic())

plan(policy=SquareCB(scale='16'))
scale must be a positive finite number; got '16'
plan(policy=SquareCB(scale=16))

plan(budget=1.0)
budget must be a Budget; got 1.0
plan(budget=Budget(1.0, delta=1e-5)), plan(budget=Budget.none())

Budget(0)
epsilon must be above 0; got 0
Budget.none()

plan(budget=Budget(1.0), oracle=Ridge())
delta must be above 0 for Gaussian noise; got 0.0
plan(budget=Budget(1.0), oracle=Logistic()), plan(budget=Budget(1.0, 1e-5))

plan(features=[Number('age', 0, 100)])
features must be one of UnitBall, Schema, Joint; got [Number(
plan(features=Schema([Number('age', 0, 100)]))

Reward(50, 0)
range of the reward must be two finite numbers low < high; got 50, 0
Reward(0, 50)

Learner(plan(batches_per_user=10))
batches_per_user and records_per_batch must be given only with unit='user'; got 10 and
Learner(plan(unit='user', batches_per_user=10))

Learner(plan(), window='7 days')
window must be a number above zero with a unit, s, m, h or d; got '7 days'
Learner(plan(), window='7d')

Schema([Number('age', 0, 100), Flag('age')])
fields must be one or more, with distinct names; got ['age', 'age']
Schema([Number('age', 0, 100), Flag('member')])

Number('age', 100, 0)
range of 'age' must be two finite numbers low < high; got 100, 0
Number('age', 0, 100)

Number('income', 0, 1e6, log=True)
range of 'income' must be two finite numbers low < high, above 0 and not too narrow
Number('income', 1, 1e6, log=True)

learner.decide([1, 2, 3])
context must be of shape (2,) or (n, 2); got (3,)

learner.decide(['1', '2'])
context must be an array of numbers; got list, not all numbers or not of one length

learner.decide([np.nan, 2])
context must be finite; got NaN or infinity

people.decide([40, 'phone', '2026-03-29'])
row 0: context must be a dict of features; got int
people.decide(person)

people.decide({**person, 'agee': 40})
context must have the features of the schema and no others; got 1 of another name

people.decide({**person, 'age': '40'})
feature 'age' must be a finite number; got text
people.decide({**person, 'age': 40})

people.decide({**person, 'age': None})
feature 'age' must be a finite number; got a missing value
Schema([Number('age', 0, 100, stand_in=40)]).map({'age': None})

people.decide({**person, 'age': 140})
feature 'age' must be in [0, 100]; got a number outside
Schema([Number('age', 0, 100, clip=True)]).map({'age': 140})

people.decide({**person, 'device': 'fone'})
feature 'device' must be one of ['phone', 'desk']; got text

people.decide({**person, 'seen': '29.03.2026'})
feature 'seen' must be a date such as '2026-03-29'; got text

people.decide([person, {**person, 'age': '40'}])
row 1: feature 'age' must be a finite number; got text

people.decide(frame.drop(columns='device'))
feature 'device' must be a column of the frame; it is absent
people.decide(frame)

people.decide(frame.iloc[0])
context must be a dict of features; got Series
people.decide(frame.iloc[0].to_dict())

people.decide(pl.from_pandas(frame).lazy())
frame must be of pandas, polars or pyarrow and hold its rows; got a LazyFrame
people.decide(pl.from_pandas(frame).lazy().collect())

learner.observe(0, 1.5)
loss must be a number in [0, 1]; got a number outside

shop.observe(0, 0.5)
observe must get a reward, which the plan declares in [0, 50]; got a loss
shop.observe(0, reward=12.5)

shop.observe(0, reward=60)
reward must be a number in [0, 50]; got a number outside
plan(outcome=Reward(0, 60))

learner.observe(99, 0.5)
decision id must be one that decide returned here; this one is not

early.observe(0, 0.5)
decision must belong to a batch under way; its batch is over, or not known any more
Learner(plan(first_batch=1), window=10_000)

learner.observe(1, 0.75)
loss must equal the one already stored for that decision; it differs
learner.observe(1, 0.25)

learner.observe([0, 2], [1.0])
losses must be numbers in [0, 1] of shape (2,); got shape (1,)
learner.observe([0, 2], [1.0, 0.0])

full.observe(0, 1.0)
losses must be numbers in [0, 1] of shape (3,); got shape ()
full.observe(0, [1.0, 0.0, 0.5])

learner.observe([0, 2], pd.Series([1.0, None]))
row 1: loss must be known; got none
learner.observe([0], pd.Series([1.0, None]).dropna())

learner.observe([0, 0], [0.5, 0.5])
decision ids must be distinct in one call; some repeat
learner.observe([0], [0.5])

learner.release()
batch must be full to be released; slots are still free
learner.decide([0.5, -0.5])

learner.save(path + '/none/state')
path must be in a folder that exists
learner.save(path)

evaluate(plan(), x, y + 1)
labels must be actions 0 … 2; got 1 … 3
evaluate(plan(), x, np.asarray(y + 1) - 1)

evaluate(plan(), x, ['a', 'b', 'c', 'd'] * 3)
labels must be of 3 classes, one for each action; got 4: a, b, c, d
evaluate(plan(n_actions=4), x, ['a', 'b', 'c', 'd'] * 3)

evaluate(plan(actions=['none', 'mail', 'call']), x, ['none', 'mial', 'call'] * 4)
labels must be names of actions, 'none', 'mail', 'call'; got 'mial'

evaluate(plan(), x, pd.Series([0, 1, None] * 4))
row 2: labels must be known; got none
evaluate(plan(), x[y < 2], pd.Series([0, 1, None] * 4).dropna())

evaluate(plan(), x, y + 0.5)
labels must be classes; got fractions or infinity
evaluate(plan(), x, np.digitize(y + 0.5, [1, 2]))

evaluate(plan(), x, losses=np.zeros((12, 2)))
losses must be numbers of shape (12, 3), a row per context and a column per action

evaluate(plan(), x, losses=np.full((12, 3), 50.0))
losses must be numbers in [0, 1]; some are not
evaluate(plan(), x, losses=(np.full((12, 3), 50.0) - 0) / (100 - 0))

evaluate(plan(), x)
labels, losses or rewards must be given, and only one of them; got none

evaluate(plan(), x, rewards=np.zeros((12, 3)))
rewards must be of a plan that declares a range of rewards; got Loss(0, 1)
evaluate(plan(outcome=Reward(0, 1)), x, rewards=np.zeros((12, 3)))

evaluate(learner, x, y)
plan must be a Plan; got Learner(…)
evaluate(learner.plan, x, y)
"""

FIELD = '[[fields]]\nkind = "Number"\nname = "age"\nlow = 0\nhigh = 100\n'
SALES = "age,device,bought\n" + "20,phone,no\n30,desk,yes\n" * 30
BUDGET = "budget = { epsilon = 1.0, delta = 1e-5 }\n"
FILES = {
    "sales.csv": SALES,
    "sales.txt": SALES,
    "schema.toml": FIELD,
    "misspelt.toml": 'data = "sales.csv"\npolcy = "SquareCB"\n' + BUDGET,
    "number.toml": 'data = "sales.csv"\nbudget = 1.0\n',
    "good.toml": 'data = "sales.csv"\nseeds = 1\npolicy = { kind = "SquareCB" }\n' + BUDGET,
}

COMMANDS = """\
rnu
command must be one of 'demo', 'run'

run
data must be the name of a set or a path; got None
run --data fried --rows 60 --seeds 1

run sales.csv
experiment file must be TOML; got 'sales.csv'
run --data sales.csv --seeds 1

run --data freid
data must be one of fried, linear

run --data sales.csv --sedes 1
arguments must be those of discreet run; got '--sedes'
run --data sales.csv --seeds 1

run --data sales.csv --policy SquareBC
plan.policy.kind must be one of AdaCB
run --data sales.csv --policy SquareCB --seeds 1

run --data sales.csv --set bonus
--set must be key=value; got 'bonus'
run --data sales.csv --set bonus=0.1 --seeds 1

run --data sales.csv --target bougth
target must be one of the 3 columns of sales.csv, by its name or by its number from 1
run --data sales.csv --target bought --seeds 1

run --data sales.csv --schema none.toml
schema file must be readable; none.toml is not
run --data sales.csv --schema schema.toml --seeds 1

run misspelt.toml
experiment must have only known keys; got 'polcy'

run number.toml
plan.budget must be a table; got 1.0
run good.toml

curve
arguments must be those of discreet curve; the following arguments are required: --d

campaign run --data fried --out results --preset pape
preset must be one of 'paper', 'quick', 'default', 'rivals'; got 'pape'

plan --actions 3
features must be known; no data were named
plan --actions 3 --dimension 10

schema sales.txt
sample must be a .csv or .parquet file; got 'sales.txt'
schema sales.csv
"""
