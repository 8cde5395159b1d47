"""Learner: decide, observe, release. Open this file first.

People's data go in through ``decide`` and ``observe``; only what ``release`` makes of a whole
batch comes out, and it is differentially private.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Protocol

import numpy as np

from discreet.actions.available_actions import AvailableActions, available_actions, changed_actions
from discreet.actions.decisions import Decisions
from discreet.actions.offers import ranked, request_offers
from discreet.batches import log_import, observations, saved_state
from discreet.batches.batch_status import LearnerStatus, learner_status
from discreet.batches.memory_store import MemoryStore
from discreet.batches.release_batch import release_batch
from discreet.batches.users import user_id, user_ids
from discreet.errors import BudgetExceeded, InvalidInput, NotReady, PrivateData, StateClaimed
from discreet.features.frames import is_frame, series_like
from discreet.plan.noise_forecast import warn_if_too_noisy
from discreet.plan.plan import Plan
from discreet.policies.allocation import RankingDraws
from discreet.privacy.accounting import epsilon, person_event
from discreet.privacy.budget import ONCE, Budget
from discreet.privacy.ledger import Ledger
from discreet.privacy.noise import Noise, SecureNoise
from discreet.releases.release import Release
from discreet.releases.released import Released
from discreet.text import html_table, listed
from discreet.types import Contexts, NumpyArray, Values


class Draws(Protocol):
    """Source of the uniforms for actions, as ``numpy.random.Generator`` is."""

    def random(self, shape: tuple[int, ...], /) -> NumpyArray: ...


class Learner:
    """A private contextual bandit.

    Losses may come late. While a full batch waits for them the next one opens (``waiting`` is
    "pipeline"), or decisions are served and not stored ("gap"). A batch waits for as many more
    decisions as ``window`` gives, or for a time such as "6h"; losses that did not come are then
    missing. With None it waits until ``close()``. ``clock`` returns seconds. ``noise`` is
    ``SecureNoise()`` unless it is a ``SeededNoise`` for experiments, which protects no one;
    ``draws`` is a NumPy generator for the actions.

    >>> import numpy as np
    >>> from discreet import Budget, UnitBall
    >>> plan = Plan(n_actions=2, features=UnitBall(2), budget=Budget.none(), first_batch=1)
    >>> learner = Learner(plan)
    >>> decision = learner.decide(np.array([0.5, -0.5]))
    >>> decision.id, decision.propensity
    (0, 0.5)
    >>> learner.observe(decision.id, loss=1.0)
    >>> _ = learner.decide(np.zeros(2))
    >>> len(learner.released.items)
    1
    """

    def __init__(
        self,
        plan: Plan,
        *,
        waiting: str = "pipeline",
        window: int | str | None = 1_000,
        noise: Noise | None = None,
        draws: Draws | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        warn_if_too_noisy(plan)
        self.plan = plan
        self._noise: Noise = noise or SecureNoise()
        # Actions may come from an ordinary generator: privacy holds for every fixed draw.
        self._draws = draws or np.random.default_rng()
        self._rankings = RankingDraws(self._draws)
        budget = plan.budget if self._noise.exact else Budget.none()  # seeded noise buys nothing
        claimed = person_event(self._noise.claim(plan.event), plan.participation or ONCE)
        if epsilon(claimed, budget.delta) > budget.epsilon:
            raise BudgetExceeded(
                f"noise must fit the budget of {budget.text}; "
                f"got {self._noise!r}, whose sampler would take more than half of δ. "
                "Use SecureNoise() without fast."
            )
        ledger = plan.empty_ledger(budget, on_last_answer=plan.releases_on_last_answer)
        fit = partial(release_batch, plan, self._noise)
        self._store = MemoryStore(plan, ledger, fit, waiting=waiting, window=window, clock=clock)
        self._custody = saved_state.Custody()
        self._available_before: tuple[object, int, AvailableActions] | None = None

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise PrivateData(
            "Learner must not be pickled or copied; it holds private rows, and two copies would "
            "draw two noises for one batch. Use learner.save(path) and Learner.load(path); "
            "learner.released is public and can be pickled."
        )

    def __repr__(self) -> str:
        facts = "; ".join(f"{name} {value}" for name, value in self._facts)
        return f"Learner({facts})\n{self._status_text}"

    def _repr_html_(self) -> str:
        return html_table("Learner", [*self._facts, ("status", self._status_text)])

    @property
    def _facts(self) -> list[tuple[str, str]]:
        """Public facts alone: nothing about rows, nor about losses that came."""
        plan, protects = self.plan, self.ledger.budget  # seeded noise buys nothing
        return [
            ("plan", plan.digest[:12]),
            ("actions", listed(plan.actions or [str(plan.n_actions)])),
            ("guarantee", protects.text + f" for one {plan.unit}" * protects.private),
            ("releases", f"{len(self.released.items)}"),
        ]

    @property
    def _status_text(self) -> str:
        try:
            return str(self.status())
        except StateClaimed as error:  # saved, or in a forked child: printing must not fail
            return str(error)

    @property
    def released(self) -> Released:
        """Everything that was published so far."""
        return self._store.released

    @property
    def ledger(self) -> Ledger:
        """The charges for all releases so far."""
        return self._store.ledger

    def decide(
        self, contexts: Contexts, *, actions: Values = None, user: Values = None
    ) -> Decisions:
        """Choose an action for one context or for many; each takes a slot of a batch.

        With the unit "user", ``user`` is the id of the person: for many contexts a list, an array
        or a series with one id each, or the name of a frame's column. Beyond the plan's
        ``batches_per_user`` and ``records_per_batch`` a person is served in the same way, and their
        reports are not used; nothing that is returned reveals which decisions these are.

        Batches that are complete are released first, and the newest release decides the whole
        call. Contexts that find no slot (in a "gap", or at the end of the horizon) are decided
        as well, with ``stored`` False and id −1; the result shows how many were stored.

        ``actions`` is what is offered: names or ids, for many contexts one list for all or a list
        of one list each. Where the plan has a ``Catalogue`` a request may bring items of its own,
        {id: features}. Offers and such items are content of the record: they decide, and only the
        features of the chosen pair are stored until the release.

        Raises ``InvalidInput``, before anything is stored, where a context does not fit the plan.
        """
        plan, policy = self.plan, self.plan.played_policy
        single = plan.features.is_single(contexts)
        if user is not None:
            contexts, user = observations.split_user_column(plan.features, contexts, user)
        features, needed = plan.features.map(contexts), plan.participation is not None
        users = user_ids("user", user, len(features), needed=needed, single=single)
        with self._custody:
            offers = request_offers(plan, self._available, features, actions, single=single)
            if plan.imported is not None and self._store.end < plan.imported:
                raise NotReady(
                    f"log must be imported before the first decision; the plan announces "
                    f"{plan.imported:,} rows. Call import_log(contexts, actions, losses)."
                )
            if plan.releases == "automatic":
                self._store.release_ready(coming=len(features))
            self._store.seal_by_clock()  # once: control and slots are of one moment
            released = self._store.released
            u = self._draws.random((len(features), 2))
            chosen, control = offers.sample(policy, released, u), None
            if plan.control is not None:
                control = self._store.in_control(plan.control.share, len(features), users)
                chosen = np.where(control, offers.instead(u), chosen)
            uniforms = self._rankings.next_call()
            rows, blocks = offers.stored(chosen)
            ids = self._store.take(rows, blocks, users or (), control)
        chances = partial(offers.chances, policy, released, control)
        order = partial(ranked, offers, chosen=chosen, uniforms=uniforms)
        names, numbers = offers.named(chosen)
        columns: list[Any] = [ids, names, ids >= 0, numbers]
        if single:
            columns = [values.item() for values in columns]
        elif is_frame(contexts):
            named = zip(("id", "action", "stored", "action_index"), columns, strict=True)
            columns = [series_like(contexts, name, values) for name, values in named]
        slot, action, stored, number = columns
        return Decisions(slot, action, stored, number, chances, chosen, order)

    @property
    def _available(self) -> AvailableActions:
        """The actions that may be offered now."""
        changes, batch = self._store.released.changes, self._store.open_number
        if self._available_before is None or self._available_before[:2] != (changes, batch):
            found = available_actions(self.plan, changes, self._store.released.blocks(batch))
            self._available_before = (changes, batch, found)
        return self._available_before[2]

    @property
    def actions(self) -> Sequence[str | int]:
        """The actions that a request may be offered now."""
        with self._custody:
            return tuple(self._available.places)

    def change_actions(self, *, add: Values = (), remove: Iterable[str] = ()) -> None:
        """Let actions join and leave; the change is a public document among the releases.

        With a ``Catalogue`` ``add`` are items, as for the catalogue, and they join at once. Actions
        with separate blocks join with the next batch: until a release knows them, their prediction
        is the mean over those that it knows. Removed actions are never offered again. Never
        change actions because of what people answered: that would be another release.
        """
        with self._custody:
            store = self._store
            released, after = store.released, store.next_empty
            store.change_actions(changed_actions(self.plan, released, add, remove, after))

    def observe(
        self, id: Values, loss: Values = None, *, reward: Values = None,
        guardrails: Mapping[str, Values] | None = None,
    ) -> None:  # fmt: skip
        """Report the loss of a decision, late and in any order; arrays or series for many.

        ``observe(frame)`` reads the columns "id" and "loss" (or "reward") of a frame, and those of
        guardrails. ``guardrails`` are values of the plan's guardrails by name; one that is left
        out, None or NaN is not observed.

        Where the plan declares ``outcome=Reward(low, high)``, report ``reward=…`` instead. With
        full feedback a decision has a row of A losses or rewards. Reporting the same again changes
        nothing; another loss is refused (``LossConflict``), and the first one counts. Other errors
        are ``DecisionClosed``, ``UnknownDecision`` and ``InvalidInput``; then nothing is stored.
        """
        plan, outcome = self.plan, self.plan.outcome
        one = isinstance(id, (int, np.integer)) and not isinstance(id, bool)
        if one and plan.feedback == "bandit" and plan.guardrails is None and guardrails is None:
            value = outcome.loss_of(outcome.reported(loss, reward))
            with self._custody:
                self._store.observe_one(int(id), value)
            return
        rows = observations.reports(plan, id, loss, reward, guardrails)
        with self._custody:
            self._store.observe(*rows)

    def import_log(
        self, contexts: Contexts, actions: Values, losses: Values = None, *, reward: Values = None,
        user: Values = None, items: Mapping[str, Values] | None = None,
        executor: log_import.Executor | None = None,
    ) -> None:  # fmt: skip
        """Begin with a private log: its rows are released at once, and then forgotten.

        The plan announces their number (``Plan(imported=5_000)``), and nothing else about them is
        public but the releases. The last batch has three quarters of them; the ones
        before it teach the geometry. Each row is in one batch, and costs ε once.

        ``contexts`` may be a frame, and the others series or names of its columns; where the unit
        is a user, ``user`` are ids: at most ``records_per_batch`` rows of a person count, and they
        use one of their batches. A loss is regressed on its context, action by action, so no
        propensities are needed. With full feedback ``actions`` is None and ``losses`` has a column
        per action. With a catalogue, ``items`` are features of actions that are not in it, by id.

        A log that does not fit into memory stays in its Parquet files: ``contexts`` is the path of
        a file or a folder, and the others are names of columns. Workers of ``executor``, such as
        those of a Dask cluster (``client.get_executor()``), then sum up its rows.
        """
        from discreet.data.parquet_log import ParquetLog

        if isinstance(contexts, (str, Path, ParquetLog)):
            if not self._noise.exact:
                raise InvalidInput(
                    f"noise must be SecureNoise() for a log in Parquet files; got {self._noise!r}. "
                    "Pass arrays: seeded noise is for experiments, and adds floats."
                )
            log = contexts if isinstance(contexts, ParquetLog) else ParquetLog.of(contexts)
            columns = log_import.LogColumns.of(self.plan, log, actions, losses, reward)
            with self._custody:
                log_import.release_partitions(self._store, columns, log, executor)
            return
        rows = log_import.logged_rows(self.plan, contexts, actions, losses, reward, user, items)
        with self._custody:
            log_import.release_log(self._store, rows)

    def erase(self, user: str | int) -> None:
        """Forget how often a person took part: from now on they count as used up.

        They are served, and nothing that they report is used. Whether they were here before makes
        no difference. Records that wait in a batch stay there until its release.
        """
        with self._custody:
            if self._store.people is None:
                raise InvalidInput(
                    f"plan must have the unit 'user' to erase a user; got {self.plan.unit!r}. "
                    "Nothing to do: no ids are stored."
                )
            self._store.people.use_up(user_id("user", user))

    def close(self) -> None:
        """Declare the missing losses of the oldest full batch: void, or the plan's
        ``missing_loss``."""
        with self._custody:
            self._store.close()

    def release(self) -> Release:
        """Fit the oldest batch, charge, publish and delete its rows, in one step.

        ``NotReady`` names the reason why it cannot be fitted yet.
        """
        with self._custody:
            return self._store.release()

    def status(self) -> LearnerStatus:
        """Describe batches under way and what happens next; from public counts and clocks alone."""
        with self._custody:
            return learner_status(self._store)

    def save(self, path: str | Path) -> None:
        """Write everything, private rows included, to a new file at ``path`` for its owner alone.

        A file that is there already is refused: it may be the only copy of another learner. This
        learner cannot be used afterwards, since two continuations would draw two noises for
        one batch: load the file to go on. A plan that the file could not restore is refused, and
        this learner stays usable.
        """
        with self._custody:
            self.plan.refuse_unregistered()
            if Plan.from_config(self.plan.to_config()).digest != self.plan.digest:
                raise InvalidInput(
                    "plan must be the same after saving and loading; this plan changes. Use words, "
                    "numbers and arrays as fields of your classes. The learner stays usable."
                )
            header, rows = saved_state.header_of(self._store), saved_state.private_rows(self._store)
            saved_state.write(path, header, rows)
            self._custody.saved = True

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        noise: Noise | None = None,
        draws: Draws | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Learner:
        """Continue from the state at ``path``. It is renamed, then removed: it loads once.

        ``noise``, ``draws`` and ``clock`` are as for a new learner. ``StateClaimed`` means that
        another process took the file.
        """
        with saved_state.claim(path) as (header, rows):
            with saved_state.contents(path):
                config, facts = dict(header["plan"]), header["batches"]
                rules = {"waiting": facts["waiting"], "window": facts["window"]}
            plan = Plan.from_config(config)
            learner = cls(plan, **rules, noise=noise, draws=draws, clock=clock)
            with saved_state.contents(path):
                saved_state.restore(learner._store, header, rows)
        return learner
