package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"parley/engine"
	"parley/internal/testkit"
	encoding "parley/internal/wire"
	"parley/sitestore"
)

// What has been opened and was signed may still be anything: the other end may be
// hostile. Decoding ends in an error or in a message; it never panics.
func FuzzMessage(f *testing.F) {
	for _, v := range []any{
		down{Version: messageVersion, Say: sayTask, Body: []byte("task"),
			Past: engine.Past{Records: [][]byte{{1}}, Own: []engine.Claim{{Round: 1, Digest: make([]byte, 32)}}}},
		up{Version: messageVersion, Say: sayRelease, To: make([]byte, 32), Body: []byte("release"),
			Ledger: engine.Mark{Lines: 1, Hash: make([]byte, 32)}},
	} {
		data := testkit.Get(encoding.Marshal(v))(f)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := decodeDown(data); err == nil && m.Version != messageVersion {
			t.Error("a message of another version was read")
		}
		if m, err := decodeUp(data); err == nil && m.Version != messageVersion {
			t.Error("an answer of another version was read")
		}
	})
}

// Sealed bytes come from anybody.
func FuzzSealed(f *testing.F) {
	own := testkit.Get(NewKey())(f)
	other := testkit.Get(NewKey())(f)
	good := testkit.Get(other.Seal(own.Peer(), "here", []byte("payload")))(f)
	f.Add(good)
	f.Add(good[:40])
	f.Fuzz(func(t *testing.T, message []byte) {
		payload, err := own.Open(other.Peer(), "here", message)
		if err == nil && string(payload) != "payload" {
			t.Errorf("%q was opened", payload)
		}
	})
}

// Keys and public keys come from files that people edit and send.
func FuzzKeys(f *testing.F) {
	k := testkit.Get(NewKey())(f)
	secret := testkit.Get(k.MarshalBinary())(f)
	public := testkit.Get(k.Peer().MarshalBinary())(f)
	f.Add(secret)
	f.Add(public)
	f.Fuzz(func(t *testing.T, data []byte) {
		if k, err := ParseKey(data); err == nil {
			again, err := k.MarshalBinary()
			if err == nil {
				_, err = ParseKey(again) // the curve's own form may differ in bits that do not count
			}
			if err != nil {
				t.Errorf("a key that was read cannot be written and read again: %v", err)
			}
		}
		if p, err := ParsePeer(data); err == nil {
			if _, err := own(p); err != nil {
				t.Errorf("nothing can be sealed to a public key that was read: %v", err)
			}
		}
	})
}

// own seals something to a peer.
func own(p Peer) ([]byte, error) {
	k, err := NewKey()
	if err != nil {
		return nil, err
	}
	return k.Seal(p, "here", nil)
}

// A site cannot make up a history for a coordinator that has lost its own.
func TestMadeUpHistoryIsNotBelieved(t *testing.T) {
	coordinator := testkit.Get(NewKey())(t)
	site := testkit.Get(NewKey())(t)
	record := testkit.Get(encoding.Marshal(engine.Record{Round: 1, Left: []int{0, 1}}))(t)
	head := sitestore.Next([32]byte{}, record)
	honest := Receipt{Study: "study", Site: "north", Records: 1, Head: head[:]}
	for name, c := range map[string]struct {
		by      *Key
		change  func(*Receipt)
		believe bool
	}{
		"signed by the coordinator": {coordinator, func(*Receipt) {}, true},
		"signed by the site":        {site, func(*Receipt) {}, false},
		"of another study":          {coordinator, func(r *Receipt) { r.Study = "other" }, false},
		"of another history":        {coordinator, func(r *Receipt) { r.Head = make([]byte, 32) }, false},
		"of a shorter history":      {coordinator, func(r *Receipt) { r.Records = 0 }, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			net := NewMemory()
			r := honest
			c.change(&r)
			testkit.Do(t, c.by.confirm(&r))
			body := testkit.Get(encoding.Marshal(r))(t)
			scripted(t, net, site, coordinator.Peer(), func(down) up {
				return up{Say: sayKept, Body: body, History: [][]byte{record}}
			})
			l := &Link{Wire: net, Key: coordinator, Peer: site.Peer(), Study: "study", Site: "north",
				Again: time.Minute}
			if h, err := l.History(t.Context()); (err == nil && len(h) == 1) != c.believe {
				t.Errorf("%s: %d records, %v", name, len(h), err)
			}
		})
	}
}

// scripted answers each message in turn, as the site would.
func scripted(t *testing.T, net *Memory, site *Key, coordinator Peer, answers ...func(m down) up) {
	go func() {
		var seen, put uint64
		for _, answer := range answers {
			value, revision, err := net.Wait(t.Context(), TaskKey("study", "north"), seen)
			if err != nil {
				return
			}
			seen = revision
			payload, err := site.Open(coordinator, TaskKey("study", "north"), value)
			if err != nil {
				t.Error(err)
				return
			}
			m, err := decodeDown(payload)
			if err != nil {
				t.Error(err)
				return
			}
			a := answer(m)
			a.Version, a.To = messageVersion, nameOf(m.Life, m.Body)
			data, err := encoding.Marshal(a)
			if err != nil {
				t.Error(err)
			}
			sealed, err := site.Seal(coordinator, AnswerKey("study", "north"), data)
			if err != nil {
				t.Error(err)
			}
			if put, err = net.Put(t.Context(), AnswerKey("study", "north"), sealed, put); err != nil {
				t.Error(err)
			}
		}
	}()
}

