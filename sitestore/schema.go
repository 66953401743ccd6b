package sitestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
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

	// A charge has a key until its release is stored. Charges of before have none:
	// binding.old says how many. What coordinators sent as manifests before, one
	// entry for each site and round, no task refers to any more.
	`CREATE TABLE keys (
		release TEXT PRIMARY KEY,
		key     BLOB NOT NULL CHECK (length(key) = 32)
	) STRICT;
	ALTER TABLE outbox ADD COLUMN state BLOB CHECK (length(state) = 32);
	CREATE TABLE history (
		study  TEXT NOT NULL,
		seq    INTEGER NOT NULL,
		record BLOB NOT NULL,
		head   BLOB NOT NULL CHECK (length(head) = 32),
		PRIMARY KEY (study, seq)
	) STRICT, WITHOUT ROWID;
	CREATE TABLE terms (
		study TEXT PRIMARY KEY,
		terms BLOB NOT NULL
	) STRICT;
	CREATE TABLE binding (
		id   INTEGER PRIMARY KEY CHECK (id = 1),
		old  INTEGER NOT NULL,
		site TEXT
	) STRICT;
	CREATE TABLE decisions (
		seq      INTEGER PRIMARY KEY,
		at       TEXT NOT NULL,
		study    TEXT NOT NULL,
		decision TEXT NOT NULL
	) STRICT;
	INSERT INTO binding (id, old) SELECT 1, count(*) FROM ledger;
	DROP TABLE manifest;
	CREATE TRIGGER history_is_final   BEFORE UPDATE ON history   BEGIN SELECT RAISE(ABORT, 'the history is never changed'); END;
	CREATE TRIGGER history_is_kept    BEFORE DELETE ON history   BEGIN SELECT RAISE(ABORT, 'the history is never shortened'); END;
	CREATE TRIGGER terms_are_final    BEFORE UPDATE ON terms     BEGIN SELECT RAISE(ABORT, 'what was agreed to is never changed'); END;
	CREATE TRIGGER terms_are_kept     BEFORE DELETE ON terms     BEGIN SELECT RAISE(ABORT, 'what was agreed to is never removed'); END;
	CREATE TRIGGER decision_is_final  BEFORE UPDATE ON decisions BEGIN SELECT RAISE(ABORT, 'a decision is never changed'); END;
	CREATE TRIGGER decision_is_kept   BEFORE DELETE ON decisions BEGIN SELECT RAISE(ABORT, 'a decision is never removed'); END;
	CREATE TRIGGER key_is_final       BEFORE UPDATE ON keys      BEGIN SELECT RAISE(ABORT, 'a key is never changed'); END;
	CREATE TRIGGER key_goes_with_release BEFORE DELETE ON keys WHEN NOT EXISTS (SELECT 1 FROM outbox WHERE release = OLD.release)
		BEGIN SELECT RAISE(ABORT, 'a key is kept until its release is stored'); END;`,
}

// version returns the version of the store's schema; files that are not site
// stores, and those newer than this program, are errors.
func (s *Store) version() (int, error) {
	var id, version int
	if err := errors.Join(s.db.QueryRow(`PRAGMA application_id`).Scan(&id),
		s.db.QueryRow(`PRAGMA user_version`).Scan(&version)); err != nil {
		return 0, err
	}
	switch {
	case id != applicationID:
		return 0, errors.New("this is not a Parley site store")
	case version < 1:
		return 0, fmt.Errorf("the store is damaged: its schema version is %d", version)
	case version > len(migrations):
		return 0, fmt.Errorf("the store has schema version %d, this program knows versions up to %d: use a newer "+
			"parley", version, len(migrations))
	}
	return version, nil
}

// migrate brings the store to a version of the schema.
func (s *Store) migrate(to int) error {
	return s.update("bringing the schema up to date", func(tx statements) error {
		var version int
		if err := tx.on.QueryRow(`PRAGMA user_version`).Scan(&version); err != nil {
			return err
		}
		if version >= to { // opening writes nothing, so that a full disk does not stop it
			return nil
		}
		for v := version; v < to; v++ {
			if _, err := tx.on.Exec(migrations[v]); err != nil {
				return err
			}
		}
		// PRAGMA takes no parameters; both values are ours.
		_, err := tx.on.Exec(fmt.Sprintf(`PRAGMA application_id = %d; PRAGMA user_version = %d`, applicationID, to))
		return err
	})
}

