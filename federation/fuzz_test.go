package federation

import (
	"bytes"
	"crypto/rand"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/engine/wire"
	"parley/internal/testkit"
	encoding "parley/internal/wire"
)

// What comes from others may be anything, also when it was opened and signed: the
// other end may be hostile. Reading ends in an error or in what it should be.

func key(t testing.TB) *wire.Key {
	return testkit.Get(wire.NewKey())(t)
}

func bytesOf(t testing.TB, marshal func() ([]byte, error)) []byte {
	return testkit.Get(marshal())(t)
}

func invitation(t testing.TB, coordinator, secret *wire.Key) *Invitation {
	return &Invitation{ID: NewID(), Site: "north", URLs: []string{"tls://127.0.0.1:4222"},
		Coordinator: bytesOf(t, coordinator.Peer().MarshalBinary), JWT: "x", Seed: []byte("x"),
		Secret: bytesOf(t, secret.MarshalBinary), Expires: time.Now().Unix()}
}

func FuzzParseInvitation(f *testing.F) {
	f.Add(bytesOf(f, invitation(f, key(f), key(f)).Encode))
	f.Add([]byte(invitationMark + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		i, err := ParseInvitation(text)
		if err != nil {
			return
		}
		again, err := ParseInvitation(bytesOf(t, i.Encode))
		if err != nil || !reflect.DeepEqual(i, again) {
			t.Errorf("%+v reads back as %+v, %v", i, again, err)
		}
		if _, err := i.Ask(Request{}); err != nil {
			t.Errorf("nobody can ask with it: %v", err)
		}
	})
}

func FuzzUnarmour(f *testing.F) {
	f.Add(Armour("# What follows is secret.\n", invitationMark, []byte("some bytes that are more than one line"), 20),
		20)
	f.Add([]byte("x"+invitationMark+invitationMark), 0)
	f.Fuzz(func(t *testing.T, text []byte, width int) {
		data, err := Unarmour(invitationMark, text)
		if err != nil {
			if !errors.Is(err, ErrUnmarked) && !errors.Is(err, errDamaged) {
				t.Errorf("whoever reads it is told %v", err)
			}
			data = text // any bytes may be written
		}
		width = max(0, width%100)
		if again, err := Unarmour(invitationMark, Armour("# comment\n", invitationMark, data, width)); err != nil ||
			!bytes.Equal(again, data) {
			t.Errorf("%q reads back as %q, %v", data, again, err)
		}
	})
}

func FuzzParseCertificate(f *testing.F) {
	k := key(f)
	c := Certificate{Site: "north", Serial: 1, Peer: bytesOf(f, k.Peer().MarshalBinary), User: "U"}
	testkit.Do(f, c.Issue(k))
	f.Add(bytesOf(f, c.Encode))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := ParseCertificate(data)
		if err != nil {
			return
		}
		if _, err := got.Verify(k.Peer()); err == nil && !reflect.DeepEqual(got, c) {
			t.Errorf("%+v was never issued", got)
		}
	})
}