// An answer that is delivered twice is no reason to leave; text that is none, and long,
// is shown as a short line; another history is no refusal.
func TestWhatSitesSayIsTakenWithCare(t *testing.T) {
	coordinator := testkit.Get(NewKey())(t)
	site := testkit.Get(NewKey())(t)
	release := func(down) up { return up{Say: sayRelease, Body: []byte("bytes")} }
	behind := func(down) up { return up{Say: sayBehind, Records: 3} }
	exchange := func(t *testing.T, answers ...func(down) up) (engine.Reply, error) {
		net := NewMemory()
		scripted(t, net, site, coordinator.Peer(), answers...)
		l := &Link{Wire: net, Key: coordinator, Peer: site.Peer(), Study: "study", Site: "north", Again: time.Minute}
		return l.Exchange(t.Context(), []byte("task"), engine.History{})
	}
	synctest.Test(t, func(t *testing.T) {
		if r, err := exchange(t, behind, behind, release); err != nil || string(r.Release) != "bytes" {
			t.Errorf("a site that is behind, twice: %+v, %v", r, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		_, err := exchange(t, func(down) up {
			return up{Say: sayRefuse, Body: append([]byte("no\xff\xfe\x1b[2J\n"), make([]byte, 1<<20)...)}
		})
		var refusal *engine.Refusal
		if !errors.As(err, &refusal) || len(refusal.Public) > 2000 || !utf8.ValidString(refusal.Public) ||
			strings.ContainsAny(refusal.Public, "\n\x1b\x00") {
			t.Errorf("a refusal that is no text: %.100q", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		_, err := exchange(t, func(down) up { return up{Say: sayForked, Body: []byte("I have seen more")} })
		if forked := (*engine.ForkedError)(nil); !errors.As(err, &forked) {
			t.Errorf("another history: %v", err)
		}
	})
}

// A coordinator that another one has followed is not answered, from its first message.
func TestEarlierCoordinatorIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := NewMemory()
		coordinator := testkit.Get(NewKey())(t)
		var terms []uint64
		for range 2 {
			term := testkit.Get(Claim(t.Context(), net, coordinator, "study", 0))(t)
			terms = append(terms, term)
		}
		l := &Link{Wire: net, Key: coordinator, Peer: coordinator.Peer(), Study: "study", Site: "north", Term: terms[0],
			Again: time.Minute}
		if _, err := l.Exchange(t.Context(), []byte("task"), engine.History{}); !errors.Is(err, ErrFenced) {
			t.Errorf("got %v", err)
		}
		if value, _, _ := net.Get(t.Context(), TaskKey("study", "north")); value != nil {
			t.Error("it has put a message")
		}
	})
}

// A long release comes whole, in parts; of one whose parts do not fit together nothing is believed, and one that is
// longer than the plan needs is not asked for.
func TestReleasesInParts(t *testing.T) {
	coordinator, site := testkit.Get(NewKey())(t), testkit.Get(NewKey())(t)
	for name, c := range map[string]struct {
		parts []up
		most  int
		want  string
	}{
		"whole": {[]up{{Say: sayRelease, Body: []byte("one"), Size: 6},
			{Say: sayRelease, Body: []byte("two"), Size: 6}}, 6, "onetwo"},
		"too long": {[]up{{Say: sayRelease, Body: []byte("one"), Size: 7}}, 6, "more than the 6 bytes"},
		"longer": {[]up{{Say: sayRelease, Body: []byte("one"), Size: 6},
			{Say: sayRelease, Body: []byte("four"), Size: 6}}, 9, "context"},
		"unlike": {[]up{{Say: sayRelease, Body: []byte("one"), Size: 6},
			{Say: sayRelease, Body: []byte("two"), Size: 8}}, 9, "context"},
		"crumbs": {[]up{{Say: sayRelease, Body: []byte("o"), Size: 99}}, 99, "in parts of 1"},
		"empty":  {[]up{{Say: sayRelease, Body: []byte("one"), Size: 6}, {Say: sayRelease, Size: 6}}, 9, "context"},
		"forgotten": {[]up{{Say: sayRelease, Body: []byte("one"), Size: 6}, {Say: sayBehind},
			{Say: sayRelease, Body: []byte("onetwo"), Size: 6}}, 6, "onetwo"},
	} {
		synctest.Test(t, func(t *testing.T) {
			net := NewMemory()
			var script []func(down) up
			for _, p := range c.parts {
				script = append(script, func(down) up { return p })
			}
			scripted(t, net, site, coordinator.Peer(), script...)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			l := &Link{Wire: net, Key: coordinator, Peer: site.Peer(), Study: "study", Site: "north",
				Again: time.Minute, Most: c.most}
			reply, err := l.Exchange(ctx, []byte("task"), engine.History{})
			if got := fmt.Sprint(string(reply.Release), err); !strings.Contains(got, c.want) {
				t.Errorf("%s: %s", name, got)
			}
		})
	}
}
