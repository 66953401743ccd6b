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
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"parley/engine/wire"
	"parley/internal/version"
	"parley/method"
)

// protocol is the version of everything that passes between a coordinator and a
// site. Both ends must have the same one.
const protocol = 2

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
	p := Program{Version: version.String(), Protocol: protocol, Platform: runtime.GOOS + "/" + runtime.GOARCH, Methods: map[string]int{}}
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
	for {
		_, revision, err := w.Get(ctx, key)
		if err != nil {
			return err
		}
		if _, err = w.Put(ctx, key, value, revision); !errors.Is(err, wire.ErrMoved) {
			return err
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
	text = Printable(text)
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
