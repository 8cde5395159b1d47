"""Faults that a careless or hostile change could bring, one small patch each.

To add one, append a ``fault``: what to replace where, which promise that breaks, and who must
notice. ``make sabotage`` applies them one at a time to a copy of the source.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """``old``, which occurs exactly once in ``place``, becomes ``new``.

    A place is a function, method or class by its qualified name (``Ledger.charge``), with the
    module in front where several modules have that name (``lift:draw``), so that files may move.
    For code outside of definitions it is a file: ``noise.py``, or a path below clients/.
    """

    place: str
    old: str
    new: str


@dataclass(frozen=True)
class Fault:
    """``tests`` are pytest selections below tests/; ``audit`` is a mechanism and a part of a
    quick audit. Each of the two must notice on its own.

    ``audit`` is None where no release shows the fault: a ledger that adds wrongly, rows that stay
    in memory.
    """

    name: str
    claim: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]
    audit: tuple[str, str] | None = None


def fault(
    name: str,
    claim: str,
    edits: Edit | tuple[Edit, ...],
    tests: str | tuple[str, ...],
    audit: tuple[str, str] | None = None,
) -> Fault:
    """A fault of one edit or several, which one test or several must notice."""
    edits = (edits,) if isinstance(edits, Edit) else edits
    return Fault(name, claim, edits, (tests,) if isinstance(tests, str) else tests, audit)


HANDED_OUT = (
    "        counts = None if self.people is None else self.people.hand_out(users, batch.number)\n"
)
UNTIL_ANSWERED = (
    "        before = {} if self.people is None else dict(self.people._counts.held)\n"
    f"{HANDED_OUT}"
    "        if self.people is not None:\n"
    "            self.asked, self.people._counts.held = self.people._counts.held, before\n"
)
COUNTED = '        insert(connection, "people", totals, UPSERT)\n'
PUT_OFF = (
    "        self.waiting = getattr(self, 'waiting', {}) | {\n"
    "            each[:3]: row for each in new for row in totals if row[0] == each.person\n"
    "        }\n"
    "\n"
    "    def answered(self, connection: Connection, places: set[Any]) -> None:\n"
    "        for place in places & self.waiting.keys():\n"
    '            insert(connection, "people", [self.waiting.pop(place)], UPSERT)\n'
)
ANSWERS = "int(np.asarray(batch.observed).any(axis=-1).sum())"
UNNOISED = "noisy_statistics(batch, self.problem, 0.0, 0.0, noise, matrix, bounds, ridge=0.0)"
SECRET = (
    f"        raw = {UNNOISED}\n"
    "        own = Statistics(*raw[:2], records, self.gram**2, matrix, outcome_sums=raw[2])\n"
    "        secret = self.conclusion((*earlier, own))[1]\n"
    "        secret = None if secret is None else publishable(secret)\n"
)
"""A matrix that reads the batch which it stretches."""
OWN_SIGNAL = (
    f"        raw = {UNNOISED}\n"
    "        own = Statistics(*raw[:2], records, self.gram**2, matrix, outcome_sums=raw[2])\n"
    "        if raw[2] is not None:\n"
    "            own = own.concluded(None, self.conclusion((*earlier, own)).signal)\n"
    "            bounds = self.row_bounds(records, (own,))\n"
)
"""Bounds of rows that read the batch which they shorten."""
BOUNDS_FOLLOW = (
    "audit/test_stretched.py::test_bounds_follow_from_the_release_before_and_the_size_of_the_batch"
)
SHORTENED = "np.trunc(rows / np.maximum(lengths, least) * GRID)"
HASTY = "min(self.batches, key=lambda b: (b.sealed is None, b.unobserved), default=None)"
"""The batch that was answered soonest."""

FAULTS = (
    # Noise: where it comes from, its law, its independence.
    fault(
        "Gaussian noise is a function of the clock",
        "noise comes from the entropy of the operating system",
        (
            Edit(
                "SecureNoise.gaussian",
                "_fast_gaussian if self.fast else _discrete_gaussian",
                "_fast_gaussian",
            ),
            Edit(
                "noise:_words",
                "np.frombuffer(os.urandom(8 * count), dtype=np.uint64)",
                "np.frombuffer(__import__('hashlib').shake_256(str(__import__('time').time_ns())"
                ".encode()).digest(8 * count), dtype=np.uint64)",
            ),
        ),
        "privacy/test_entropy.py::test_the_noise_may_use_nothing_else",
        ("ridge-structured", "noise"),
    ),
    fault(
        "rounded float normals instead of exact ones",
        "noise on sums is a discrete Gaussian",
        Edit(
            "SecureNoise.gaussian",
            "drawn = np.zeros(shape, dtype=np.int64)",
            "return np.rint(self.normal(name, shape) * scales).astype(np.int64)\n"
            "        drawn = np.zeros(shape, dtype=np.int64)",
        ),
        (
            "privacy/test_entropy.py::test_the_noise_may_use_nothing_else",
            "privacy/test_noise_law.py::test_tails_are_those_of_a_gaussian_and_have_no_gaps",
        ),
        ("default-plan", "noise"),
    ),
    fault(
        "noise clipped at four deviations",
        "δ pays for the tails",
        Edit(
            "SecureNoise.gaussian",
            "draw(float(value), int(where.sum()))",
            "np.clip(draw(float(value), int(where.sum())), -4 * value, 4 * value)",
        ),
        "privacy/test_noise_law.py::test_tails_are_those_of_a_gaussian_and_have_no_gaps",
        ("default-plan", "noise"),
    ),
    fault(
        "response noise with the magnitude of the Gram's",
        "every coordinate has noise of its own",
        (
            Edit("noisy_statistics", "response_unit, noise)", "response_unit, Echo(noise))"),
            Edit(
                "noisy_gram",
                '("gram", (blocks, law.size), sigma * law / moments.gram_unit)',
                '("gram", (blocks, law.size), sigma * law / moments.gram_unit)\n'
                "        Echo.heard = np.abs(drawn / (sigma * law / moments.gram_unit))",
            ),
            Edit(
                "noisy_gram",
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
        "privacy/test_noise_law.py::test_all_pairs_of_coordinates_are_independent_in_size_too",
        ("ridge-structured", "noise"),
    ),
    fault(
        "many matrices are factored in the memory of the caller",
        "a release solves the system of its own noisy sums",
        Edit(
            "_cholesky_side_by_side",
            'np.array(np.moveaxis(matrices, 0, -1), order="C")',
            "np.ascontiguousarray(np.moveaxis(matrices, 0, -1))",
        ),
        (
            "arrays/test_linear_algebra.py::test_repaired_systems_use_the_smallest_shift_that_works",
            "audit/test_exact.py::test_the_reader_gets_back_the_noise_of_a_thousand_repaired_releases",
        ),
        ("ridge-structured", "noise"),
    ),
    # What depends on answers.
    fault(
        "logistic ridge from heard losses instead of slots",
        "Λ is public",
        Edit(
            "StructuredLogistic.fit",
            "self._ridge_and_scale(batch.records)",
            f"self._ridge_and_scale({ANSWERS})",
        ),
        "privacy/test_published.py::test_after_the_noise_nothing_reads_the_batch",
        ("logistic-gaussian", "exact"),
    ),
    fault(
        "a published step contains the number of answers",
        "all but the noisy numbers of a release is public beforehand",
        (
            Edit(
                "StructuredRidge.fit",
                "step = expected + 1e-12 * batch.records",
                f"step = expected + 1e-12 * {ANSWERS}",
            ),
        ),
        "privacy/test_published.py::test_learners_publish_nothing_else_about_answers",
        ("ridge-structured", "exact"),
    ),
    fault(
        "the step of a pool contains the number of answers",
        "all but the noisy numbers of a release is public beforehand",
        (
            Edit(
                "PooledStatistics.fit",
                "math.sqrt(2 * gram.shape[-1]) + 1e-12 * records",
                f"math.sqrt(2 * gram.shape[-1]) + 1e-12 * {ANSWERS}",
            ),
            Edit("pooled_statistics.py", "import math\n", "import math\n\nimport numpy as np\n"),
        ),
        "privacy/test_published.py::test_learners_publish_nothing_else_about_answers",
        ("ridge-pooled", "exact"),
    ),
    fault(
        "the step of a logistic Gram contains the number of answers",
        "all but the noisy numbers of a release is public beforehand",
        Edit(
            "StructuredLogistic._gram",
            "math.sqrt(2 * problem.p) + 1e-12 * batch.records",
            f"math.sqrt(2 * problem.p) + 1e-12 * {ANSWERS}",
        ),
        "privacy/test_published.py::test_learners_publish_nothing_else_about_answers",
        ("logistic-gaussian", "exact"),
    ),
    fault(
        "records counted as answers",
        "the number of records is that of slots",
        (
            Edit(
                "fit_batch", "fit, number, batch.records, event", f"fit, number, {ANSWERS}, event"
            ),
            Edit(
                "release_batch.py",
                "from discreet.plan.plan",
                "import numpy as np\n\nfrom discreet.plan.plan",
            ),
        ),
        "privacy/test_published.py::test_learners_publish_nothing_else_about_answers",
        ("ridge-structured", "exact"),
    ),
    fault(
        "a batch shrunk to its answered rows",
        "the number of records is that of slots",
        Edit(
            "batch_of",
            "return Batch(features, np.nan_to_num(losses, nan=0.0), ~np.isnan(losses), "
            "control, guardrails)",
            "heard = ~np.isnan(losses).all(axis=-1)\n"
            "    features, losses = features[heard], losses[heard]\n"
            "    return Batch(features, np.nan_to_num(losses, nan=0.0), "
            "~np.isnan(losses))",
        ),
        "privacy/test_published.py::test_learners_publish_nothing_else_about_answers",
        ("default-plan", "exact"),
    ),
    # Cost: events, blocks, budgets.
    fault(
        "full information charged for one block",
        "A blocks compose",
        Edit("gaussian_objective", ", p = problem.losses_per_record, problem", ", p = 1, problem"),
        "privacy/test_events.py::test_full_information_is_charged_for_every_block",
        ("logistic-gaussian", "exact"),
    ),
    fault(
        "the user bound is off in batches of 64 rows and more",
        "one row of a batch is a user's",
        Edit("read_batch", "participation is not None", "participation is not None and size < 64"),
        "service/runtime/test_people.py::test_the_audit_uses_the_tables_of_the_service",
        ("default-plan", "exact"),
    ),
    # Noise: further ways to lose it.
    fault(
        "halved noise",
        "noise has the declared scale",
        Edit("SecureNoise.gaussian", "value), int(where.sum()))", "value), int(where.sum())) // 2"),
        "privacy/test_noise_law.py::test_scale_is_accepted_and_two_thirds_and_three_halves"
        "_are_rejected",
        ("ridge-structured", "noise"),
    ),
    fault(
        "a sampler that remembers its draws",
        "every release has noise of its own",
        Edit("_discrete_gaussian", "def _discrete_gaussian", "@lru_cache\ndef _discrete_gaussian"),
        "privacy/test_entropy.py::test_the_noise_may_use_nothing_else",
        ("ridge-structured", "noise"),
    ),
    fault(
        "every second draw undoes the one before",
        "every release has noise of its own",
        (
            Edit("noise.py", "_TABLE_SCALE = 128\n", "_TABLE_SCALE = 128\n_LAST: Any = {}\n"),
            Edit(
                "SecureNoise.gaussian",
                "drawn[where] = draw(float(value), int(where.sum()))",
                "key = (float(value), int(where.sum()))\n"
                "            if key in _LAST:\n"
                "                drawn[where] = -_LAST.pop(key)\n"
                "            else:\n"
                "                drawn[where] = _LAST[key] = draw(*key)",
            ),
        ),
        "privacy/test_entropy.py::test_draws_are_a_function_of_entropy_alone",
        ("ridge-structured", "noise"),
    ),
    fault(
        "the noise of the first action copied to all",
        "every coordinate has noise of its own",
        Edit(
            "noisy_totals",
            "sigma / unit)",
            "sigma / unit)\n        drawn[:] = drawn[..., :1, :] if axes == 2 else drawn",
        ),
        "privacy/test_noise_law.py::test_all_pairs_of_coordinates_are_independent_in_size_too",
        ("ridge-structured", "noise"),
    ),
    fault(
        "a fast sampler that leaps over values",
        "noise on sums is a discrete Gaussian",
        Edit("_fast_gaussian", "max(1, min(needed, int(0.66 * reached)))", "max(1, needed)"),
        "privacy/test_noise_law.py::test_no_noise_on_sums_occurs_twice",
        ("ridge-pooled", "noise"),
    ),
    fault(
        "a table that ends at four deviations",
        "δ pays for the tails",
        Edit("noise:_table", "top = 10 * _TABLE_SCALE", "top = 4 * _TABLE_SCALE"),
        "privacy/test_noise_law.py::test_tails_are_those_of_a_gaussian_and_have_no_gaps",
        ("ridge-pooled", "noise"),
    ),
    fault(
        "normals of 24 random bits",
        "a continuous draw uses 52 bits",
        Edit("_uniforms", ">> np.uint64(12)", ">> np.uint64(40) << np.uint64(28)"),
        (
            "privacy/test_entropy.py::test_draws_are_a_function_of_entropy_alone",
            "privacy/test_noise_law.py::test_no_normal_occurs_twice",
        ),
        ("logistic-gaussian", "noise"),
    ),
    fault(
        "noise for those blocks in which there is somebody",
        "where noise is added is public",
        Edit(
            "noisy_gram",
            "return _exact_sum",
            "drawn = drawn * moments.gram.any(axis=(-1, -2))[..., None]\n        return _exact_sum",
        ),
        "privacy/test_noise_law.py::test_noisy_statistics_lie_on_the_grid_and_their_low_bits"
        "_say_nothing",
        ("ridge-structured", "noise"),
    ),
    fault(
        "off the diagonal σ/2 in place of σ/√2",
        "svec is an isometry",
        Edit("_svec_law", "1.0, np.sqrt(0.5))", "1.0, 0.5)"),
        "privacy/test_blocks.py::test_unit_draws_are_an_orthogonal_frame_of_symmetric_blocks",
        ("ridge-structured", "exact"),
    ),
    fault(
        "no noise for the solver's error",
        "the output covers what the solver left",
        Edit(
            "StructuredLogistic._output_scale",
            "return sensitivity / (OUTPUT_SHARE * np.asarray(self.epsilon))",
            "return 0.0 * sensitivity",
        ),
        "privacy/test_published.py::test_events_cover_all_that_a_record_touches",
        ("logistic-gamma", "exact"),
    ),
    # Sensitivities and legal rows.
    fault(
        "half the scale in the calibration",
        "σ is the multiplier times the sensitivity",
        Edit(
            "structured_scales",
            "sigma = multiplier * sensitivity\n",
            "sigma = multiplier * sensitivity / 2\n",
        ),
        "privacy/test_calibration.py::test_ridge_scale_at_one",
        ("ridge-structured", "exact"),
    ),
    fault(
        "a response weight that the sensitivity forgets",
        "(svec G, ω·q) has the declared sensitivity",
        Edit("structured_scales", "one_label, weight, normalised)", "one_label, 1.0, normalised)"),
        "privacy/test_published.py::test_events_cover_all_that_a_record_touches",
        ("default-plan", "exact"),
    ),
    fault(
        "the paper's sensitivity without its root",
        "Δ = √2",
        Edit("paper_sensitivities", "return math.sqrt(2), math.sqrt(2)", "return 1.0, 1.0"),
        "privacy/test_sensitivities.py::test_paper_sensitivities_are_attained_and_never_exceeded",
        ("ridge-paper", "exact"),
    ),
    fault(
        "full information with the sensitivity of one action",
        "Δ of q grows with A",
        Edit("ridge_sensitivity", '= 1 if feedback == "bandit" else n_actions', "= 1"),
        "privacy/test_sensitivities.py::test_structured_sensitivity_is_attained_and_never_exceeded",
        ("ridge-structured", "exact"),
    ),
    fault(
        "a row that enters several blocks",
        "one row touches one block",
        Edit("legal_losses", "observed & (np.cumsum(observed, axis=-1) == 1)", "observed"),
        "privacy/test_blocks.py::test_a_row_enters_one_block_even_if_several_actions_are_marked",
        ("ridge-structured", "exact"),
    ),
    fault(
        "general losses pass as one-label rows",
        "one-label rows have exactly one zero",
        Edit("legal_losses", 'if losses == "one_label":', "if not losses:"),
        "oracles/test_legal_rows.py::test_any_input_becomes_legal_in_silence",
        ("ridge-structured", "exact"),
    ),
    fault(
        "contexts outside the unit ball",
        "‖b‖ ≤ 1, whatever was passed",
        Edit("_within_grid", "outside = squares > float(GRID) ** 2", "outside = squares > 1e99"),
        "oracles/test_legal_rows.py::test_any_input_becomes_legal_in_silence",
        ("ridge-structured", "exact"),
    ),
    fault(
        "losses outside their range",
        "losses lie in [0, 1], whatever was passed",
        Edit("legal_losses", "=np.float64), 0.0, 1.0), nan=1.0)", "=np.float64), -9.0, 9.0))"),
        "oracles/test_legal_rows.py::test_any_input_becomes_legal_in_silence",
        ("ridge-structured", "exact"),
    ),
    fault(
        "sums that round",
        "integer sums are exact, in any order",
        Edit("moments.py", "_EXACT_ROWS = 4096\n", "_EXACT_ROWS = 2**20\n"),
        "privacy/test_arithmetic.py::test_a_full_chunk_of_the_largest_products_is_exact",
        ("ridge-structured", "exact"),
    ),
    fault(
        "the exponential mechanism with ε in place of ε/2",
        "the weight is exp(−ε·score/(2Δ))",
        Edit("FiniteChoice.fit", "(2.0 * self.sensitivity", "(1.0 * self.sensitivity"),
        "privacy/test_exponential.py::test_no_ratio_exceeds_epsilon",
        ("finite", "exact"),
    ),
    fault(
        "a choice with the sensitivity of one action",
        "all A losses of a record enter the score",
        Edit("FiniteChoice.of", "float(problem.losses_per_record)", "1.0"),
        "privacy/test_exponential.py::test_no_ratio_exceeds_epsilon",
        ("finite", "exact"),
    ),
    fault(
        "the determinant term dropped",
        "a ridge of 2/ε pays for the curvature",
        Edit("StructuredLogistic._ridge_and_scale", "(ridge, 2.0 / main)", "(ridge, 0.05)"),
        "privacy/test_objective.py::test_pure_blocks_never_exceed_epsilon",
        ("logistic-gamma", "exact"),
    ),
    fault(
        "a minimiser that is not quite one",
        "the gradient is within the public tolerance",
        Edit("perturbed_minimum", "return minimise(", "return 1.001 * minimise("),
        "oracles/test_logistic.py::test_without_privacy",
        ("logistic-gamma", "exact"),
    ),
    fault(
        "zero in place of large weights",
        "there is no branch that depends on data",
        Edit(
            "StructuredLogistic.fit",
            "theta = theta + per_run(",
            "theta = theta * (abs(theta).max(axis=-1, keepdims=True) < 2.0)\n"
            "        theta = theta + per_run(",
        ),
        "privacy/test_published.py::test_every_fit_is_a_minimiser_whatever_the_noise",
        ("logistic-gamma", "exact"),
    ),
    # Costs.
    fault(
        "an event that claims more noise than is added",
        "an event says what was done",
        Edit("structured_scales", ", event_at(multiplier)", ", event_at(1.1 * multiplier)"),
        "privacy/test_published.py::test_events_cover_all_that_a_record_touches",
        ("ridge-structured", "exact"),
    ),
    fault(
        "the determinant term is not charged",
        "κ is in the event",
        Edit("gaussian_objective", "kappa = math.log1p(CURVATURE / least)", "kappa = 0.0"),
        "privacy/test_events.py::test_full_information_is_charged_for_every_block",
        ("logistic-gaussian", "exact"),
    ),
    fault(
        "of several Gaussian parts the largest is charged",
        "1/multiplier² add up",
        Edit(
            "_approximate_epsilon",
            "sum(multiplier**-2 for multiplier in multipliers)",
            "max((multiplier**-2 for multiplier in multipliers), default=0.0)",
        ),
        "privacy/test_calibration.py::test_gaussian_composition_is_the_root_of_squares",
        ("ridge-paper", "exact"),
    ),
    fault(
        "the distance of the sampler is not charged",
        "δ pays for the sampler",
        Edit("sampler_distance", "coordinates * DISTANCE_FACTOR / grid_sigma**2", "0.0"),
        "privacy/test_arithmetic.py::test_distance_of_discrete_and_rounded_gaussian",
        ("ridge-structured", "exact"),
    ),
    fault(
        "silence is not charged",
        "a charge does not depend on answers",
        Edit("release_batch", "is not None)", "is not None) if batch.observed.any() else ledger"),
        "privacy/test_published.py::test_learners_publish_nothing_else_about_answers",
        ("default-plan", "exact"),
    ),
    fault(
        "a partition costs its largest charge",
        "charges on the same records compose",
        Edit(
            "Ledger.cost_event",
            "costs = [events.compose(*charged[name]) for name in names]",
            "costs = [each for name in names for each in charged[name]]",
        ),
        "privacy/test_ledger.py::test_the_same_partition_composes",
    ),
    fault(
        "a budget may be exceeded twofold",
        "nothing is released beyond the budget",
        Edit("Ledger.charge", "if cost > self.budget.epsilon", "if cost > 2 * self.budget.epsilon"),
        "privacy/test_ledger.py::test_pure_charges_add_up_and_need_no_delta",
    ),
    fault(
        "k records of a person cost √k",
        "Gaussian statistics move k times as far",
        Edit("scaled_event", "float(records)", "math.sqrt(records)"),
        "audit/test_commands.py::test_plan_says_what_several_records_mean",
    ),
    fault(
        "a person's cheapest batches count",
        "a ledger of users holds the cost of the dearest batches",
        Edit("costliest", "for listed in parts), reverse=True)", "for listed in parts))"),
        "privacy/test_users.py::test_the_dearest_partitions_count_and_not_the_newest_or_cheapest",
    ),
    fault(
        "noise for a person forgets the records of a batch",
        "k records in each of M batches are one Gaussian with μ·k·√M",
        (
            Edit("person_event", "(event, participation.records)", "(event, 1)"),
            Edit("gaussian_multiplier", "once * participation.records * math", "once * math"),
        ),
        "privacy/test_users.py::test_gaussians_of_a_person_are_one_with_k_root_m_times_the_shift",
        ("default-plan", "black box"),
    ),
    fault(
        "noise for a person forgets the root of the batches",
        "k records in each of M batches are one Gaussian with μ·k·√M",
        Edit("person_event", "math.sqrt(participation.batches)", "1.0"),
        "privacy/test_users.py::test_gaussians_of_a_person_are_one_with_k_root_m_times_the_shift",
        ("default-plan", "black box"),
    ),
    fault(
        "noise for a person is that of one record",
        "k records in each of M batches are one Gaussian with μ·k·√M",
        Edit(
            "person_event",
            "batch = scaled_event(event, participation.records)",
            "return event\n    batch = None",
        ),
        "audit/test_person_attack.py::test_all_that_a_person_says_is_told_apart_as_far_as_claimed",
        ("default-plan", "black box"),
    ),
    fault(
        "pure shares forget the batches of a person",
        "pure costs of a person add up",
        Edit("pure_share", ".records * participation.batches", ".records"),
        "privacy/test_users.py::test_all_of_a_person_costs_at_most_the_budget",
    ),
    fault(
        "an attacker is told to be half as good",
        "the best attacker is right with probability ½ + ½·δ(0)",
        Edit("attacker", "(0.5 + 0.5 * variation, not", "(0.5 + 0.25 * variation, not"),
        "privacy/test_attacker.py::test_one_decision_and_ten",
    ),
    fault(
        "seeded noise calls itself private",
        "whoever knows the seed can remove the noise",
        Edit(
            "SeededNoise.claim",
            'NonPrivate("seeded noise: whoever knows the seed can remove it")',
            "event",
        ),
        "privacy/test_events.py::test_seeded_noise_claims_nothing",
    ),
    # Learned geometry.
    fault(
        "a matrix from the batch that it stretches",
        "how rows are stretched follows from earlier releases",
        Edit(
            "PooledStatistics.fit",
            "gram, response, outcome_sums = noisy_statistics(",
            f"raw = {UNNOISED}\n"
            "        own = Statistics(*raw[:2], records, self.gram**2, matrix, "
            "outcome_sums=raw[2])\n"
            "        secret = self.conclusion((*earlier, own))[1]\n"
            "        secret = None if secret is None else publishable(secret)\n"
            "        matrix = secret\n"
            "        gram, response, outcome_sums = noisy_statistics(",
        ),
        "audit/test_stretched.py::test_no_batch_moves_the_matrix_it_meets",
        ("ridge-stretched", "exact"),
    ),
    fault(
        "a batch stretched in secret by its own spread",
        "how rows are stretched follows from earlier releases",
        (
            Edit(
                "PooledStatistics.fit",
                "gram, response, outcome_sums = noisy_statistics(",
                f"raw = {UNNOISED}\n"
                "        own = Statistics(*raw[:2], records, self.gram**2, matrix, "
                "outcome_sums=raw[2])\n"
                "        secret = self.conclusion((*earlier, own))[1]\n"
                "        secret = None if secret is None else publishable(secret)\n"
                "        gram, response, outcome_sums = noisy_statistics(",
            ),
            Edit("PooledStatistics.fit", ",\n            matrix,", ",\n            secret,"),
        ),
        "privacy/test_published.py::test_after_the_noise_nothing_reads_the_batch",
        ("default-plan", "exact"),
    ),
    fault(
        "stretched rows that are not normalised",
        "‖v‖ ≤ 1, whatever the matrix",
        Edit("shortened_rows", f"_within_grid({SHORTENED})", SHORTENED.replace("lengths", "GRID")),
        "oracles/test_geometry.py::test_no_row_is_longer_than_the_grid",
        ("ridge-stretched", "exact"),
    ),
    fault(
        "stretched rows rounded to the nearest",
        "‖v‖ ≤ 1, whatever the matrix",
        Edit("shortened_rows", f"_within_grid({SHORTENED})", SHORTENED.replace("trunc", "rint")),
        "oracles/test_geometry.py::test_no_row_is_longer_than_the_grid",
        ("ridge-stretched", "exact"),
    ),
    fault(
        "joint rows with three parts of full length",
        "‖ψ‖ ≤ 1 for every pair of a context and an action",
        Edit("Joint.share", "math.sqrt(1.0 / (3.0 if self.products else 2.0))", "1.0"),
        "features/test_joint.py::test_rows_are_a_constant_and_parts_of_the_ball",
    ),
    fault(
        "joint rows that are stretched and not shortened",
        "‖v‖ ≤ 1, whatever the matrix",
        Edit("shortened_rows", f"_within_grid({SHORTENED})", "np.trunc(rows / least * GRID)"),
        "oracles/test_geometry.py::test_no_row_is_longer_than_the_grid",
        ("ridge-joint", "exact"),
    ),
    fault(
        "losses of joint rows that are not shortened as the rows are",
        "rows and losses are divided by one number",
        Edit("_integer_sums", "* shrink[part])", "* shrink[part] ** 0.0)"),
        "oracles/test_geometry.py::test_exact_and_floating_sums_agree_within_the_grid",
        ("ridge-joint", "exact"),
    ),
    fault(
        "an offer that may name what left the catalogue",
        "a request gets what it is offered, of actions that are in use",
        Edit("catalogue_after", "items.pop(item, None)", "pass"),
        "actions/test_offers.py::test_items_join_at_once_and_who_left_is_not_offered",
    ),
    fault(
        "a propensity over all actions instead of the offer",
        "propensities are exact over what was offered",
        Edit("Offers.sample", "= one_row.sample(policy, view", "= one_row.sample(policy, released"),
        "simulate/test_evaluate.py::test_an_evaluation_decides_what_a_learner_decides",
    ),
    fault(
        "earlier statistics pooled in coordinates of their own",
        "a pool has one set of coordinates",
        Edit(
            "geometry:_in_newest",
            "there @ gram @ there.mT, response @ change.mT",
            "gram, response",
        ),
        "audit/test_stretched.py::test_statistics_are_pooled_in_the_newest_coordinates",
    ),
    fault(
        "coordinates changed by a transposed matrix",
        "a pool has one set of coordinates",
        Edit(
            "geometry:_in_newest",
            "there @ gram @ there.mT, response @ change.mT",
            "there.mT @ gram @ there, response @ change",
        ),
        "audit/test_stretched.py::test_statistics_are_pooled_in_the_newest_coordinates",
    ),
    fault(
        "a matrix with more bits than can be multiplied exactly",
        "a private fit uses what was published",
        (
            Edit("PooledStatistics.fit", "= publishable(following)", "= following + 0.0"),
            Edit(
                "integers_of",
                "not (np.isfinite(integers) & (integers == np.rint(integers))).all()",
                "False",
            ),
        ),
        "oracles/test_geometry.py::test_a_matrix_that_is_not_as_published_is_refused",
        ("ridge-stretched", "exact"),
    ),
    fault(
        "a matrix computed again in place of the published one",
        "a private fit uses what was published",
        Edit(
            "PooledStatistics._matrix",
            "return earlier[-1].following",
            "return publishable(self.conclusion(earlier)[1])",
        ),
        "audit/test_stretched.py::test_no_batch_moves_the_matrix_it_meets",
        ("ridge-stretched", "exact"),
    ),
    fault(
        "one label with the sensitivity of plain rows",
        "v·v' of stretched rows may be negative",
        Edit("ridge_sensitivity", "(norm if normalised else inner)", "inner"),
        "audit/test_exact.py::test_worst_pairs_attain_the_declared_distance",
        ("ridge-stretched", "exact"),
    ),
    fault(
        "one label with the sensitivity of bandit feedback",
        "all centred losses of a record count",
        Edit(
            "structured_scales",
            "ridge_sensitivity(feedback, n_actions, one_label,",
            'ridge_sensitivity("bandit" if one_label else feedback, n_actions, False,',
        ),
        "audit/test_exact.py::test_worst_pairs_attain_the_declared_distance",
        ("ridge-stretched", "exact"),
    ),
    fault(
        "how people fared is told without noise",
        "everything that is released is noisy",
        Edit("noisy_totals", "(sums, drawn,", "(sums, drawn * (axes == 2),"),
        "audit/test_exact.py::test_worst_pairs_attain_the_declared_distance",
        ("default-plan", "exact"),
    ),
    fault(
        "how people fared is not in the sensitivity",
        "(svec G, ω·q, told) has the declared sensitivity",
        Edit("sensitivities.py", "SAME_ACTION_SUMS = 0.25", "SAME_ACTION_SUMS = 0.0"),
        "audit/test_exact.py::test_worst_pairs_attain_the_declared_distance",
        ("default-plan", "exact"),
    ),
    fault(
        "sums of losses that are not halved",
        "(svec G, ω·q, told) has the declared sensitivity",
        Edit("_integer_sums", "counted.sum(axis=0) * (GRID // 2)", "counted.sum(axis=0) * GRID"),
        "privacy/test_arithmetic.py::test_sums_are_those_of_unbounded_integers",
        ("default-plan", "exact"),
    ),
    fault(
        "whole counts of actions in place of halves",
        "(svec G, ω·q, told) has the declared sensitivity",
        Edit("_integer_sums", "counts * (GRID**2 // 2)", "counts * GRID**2"),
        "privacy/test_arithmetic.py::test_sums_are_those_of_unbounded_integers",
        ("default-plan", "exact"),
    ),
    fault(
        "a change of action paid for as if the action stayed",
        "(svec G, ω·q, told) has the declared sensitivity",
        Edit(
            "ridge_sensitivity",
            "max(rows + SAME_ACTION_SUMS, different_actions(spread))",
            "rows + SAME_ACTION_SUMS",
        ),
        "privacy/test_sensitivities.py::test_sums_beside_stretched_rows_cost_what_is_declared",
    ),
    fault(
        "noise on the totals of all actions alone",
        "everything that is released is noisy",
        Edit(
            "noisy_totals",
            "return _exact_sum",
            "drawn = np.where((axes == 2) | (np.arange(drawn.shape[-1]) < 2), drawn, 0)\n"
            "        return _exact_sum",
        ),
        "privacy/test_noise_law.py::test_scale_is_accepted_and_two_thirds_and_three_halves"
        "_are_rejected",
        ("default-plan", "exact"),
    ),
    fault(
        "sums of squares of twice their weight",
        "(svec G, ω·q, told) has the declared sensitivity",
        Edit("_integer_sums", "2 * int((counted**2).sum())", "4 * int((counted**2).sum())"),
        "privacy/test_arithmetic.py::test_sums_are_those_of_unbounded_integers",
        ("ridge-stretched", "exact"),
    ),
    fault(
        "squares of losses summed in floats",
        "sums are the same bits in any order",
        Edit("_integer_sums", "(weights * centred).astype(np.int64)", "weights * centred"),
        "privacy/test_arithmetic.py::test_sums_of_many_squares_are_those_of_unbounded_integers",
        ("default-plan", "exact"),
    ),
    fault(
        "a sum that no part of δ pays for",
        "δ pays for the sampler of every number that a record moves",
        Edit("structured_scales", "coordinates += 6 if", "coordinates += 5 if"),
        "privacy/test_fast_charge.py::test_what_is_charged_is_what_was_drawn",
    ),
    fault(
        "bounds of rows that are swapped",
        "rows are M b/max(low, ‖M b‖), and losses shorter above high alone",
        Edit("PooledStatistics.row_bounds", "return weight, 1.0 /", "return 1.0 / weight,"),
        BOUNDS_FOLLOW,
        ("ridge-stretched", "exact"),
    ),
    fault(
        "losses of joint rows without an upper bound",
        "rows and losses of joint features are divided by one number",
        Edit("pooled_statistics.py", ": Bounds = (1.0, 1.0)", ": Bounds = (1.0, math.inf)"),
        "audit/test_stretched.py::test_joint_rows_and_losses_are_divided_alike",
        ("ridge-joint", "exact"),
    ),
    fault(
        "bounds of rows from the batch that they shorten",
        "how rows are shortened follows from earlier releases",
        Edit(
            "PooledStatistics.fit",
            "gram, response, outcome_sums = noisy_statistics(",
            f"raw = {UNNOISED}\n"
            "        own = Statistics(*raw[:2], records, self.gram**2, matrix, "
            "outcome_sums=raw[2])\n"
            "        if raw[2] is not None:\n"
            "            own = own.concluded(None, self.conclusion((*earlier, own)).signal)\n"
            "            bounds = self.row_bounds(records, (own,))\n"
            "        gram, response, outcome_sums = noisy_statistics(",
        ),
        "audit/test_stretched.py::test_rows_are_stretched_by_the_published_matrix",
        ("ridge-stretched", "exact"),
    ),
    fault(
        "contexts that count as unclear before the first signal",
        "before a signal was published contexts count as clear",
        Edit("PooledStatistics.row_bounds", "clear: Numbers = 1.0", "clear: Numbers = 0.0"),
        BOUNDS_FOLLOW,
        ("ridge-stretched", "exact"),
    ),
    fault(
        "a signal that is not recomputed",
        "releases can be recomputed from what was published",
        Edit(
            "recomputation:_differing",
            "not None and _far(statistics[-1].signal, signal, share)",
            "None and statistics[-1].signal is not None",
        ),
        "cli/test_release_verify.py::test_only_recomputation_sees_a_forgery_whose_digests_hold",
    ),
    fault(
        "one uniform that chooses both the rule and the action",
        "actions have the probabilities that were published",
        Edit("AdaptivePO.sample", "where(u[..., 1] < clear", "where(u[..., 0] < clear"),
        "privacy/test_adaptive_draws.py::test_actions_have_the_probabilities_that_are_named",
    ),
    # After the noise.
    fault(
        "statistics that were kept before their noise",
        "a pool consists of releases",
        Edit(
            "PooledStatistics.fit",
            "new = Statistics(gram, response, records,",
            f"gram, response, _ = {UNNOISED}\n        new = Statistics(gram, response, records,",
        ),
        "privacy/test_published.py::test_after_the_noise_nothing_reads_the_batch",
        ("ridge-pooled", "exact"),
    ),
    fault(
        "a predictor from sums without noise",
        "weights follow from noisy statistics",
        Edit(
            "PooledStatistics.fit",
            "step = self.gram",
            f"raw = {UNNOISED}\n"
            "        known = Statistics(*raw[:2], records, self.gram**2, matrix, "
            "outcome_sums=outcome_sums)\n"
            "        weights = self.conclusion((*earlier, known)).weights\n"
            "        step = self.gram",
        ),
        "privacy/test_published.py::test_after_the_noise_nothing_reads_the_batch",
        ("default-plan", "exact"),
    ),
    fault(
        "a centre from the data",
        "the middle of the losses is public",
        (
            Edit(
                "StructuredRidge.fit",
                "uncentred(weights, centre(self.problem.losses, batch.n_actions))",
                "uncentred(weights, float(np.mean(batch.losses[batch.observed] if"
                " batch.observed.any() else 0.5)))",
            ),
        ),
        "privacy/test_published.py::test_after_the_noise_nothing_reads_the_batch",
        ("ridge-structured", "exact"),
    ),
    fault(
        "no weights for an action that nobody took",
        "weights follow from noisy statistics",
        Edit(
            "PooledStatistics.fit",
            "step = self.gram",
            "weights = weights * batch.observed.any(axis=-2)[..., None]\n        step = self.gram",
        ),
        "privacy/test_published.py::test_after_the_noise_nothing_reads_the_batch",
        ("default-plan", "exact"),
    ),
    fault(
        "a digest that leaves the predictor out",
        "a digest names the whole release",
        Edit("Release.digest", "(self.to_json())", '(self.to_json() | {"predictor": None})'),
        "releases/test_release.py::test_the_schema_of_a_release",
        ("ridge-structured", "exact"),
    ),
    fault(
        "rows stay in memory after their release",
        "a batch is forgotten",
        Edit("BatchSlots.forget", "in ROWS", 'in set(ROWS) - {"losses"}'),
        "batches/test_waiting_batches.py::test_the_memory_of_released_rows_is_overwritten",
    ),
    fault(
        "a saved state can be loaded again",
        "a batch is fitted once",
        Edit("claim", "claimed.unlink()", "os.rename(claimed, source)"),
        "batches/test_saved_state.py::test_a_state_is_loaded_once",
    ),
    # Late losses: batches that wait.
    fault(
        "a batch released before an older one",
        "releases follow the order of the batches",
        (
            Edit(
                "MemoryStore.ready",
                "oldest = self.batches[0] if self.batches else None",
                f"oldest = {HASTY}",
            ),
            Edit(
                "MemoryStore.release",
                "oldest, others = self.batches[0], self.batches[1:]",
                f"oldest = {HASTY}\n        others = [b for b in self.batches if b is not oldest]",
            ),
        ),
        "batches/test_batches_under_way.py",
    ),
    fault(
        "a window that counts answers",
        "the end of a batch is public",
        Edit("MemoryStore.over", ".sealed.decisions", ".sealed.decisions - batch.unobserved"),
        "batches/test_waiting_batches.py::test_who_answered_moves_no_window",
    ),
    fault(
        "a late loss counts after its batch was closed",
        "the end of a batch is public",
        Edit(
            "MemoryStore.observe_one",
            "        if self.over(batch):\n            raise batch_over()\n",
            "",
        ),
        "batches/test_waiting_batches.py::test_a_loss_after_the_window_is_refused",
    ),
    # A clock that closes batches.
    fault(
        "a clock that looks at answers",
        "the end of a batch is public",
        Edit("MemoryStore.seal_by_clock", ", batch.taken,", ", batch.taken - batch.unobserved,"),
        "batches/test_waiting_batches.py::test_answers_move_no_slot_and_no_close",
    ),
    fault(
        "a slot that nobody took gets the missing loss",
        "a record is a slot that was taken",
        Edit(
            "BatchSlots.close_to_slots",
            "size, self.sealed = self.taken, sealed",
            "losses[self.taken :], self.features[self.taken :] = np.nan, 0.0\n"
            "        self.actions[self.taken :] = 0\n"
            "        self.size, self.sealed = self.taken, sealed\n        return",
        ),
        "batches/test_batches_under_way.py",
    ),
    fault(
        "a private log that becomes a prior",
        "a prior holds public rows alone",
        Edit("import_", "if args.public:", "if True:"),
        "cli/test_import_command.py::test_a_private_log_never_becomes_a_prior",
    ),
    fault(
        "a log of a person in several batches",
        "all that counts of a person's log is in one batch",
        Edit(
            "LoggedRows.batches",
            "[None if who in seen else who for who in owners]",
            "list(owners)",
        ),
        "batches/test_log_import.py::test_people_bring_ids_obey_k_and_use_one_batch",
    ),
    fault(
        "rows of a log sorted by what they say",
        "rows are cut into batches by position, never by content",
        Edit(
            "LoggedRows.batches",
            "order = np.arange(len(self.actions))",
            'order = np.argsort(self.losses, kind="stable")',
        ),
        "batches/test_log_import.py::test_rows_are_cut_into_batches_by_position_and_never_by_content",
    ),
    fault(
        "a part of a log that counts once more after a retry",
        "rows of a log are counted once, however often workers read them",
        Edit(
            "_results",
            "jobs = deque(executor.submit(sums_of, part) for part in parts)",
            "jobs = deque(executor.submit(sums_of, part) for part in [*parts, *parts[:1]])",
        ),
        "batches/test_partitioned_log.py::test_processes_give_the_documents_of_one",
    ),
    fault(
        "sums of a log whose rows nobody counts",
        "rows of a log are counted once, however often workers read them",
        Edit("log_import:_summed", "if counted != size:", "if False:"),
        "batches/test_partitioned_log.py::"
        "test_rows_that_are_counted_twice_or_not_at_all_release_nothing",
    ),
    fault(
        "an error of a worker with a row in it",
        "a cluster learns nothing of rows but integer sums",
        Edit("sums_of_part", 'f"{type(error).__name__}."', "repr(error)"),
        "batches/test_partitioned_log.py::test_a_cluster_tells_nothing_of_rows",
    ),
    fault(
        "sums of large batches in int64",
        "sums are those of unbounded integers",
        Edit("batch:added", "np.int64 if records <= LARGEST_BATCH else object", "np.int64"),
        "privacy/test_arithmetic.py::test_sums_of_larger_batches_are_those_of_unbounded_integers",
    ),
    fault(
        "ids read together whose MAC nobody compares",
        "only ids that decide returned are accepted",
        Edit(
            "DecisionIds.read_bare",
            "hmac.compare_digest(self._mac(body), raw[end - _MAC : end])",
            "True",
        ),
        "service/secrets/test_vault_and_ids.py::test_ids_without_a_row_are_read_at_once",
    ),
    fault(
        "one nonce for all losses that are sealed together",
        "every sealed row has a nonce of its own",
        Edit("Sealer.seal_losses", "drawn[start : start + 12]", "drawn[:12]"),
        "service/secrets/test_vault_and_ids.py::test_losses_are_sealed_together_as_alone",
    ),
    fault(
        "the last answer of people releases their batch",
        "with the unit user silence moves nothing",
        Edit("Plan.releases_on_last_answer", '" and self.unit == "decision"', '"'),
        "privacy/test_silence.py::test_silence_moves_nothing_where_the_relation_covers_it",
    ),
    fault(
        "a ledger that calls silence protected where it is not",
        "the relation is true for what triggers releases",
        Edit("relation", "RELATION_AS_ANSWERED if on_last_answer else RELATION", "RELATION"),
        "privacy/test_silence.py::test_silence_decides_who_meets_a_release_where_the_last_answer_triggers_it",
    ),
    fault(
        "a ranking drawn from the generator of the actions",
        "no offer shifts the draws of later people",
        Edit(
            "Learner.decide",
            "uniforms = self._rankings.next_call()",
            "uniforms = lambda _, offered: self._draws.random(offered)",
        ),
        "actions/test_offers.py::test_a_ranking_moves_no_draw_of_anybody_else",
    ),
    fault(
        "a prior from releases without protection",
        "what a plan begins with is public or private, never exposed",
        Edit("prior_from_released", "if unprotected:", "if False:"),
        "simulate/test_warm_start.py::test_releases_without_protection_are_no_prior",
    ),
    fault(
        "a bound on the attacker that is rounded down",
        "a printed bound is one",
        Edit("hundredths", "math.ceil(100 * Fraction(success))", "int(100 * success)"),
        "privacy/test_attacker.py::test_no_printed_bound_is_below_what_it_bounds",
    ),
    fault(
        "a refused feature that is quoted",
        "errors never hold a private value",
        Edit("Field.refusal", "{got or kind_of(value)}", "{value!r}"),
        "privacy/test_withheld.py::test_no_value_of_a_context_is_quoted",
    ),
    fault(
        "a refused loss that is quoted",
        "errors never hold a private value",
        Edit("Outcome._outside", "; got {got}. {step}", "; got {value!r}. {step}"),
        "privacy/test_withheld.py::test_no_loss_and_no_reward_is_quoted",
    ),
    fault(
        "a saved learner that replaces another",
        "no save destroys the only copy of a learner",
        Edit("saved_state:write", "mode=0o600, new=True", "mode=0o600"),
        "batches/test_saved_state.py::test_a_save_replaces_no_other_file",
    ),
    fault(
        "a half-life in the pool but not in the replay",
        "what is forgotten is forgotten everywhere",
        Edit(
            "ReplayBonusPO._steps",
            "[share * release.records for release, share",
            "[release.records for release, _",
        ),
        "releases/test_forgetting.py::test_the_replay_is_the_literal_one_over_what_still_counts",
    ),
    fault(
        "a half-life in the replay but not in the pool",
        "what is forgotten is forgotten everywhere",
        Edit("geometry:pooled", "weight = share * each.records / (", "weight = each.records / ("),
        "releases/test_forgetting.py::test_the_pool_is_the_literal_one",
    ),
    fault(
        "a half-life that the ledger takes for less cost",
        "weighting what was released costs nothing, and saves nothing",
        Edit(
            "Plan._fit_event",
            'instance("event of the mechanism", event, events.EVENTS)',
            'instance("event of the mechanism", event, events.EVENTS)\n'
            "        if self.half_life is not None:\n"
            "            return type(event)(2.0 * event.multiplier, event.sensitivity)",
        ),
        "releases/test_forgetting.py::"
        "test_the_ledger_knows_nothing_of_a_half_life_and_releases_can_be_recomputed",
    ),
    fault(
        "a service whose clock looks at answers",
        "the end of a batch is public",
        Edit(
            "Slots._ended",
            "opened, closed = tick(self._every, batch.opened, batch.taken, now)",
            'heard = connection.execute("SELECT count(*) FROM answers").fetchone()[0]\n'
            "        opened, closed = tick(self._every, batch.opened, heard, now)",
        ),
        "service/runtime/test_clock_batches.py::test_answers_move_no_slot_and_no_close",
    ),
    fault(
        "a service that fits slots that nobody took",
        "a record is a slot that was taken",
        (
            Edit("Publisher._compute", ", batch.id, batch.taken)", ", batch.id, batch.size)"),
            Edit("release_transaction:verify", ".records == batch.taken", ".records == batch.size"),
        ),
        "service/runtime/test_clock_batches.py::"
        "test_upkeep_ends_a_batch_without_requests_and_releases_it",
    ),
    fault(
        "a service that gives slots without a request the missing loss",
        "a record is a slot that was taken",
        Edit("read_batch", "actions = np.full(size, -1, dtype=", "actions = np.zeros(size, dtype="),
        "service/runtime/test_clock_batches.py::test_untaken_and_unused_slots_have_no_loss",
    ),
    fault(
        "a service that releases an empty batch",
        "a batch without a slot taken stays open",
        Edit("Slots._ended", "._every, batch.opened, batch.taken,", "._every, batch.opened, 1,"),
        "service/runtime/test_clock_batches.py::test_an_empty_batch_goes_on_to_the_next_tick",
    ),
    fault(
        "a worker that hands out slots of a batch that the clock ended",
        "every decision has a whole window for its loss",
        Edit("WorkerState.assigns_slots", "return not ended and not self.", "return not self."),
        "service/runtime/test_clock_batches.py::"
        "test_leased_slots_are_taken_and_not_assigned_after_the_clock",
    ),
    # People who return.
    fault(
        "a registry that forgets on load",
        "a person is in at most M batches, whatever is saved and loaded",
        Edit("saved_state:restore", ".of_arrays(participation, rows, newest)", "(participation)"),
        "test_learner_users.py::test_counts_survive_a_file",
    ),
    fault(
        "an answer, not a slot, that counts",
        "silence is not free",
        (
            Edit(
                "MemoryStore._fill",
                "counts = None if self.people is None else self.people.hand_out(users, "
                "batch.number)",
                "before = {} if self.people is None else dict(self.people._counts.held)\n"
                f"{HANDED_OUT}"
                "        if self.people is not None:\n"
                "            self.asked, self.people._counts.held = "
                "self.people._counts.held, before",
            ),
            Edit(
                "MemoryStore.observe",
                "for write in checked:  #",
                "if self.people is not None:\n"
                "            self.people._counts.held = self.asked\n"
                "        for write in checked:  #",
            ),
        ),
        "test_learner_users.py::test_a_slot_counts_whether_or_not_it_is_answered",
    ),
    fault(
        "replies that differ for void slots",
        "nobody can ask whether someone was there before",
        Edit(
            "MemoryStore.take",
            "return np.arange(first, first + rows)",
            "counts, taken = self.batches[-1].counts, self.batches[-1].taken\n"
            "            counts = counts[taken - rows : taken]\n"
            "            return np.where(counts, np.arange(first, first + rows), -1)",
        ),
        "test_learner_users.py::test_replies_are_the_same_for_slots_that_count_and_void_slots",
    ),
    fault(
        "k counted per call",
        "at most k records of a person in a batch",
        Edit(
            "PeopleCounts.hand_out",
            "for person in people:",
            "for known in held:\n"
            "            held[known] = held[known]._replace(records=0)\n"
            "        for person in people:",
        ),
        "test_learner_users.py::test_k_counts_the_slots_of_a_batch_and_not_of_a_call",
    ),
    # People who return to a service.
    fault(
        "a service whose registry forgets on restart",
        "a person is in at most M batches, whatever is restarted",
        Edit("RequestOwners.__init__", "(vault.people)", "(__import__('os').urandom(32))"),
        "service/runtime/test_people.py::test_counts_outlive_the_process",
    ),
    fault(
        "a service that counts k per day",
        "k is counted by batch",
        Edit(
            "OwnedSlot.number",
            "return self.epoch << 32 | self.batch",
            "return int(__import__('time').time()) // 86_400",
        ),
        "service/runtime/test_people.py::test_k_is_counted_by_batch_and_not_by_day",
    ),
    fault(
        "a service that counts k once and for all",
        "k is counted by batch",
        Edit("OwnedSlot.number", "return self.epoch << 32 | self.batch", "return 1"),
        "service/runtime/test_people.py::test_a_new_batch_allows_new_records",
    ),
    fault(
        "a service where an answer counts, not a slot",
        "silence is not free",
        (
            Edit(
                "People.record_slots",
                'insert(connection, "people", totals, UPSERT)',
                "self.waiting = getattr(self, 'waiting', {}) | {\n"
                "            each[:3]: row for each in new for row in totals if row[0] "
                "== each.person\n"
                "        }\n"
                "\n"
                "    def answered(self, connection: Connection, places: set[Any]) -> None:\n"
                "        for place in places & self.waiting.keys():\n"
                '            insert(connection, "people", [self.waiting.pop(place)], UPSERT)',
            ),
            Edit(
                "Journal.observe",
                'step("observe:before-write")',
                'step("observe:before-write")\n'
                "        if self._people is not None:\n"
                "            self._people.answered(connection, {item[:3] for item in items})",
            ),
        ),
        "service/runtime/test_people.py::test_a_slot_counts_whether_or_not_it_is_answered",
    ),
    fault(
        "a service whose replies differ for void slots",
        "nobody can ask whether someone was there before",
        (
            Edit(
                "People.record_slots",
                'insert(connection, "handed", rows)',
                'insert(connection, "handed", rows)\n'
                "        self.void = {row[:3] for row in rows if not row[3]}",
            ),
            Edit(
                "WorkerDecisions._stored",
                "if outcome is KEPT:",
                "if state.people is not None and place in state.people.void:\n"
                '            return DecisionReply(**asdict(decision) | {"stored": False})\n'
                "        if outcome is KEPT:",
            ),
        ),
        "service/runtime/test_people.py::test_replies_are_the_same_for_void_slots",
    ),
    fault(
        "a restore that adds nothing to anybody",
        "a registry from a backup errs on the safe side",
        Edit("lifecycle:restore", "missed = missed + ?", "missed = missed + 0 * ?"),
        "service/storage/test_anchor.py::test_a_restored_registry_adds_what_it_lacks_to_everybody",
    ),
    fault(
        "a restore that adds to known people alone",
        "a registry from a backup errs on the safe side",
        Edit("People.record_slots", ".entered + missed", ".entered + missed * (count.entered > 0)"),
        "service/storage/test_anchor.py::test_a_restored_registry_adds_what_it_lacks_to_everybody",
    ),
    fault(
        "a count that is written after the reply",
        "the count is on the disk before anybody hears of the slot",
        Edit(
            "WorkerDecisions._stored",
            "outcome = await writing",
            "if named is None:\n"
            "            self.later = writing\n"
            "            return decision\n"
            "        outcome = await writing",
        ),
        "service/runtime/test_people.py::test_the_count_is_on_the_disk_when_the_reply_is_there",
    ),
    fault(
        "an answer before the disk has it",
        "every decision is on the disk before its answer",
        Edit("CommitThread._durable", "self._disk.sync(unsynced)", "[None] * len(unsynced)"),
        "service/storage/test_group_commit.py::test_no_write_is_answered_before_its_file_is_synced",
    ),
    fault(
        "a release that can be read before the disk has it",
        "what is published survives a power cut, so no batch is released twice",
        Edit("Sqlite.transaction", '"FULL" if synced else "NORMAL"', '"NORMAL"'),
        "service/storage/test_group_commit.py::"
        "test_what_others_may_publish_is_durable_before_they_see_it",
    ),
    fault(
        "a person who may return to an older batch",
        "at most k records of a batch are one person's, with several workers too",
        Edit("PeopleCounts.hand_out", "counts = last <= batch and entered", "counts = entered"),
        "service/runtime/test_people.py::test_the_table_is_the_rule",
    ),
    fault(
        "erased people are forgotten",
        "erased means used up",
        Edit("People.use_up", "*Count(self._most.batches))]", "*Count())]"),
        "service/runtime/test_people.py::test_erased_means_used_up",
    ),
    # The edges: units, forks, and the service.
    fault(
        "any word is a unit",
        "a plan promises what is enforced",
        Edit("refuse_wrong_kinds", "if plan.unit not in UNITS:", "if not plan.unit:"),
        "plan/test_plan.py::test_forty_records_of_a_customer_are_not_one_unit",
    ),
    fault(
        "a reward that counts the wrong way round",
        "a high reward is a low loss",
        Edit("Reward", 'best: ClassVar[str] = "high"', 'best: ClassVar[str] = "low"'),
        "design/test_outcome.py::test_a_high_reward_is_a_low_loss",
    ),
    fault(
        "a reward outside its range is clipped unasked",
        "bad input is refused to its sender, unless clipping was declared",
        Edit("Outcome.loss_of", "if self.clip and math.isfinite(number", "if math.isfinite(number"),
        "design/test_outcome.py::test_a_value_outside_is_refused_or_clipped_as_declared",
    ),
    fault(
        "a learner goes on in a forked child",
        "a batch is fitted once",
        Edit("Custody.__enter__", "if os.getpid() != self._process:", "if False:"),
        "test_fork.py::test_another_process_is_all_that_it_takes",
    ),
    fault(
        "the fast sampler charges nothing",
        "δ pays for the sampler",
        Edit("SecureNoise.claim", "fast_sampled(event) if self.fast else event", "event"),
        "privacy/test_fast_charge.py::test_delta_pays_the_derived_amount",
    ),
    fault(
        "what a fit returned is committed unchecked",
        "a release is of our plan, our chain and our budget",
        Edit(
            "Publisher._write",
            "        verify(connection, self._settings, self._known, batch, release, ledger)\n",
            "",
        ),
        "service/runtime/test_verifying.py::test_a_wrong_release_is_dropped",
    ),
    fault(
        "the event of a fit is believed",
        "a release carries the noise that was paid for",
        Edit("release_transaction:verify", ": release.event == ledger.entries[-1].event", ": True"),
        "service/runtime/test_verifying.py::test_a_wrong_release_is_dropped",
    ),
    fault(
        "a restore charges nothing",
        "the ledger states what was published",
        Edit(
            "lifecycle:restore",
            "charged = _charge_lost(anchor, connection)",
            "charged: list[int] = []",
        ),
        "service/storage/test_anchor.py::test_a_restore_charges_a_user_for_what_the_backup_lacks",
    ),
    fault(
        "documents are served before the anchor confirms them",
        "a database that was set back is noticed",
        Edit(
            "WorkerState._anchored",
            "self.anchor.confirm((link.number, link.digest) for link in extended.links)",
            "pass",
        ),
        "service/storage/test_anchor.py::test_what_is_committed_and_not_confirmed_is_shown_nowhere",
    ),
    fault(
        "ids of a lease that the database does not know",
        "content of a slot came by an id of its own lease",
        Edit(
            "accepting",
            "found = leases & {*rows}",
            'listed = f"SELECT epoch, id FROM batches WHERE {UNDER_WAY}"\n'
            "    live = {tuple(row) for row in connection.execute(listed).fetchall()}\n"
            "    found = {each for each in leases if each[:2] in live or not rows}",
        ),
        "service/storage/test_anchor.py::test_ids_of_a_lost_lease_reach_no_other_slot",
    ),
    fault(
        "ids of any lease while another one of the batch is used, on a server",
        "content of a slot came by an id of its own lease",
        Edit("_accepted", "USING (epoch, batch, nonce)", "USING (epoch, batch)"),
        "service/storage/test_anchor.py::test_in_one_group_each_item_needs_a_lease_of_its_own",
    ),
    fault(
        "decisions and answers share a rate limit",
        "nobody's answer moves another's slot",
        Edit("Endpoint._admitted", "self._rate.take(self._route.bucket,", 'self._rate.take("all",'),
        "service/http/test_http.py::test_answers_do_not_use_the_rate_of_decisions",
    ),
    fault(
        "names of requests leave with their batch",
        "a request takes one slot",
        (
            Edit("forget", "    remember(connection, (epoch, batch))\n", ""),
            Edit("forget_slots", "    remember(connection, (epoch, batch), slots)\n", ""),
        ),
        "service/storage/test_idempotency.py::test_after_the_release_it_is_refused_and_counts_once",
    ),
    fault(
        "headers without a bound",
        "an anonymous connection holds little memory",
        Edit("LimitedHttp._check_lines", "if size > HEAD or len(self.headers) > LINES", "if False"),
        "service/http/test_request_limits.py::test_a_head_may_be_as_long_as_the_limit_and_no_longer",
    ),
    fault(
        "plain sums in the certificate",
        "the gradient is within the public tolerance",
        Edit("RowBlock.gradient", ") if grid is None else exact_sums(grid, surplus)", ")"),
        "oracles/test_exact_sums.py::test_a_plain_float_sum_is_caught",
    ),
    # Policy and control.
    fault(
        "a control slot that also enters the policy's part",
        "a record is in one part",
        Edit("loss_sums:_parts", ".control, batch.control", ".control | True, batch.control"),
        "oracles/test_loss_sums.py::test_a_record_touches_its_own_part_alone",
        ("default-plan", "exact"),
    ),
    fault(
        "silence moves the sums of losses further than a loss",
        "sums and counts have the joint sensitivity 1",
        Edit("LossSums._noisy", "= np.array([1.0, math.sqrt(COUNT_VARIANCE)])", "= np.ones(2)"),
        "oracles/test_loss_sums.py::test_noise_has_the_declared_scale",
        ("default-plan", "exact"),
    ),
    fault(
        "guardrails with the noise of a single one",
        "guardrails have the joint sensitivity √k",
        Edit(
            "loss_sums:_calibrated",
            "SENSITIVITY * math.sqrt(outcomes), COORDINATES * outcomes",
            "SENSITIVITY, COORDINATES * outcomes",
        ),
        "oracles/test_loss_sums.py::test_one_record_moves_all_guardrails_by_the_root_of_their_number",
        ("default-plan", "exact"),
    ),
    fault(
        "guardrails that are not charged",
        "a release is charged for everything in it",
        Edit(
            "Plan.event",
            "for each in (self.guardrail_sums, self.loss_sums) if",
            "for each in (self.loss_sums,) if",
        ),
        "oracles/test_loss_sums.py::test_fit_losses_and_guardrails_cost_the_budget",
        ("default-plan", "exact"),
    ),
    fault(
        "guardrails that are not clamped before they are added",
        "one record moves a sum by at most 1",
        Edit(
            "_exact_guardrails",
            "values = np.clip(batch.guardrails, 0.0, 1.0)",
            "values = np.nan_to_num(batch.guardrails, nan=np.nan, posinf=9.0, neginf=-9.0)",
        ),
        "oracles/test_loss_sums.py::test_each_value_is_clamped_before_it_is_added",
    ),
    fault(
        "guardrails of void slots that count",
        "a void record is in no sum",
        Edit(
            "_exact_guardrails",
            "weights.any(axis=-1)[:, None] & ~np.isnan(values)",
            "(weights.any(axis=-1)[:, None] | True) & ~np.isnan(values)",
        ),
        (
            "oracles/test_loss_sums.py::test_guardrails_of_a_void_record_count_nowhere",
            "releases/test_guardrails.py::"
            "test_records_of_a_person_beyond_their_bound_count_nowhere",
            "service/runtime/test_guardrails_of_service.py::"
            "test_slots_that_are_void_count_in_no_guardrail",
        ),
    ),
    fault(
        "guardrails of a release that are not checked",
        "a release has the noise that its plan demands",
        Edit(
            "misfit_of_parts",
            '(("part_losses", plan.loss_sums), ("guardrails", plan.guardrail_sums))',
            '(("part_losses", plan.loss_sums),)',
        ),
        (
            "releases/test_guardrails.py::test_other_guardrails_than_the_plan_demands_are_refused",
            "service/runtime/test_guardrails_of_service.py::"
            "test_wrong_sums_of_guardrails_are_refused",
        ),
    ),
    fault(
        "guardrails that stay in memory after the release",
        "rows are erased with their release",
        Edit("BatchSlots.forget", "in ROWS", 'in set(ROWS) - {"guardrails"}'),
        "releases/test_guardrails.py::test_guardrails_leave_with_their_release",
    ),
    fault(
        "an alert without its interval",
        "an alert is no chance and no noise",
        Edit("GuardrailLift.alert", "line.difference - line.anytime", "line.difference"),
        "releases/test_guardrails.py::test_an_alert_needs_the_whole_interval",
    ),
    fault(
        "a control by slot where the unit is a user",
        "nobody is in both parts",
        Edit(
            "MemoryStore.in_control", "not None and users is not None", "None and users is not None"
        ),
        "design/test_control.py::test_a_person_is_always_in_the_same_part",
    ),
    fault(
        "a lift interval without privacy noise",
        "intervals cover sampling and privacy noise",
        Edit(
            "PooledSums.half_width",
            "(sampling + noisy) / self._pairs",
            "(sampling + 0.0 * noisy) / self._pairs",
        ),
        (
            "releases/test_lift.py::test_intervals_cover_as_often_as_they_say",
            "releases/test_lift.py::test_the_half_width_for_one_look_is_that_of_the_formula",
        ),
    ),
    fault(
        "looks at people who return that spend α each",
        "the interval for any time holds at all looks together",
        Edit(
            "error_of_release",
            "SPREAD / ((number + SPREAD - 1.0) * (number + SPREAD))",
            "number / number",
        ),
        "releases/test_lift.py::test_looks_at_people_who_return_share_one_error",
    ),
    fault(
        "the variance of a mean that is taken for known",
        "rare losses are not taken for certain ones",
        Edit("largest_variance", "* known / (known + shrink)", "* (known > 0)"),
        "releases/test_lift.py::test_rare_losses_are_not_taken_for_certain_ones",
    ),
    fault(
        "a lift from counts that are within their noise",
        "a lift is told where counts exceed their noise",
        Edit("lift_intervals.py", "ENOUGH = 3.0", "ENOUGH = 0.0"),
        "releases/test_lift.py::test_a_count_within_three_deviations_of_its_noise_tells_nothing",
    ),
    fault(
        "a lift with a floor under the counts",
        "few answers draw no mean toward one half",
        Edit("PooledSums.__init__", "], sums[..., 1]", "], np.maximum(sums[..., 1], slots / 8)"),
        "releases/test_lift.py::test_intervals_hold_where_few_people_answer",
    ),
    fault(
        "a batch that weighs itself",
        "a batch has no say in its own weight",
        Edit("batch_factors", "axis=-2) - part for", "axis=-2) for"),
        "releases/test_lift.py::test_a_batch_has_no_say_in_its_own_factor",
    ),
    fault(
        "people who return taken for new ones",
        "equal losses of one person are covered",
        Edit(
            "_sampling",
            "return np.minimum(disjoint, bound(nested, repeats[:, None]))",
            "return bound(separate, 1.0)",
        ),
        (
            "releases/test_lift.py::test_losses_that_are_alike_within_a_person_are_covered",
            "releases/test_lift.py::test_people_of_a_small_batch_are_few_of_a_large_one",
        ),
    ),
    fault(
        "one part of a batch is not charged",
        "both parts pay for a release",
        Edit("partitions", "for name in PARTS] if control", "for name in PARTS[:1]] if control"),
        "design/test_control.py::test_a_saved_learner_goes_on_with_its_parts",
    ),
    # A control share in a service.
    fault(
        "a control by request instead of slot",
        "positions of the control are a rule of slots and never move",
        Edit(
            "WorkerDecisions._stored",
            "control = self._in_control(owner, place)",
            "control = named is not None and named.name[0] < 77",
        ),
        (
            "service/runtime/test_control_share.py::test_a_request_that_is_sent_again_stays_where_it_was",
            "service/runtime/test_control_share.py::test_slots_of_the_control_play_its_action",
        ),
    ),
    fault(
        "a control by place in the schedule",
        "a burn moves no position of the control",
        Edit(
            "sealed_batch:_control",
            "return control_positions(plan.control, epoch, batch, size)",
            "burned = connection.execute(\"SELECT id FROM batches WHERE state = 'burned'\")\n"
            "        kept = batch - len(burned.fetchall())\n"
            "        return control_positions(plan.control, epoch, kept, size)",
        ),
        "service/runtime/test_control_share.py::test_positions_stay_after_a_restart_a_burn_and_a_restore",
    ),
    fault(
        "a slot of the control in the policy's part of a service",
        "each record is in its part",
        (
            Edit(
                "sealed_batch:_control",
                "return control_positions(plan.control, epoch, batch, size)",
                "return np.zeros(size, dtype=bool)",
            ),
            Edit(
                "sealed_batch:_control",
                "np.isin(np.arange(size), sorted(slots))",
                "np.zeros(size, dtype=bool)",
            ),
        ),
        (
            "service/runtime/test_control_share.py::test_a_fit_reads_each_slot_in_its_part",
            "service/runtime/test_control_share.py::test_a_fit_reads_people_in_their_part",
        ),
    ),
    fault(
        "a person in another part with every request",
        "a person is in the same part of every batch",
        Edit("RequestOwners.owner", "self._vault.control", "__import__('os').urandom(32)"),
        "service/runtime/test_control_share.py::test_people_are_always_in_the_same_part",
    ),
    fault(
        "a service that charges the policy's part alone",
        "both parts pay for a release",
        Edit("paid", ".charge_batch(part, event, control)", ".charge(f'{part}, policy', event)"),
        "service/runtime/test_lift_of_service.py::test_both_parts_pay_once",
    ),
    fault(
        "a lift that reads rows",
        "a lift comes from releases alone",
        Edit(
            "Service.lift",
            "released = self.state.serving.chain.deciding",
            'self.state.writer.run(lambda c: c.execute("SELECT * FROM answers"))\n'
            "        released = self.state.serving.chain.deciding",
        ),
        "service/runtime/test_lift_of_service.py::test_a_lift_is_read_from_releases_alone",
    ),
    fault(
        "sums of the parts that are not checked",
        "a release has the noise that its plan demands",
        Edit("release_transaction:verify", "misfit_of_parts(plan, release))", "None)"),
        "service/runtime/test_lift_of_service.py::test_wrong_sums_of_the_parts_are_refused",
    ),
    fault(
        "a log that is counted as no batch of a person",
        "a person enters M batches, that of a log included",
        Edit(
            "_store_logged",
            "people.record_slots(connection, slots_of_people)",
            "people.record_slots(connection, slots_of_people)\n"
            '    connection.execute("DELETE FROM people")',
        ),
        "service/runtime/test_log_import.py::test_a_person_of_the_log_enters_one_batch_less",
    ),
    fault(
        "a log that is imported again after a restore",
        "each row is fitted once",
        Edit("awaits_log", " UNION SELECT 1 FROM documents WHERE number > 0", ""),
        "service/runtime/test_log_import.py::test_a_log_is_imported_once_and_whole",
    ),
    fault(
        "rows of a log in the control",
        "a log is in neither part",
        Edit("sealed_batch:_control", "if of_log(plan.schedule, epoch, batch):", "if False:"),
        "service/runtime/test_log_import.py::test_a_service_releases_a_log_as_a_learner_does",
    ),
    fault(
        "half the noise of rivals",
        "sums of rivals carry the noise that they declare",
        (
            Edit("noisy_sums", "noisy = gram + law * noise", "noisy = gram + 0.5 * law * noise"),
            Edit("noisy_sums", 'centred + scale["response"]', 'centred + 0.5 * scale["response"]'),
        ),
        "lab/rivals/test_rounds.py::test_a_run_is_the_literal_loop",
        audit=("rival-tree", "black box"),
    ),
    fault(
        "a tree that forgets its levels",
        "a person pays for every node",
        Edit(
            "TreeLinUCB.private_scales",
            "sensitivity * math.sqrt(levels) * noise",
            "sensitivity * noise",
        ),
        "lab/rivals/test_privacy.py::test_a_person_pays_for_every_level_of_the_tree",
        audit=("rival-tree", "exact"),
    ),
    fault(
        "half the noise of a person's report",
        "a report keeps the budget alone",
        Edit("LocalLinUCB.private_scales", "sigma = sensitivity *", "sigma = 0.5 * sensitivity *"),
        "lab/rivals/test_privacy.py::test_every_rival_keeps_its_claim_exactly",
        audit=("rival-local", "exact"),
    ),
    fault(
        "a protected Gram without noise",
        "contexts of AdaPrivate-TS are protected where it says so",
        Edit(
            "AdaPrivateTS.private_scales",
            "Scales.tight(sigma, problem.p, self.shift, ",
            "Scales(0.0, 0.0, sigma, RIDGE, self.shift * noise_norm(sigma, problem.p), ",
        ),
        "lab/rivals/test_privacy.py::"
        "test_a_clear_gram_shows_context_and_action_and_a_protected_one_does_not",
    ),
    fault(
        "crowds that are too small",
        "a report hides in its crowd",
        Edit("sampling", "return share, high", "return share, high // 2"),
        "lab/rivals/test_crowds.py::test_the_threshold_is_the_smallest_that_keeps_the_budget",
        audit=("rival-coded", "exact"),
    ),
    fault(
        "a shuffler that hides more than it can",
        "amplification by shuffling pays for all of δ",
        Edit("local_budget", "math.exp(-low) / 2) * people", "math.exp(-low) / 2)"),
        "lab/rivals/test_crowds.py::test_amplification_is_used_up_and_never_exceeded",
        audit=("rival-shuffled", "exact"),
    ),
    fault(
        "AdaSSP reads its smallest eigenvalue",
        "a ridge that adapts is private too",
        Edit("AdaptiveRidge.fit", "smallest + scale * drawn -", "smallest -"),
        "lab/rivals/test_extensions.py::test_adassp_noises_the_smallest_eigenvalue",
    ),
    fault(
        "an item of one request in the public list",
        "what is offered to whom never leaves its record",
        Edit(
            "OfferedActions._offers",
            "return read_offers(self._plan, available, features[None], actions, single=True)",
            "made = read_offers(self._plan, available, features[None], actions, "
            "single=True)\n"
            "            for name in made.names[made.numbered :]:\n"
            "                available.places.setdefault(name, 0)  # type: "
            "ignore[attr-defined]\n"
            "            return made",
        ),
        "service/runtime/test_offers.py::test_joint_features_of_the_chosen_pair_are_stored_and_released",
    ),
    fault(
        "an offer in a log line",
        "what is offered to whom never leaves its record",
        Edit("OfferedActions.read", "return Offer(", "print(actions)\n        return Offer("),
        "service/runtime/test_offers.py::test_joint_features_of_the_chosen_pair_are_stored_and_released",
    ),
    fault(
        "an offer outside the catalogue accepted",
        "an unknown item is refused, and nothing is stored",
        Edit("offers:_read", ".get(item)", ".get(item, 0)"),
        "service/runtime/test_offers.py::"
        "test_a_bad_offer_is_refused_without_its_values_and_stores_nothing",
    ),
    fault(
        "an error that repeats what was offered",
        "errors never hold a private value",
        Edit("_without_values", "return broken if given else text", "return str(actions)"),
        "service/runtime/test_offers.py::"
        "test_a_bad_offer_is_refused_without_its_values_and_stores_nothing",
    ),
    fault(
        "a change of actions from outside the chain",
        "actions change by documents that follow each other",
        Edit(
            "Chain._next_change",
            "following_change(document, self.changes, self.declared.digest)",
            "ActionChange.from_json(document)",
        ),
        "client/test_chain.py::test_a_broken_chain_is_refused_in_words",
    ),
    fault(
        "a new action in a batch that has no block for it",
        "a batch has the actions of the document that it opened after",
        Edit("available_actions", "enumerate(names[:blocks])", "enumerate(names)"),
        "service/runtime/test_offers.py::TestBothDatabases",
    ),
    # What must be on the disk, and what must be gone.
    fault(
        "an intent that may be lost with the power",
        "the anchor holds a document before it is committed",
        Edit("Anchor.intend", "            os.fsync(file.fileno())\n", ""),
        "service/storage/test_anchor.py::test_an_intent_and_a_confirmation_are_on_the_disk",
    ),
    fault(
        "a confirmation that may be lost with the power",
        "the anchor confirms a document before anybody sees it",
        Edit("Anchor.confirm", "            os.fsync(file.fileno())\n", ""),
        "service/storage/test_anchor.py::test_an_intent_and_a_confirmation_are_on_the_disk",
    ),
    fault(
        "a key of a batch that may be lost with the power",
        "rows that were acknowledged can be read",
        Edit("create_file", "        os.fsync(file.fileno())\n", ""),
        "service/secrets/test_vault_and_ids.py::test_keys_are_on_the_disk_before_they_are_used",
    ),
    fault(
        "a key of a batch without a name on the disk",
        "rows that were acknowledged can be read",
        Edit("create_file", "    _sync(path.parent)\n", ""),
        "service/secrets/test_vault_and_ids.py::test_keys_are_on_the_disk_before_they_are_used",
    ),
    fault(
        "a restore that keeps keys of batches unknown to the backup",
        "no copy of rows that a restore burned can be read",
        Edit("destroy_keys", "if place in over or place[0] < epoch:", "if place in over:"),
        "service/storage/test_anchor.py::test_a_restore_leaves_no_key_of_a_batch_that_it_does_not_know",
    ),
    fault(
        "a restore that keeps keys of names unknown to the backup",
        "names of requests are forgotten with their batch",
        Edit("lifecycle:restore", "vault.destroy(*place, NAMES)", "continue"),
        "service/storage/test_anchor.py::test_a_restore_leaves_no_key_of_a_batch_that_it_does_not_know",
    ),
    fault(
        "a second restore that forgets the first",
        "everybody counts as having entered every lost release",
        Edit("lifecycle:restore", "missed = missed + ?", "missed = ?"),
        "service/storage/test_anchor.py::test_releases_that_two_restores_lost_add_up",
    ),
    # A database that is set back while it is served.
    fault(
        "a worker that does not compare its database with the anchor",
        "a database that was set back is noticed while it is served",
        Edit(
            "WorkerState._viewed", "refuse_set_back(connection, max(heads, default=None))", "pass"
        ),
        "service/runtime/test_set_back.py::test_another_experiment_at_the_same_address_is_refused",
    ),
    fault(
        "a worker that compares with what it saw itself, and not with the anchor",
        "a database that was set back is noticed while it is served",
        Edit(
            "WorkerState._viewed",
            "heads = [(mark.number, mark.digest) for mark in book.confirmed[-1:]]",
            "heads: list[Head] = []",
        ),
        "service/runtime/test_set_back.py::test_what_another_worker_confirmed_is_charged_too",
    ),
    fault(
        "a set back database takes rows until somebody looks",
        "what is acknowledged is not burned",
        (
            Edit("Slots.lease", "        refuse_set_back(connection, self._head())\n", ""),
            Edit("_live", "refuse_set_back(connection, head)", "pass"),
        ),
        "service/runtime/test_set_back.py::test_a_database_that_is_set_back_under_a_worker_is_reported",
    ),
    fault(
        "a ledger of what the database still has",
        "the ledger states what was published",
        Edit(
            "WorkerState.ledger.read",
            "confirmed = self._read_book().confirmed",
            "confirmed: Any = ()",
        ),
        "service/runtime/test_set_back.py::test_a_database_that_is_set_back_under_a_worker_is_reported",
    ),
    fault(
        "a file that is replaced goes on to be written",
        "what is acknowledged is not lost with the process",
        Edit("Sqlite.transaction", "            self.refuse_replaced()\n", ""),
        "service/runtime/test_set_back.py::test_a_file_that_is_replaced_under_the_service",
    ),
    # The process that fits.
    fault(
        "a child that takes experiments of one name for one",
        "rows are read with the vault and from the database of their own experiment",
        Edit(
            "fit_process:_read",
            "@lru_cache(maxsize=HELD)\ndef _read(terms: str)",
            "_NAMED: dict[str, Any] = {}\n\n\n"
            "def _read(terms: str) -> tuple[Settings, Database, Vault, VerifiedChain]:\n"
            "    name = json.loads(terms)['experiment']\n"
            "    if name not in _NAMED:\n"
            "        _NAMED[name] = _made(terms)\n"
            "    return _NAMED[name]  # type: ignore[no-any-return]\n\n\n"
            "def _made(terms: str)",
        ),
        "service/runtime/test_fit_process.py::test_experiments_of_one_name_are_two",
    ),
    fault(
        "a child whose words reach the log",
        "nothing of a fit is told but its release",
        Edit("FitChild._started", "stderr=subprocess.DEVNULL,", "stderr=None,"),
        "service/runtime/test_fit_process.py::test_output_of_a_fit_is_discarded",
    ),
    fault(
        "a fit that hangs is awaited",
        "a release is made, later if it must be",
        Edit("FitChild.request", "                timer.start()\n", ""),
        "service/runtime/test_fit_process.py::test_a_fit_in_time_is_not_ended_and_one_that_is_late_is",
    ),
    # What is told, and to whom.
    fault(
        "activations are counted in public",
        "who answered is protected",
        Edit("logs.py", '", "/v1/observe:batch", "/v1/activate")', '", "/v1/observe:batch")'),
        "service/test_logs.py::test_requests_that_report_losses_are_not_counted",
    ),
    fault(
        "the text of an error in the log of requests",
        "no line of the log can hold what people sent",
        Edit("Endpoint._failure", "kind=safe_name(error)", "kind=str(error)"),
        "service/test_logs.py::test_the_text_of_an_error_is_not_logged",
    ),
    fault(
        "the text of an error in the log of pages",
        "no line of the log can hold what people sent",
        Edit("Page._failure", "kind=safe_name(error)", "kind=str(error)"),
        "service/test_logs.py::test_the_text_of_an_error_is_not_logged",
    ),
    fault(
        "the text of an error in the log of the upkeep",
        "no line of the log can hold what people sent",
        Edit("Upkeep._tried", "kind=safe_name(error)", "kind=str(error)"),
        "service/test_logs.py::test_the_text_of_an_error_is_not_logged",
    ),
    fault(
        "sticky draws in which release and text run into each other",
        "draws of different people and releases are independent",
        Edit("sticky_draw", 'release.to_bytes(8, "big") + sticky', 'f"{release}{sticky}"'),
        "service/runtime/test_sticky.py::test_release_and_text_do_not_run_into_each_other",
    ),
    fault(
        "a key that one experiment accepted opens all of them",
        "a key opens its own experiment",
        (
            Edit("endpoint.py", "MOST_CALLERS = 1000\n", "MOST_CALLERS = 1000\nALL: Any = {}\n"),
            Edit("Endpoint.__init__", "_callers: dict[bytes, api_keys.Key] = {}", "_callers = ALL"),
            Edit("Endpoint._key", "self._keys, self._callers = keys, {}", "self._keys = keys"),
        ),
        "service/http/test_many_experiments.py::"
        "test_a_key_opens_no_other_experiment_and_not_the_server",
    ),
    fault(
        "a JavaScript provider that keeps a person's first decision",
        "after a release a person has the decision of that release, and its outcome is reported",
        Edit(
            "clients/js/openfeature.js",
            "    this.#held.delete(person); // so that it becomes the newest\n",
            '    if (held) return [decision, "SPLIT"];\n',
        ),
        "client/test_vectors.py::test_javascript_agrees",
    ),
    # What several experiments cost together, and what parts of a batch cost a person.
    fault(
        "experiments added at the δ of one of them",
        "a sum holds at its own δ, where another batch may be the dearest",
        Edit("total_document", "compose(*(ledger.bounding_event(", "compose(*(ledger.cost_event("),
        "cli/test_ledger_add.py::test_the_dearest_at_any_delta_counts",
    ),
    fault(
        "a label at the δ of the budget alone",
        "an attacker reads all releases, also where another δ makes another batch the dearest",
        Edit("label_document", "ledger.bounding_event()", "ledger.cost_event()"),
        "cli/test_label_command.py::test_the_attacker_of_a_label_is_that_of_the_dearest_batch",
    ),
    fault(
        "the cheaper of two parts that differ",
        "nobody knows in which part a person is",
        Edit(
            "_batch_charges",
            "[event for some in parts for event in some] for parts in batches.values()",
            "\n"
            "        min(parts, key=lambda some: epsilon(events.compose(*some), 1e-5))\n"
            "        for parts in batches.values()\n"
            "    ",
        ),
        "cli/test_ledger_add.py::test_of_parts_that_differ_the_dearer_counts",
    ),
    # Intervals of a lift, and what is said of them.
    fault(
        "a lift of means over all batches",
        "parts are compared within batches",
        Edit(
            "PooledSums.__init__",
            "excess = excess / pairs[..., None]",
            "excess = np.cumsum(losses, axis=-2) / np.cumsum(counts, axis=-2)",
        ),
        "releases/test_lift.py::test_batches_that_differ_are_compared_each_with_itself",
    ),
    fault(
        "a boundary for one look",
        "the interval for any time holds at all looks together",
        Edit(
            "boundary",
            "(np.log1p(variance / rho2) - 2.0 * math.log(alpha))",
            "-2.0 * math.log(alpha)",
        ),
        "releases/test_lift.py::test_the_boundary_is_that_of_a_normal_mixture",
    ),
    fault(
        "a verdict from the interval for one look",
        "looking every day is no mistake",
        Edit("LiftLine.helps", "self.difference) > self.anytime", "self.difference) > self.fixed"),
        "releases/test_lift.py::test_the_verdict_is_that_of_the_interval_for_any_time",
    ),
    fault(
        "a lift of decisions that claims to know who returns",
        "a result says what it takes for granted",
        Edit("lift_of", "OF_DECISIONS if often is None else OF_PEOPLE", "OF_PEOPLE"),
        "releases/test_lift.py::test_the_result_says_what_it_assumes",
    ),
    fault(
        "a relative lift for one look",
        "per cents claim nothing beyond the verdict",
        Edit("Lift.relative", "outcome.error_of(line.joint)\n", "outcome.error_of(line.fixed)\n"),
        "releases/test_lift.py::test_the_relative_lift_is_no_claim_beyond_the_verdict",
    ),
    fault(
        "a relative lift over a control that is taken for known",
        "the relative interval covers both means",
        Edit(
            "Lift.relative",
            "outcome.error_of(line.joint_control)",
            "outcome.error_of(0.0 * line.joint_control)",
        ),
        "service/dashboard/test_overview.py::test_the_figures_have_units_signs_and_intervals",
    ),
    fault(
        "a pace that is extrapolated after traffic stopped",
        "no time is forecast without traffic",
        Edit("experiment_summary:pace", "silence >= SHORTEST and per", "silence < 0 and per"),
        "service/dashboard/test_overview.py::test_the_pace_ends_with_the_traffic",
    ),
    fault(
        "an effect below its error that is shown",
        "explanations that noise exceeds are not known yet",
        Edit("explorer:explained", "each.error >= abs(each.loss)", "each.error < 0.0"),
        "service/dashboard/test_overview.py::test_an_effect_below_its_error_is_not_known_yet",
    ),
    # Silence, rankings, errors.
    fault(
        "a refusal that tells who is silent",
        "nothing but public counts and clocks moves what others can see",
        Edit(
            "MemoryStore._not_ready",
            "if not self.on_last_answer:  # the same",
            "if not self.on_last_answer and self.batches[0].unobserved:  # the same",
        ),
        "privacy/test_silence.py::test_silence_moves_nothing_where_the_relation_covers_it",
    ),
    fault(
        "a file of releases that calls silence protected where it is not",
        "the relation is true for what triggers releases",
        Edit("_implied", "on_last_answer=early)", "on_last_answer=False)"),
        "privacy/test_silence.py::test_files_and_labels_say_what_the_learner_does",
    ),
    fault(
        "a ranking of a service drawn from the generator of the actions",
        "no offer shifts the draws of later people",
        Edit(
            "OfferedActions.choose",
            "chosen, self._rankings.next_call())[0]",
            "chosen, lambda _, offered: self._draws.random(offered))[0]",
        ),
        "service/runtime/test_offers.py::test_a_ranking_moves_no_draw_of_anybody_else",
    ),
    fault(
        "rankings that are numbered when somebody asks",
        "nobody can tell who else asked for a ranking",
        Edit(
            "RankingDraws.next_call",
            "return partial(self._uniforms, next(self._calls))",
            "return lambda *asked: self._uniforms(next(self._calls), *asked)",
        ),
        "actions/test_offers.py::test_asking_for_a_ranking_changes_no_later_action_or_ranking",
    ),
    fault(
        "one ranking for all requests of a call",
        "each request has draws of its own",
        Edit("RankingDraws._uniforms", "_APART, call, request)", "_APART, call)"),
        "actions/test_offers.py::test_a_ranking_moves_no_draw_of_anybody_else",
    ),
    fault(
        "an unknown action that is quoted",
        "errors never hold a private value",
        Edit("_no_action", "got = repr(value) if public else", "got = repr(value) or"),
        "privacy/test_withheld.py::test_nothing_of_a_log_is_quoted",
    ),
    fault(
        "a key of a context that is quoted",
        "errors never hold a private value",
        Edit("Schema._unknown", '"got {count} of another name', '"got {set(row)} of another name'),
        "privacy/test_withheld.py::test_keys_that_the_schema_does_not_have_are_counted_and_not_named",
    ),
    fault(
        "an item of an offer that is called by its name",
        "errors never hold a private value",
        Edit("_item_of_request", 'name, features, "item of the offer")', "name, features)"),
        "privacy/test_withheld.py::test_nothing_of_an_offer_is_quoted",
    ),
    fault(
        "a kind that tells the length of a text",
        "errors never hold a private value",
        Edit("kind_of", 'return "text" if value', 'return f"text of length {len(value)}" if value'),
        "privacy/test_withheld.py::test_kinds_say_nothing_of_a_value",
    ),
    # What is learned over many releases.
    fault(
        "a matrix that may be any power of two too long",
        "releases can be recomputed from what was published",
        Edit(
            "misfit",
            'holds["statistics.matrix"] = np.array_equal(new.matrix, used)',
            'holds["statistics.matrix"] = np.array_equal(\n'
            "            new.matrix / np.abs(new.matrix).max(), used / np.abs(used).max()\n"
            "        )",
        ),
        "cli/test_release_verify.py::test_only_recomputation_sees_a_forgery_whose_digests_hold",
    ),
    fault(
        "a matrix as long as the rows that it stretches",
        "how rows are stretched follows from earlier releases",
        (
            Edit(
                "PooledStatistics._matrix",
                "return earlier[-1].following",
                "length = np.frexp(np.abs(features[..., 1:]).sum())[1]\n"
                "            return np.ldexp(earlier[-1].following, length)",
            ),
            Edit("pooled_statistics.py", "import math\n", "import math\n\nimport numpy as np\n"),
        ),
        "audit/test_stretched.py::test_no_batch_moves_the_matrix_it_meets",
        ("ridge-stretched", "exact"),
    ),
    fault(
        "at least an eighth of a batch has answered",
        "few answers do not shrink what is predicted",
        Edit(
            "Statistics.observed_count",
            "self.outcome_sums[..., 0]",
            "np.maximum(\n            self.outcome_sums[..., 0], self.records / 8\n        )",
        ),
        "oracles/test_pooled_ridge.py::test_void_slots_count_in_the_weight",
    ),
    fault(
        "a prior from releases of which the newest is private",
        "what a plan begins with is public or private, never exposed",
        Edit("prior_from_released", "item in released.items:", "item in released.items[-1:]:"),
        "simulate/test_warm_start.py::test_one_release_without_protection_is_enough",
    ),
    fault(
        "single precision under a ridge that is nearly nothing",
        "a fit without noise follows the rows and not their rounding",
        Edit("needs_double", "(np.asarray(ridge) < SMALL_RIDGE)", "(np.asarray(ridge) == 0.0)"),
        "simulate/test_precision.py::test_collinear_columns_in_float32",
    ),
    fault(
        "a control beyond the last fitted batch",
        "an evaluation plays what a learner plays",
        Edit("played_control", "if not planned.fitted(last):", "if False:"),
        "simulate/test_evaluate.py::test_an_evaluation_decides_what_a_learner_decides",
    ),
    fault(
        "a stack whose plans have the control of the first",
        "runs of a stack are the runs alone",
        Edit("memory_parts", "plan.control, plan.control and plan.horizon]", "plan.control]"),
        "simulate/test_evaluate.py::test_a_stack_plays_the_control_of_each_evaluation",
    ),
    fault(
        "a size without the matrices",
        "a plan states how large its documents are",
        Edit("plan_size", "= triangles + 2 * weights + matrices", "= 2 * weights + matrices"),
        "plan/test_plan.py::test_a_document_is_about_as_large_as_stated",
    ),
    fault(
        "a claimed learner that another one replaces",
        "no load destroys the only copy of a learner",
        Edit("claim", "if claimed.exists() and source.exists():", "if False:"),
        "batches/test_saved_state.py::test_a_claimed_state_is_not_replaced_by_another",
    ),
    # Operation.
    fault(
        "an anchor that was set back is believed",
        "a database that is set back together with its anchor is noticed",
        Edit("WorkerState._read_book", "if head is not None and not book.holds(*head)", "if False"),
        "service/runtime/test_set_back.py::"
        "test_an_anchor_that_cannot_be_read_or_was_set_back_is_reported",
    ),
    fault(
        "a clock that seals batches of a database that was set back",
        "nothing is written to a database that was set back",
        Edit("Upkeep.seal_by_clock", "is None or state.set_back is not None:", "is None:"),
        "service/runtime/test_set_back.py::test_the_clock_writes_nothing_to_a_database_that_was_set_back",
    ),
    fault(
        "a restore that was cut short taken for a database that was set back",
        "a restore that was cut short is served",
        Edit("WorkerState._viewed", "if not _committed(connection, book.pending):", "if True:"),
        "service/runtime/test_set_back.py::"
        "test_a_restore_that_was_cut_short_is_no_database_that_was_set_back",
    ),
    fault(
        "a fault in the words of the system",
        "no page names a path of the environment",
        Edit("WorkerState._read_book", "self.anchor_fault = safe_name", "self.anchor_fault = str"),
        "service/runtime/test_set_back.py::"
        "test_an_anchor_that_cannot_be_read_or_was_set_back_is_reported",
    ),
    fault(
        "faults on pages that need no key",
        "only who has a key reads what is wrong",
        Edit(
            "PageRequest._values_of_experiment",
            "faults(service.state) if self.may(READERS) else []",
            "faults(service.state)",
        ),
        "service/runtime/test_set_back.py::test_an_operator_reads_what_is_wrong_and_what_to_do",
    ),
    fault(
        "a deadline that ends the next fit",
        "a fit in time is not ended",
        Edit("FitChild.request", "                timer.cancel()\n", ""),
        "service/runtime/test_fit_process.py::test_a_fit_in_time_is_not_ended_and_one_that_is_late_is",
    ),
    fault(
        "a late fit that is called a failure",
        "an operator reads that a fit did not end in time",
        Edit("FitChild._end_late", "            self.late = True\n", ""),
        "service/runtime/test_fit_process.py::test_a_fit_that_hangs_is_ended_and_made_again_and_charged_once",
    ),
    fault(
        "spare connections for every request",
        "beyond the limit of connections only health is told",
        Edit("LimitedHttp.on_headers_complete", "self._spare and self.url.", "False and self.url."),
        "service/http/test_request_limits.py::test_connections_are_limited",
    ),
    fault(
        "spare connections that stay",
        "who watches a busy service takes no connection from others",
        Edit("LimitedHttp.on_headers_complete", "self.cycle.keep_alive = False", "pass"),
        "service/http/test_request_limits.py::test_health_checks_are_answered_beyond_the_limit_of_connections",
    ),
    fault(
        "a lock of an earlier version stays open to others",
        "nobody else can keep a service from its start",
        Edit("locked_file", "os.fchmod(file.fileno(), 0o600)", "pass"),
        "service/secrets/test_vault_and_ids.py::test_no_file_of_a_served_experiment_is_open_to_others",
    ),
    fault(
        "wrong keys without a limit where valid ones have none",
        "keys cannot be guessed at any rate",
        (
            Edit("Access.__init__", ", Refusals(log)", ", Refusals(log, settings.rate_limit > 0)"),
            Edit(
                "Refusals.__init__",
                "def __init__(self, log: Log) -> None:\n"
                "        self._log, self._rate = log, RateLimit(PER_SECOND)",
                "def __init__(self, log: Log, limited: bool = True) -> None:\n"
                "        self._log, self._rate = log, RateLimit(PER_SECOND if limited else 0)",
            ),
        ),
        "service/http/test_http.py::test_a_wrong_key_is_refused",
    ),
    fault(
        "a full disk that asks for a backup",
        "a full disk is no reason to restore a backup",
        Edit("database.py", 'FULL = ("SQLITE_FULL", "ENOSPC"', 'FULL = ("SQLITE_FULL"'),
        "service/test_commands.py::test_a_full_disk_at_a_start_is_reported_without_advice_to_restore",
    ),
    fault(
        "a backup that shows its password",
        "no process shows the password of a database",
        Edit("Postgres.back_up", ", f'\"{schema}\"'", ', f\'"{schema}"\', "--dbname", self._url'),
        "service/test_commands.py::test_a_password_is_no_argument_of_a_backup",
    ),
    fault(
        "a folder that is copied without its keys",
        "a backup of a folder has all that a server needs",
        Edit(
            "experiment_folder:ExperimentFolder.back_up",
            "        back_up(Sqlite(self.path / DATABASE), keys)\n",
            "",
        ),
        "service/test_commands.py::test_a_backup_of_a_folder_has_every_experiment_and_the_keys",
    ),
    fault(
        "Ctrl-C that is kept for good",
        "Ctrl-C ends a campaign wherever it arrives",
        Edit("_uninterrupted", "if received:", "if False:"),
        "lab/campaign/test_workers.py::test_ctrl_c_leaves_no_lock_of_a_future_taken",
    ),
    fault(
        "Ctrl-C at the lock of a future",
        "Ctrl-C ends a campaign wherever it arrives",
        Edit("_report", "with _uninterrupted():\n        future.", "future."),
        "lab/campaign/test_workers.py::test_ctrl_c_leaves_no_lock_of_a_future_taken",
    ),
    fault(
        "a pasted sample in a file",
        "rows that somebody pastes to draft columns are not stored",
        Edit(
            "read_setup",
            "setup.draft()",
            '(hosted.folder.path / "sample.csv").write_text(setup.sample)\n        setup.draft()',
        ),
        "service/dashboard/test_setup.py::test_a_sample_is_used_and_neither_stored_nor_logged",
    ),
    fault(
        "a pasted sample in the log",
        "rows that somebody pastes to draft columns are not logged",
        Edit(
            "read_setup",
            "setup.draft()",
            "print(setup.sample)\n        setup.draft()",
        ),
        "service/dashboard/test_setup.py::test_a_sample_is_used_and_neither_stored_nor_logged",
    ),
    fault(
        "an archived experiment that decides",
        "an archived experiment is read and decides nothing",
        Edit("ServerApp._route", "if archived is not None and not (", "if False and not ("),
        "service/dashboard/test_setup.py::test_duplicate_and_archive",
    ),
    fault(
        "a copy that names the database of the first",
        "a duplicate has the settings of an experiment and none of its places or passwords",
        Edit("HostedExperiments.copied", "if key not in USUAL", "if True"),
        "service/dashboard/test_setup.py::test_duplicate_and_archive",
    ),
    fault(
        "a forecast that reads files of the server",
        "a text that is sent names no file of the server",
        Edit("HostedExperiments.plan_of", "_refuse_places(text)", "pass"),
        "service/dashboard/test_setup.py::test_a_file_on_the_server_is_not_read",
    ),
    fault(
        "a form that drops what it does not show",
        "a form and its file are two views of one thing",
        Edit("experiment_form:_column", "dict(old) if old.get", '{"kind": kind} if old.get'),
        "service/dashboard/test_setup.py::test_a_file_comes_back_from_the_form_byte_by_byte",
    ),
    fault(
        "a viewer who may change an experiment",
        "members have the rights of their role",
        Edit("PageRequest.permit", "if not at_least(role, needed):", "if False:"),
        (
            "service/dashboard/test_members.py::test_a_viewer_changes_nothing_and_an_editor_is_named_in_the_history",
            "service/dashboard/test_members.py::test_each_role_has_its_pages",
        ),
    ),
    fault(
        "a header of single sign-on from any address",
        "only a declared proxy names members",
        Edit("Members.named_by_proxy", "or not self._declared(peer)", ""),
        "service/dashboard/test_members.py::test_the_header_of_anybody_else_is_refused",
    ),
    fault(
        "a proxy that is declared by a forwarded header",
        "only a declared proxy names members",
        Edit("Page._identify", 'request.scope.get("peer")', 'request.scope.get("client")'),
        "service/dashboard/test_members.py::test_the_header_of_anybody_else_is_refused",
    ),
    fault(
        "sessions that survive the rights",
        "sessions end when a member is removed, demoted or has a new passphrase",
        Edit(
            "MemberTables.end_sessions",
            "DELETE FROM sessions WHERE member = ? AND (id = ? OR ? = '')",
            "DELETE FROM sessions WHERE member = ? AND id = ? AND id <> ?",
        ),
        "service/dashboard/test_members.py::test_sessions_end_with_the_rights",
    ),
    fault(
        "wrong passphrases without a limit",
        "passphrases cannot be guessed at any rate",
        Edit("Throttle.wait", "return max(0.0, (", "return 0.0 * max(0.0, ("),
        "service/dashboard/test_members.py::test_wrong_passphrases_are_throttled_by_name_and_address",
    ),
    fault(
        "unknown names that are refused at once",
        "the time of an answer does not tell who is a member",
        Edit("membership:verified", "try:", "if not hash:\n        return False\n    try:"),
        "service/dashboard/test_members.py::test_an_unknown_name_takes_the_same_work",
    ),
    fault(
        "a server without an owner",
        "the last owner cannot be removed or demoted",
        Edit("MemberTables._refuse_last", "if known == {member.id}:", "if False:"),
        (
            "service/dashboard/test_members.py::test_the_last_owner_stays",
            "service/dashboard/test_members.py::test_two_owners_who_demote_each_other_leave_one",
        ),
    ),
    fault(
        "an invitation that works twice",
        "an invitation is used once",
        Edit("MemberTables.withdraw", "WHERE id = ? RETURNING", "WHERE id = ? AND 1 = 0 RETURNING"),
        "service/dashboard/test_members.py::test_an_invitation_works_once",
    ),
    fault(
        "rights that come back with a backup",
        "what was withdrawn after a backup stays withdrawn",
        Edit(
            "MemberTables.record",
            "if all(self._recorded().get(id, 0) >= version for id, version in stored.items()):",
            "if stored:",
        ),
        "service/dashboard/test_members.py::test_a_restored_backup_brings_no_rights_back",
    ),
    fault(
        "an owner of an experiment who takes over an account",
        "an owner of one experiment manages that experiment alone",
        Edit("member_pages:_change", 'what in ("remove", "end", "reset")', 'what == "remove"'),
        "service/dashboard/test_members.py::test_an_owner_of_an_experiment_manages_that_one_alone",
    ),
    fault(
        "a key of an experiment that takes over an account",
        "an owner of one experiment manages that experiment alone",
        Edit(
            "member_pages:_change",
            "member.role if member else NONE",
            "member.role if member else OWNERS",
        ),
        "service/dashboard/test_members.py::test_an_owner_of_an_experiment_manages_that_one_alone",
    ),
    fault(
        "an admin key for editors",
        "keys are the business of owners",
        Edit("server_pages:new", "if not page.may(OWNERS):", "if False:"),
        "service/dashboard/test_members.py::test_only_editors_of_the_server_begin_experiments",
    ),
    fault(
        "a token of a form that another session got",
        "no other site can send a form of a member",
        Edit("Session.issued", "self.token.encode(), token.encode()", "b'', b''"),
        "service/dashboard/test_members.py::test_forms_of_members_need_the_token_of_their_session",
    ),
    fault(
        "a log with names of members",
        "logs contain no personal data",
        Edit("Log.event", '.partition(" ")[0]', ""),
        "service/dashboard/test_members.py::test_logs_have_the_id_and_never_a_passphrase",
    ),
)
