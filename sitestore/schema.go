package sitestore

import (
	"database/sql"
	"errors"
	"fmt"
)

// applicationID marks the file as a Parley site store ("Prly"), so that some
// other SQLite file is never taken for one.
const applicationID = 0x50726c79

// migrations bring a store from schema version i to i+1. They are only ever
// appended to: a store written by any earlier version must open.
var migrations = []string{
	`CREATE TABLE ledger (
		seq      INTEGER PRIMARY KEY,
		release  TEXT NOT NULL,
		study    TEXT NOT NULL,
		task     BLOB NOT NULL CHECK (length(task) = 32),
		request  BLOB NOT NULL,
		previous BLOB,
		hash     BLOB NOT NULL CHECK (length(hash) = 32)
	) STRICT;
	CREATE INDEX ledger_release ON ledger (release);
	CREATE TABLE outbox (
		release TEXT PRIMARY KEY,
		study   TEXT NOT NULL,
		sealed  BLOB NOT NULL
	) STRICT;
	CREATE TABLE state (
		study TEXT PRIMARY KEY,
		state BLOB
	) STRICT;
	CREATE TABLE manifest (
		study TEXT NOT NULL,
		seq   INTEGER NOT NULL,
		entry BLOB NOT NULL,
		PRIMARY KEY (study, seq)
	) STRICT, WITHOUT ROWID;
	CREATE TRIGGER ledger_is_final   BEFORE UPDATE ON ledger   BEGIN SELECT RAISE(ABORT, 'the ledger is never changed'); END;
	CREATE TRIGGER ledger_is_kept    BEFORE DELETE ON ledger   BEGIN SELECT RAISE(ABORT, 'the ledger is never shortened'); END;
	CREATE TRIGGER outbox_is_final   BEFORE UPDATE ON outbox   BEGIN SELECT RAISE(ABORT, 'a release is never changed'); END;
	CREATE TRIGGER outbox_is_kept    BEFORE DELETE ON outbox   BEGIN SELECT RAISE(ABORT, 'a release is never removed'); END;
	CREATE TRIGGER manifest_is_final BEFORE UPDATE ON manifest BEGIN SELECT RAISE(ABORT, 'the manifest is never changed'); END;
	CREATE TRIGGER manifest_is_kept  BEFORE DELETE ON manifest BEGIN SELECT RAISE(ABORT, 'the manifest is never shortened'); END;`,
	`ALTER TABLE outbox ADD COLUMN digest BLOB CHECK (length(digest) = 32);`,
}

// recognise refuses files that are not site stores, or newer than this program.
func (s *Store) recognise() error {
	var id, version int
	if err := errors.Join(s.db.QueryRow(`PRAGMA application_id`).Scan(&id), s.db.QueryRow(`PRAGMA user_version`).Scan(&version)); err != nil {
		return err
	}
	switch {
	case id != applicationID:
		return errors.New("this is not a Parley site store")
	case version < 1:
		return fmt.Errorf("the store is damaged: its schema version is %d", version)
	case version > len(migrations):
		return fmt.Errorf("the store has schema version %d, this program knows versions up to %d: use a newer parley", version, len(migrations))
	}
	return nil
}

// migrate brings the store to a version of the schema.
func (s *Store) migrate(to int) error {
	return s.update("bringing the schema up to date", func(tx *sql.Tx) error {
		var version int
		if err := tx.QueryRow(`PRAGMA user_version`).Scan(&version); err != nil {
			return err
		}
		for v := version; v < to; v++ {
			if _, err := tx.Exec(migrations[v]); err != nil {
				return err
			}
		}
		// PRAGMA takes no parameters; both values are ours.
		_, err := tx.Exec(fmt.Sprintf(`PRAGMA application_id = %d; PRAGMA user_version = %d`, applicationID, max(version, to)))
		return err
	})
}
