package federation

import (
	"bytes"
	"compress/gzip"
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
	return &Invitation{ID: NewID(), Site: "north", URLs: []string{"tls://127.0.0.1:4222"}, Coordinator: bytesOf(t, coordinator.Peer().MarshalBinary), JWT: "x", Seed: []byte("x"),
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
	f.Add(Armour("# What follows is secret.\n", invitationMark, []byte("some bytes that are more than one line"), 20), 20)
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
		if again, err := Unarmour(invitationMark, Armour("# comment\n", invitationMark, data, width)); err != nil || !bytes.Equal(again, data) {
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
		return encoding.Marshal(Hello{Nonce: []byte("x"), Studies: []Standing{{Study: strings.Repeat("0", 64), Word: Approved, Text: "a\nb"}}})
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
		return encoding.Marshal(Board{Nonce: []byte("x"), Studies: []Posted{{Study: strings.Repeat("0", 64), Plan: []byte("x"), Needs: "a\nb"}}})
	}))
	f.Fuzz(func(t *testing.T, data []byte) {
		message := testkit.Get(co.Seal(k.Peer(), BoardKey("north"), data))(t)
		b, err := OpenBoard(k, co.Peer(), "north", message)
		if err != nil {
			return
		}
		for _, p := range b.Studies {
			if filepath.Base(p.Study) != p.Study || len(p.Study) != 64 || strings.ContainsAny(p.Needs+p.Stopped, "\n\x1b") {
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
	packed := testkit.Get(Pack([]File{{Name: "model/a", Data: []byte("x")}}, 1000))(f)
	f.Add(bytesOf(f, func() ([]byte, error) { return Ending{Share: []byte("x")}.Encode(packed) }), false)
	for _, name := range []string{"../x", "/model/x", "model/../../x", `model\..\x`, "model/x:y", "site.db", "", "model/"} {
		f.Add(bytesOf(f, func() ([]byte, error) { return encoding.Marshal([]File{{Name: name}}) }), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, files bool) {
		if files {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			z.Write(data)
			z.Close()
			data = bytesOf(t, func() ([]byte, error) { return encoding.Marshal(sentEnding{Files: b.Bytes()}) })
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
		e := Ending{Share: rapid.SliceOf(rapid.Byte()).Draw(t, "share"), Words: rapid.StringMatching(`[a-z][a-z ]{0,20}[a-z]`).Draw(t, "words")}
		for range rapid.IntRange(0, 5).Draw(t, "files") {
			e.Files = append(e.Files, File{Name: "model/" + rapid.StringMatching(`[a-z]{1,9}(/[a-z]{1,9})?`).Draw(t, "name"), Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data")})
		}
		packed := testkit.Get(Pack(e.Files, 1<<20))(t)
		data := testkit.Get(e.Encode(packed))(t)
		got, err := ParseEnding(data)
		if err != nil || !bytes.Equal(got.Share, e.Share) || got.Words != e.Words || len(got.Files) != len(e.Files) {
			t.Fatalf("%+v came as %+v, %v", e, got, err)
		}
		for i, f := range got.Files {
			if f.Name != e.Files[i].Name || !bytes.Equal(f.Data, e.Files[i].Data) {
				t.Fatalf("file %d came as %q", i, f.Name)
			}
		}
	})
}

// What is too large is left out, the model last, and the site is told.
func TestLargeResultsAreLeftOut(t *testing.T) {
	noise := make([]byte, 10000)
	for i := range noise {
		noise[i] = byte(i * i >> 3)
	}
	files := []File{{Name: "report.html", Data: bytes.Repeat([]byte("0123456789abcdef"), 1)}, {Name: "model/a", Data: []byte("model")}}
	for i, b := range key(t).Sign("noise", noise) {
		noise[i] ^= b
	}
	files[0].Data = noise
	for most, want := range map[int]int{1 << 20: 2, 100: 1, 30: 0} {
		packed := testkit.Get(Pack(files, most))(t)
		e, err := ParseEnding(bytesOf(t, func() ([]byte, error) { return Ending{}.Encode(packed) }))
		if err != nil || len(e.Files) != want || (e.Words == "") != (want == 2) {
			t.Errorf("at most %d bytes: %d files, %q, %v", most, len(e.Files), e.Words, err)
		}
	}
}

// A few bytes that become many are refused.
func TestEndingThatIsABomb(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for range 300 {
		z.Write(make([]byte, 1<<20))
	}
	z.Close()
	if _, err := ParseEnding(bytesOf(t, func() ([]byte, error) { return encoding.Marshal(sentEnding{Files: b.Bytes()}) })); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Error(err)
	}
}
