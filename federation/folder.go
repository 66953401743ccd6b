// Package federation is what a coordinator and the sites say to each other
// outside of studies: the [Invitation] by which a site joins, the [Certificate]
// by which it is known from then on, the [Board] on which the coordinator posts
// the studies that wait for a site, and the [Hello] in which a site says where it
// stands with each of them. All of them are values of a [wire.Wire], in the bucket
// [Control]; whoever keeps the values can neither read nor change them unnoticed.
//
// [Folder] is what the folders of both ends have in common: files of JSON, the studies whose plans are kept, locks
// against other processes, and the audit log.
package federation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"parley/engine/wire"
	"parley/internal/files"
	"parley/internal/version"
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

// Kept reads what WriteJSON wrote; nil if there is no such file.
func Kept[T any](f *Folder, name ...string) (*T, error) {
	v := new(T)
	err := f.ReadJSON(filepath.Join(name...), v)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return v, err
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
		return nil, problem.Problem{File: f.Path, What: "another process serves this folder",
			Hint: "see what it does with: " + command + " " + f.Path}
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
	var found, names, meant []string
	for _, d := range list {
		p, err := f.Plan(d)
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
		return "", fmt.Errorf("several studies are called %s\n  hint: name one by the first digits of its digest: %s",
			name, problem.Names(meant))
	case len(names) == 0:
		return "", fmt.Errorf("there is no study %s, and no other", name)
	}
	return "", fmt.Errorf("there is no study %s\n  hint: there is %s", name, problem.Names(names))
}

// protocol is the version of everything that passes between a coordinator and a
// site. Both ends must have the same one.
const protocol = 4

// Control is the bucket of what does not belong to a study.
const Control = "control"

// Program is what one end says of itself.
type Program struct {
	Version  string         `cbor:"version" json:"version"`   // with the commit that it was built from
	Protocol int            `cbor:"protocol" json:"protocol"` // see protocol
	Platform string         `cbor:"platform" json:"platform"` // operating system and architecture
	Methods  map[string]int `cbor:"methods" json:"methods"`   // revisions
}

// LocalProgram is this program.
func LocalProgram(methods method.Registry) Program {
	p := Program{Version: version.String(), Protocol: protocol, Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Methods: map[string]int{}}
	for _, m := range methods {
		p.Methods[m.Name()] = m.Revision()
	}
	return p
}

// guestName is the name under which somebody with an invitation writes.
func guestName(id string) string { return "guest_" + id }

// BoardKey, HelloKey, RequestKey and GrantKey name values of the bucket Control.
func BoardKey(site string) string { return wire.TaskKey(Control, site) }
func HelloKey(site string) string { return wire.AnswerKey(Control, site) }
func RequestKey(id string) string { return HelloKey(guestName(id)) }
func GrantKey(id string) string   { return BoardKey(guestName(id)) }

// Put makes a value that of a key, whatever stands there.
func Put(ctx context.Context, w wire.Wire, key string, value []byte) error {
	_, err := Replace(ctx, w, key, value, new(uint64))
	return err
}

// Replace is Put for who has put the key's value before, with its revision in last; 0 if that is not known. It looks
// at what stands there only if that is another value, and says whether it was in place of the one that was known.
func Replace(ctx context.Context, w wire.Wire, key string, value []byte, last *uint64) (other bool, err error) {
	for known := *last > 0; ; known = false {
		revision, err := w.Put(ctx, key, value, *last)
		if err == nil {
			*last = revision
		}
		if !errors.Is(err, wire.ErrMoved) {
			return other, err
		}
		other = other || known
		if _, *last, err = w.Get(ctx, key); err != nil {
			return other, err
		}
	}
}

// Quiet limits what another's malice can write to a log: the same line once a
// minute, and of different ones some at once and then one in ten seconds. The zero
// Quiet is ready.
type Quiet struct {
	mu     sync.Mutex
	told   map[string]time.Time // when a line was last written
	room   float64              // lines that may be written now
	at     time.Time            // when room was counted
	passed int                  // lines that were not written
}

const (
	quietAtOnce = 30
	quietEvery  = 10 * time.Second
	quietSame   = time.Minute
)

// Line returns the line as it is to be written now, if it is.
func (q *Quiet) Line(text string, now time.Time) (line string, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	text = wire.Words(text)
	if q.told == nil {
		q.told, q.room, q.at = map[string]time.Time{}, quietAtOnce, now
	}
	q.room = min(quietAtOnce, q.room+float64(now.Sub(q.at))/float64(quietEvery))
	q.at = now
	if last, told := q.told[text]; told && now.Sub(last) < quietSame || q.room < 1 {
		q.passed++
		return "", false
	}
	q.room--
	if len(q.told) >= 100 {
		clear(q.told)
	}
	q.told[text] = now
	line = text
	if q.passed > 0 {
		line = fmt.Sprintf("%s (and %d times something of the kind before)", text, q.passed)
		q.passed = 0
	}
	return line, true
}

// Once logs what goes wrong when it begins to, and that it goes well again: a full disk
// fails every attempt, and is said once. The zero Once is ready.
type Once struct {
	mu     sync.Mutex
	failed map[string]string // by what was attempted
}

// Say takes in how an attempt has ended.
func (o *Once) Say(log *slog.Logger, what string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before, failed := o.failed[what]
	switch {
	case err == nil && failed:
		delete(o.failed, what)
		log.Info(what + " succeeds again")
	case err != nil && err.Error() != before:
		if o.failed == nil {
			o.failed = map[string]string{}
		}
		o.failed[what] = err.Error()
		log.Error(what + " fails, and is tried again: " + err.Error())
	}
}
