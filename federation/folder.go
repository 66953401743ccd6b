package federation

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parley/internal/files"
	"parley/method"
	"parley/problem"
	"parley/study"
)

// Folder is a folder, which commands and a daemon share.
type Folder struct {
	Path    string
	Methods method.Registry
	Audit   *Log
}

// PlanFile is the name of an encoded plan in the folder of its study.
const PlanFile = "plan.cbor"

// File is the path of a file in the folder.
func (f *Folder) File(name ...string) string {
	return filepath.Join(append([]string{f.Path}, name...)...)
}

// WriteJSON writes a file that its owner alone can read, unless it holds that already.
func (f *Folder) WriteJSON(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if old, err := os.ReadFile(f.File(name)); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return files.WriteOwn(f.File(name), data)
}

// ReadJSON reads what WriteJSON wrote. The error wraps [fs.ErrNotExist] if there is no
// such file.
func (f *Folder) ReadJSON(name string, v any) error {
	data, err := os.ReadFile(f.File(name))
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", f.File(name), err)
	}
	return nil
}

// Alone runs do while no other process changes the folder. It waits five seconds.
func (f *Folder) Alone(do func() error) (err error) {
	lock, err := acquire(f.File("lock"), 5*time.Second)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	return do()
}

const serveLock = "serve.lock"

// Hold keeps other daemons out of the folder. command is the one that says what the
// daemon that has it does.
func (f *Folder) Hold(command string) (*files.Lock, error) {
	lock, err := acquire(f.File(serveLock), time.Second) // Served may hold it for a moment
	if errors.Is(err, files.ErrHeld) {
		return nil, problem.Problem{File: f.Path, What: "another process serves this folder", Hint: "see what it does with: " + command + " " + f.Path}
	}
	return lock, err
}

// Served says whether a daemon serves the folder.
func (f *Folder) Served() bool {
	lock, err := files.Acquire(f.File(serveLock))
	if err != nil {
		return errors.Is(err, files.ErrHeld)
	}
	lock.Release()
	return false
}

// acquire waits for a lock for a while.
func acquire(path string, patience time.Duration) (*files.Lock, error) {
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		lock, err := files.Acquire(path)
		if !errors.Is(err, files.ErrHeld) || time.Now().After(deadline) {
			return lock, err
		}
	}
}

// StudyPath is the folder of a study.
func (f *Folder) StudyPath(digest string) string { return f.File("studies", digest) }

// ResultsPath is where the results of a study are: in results/NAME-DIGEST, as those of
// parley run.
func (f *Folder) ResultsPath(p *study.Plan) (string, error) {
	d, err := p.Digest()
	return f.File("results", p.Name+"-"+d.Short()), err
}

// Studies lists the digests of the studies whose plans are here, in their order.
func (f *Folder) Studies() (list []string, err error) {
	entries, err := os.ReadDir(f.File("studies"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(f.StudyPath(e.Name()), PlanFile)); err == nil {
			list = append(list, e.Name())
		}
	}
	return list, err
}

// Plan reads the plan of a study.
func (f *Folder) Plan(digest string) (*study.Plan, error) {
	data, err := os.ReadFile(filepath.Join(f.StudyPath(digest), PlanFile))
	if err != nil {
		return nil, err
	}
	p, err := study.Decode(data, f.Methods)
	if own := study.Digest(sha256.Sum256(data)); err == nil && own.String() != digest {
		err = errors.New("it is damaged: it has another digest")
	}
	if err != nil {
		return nil, fmt.Errorf("the plan of study %.12s: %w", digest, err)
	}
	return p, nil
}

// Find returns the study that a person means: by the name of its plan, or by at least
// six digits of its digest.
func (f *Folder) Find(name string) (string, error) {
	list, err := f.Studies()
	if err != nil {
		return "", err
	}
	return find(name, list, f.Plan)
}

// find returns which of the studies with these digests a person means: by the
// name of its plan, or by at least six digits of its digest.
func find(name string, digests []string, plan func(digest string) (*study.Plan, error)) (string, error) {
	var found, names, meant []string
	for _, d := range digests {
		p, err := plan(d)
		if err != nil { // one that cannot be read hides no other
			if len(name) >= 6 && strings.HasPrefix(d, name) {
				return "", err
			}
			continue
		}
		names = append(names, fmt.Sprintf("%s (%.12s)", p.Name, d))
		if p.Name == name || len(name) >= 6 && strings.HasPrefix(d, name) {
			found, meant = append(found, d), append(meant, names[len(names)-1])
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", fmt.Errorf("several studies are called %s\n  hint: name one by the first digits of its digest: %s", name, problem.Names(meant))
	case len(names) == 0:
		return "", fmt.Errorf("there is no study %s, and no other", name)
	}
	return "", fmt.Errorf("there is no study %s\n  hint: there is %s", name, problem.Names(names))
}
