// Package federation is what a coordinator and the sites say to each other
// outside of studies: the [Invitation] by which a site joins, the [Certificate]
// by which it is known from then on, the [Board] on which the coordinator posts
// the studies that wait for a site, and the [Hello] in which a site says where it
// stands with each of them. All of them are values of a [wire.Wire], in the bucket
// [Control]; whoever keeps the values can neither read nor change them unnoticed.
package federation

import (
	"context"
	"errors"
	"runtime"

	"parley/engine/wire"
	"parley/internal/version"
	"parley/method"
)

// protocol is the version of everything that passes between a coordinator and a
// site. Both ends must have the same one.
const protocol = 1

// Control is the bucket of what does not belong to a study.
const Control = "control"

// Program is what one end says of itself.
type Program struct {
	Version  string         `cbor:"version" json:"version"`   // such as 0.2.0
	Protocol int            `cbor:"protocol" json:"protocol"` // see protocol
	Platform string         `cbor:"platform" json:"platform"` // operating system and architecture
	Methods  map[string]int `cbor:"methods" json:"methods"`   // revisions
}

// This is this program.
func This(methods method.Registry) Program {
	p := Program{Version: version.Number, Protocol: protocol, Platform: runtime.GOOS + "/" + runtime.GOARCH, Methods: map[string]int{}}
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
