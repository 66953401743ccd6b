// Package nats keeps the values of [wire.Wire] in NATS JetStream: in a server
// within this program, or in a cluster that somebody runs already.
//
// JetStream is used as a table and not as a queue: one stream for each study, one
// message for each key, replaced by compare-and-set. There are no consumers,
// acknowledgements by readers, or windows against duplicates, because whoever
// reads knows by the content what is new. Who has put a value publishes a wake
// beside it, of its revision and sometimes the value itself, so that a waiting
// reader has it at once. It is a hint: readers look from time to time without it.
//
// An end connects with a key that signs whatever a broker asks, and with a token
// (JWT) from an [Authority] that says which keys it may read and write. It sees no
// other end's values, although these are sealed and signed anyway.
package nats

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	encoding "parley/internal/wire"
)

// MaxValue is the largest value, in bytes. A server that allows only small
// messages carries less: 16 of its messages.
const MaxValue = encoding.MaxValue

const (
	maxMessage = 4 << 20               // bytes of a value in one message
	maxParts   = MaxValue / maxMessage // messages of a value that is longer
	room       = 1024                  // for headers, which count as payload
	maxAnswer  = 16 << 20              // bytes of a value of a site or guest, whose token names each message
)

// errRefused means that the token does not allow what was tried.
var errRefused = errors.New("the broker refuses it")

// control is the bucket beside those of studies.
const control = "control"

var (
	siteName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)
	guestID  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)
	token    = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
	digest   = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

const (
	coordinator = "coordinator"
	guest       = "guest_"
)

// place is where a value is.
type place struct {
	bucket string
	rest   string // of the key
}

func (p place) stream() string  { return "KV_" + p.bucket }
func (p place) subject() string { return "$KV." + p.bucket + "." + p.rest }
func (p place) wake() string    { return "w." + p.bucket + "." + p.rest }
func (p place) get() string     { return "$JS.API.DIRECT.GET." + p.stream() + "." + p.subject() }
func (p place) part(i int) place {
	return place{p.bucket, fmt.Sprintf("%s.%d", p.rest, i)}
}

// locate reads a key.
func locate(key string) (place, error) {
	first, rest, _ := strings.Cut(key, ".")
	for t := range strings.SplitSeq(first+"."+rest, ".") {
		if !token.MatchString(t) {
			return place{}, fmt.Errorf("%.100q names no value\n  hint: BUCKET.DIRECTION.NAME, of letters, digits, - "+
				"and _", key)
		}
	}
	return place{bucketOf(first), rest}, nil
}

// bucketOf shortens a study's digest: 64 bits are enough to keep studies of one
// coordinator apart, and the name is part of every message.
func bucketOf(name string) string {
	if digest.MatchString(name) {
		return "s" + name[:16]
	}
	return name
}
