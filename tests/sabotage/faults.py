"""Faults that a careless or hostile change could bring, one small patch each.

To add one, append a ``Fault``: what to replace where, which promise that breaks, and who must
notice. ``make sabotage`` applies them one at a time to a copy of the source.
"""

from __future__ import annotations

from dataclasses import dataclass

# Where things are: a file that moves is one line here.
ACCOUNTING = "privacy/accounting.py"
FINITE = "oracles/finite.py"
GROUPS = "privacy/groups.py"
JOURNAL = "service/journal.py"
LEARNER = "learner.py"
LEDGER = "privacy/ledger.py"
LOGISTIC = "oracles/logistic.py"
MECHANISMS = "privacy/mechanisms.py"
MOMENTS = "oracles/moments.py"
NEWTON = "oracles/newton.py"
NOISE = "privacy/noise.py"
PERTURB = "oracles/perturb.py"
POOLED = "oracles/pooled_ridge.py"
RELEASE = "release.py"
RIDGE = "oracles/ridge.py"
SAVING = "saving.py"
SCALES = "oracles/gaussian_scales.py"
SETTINGS = "service/settings.py"
STATISTICS = "statistics.py"
STORE = "store.py"


@dataclass(frozen=True)
class Edit:
    """``old``, which occurs exactly once in ``file`` (below src/discreet), becomes ``new``."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Fault:
    """``tests`` are pytest selections below tests/; ``audit`` the mechanisms of a quick audit.

    Each of the two must notice on its own. ``audit`` is empty where no release shows the fault:
    a ledger that adds wrongly, rows that stay in memory.
    """

    name: str
    claim: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]
    audit: tuple[str, ...] = ()


ANSWERS = "int(np.asarray(batch.observed).any(axis=-1).sum())"

FAULTS = (
    # Noise: where it comes from, its law, its independence.
    Fault(
        "Gaussian noise is a function of the clock",
        "noise comes from the entropy of the operating system",
        (
            Edit(NOISE, "_fast_gaussian if self.fast else _discrete_gaussian", "_fast_gaussian"),
            Edit(
                NOISE,
                "np.frombuffer(os.urandom(8 * count), dtype=np.uint64)",
                "np.frombuffer(__import__('hashlib').shake_256(str(__import__('time').time_ns())"
                ".encode()).digest(8 * count), dtype=np.uint64)",
            ),
        ),
        ("privacy/test_entropy.py",),
        ("ridge-structured",),
    ),
    Fault(
        "rounded float normals instead of exact ones",
        "noise on sums is a discrete Gaussian",
        (
            Edit(
                NOISE,
                "        drawn = np.zeros(shape, dtype=np.int64)\n",
                "        return np.rint(self.normal(name, shape) * scales).astype(np.int64)\n"
                "        drawn = np.zeros(shape, dtype=np.int64)\n",
            ),
        ),
        ("privacy/test_entropy.py", "privacy/test_noise_law.py"),
        ("default-plan",),
    ),
    Fault(
        "noise clipped at four deviations",
        "δ pays for the tails",
        (
            Edit(
                NOISE,
                "draw(float(value), int(where.sum()))",
                "np.clip(draw(float(value), int(where.sum())), -4 * value, 4 * value)",
            ),
        ),
        ("privacy/test_noise_law.py",),
        ("default-plan",),
    ),
    Fault(
        "response noise with the magnitude of the Gram's",
        "every coordinate has noise of its own",
        (
            Edit(
                PERTURB,
                "        noisy_response(moments, scales.response, noise, batch.features),\n    )\n",
                "        noisy_response(moments, scales.response, Echo(noise), batch.features),\n"
                "    )\n",
            ),
            Edit(
                PERTURB,
                '        drawn = noise.gaussian("gram", (blocks, rows.size), '
                "sigma * law / moments.gram_unit)\n",
                '        drawn = noise.gaussian("gram", (blocks, rows.size), '
                "sigma * law / moments.gram_unit)\n"
                "        Echo.heard = np.abs(drawn / (sigma * law / moments.gram_unit))\n",
            ),
            Edit(
                PERTURB,
                "def noisy_gram(",
                "class Echo:\n"
                "    heard: Any = None\n"
                "    exact = True\n\n"
                "    def __init__(self, noise: Any) -> None:\n"
                "        self.noise, self.exact = noise, noise.exact\n\n"
                "    def gaussian(self, name: str, shape: Any, scale: Any) -> Any:\n"
                "        drawn = self.noise.gaussian(name, shape, scale)\n"
                "        if not self.exact:\n"
                "            return drawn\n"
                "        size = np.resize(Echo.heard[..., :1, :], drawn.shape)"
                " if drawn.ndim == 2 else "
                "np.take(Echo.heard.reshape(len(drawn), -1),"
                " range(drawn[0].size), axis=1).reshape(drawn.shape)\n"
                "        return np.rint(np.sign(drawn) * size * scale).astype(np.int64)\n\n\n"
                "def noisy_gram(",
            ),
        ),
        ("privacy/test_noise_law.py",),
        ("ridge-structured",),
    ),
    # What depends on answers.
    Fault(
        "logistic ridge from heard losses instead of slots",
        "Λ is public",
        (
            Edit(
                LOGISTIC,
                "self._ridge_and_scale(batch.records, A)",
                f"self._ridge_and_scale({ANSWERS}, A)",
            ),
        ),
        ("privacy/test_published.py",),
        ("logistic-gaussian",),
    ),
    Fault(
        "a published step contains the number of answers",
        "all but the noisy numbers of a release is public beforehand",
        (
            Edit(
                RIDGE,
                "step = expected + 1e-12 * batch.records",
                f"step = expected + 1e-12 * {ANSWERS}",
            ),
        ),
        ("privacy/test_published.py",),
        ("ridge-structured",),
    ),
    Fault(
        "the step of a pool contains the number of answers",
        "all but the noisy numbers of a release is public beforehand",
        (
            Edit(
                POOLED,
                "math.sqrt(2 * p) + 1e-12 * records",
                f"math.sqrt(2 * p) + 1e-12 * {ANSWERS}",
            ),
            Edit(POOLED, "import math\n", "import math\n\nimport numpy as np\n"),
        ),
        ("privacy/test_published.py",),
        ("ridge-pooled",),
    ),
    Fault(
        "the step of a logistic Gram contains the number of answers",
        "all but the noisy numbers of a release is public beforehand",
        (
            Edit(
                LOGISTIC,
                "math.sqrt(2 * p) + 1e-12 * batch.records",
                f"math.sqrt(2 * p) + 1e-12 * {ANSWERS}",
            ),
        ),
        ("privacy/test_published.py",),
        ("logistic-gaussian",),
    ),
    Fault(
        "records counted as answers",
        "the number of records is that of slots",
        (Edit(LEARNER, "fit, number, batch.records, event", f"fit, number, {ANSWERS}, event"),),
        ("privacy/test_published.py",),
        ("ridge-structured",),
    ),
    Fault(
        "a batch shrunk to its answered rows",
        "the number of records is that of slots",
        (
            Edit(
                STORE,
                "    return Batch(features, np.nan_to_num(losses, nan=0.0), ~np.isnan(losses))",
                "    heard = ~np.isnan(losses).all(axis=-1)\n"
                "    features, losses = features[heard], losses[heard]\n"
                "    return Batch(features, np.nan_to_num(losses, nan=0.0), ~np.isnan(losses))",
            ),
        ),
        ("privacy/test_published.py",),
        ("default-plan",),
    ),
    # Cost: events, blocks, budgets.
    Fault(
        "full information charged for one block",
        "A blocks compose",
        (
            Edit(
                LOGISTIC,
                '    blocks = n_actions if feedback == "full" else 1\n    # The determinant',
                "    blocks = 1\n    # The determinant",
            ),
        ),
        ("privacy/test_events.py",),
        ("logistic-gaussian",),
    ),
    Fault(
        "the user bound is off in batches of 64 rows and more",
        "one row of a batch is a user's",
        (
            Edit(
                JOURNAL,
                "void = [*deferred, *_repeats(users)]",
                "void = [*deferred, *(_repeats(users) if size < 64 else ())]",
            ),
        ),
        ("service/test_people.py",),
        ("default-plan",),
    ),
)
