-- Tables of an experiment, and of the members of a server, for SQLite and PostgreSQL. For
-- PostgreSQL, "WITHOUT ROWID" is left out. Only records, answers, replies, names, handed and people
-- hold rows of people.

-- One row: what never changes (the plan with its unit, as JSON), what may change while the service
-- runs, the latest moment that was seen, and when a backup was restored. Releases that backups
-- lacked are counted as missed: any person may have been in each of them.
CREATE TABLE experiment (
    one BIGINT PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL, plan TEXT NOT NULL,
    epoch BIGINT NOT NULL, mode TEXT NOT NULL, serving BIGINT, clock DOUBLE PRECISION NOT NULL,
    restored DOUBLE PRECISION, missed BIGINT NOT NULL);

-- The column "ended" is set while the names of its requests are remembered.
CREATE TABLE batches (
    epoch BIGINT NOT NULL, id BIGINT NOT NULL, size BIGINT NOT NULL, taken BIGINT NOT NULL,
    state TEXT NOT NULL, release BIGINT NOT NULL, opened DOUBLE PRECISION NOT NULL,
    sealed DOUBLE PRECISION, closes DOUBLE PRECISION, due DOUBLE PRECISION, ended DOUBLE PRECISION,
    PRIMARY KEY (epoch, id));

-- Leases that assigned slots: only their decision ids can bring content.
CREATE TABLE leases (
    nonce BYTEA PRIMARY KEY, epoch BIGINT NOT NULL, batch BIGINT NOT NULL) WITHOUT ROWID;
CREATE INDEX leases_by_batch ON leases (epoch, batch);

-- Slots that a process leased and gave back.
CREATE TABLE returned (
    epoch BIGINT NOT NULL, batch BIGINT NOT NULL, slot BIGINT NOT NULL,
    PRIMARY KEY (epoch, batch, slot)) WITHOUT ROWID;

CREATE TABLE records (
    epoch BIGINT NOT NULL, batch BIGINT NOT NULL, slot BIGINT NOT NULL, payload BYTEA NOT NULL,
    PRIMARY KEY (epoch, batch, slot)) WITHOUT ROWID;

-- The first answer of a kind stays: an insert that conflicts changes nothing.
CREATE TABLE answers (
    epoch BIGINT NOT NULL, batch BIGINT NOT NULL, slot BIGINT NOT NULL, kind BIGINT NOT NULL,
    payload BYTEA NOT NULL, PRIMARY KEY (epoch, batch, slot, kind)) WITHOUT ROWID;

CREATE TABLE replies (
    name BYTEA PRIMARY KEY, epoch BIGINT NOT NULL, batch BIGINT NOT NULL, slot BIGINT NOT NULL,
    payload BYTEA NOT NULL, later BYTEA NOT NULL) WITHOUT ROWID;
CREATE INDEX replies_by_batch ON replies (epoch, batch, slot);

-- The column "later" of the replies of a batch that is over, until it is forgotten.
CREATE TABLE names (
    epoch BIGINT NOT NULL, batch BIGINT NOT NULL, name BYTEA NOT NULL,
    PRIMARY KEY (epoch, batch, name)) WITHOUT ROWID;

-- Counts of the slots of people, and which slots of batches under way count, or are in the control.
CREATE TABLE people (
    person BYTEA PRIMARY KEY, entered BIGINT NOT NULL, last BIGINT NOT NULL,
    records BIGINT NOT NULL) WITHOUT ROWID;
CREATE TABLE handed (
    epoch BIGINT NOT NULL, batch BIGINT NOT NULL, slot BIGINT NOT NULL, counts BIGINT NOT NULL,
    control BIGINT NOT NULL, PRIMARY KEY (epoch, batch, slot)) WITHOUT ROWID;

-- A batch is released once: this key, not a lock, is the guarantee.
CREATE TABLE documents (
    number BIGINT PRIMARY KEY, kind TEXT NOT NULL, epoch BIGINT NOT NULL, batch BIGINT,
    digest TEXT NOT NULL, body BYTEA NOT NULL, UNIQUE (epoch, batch));
CREATE TABLE charges (number BIGINT PRIMARY KEY, entry TEXT NOT NULL);

CREATE TABLE keys (
    id TEXT PRIMARY KEY, hash TEXT NOT NULL, scopes TEXT NOT NULL, label TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL, revoked DOUBLE PRECISION, ended DOUBLE PRECISION,
    expires DOUBLE PRECISION, rate BIGINT, used DOUBLE PRECISION);
CREATE TABLE changes (
    at DOUBLE PRECISION NOT NULL, what TEXT NOT NULL, who TEXT NOT NULL, document BIGINT,
    details TEXT NOT NULL);
CREATE TABLE traffic (
    hour BIGINT PRIMARY KEY, decisions BIGINT NOT NULL, latest DOUBLE PRECISION);

-- The role for the whole server has an empty experiment. The versions of members count changes, so
-- that a restored backup is noticed. [member_tables.py]
CREATE TABLE members (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, login TEXT NOT NULL UNIQUE, email TEXT UNIQUE,
    hash TEXT NOT NULL, created DOUBLE PRECISION NOT NULL);
CREATE TABLE grants (
    member TEXT NOT NULL, experiment TEXT NOT NULL, role TEXT NOT NULL,
    PRIMARY KEY (member, experiment));
CREATE TABLE invitations (
    id TEXT PRIMARY KEY, role TEXT NOT NULL, experiment TEXT NOT NULL, member TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL, expires DOUBLE PRECISION NOT NULL);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, member TEXT NOT NULL, began DOUBLE PRECISION NOT NULL, way TEXT NOT NULL);
CREATE TABLE member_versions (id TEXT PRIMARY KEY, version BIGINT NOT NULL)
