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
}

func (s *Store) migrate() error {
	var id, version, tables int
	for _, q := range []struct {
		query string
		into  *int
	}{{`PRAGMA application_id`, &id}, {`PRAGMA user_version`, &version}, {`SELECT count(*) FROM sqlite_schema`, &tables}} {
		if err := s.db.QueryRow(q.query).Scan(q.into); err != nil {
			return err
		}
	}
	if id != applicationID && (id != 0 || version != 0 || tables != 0) {
		return errors.New("this is not a Parley site store")
	}
	if version < 0 {
		return fmt.Errorf("the store is damaged: its schema version is %d", version)
	}
	if version > len(migrations) {
		return fmt.Errorf("the store has schema version %d, this program knows versions up to %d: use a newer parley", version, len(migrations))
	}
	// Only now, because it writes to the file.
	if _, err := s.db.Exec(`PRAGMA journal_mode = WAL`); err != nil {
		return err
	}
	return s.update("bringing the schema up to date", func(tx *sql.Tx) error {
		for v := version; v < len(migrations); v++ {
			if _, err := tx.Exec(migrations[v]); err != nil {
				return err
			}
		}
		// PRAGMA takes no parameters; both values are ours.
		_, err := tx.Exec(fmt.Sprintf(`PRAGMA application_id = %d; PRAGMA user_version = %d`, applicationID, len(migrations)))
		return err
	})
}