// checkSchema notices what is not as the migrations made it: a trigger that
// was dropped, say, so that lines can be changed.
func (s *Store) checkSchema() error {
	got, err := s.schema()
	if err != nil {
		return err
	}
	want, err := freshSchema()
	if err != nil {
		return err
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			return fmt.Errorf("the store has been changed by something else: its %s %s is missing, or is not as it "+
				"was made", w.kind, w.name)
		}
	}
	for _, g := range got {
		if !slices.Contains(want, g) {
			return fmt.Errorf("the store has been changed by something else: it has a %s %s", g.kind, g.name)
		}
	}
	return nil
}

// freshSchema is that of a store to which nothing has happened.
var freshSchema = sync.OnceValues(func() ([]schemaPart, error) {
	fresh, err := connect(":memory:", "")
	if err != nil {
		return nil, err
	}
	defer fresh.Close()
	if err := fresh.migrate(len(migrations)); err != nil {
		return nil, err
	}
	return fresh.schema()
})

type schemaPart struct{ kind, name, text string }

func (s *Store) schema() (parts []schemaPart, err error) {
	rows, err := s.db.Query(`SELECT type, name, coalesce(sql, '') FROM sqlite_schema`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var p schemaPart
		if err := rows.Scan(&p.kind, &p.name, &p.text); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, rows.Err()
}

// create makes an empty store at path if there is no file. The file gets its
// name only when it is complete and durable: so one that stands there and is
// empty has lost what it held, and is never taken for a new one.
func create(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, suffix := range []string{"-wal", "-journal"} {
		if _, err := os.Lstat(path + suffix); err == nil {
			return fmt.Errorf("the store is missing, but %s is there: bring the store back from where it was moved",
				filepath.Base(path+suffix))
		}
	}
	dir := filepath.Dir(path)
	made, err := makeFolders(dir)
	if err != nil {
		return fmt.Errorf("creating its folder: %w", err)
	}
	f, err := os.CreateTemp(dir, prefix(path)+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := f.Close(); err != nil {
		return err
	}
	s, err := connect(f.Name(), "")
	if err != nil {
		return err
	}
	if err := errors.Join(s.migrate(len(migrations)), s.Close()); err != nil {
		return err
	}
	// Unlike a renaming, a link cannot replace the store of a process that was quicker.
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolders(dir, made)
}

func prefix(path string) string { return "." + filepath.Base(path) + "-" }

// sweep removes what crashes left of stores that were being created. The
// caller holds the store at path, so nobody needs them.
func sweep(path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix(path)) {
			err := os.Remove(filepath.Join(filepath.Dir(path), e.Name()))
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // its maker may remove it too
				return err
			}
		}
	}
	return nil
}

// makeFolders is os.MkdirAll; it returns how many folders it made, from dir upwards.
func makeFolders(dir string) (made int, err error) {
	for d := dir; d != filepath.Dir(d); d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		made++
	}
	return made, os.MkdirAll(dir, 0o700)
}

// syncFolders makes the entries in dir durable, and those of the folders above
// it that were made for it.
func syncFolders(dir string, made int) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be synced there
	}
	for range made + 1 {
		d, err := os.Open(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return fmt.Errorf("syncing the folder: %w", err)
		}
		dir = filepath.Dir(dir)
	}
	return nil
}

// Copy writes the store at path, as it is at one moment, to a file that must be
// new, beside the process that writes to it. Whoever brings the copy back later
// brings an older ledger back: see Receipts in package host.
func Copy(path, to string) error {
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fmt.Errorf("copying the site store to %s: %w", to, fs.ErrExist))
	}
	s, err := reading(path)
	if err != nil {
		return fmt.Errorf("copying the site store %s: %w", path, err)
	}
	// VACUUM is not possible within a transaction; it makes one of its own.
	_, err = s.db.Exec(`COMMIT`)
	if err == nil {
		_, err = s.db.Exec(`VACUUM INTO ?`, to)
	}
	if err == nil {
		err = os.Chmod(to, 0o600)
	}
	if err = errors.Join(err, s.Close()); err != nil {
		return fmt.Errorf("copying the site store %s: %w", path, err)
	}
	return Look(to, func(*Store) error { return nil }) // which verifies it
}