func FuzzOpenHello(f *testing.F) {
	co, k := key(f), key(f)
	c := Certificate{Site: "north", Serial: 1, Peer: bytesOf(f, k.Peer().MarshalBinary)}
	testkit.Do(f, c.Issue(co))
	certificate := bytesOf(f, c.Encode)
	f.Add(bytesOf(f, func() ([]byte, error) {
		return encoding.Marshal(Hello{Nonce: []byte("x"),
			Studies: []Standing{{Study: strings.Repeat("0", 64), Word: Approved, Text: "a\nb"}}})
	}), true)
	f.Add([]byte("x"), false)
	f.Fuzz(func(t *testing.T, data []byte, whole bool) {
		message := data
		if whole {
			sealed, err := k.Seal(co.Peer(), HelloKey("north"), data)
			if err == nil {
				message, err = encoding.Marshal(greeting{Certificate: certificate, Sealed: sealed})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		h, _, err := OpenHello(co, "north", message)
		if err != nil {
			return
		}
		if !whole {
			t.Error("nobody has signed it")
		}
		for _, s := range h.Studies {
			if len(s.Study) != 64 || len(s.Text) > maxText || strings.ContainsAny(s.Text, "\n\x1b") {
				t.Errorf("it says %+v", s)
			}
		}
	})
}

func FuzzOpenBoard(f *testing.F) {
	co, k := key(f), key(f)
	f.Add(bytesOf(f, func() ([]byte, error) {
		return encoding.Marshal(Board{Nonce: []byte("x"),
			Studies: []Posted{{Study: strings.Repeat("0", 64), Plan: []byte("x"), Needs: "a\nb"}}})
	}))
	f.Fuzz(func(t *testing.T, data []byte) {
		message := testkit.Get(co.Seal(k.Peer(), BoardKey("north"), data))(t)
		b, err := OpenBoard(k, co.Peer(), "north", message)
		if err != nil {
			return
		}
		for _, p := range b.Studies {
			if filepath.Base(p.Study) != p.Study || len(p.Study) != 64 ||
				strings.ContainsAny(p.Needs+p.Stopped, "\n\x1b") {
				t.Errorf("it posts %+v", p)
			}
		}
	})
}

func FuzzJoining(f *testing.F) {
	co, guest, k := key(f), key(f), key(f)
	i := invitation(f, co, guest)
	f.Add(bytesOf(f, func() ([]byte, error) {
		return encoding.Marshal(Request{Peer: bytesOf(f, k.Peer().MarshalBinary), User: "U"})
	}))
	f.Add(bytesOf(f, func() ([]byte, error) { return encoding.Marshal(Grant{Certificate: []byte("x"), JWT: "x"}) }))
	f.Fuzz(func(t *testing.T, data []byte) {
		message := testkit.Get(guest.Seal(co.Peer(), requestPlace(i.ID), data))(t)
		if r, err := OpenRequest(co, guest.Peer(), i.ID, message); err == nil {
			if _, err := wire.ParsePeer(r.Peer); err != nil {
				t.Error(err)
			}
		}
		message = testkit.Get(co.Seal(k.Peer(), grantPlace(i.ID), data))(t)
		i.OpenGrant(k, message) // whether it makes sense is for the certificate in it to say
	})
}

func FuzzParseEnding(f *testing.F) {
	f.Add(bytesOf(f, Ending{Share: []byte("x"), Files: []File{PackFile("model/a", []byte("x"))}}.Encode), false)
	for _, name := range []string{"../x", "/model/x", "model/../../x", `model\..\x`, "model/x:y", "site.db",
		"", "model/"} {
		f.Add(bytesOf(f, func() ([]byte, error) { return encoding.Marshal([]File{{Name: name}}) }), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, files bool) {
		if files {
			var list []File
			if encoding.Unmarshal(data, &list) != nil {
				return
			}
			data = bytesOf(t, Ending{Files: list}.Encode)
		}
		e, err := ParseEnding(data)
		if err != nil {
			return
		}
		for _, file := range e.Files {
			if !filepath.IsLocal(file.Name) || !Shared(file.Name) || file.Name == "model/" {
				t.Errorf("it writes %q", file.Name)
			}
		}
	})
}

func TestEndingsAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Ending{Share: rapid.SliceOf(rapid.Byte()).Draw(t, "share"),
			Words: rapid.StringMatching(`[a-z][a-z ]{0,20}[a-z]`).Draw(t, "words")}
		var contents [][]byte
		for range rapid.IntRange(0, 5).Draw(t, "files") {
			contents = append(contents, rapid.SliceOf(rapid.Byte()).Draw(t, "data"))
			e.Files = append(e.Files, PackFile("model/"+rapid.StringMatching(`[a-z]{1,9}(/[a-z]{1,9})?`).Draw(t,
				"name"), contents[len(contents)-1]))
		}
		got, err := ParseEnding(testkit.Get(e.Encode())(t))
		if err != nil || !bytes.Equal(got.Share, e.Share) || got.Words != e.Words || len(got.Files) != len(e.Files) {
			t.Fatalf("%+v came as %+v, %v", e, got, err)
		}
		for i, f := range got.Files {
			if data, err := f.Data(); err != nil || f.Name != e.Files[i].Name || !bytes.Equal(data, contents[i]) {
				t.Fatalf("file %d came as %q, %v", i, f.Name, err)
			}
		}
	})
}

// What is too large is named, and not sent along, the largest first.
func TestLargeResultsAreNotSentAlong(t *testing.T) {
	noise := make([]byte, 10000)
	rand.Read(noise)
	all := []File{PackFile("report.html", noise), PackFile("model/a", []byte("model"))}
	for most, want := range map[int]int{1 << 20: 2, 100: 1, 3: 0} {
		e, err := ParseEnding(bytesOf(t, Ending{Files: SentAlong(all, most)}.Encode))
		sent := 0
		for _, f := range e.Files {
			if _, err := f.Data(); err == nil {
				sent++
			}
		}
		if err != nil || len(e.Files) != 2 || sent != want || want == 1 && e.Files[0].Name != "model/a" {
			t.Errorf("at most %d bytes: %d of %d files, %v", most, sent, len(e.Files), err)
		}
	}
}

// A few bytes that become many, or other bytes than were listed, are refused.
func TestFilesThatAreNotWhatTheySay(t *testing.T) {
	bomb := PackFile("model/a", make([]byte, 64<<20))
	bomb.Size = 300 << 20
	if _, err := ParseEnding(bytesOf(t, Ending{Files: []File{bomb}}.Encode)); err == nil ||
		!strings.Contains(err.Error(), "limit") {
		t.Error(err)
	}
	bomb.Size = 1000
	if _, err := bomb.Data(); err == nil || !strings.Contains(err.Error(), "more than 1000 bytes") {
		t.Error(err)
	}
	bomb.Packed = Compress([]byte("two"))
	if _, err := bomb.Data(); err == nil || !strings.Contains(err.Error(), "another digest") {
		t.Error(err)
	}
}
