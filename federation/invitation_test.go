package federation_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/engine"
	"parley/engine/host"
	enats "parley/engine/nats"
	"parley/engine/wire"
	"parley/federation"
	"parley/federation/coordinator"
	"parley/federation/site"
	"parley/internal/testkit"
	"parley/study"
)

// An invitation works once, for its site, as long as it lasts; whoever is refused is
// told why in words.
func TestInvitationsThatAreNoGood(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.join("north")
	join := func(folder string, i *federation.Invitation) error {
		patience := 5 * time.Second // of those who are told only that they cannot connect
		if folder == "south" {
			patience = time.Minute
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := site.Join(ctx, filepath.Join(w.dir, folder), i, methods, nil)
		return err
	}
	used := w.invite("south", false)
	check(t, join("south", used))
	expired, err := w.co.Invite("late", time.Now().Add(-time.Minute), false)
	check(t, err)
	withdrawn := w.invite("gone", false)
	must(w.co.Revoke("gone"))
	w.invite("other", false)
	altered := *w.invite("wide", false)
	altered.Site = "narrow"
	foreign := *w.invite("odd", false) // with the guest's secret of another
	foreign.Secret = used.Secret
	another := must(wire.NewKey())
	fake := *w.invite("fake", false) // made to believe in another coordinator
	fake.Coordinator = must(another.Peer().MarshalBinary())
	var joins sync.WaitGroup
	for _, c := range []struct {
		folder string
		i      *federation.Invitation
		want   string
	}{
		{"south-2", used, "has been used"}, // and its key connects no more once the site has been there
		{"late", expired, "valid until"},
		{"gone", withdrawn, "withdrawn|could not be reached"}, // before its key connects no more, and then
		{"north", w.invite("west", false), "folder of site north"},
		{"odd", &foreign, "has not answered"},
		{"fake", &fake, "has not answered"},
	} {
		joins.Go(func() { // at once, as most wait out their patience
			if err := join(c.folder, c.i); err == nil || !regexp.MustCompile(c.want).MatchString(err.Error()) {
				t.Errorf("%s: %v, want %q", c.folder, err, c.want)
			}
			if c.folder != "north" {
				if _, err := site.Open(filepath.Join(w.dir, c.folder), methods); err == nil {
					t.Errorf("%s is the folder of a site", c.folder)
				}
			}
		})
	}
	joins.Wait()
	// Renamed, it lets join as the site that it was made for alone.
	if err := join("narrow", &altered); err == nil || !strings.Contains(err.Error(), "altered") {
		t.Errorf("an altered invitation: %v", err)
	}
	if _, err := w.co.Invite("north", time.Now().Add(time.Hour), false); err == nil ||
		!strings.Contains(err.Error(), "joined already") {
		t.Errorf("a second invitation for one that has joined: %v", err)
	}
}

// Whatever people copy by hand has a checksum: one wrong letter, wherever it is, is named;
// or nothing follows from it. What older programs wrote, without one, opens.
func TestOneWrongLetter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	text := must(w.invite("north", false).Encode())
	w.join("south")
	f := w.folder("south")
	check(t, host.Receipts(filepath.Join(f.Path, "receipts.json")).Keep(engine.Mark{Lines: 3, Hash: []byte{1, 2}}))
	check(t, host.Receipts(filepath.Join(f.Path, "receipts.json")).Confirm("a study", 3))
	type file struct {
		path  string
		old   *regexp.Regexp // what older programs did not write
		older string         // and what they wrote in its place
		read  func() (any, error)
		said  string
	}
	armoured := regexp.MustCompile(`-2\n((?s:.*))checksum-.*\n`)
	invitation := filepath.Join(w.dir, "north.invitation")
	check(t, os.WriteFile(invitation, text, 0o600))
	for _, c := range []file{
		{invitation, armoured, "-1\n$1", func() (any, error) {
			return federation.ParseInvitation(must(os.ReadFile(invitation)))
		}, `letter \d+ is wrong|does not hold|not an invitation|not whole`},
		{filepath.Join(w.co.Path, "coordinator.key"), armoured, "-1\n$1", func() (any, error) {
			f, err := coordinator.Open(w.co.Path, methods)
			if err != nil {
				return nil, err
			}
			return f.Secrets.Key.Peer().Name(), nil
		}, `coordinator.key: .*(letter \d+ is wrong|does not hold|not a coordinator's key|damaged)`},
		{filepath.Join(f.Path, "site.key"), armoured, "-1\n$1", func() (any, error) {
			f, err := site.Open(f.Path, methods)
			if err != nil {
				return nil, err
			}
			return f.Secrets.Key.Peer().Name(), nil
		}, `site.key: .*(letter \d+ is wrong|does not hold|damaged)`},
		{filepath.Join(f.Path, "site.json"), regexp.MustCompile(`,\s*"checksum": ".*"`), "", func() (any, error) {
			f, err := site.Open(f.Path, methods)
			if err != nil {
				return nil, err
			}
			f.Config.Checksum, f.Config.URLs = "", nil // which people edit
			return f.Config, nil
		}, `site.json`},
		{filepath.Join(f.Path, "receipts.json"), regexp.MustCompile(`,\s*"checksum": ".*"`), "", func() (any, error) {
			return host.Receipts(filepath.Join(f.Path, "receipts.json")).Load()
		}, `receipts.json`},
	} {
		good := must(os.ReadFile(c.path))
		want, err := c.read()
		check(t, err)
		for i := 0; i < len(good); i += testkit.Sized(7, 1) {
			was := good[i]
			for _, letter := range []byte{was ^ 1, "A/= "[i%4]} {
				bad := bytes.Clone(good)
				bad[i] = letter
				check(t, os.WriteFile(c.path, bad, 0o600))
				got, err := c.read()
				if err == nil && !reflect.DeepEqual(got, want) || err != nil &&
					!regexp.MustCompile(c.said).MatchString(err.Error()) {
					t.Errorf("%s: %q for %q at %d: %v, %v", c.path, letter, was, i, got, err)
				}
				if err == nil && letter != was && c.old == armoured && bytes.Contains(good[:i], []byte("-2\n")) &&
					was != '\n' && letter != '\n' {
					t.Errorf("%s: %q for %q at %d is not noticed", c.path, letter, was, i)
				}
			}
		}
		check(t, os.WriteFile(c.path, c.old.ReplaceAll(good, []byte(c.older)), 0o600))
		if got, err := c.read(); err != nil || !reflect.DeepEqual(got, want) ||
			bytes.Equal(good, must(os.ReadFile(c.path))) {
			t.Errorf("%s of an older program: %v, %v", c.path, got, err)
		}
		check(t, os.WriteFile(c.path, good, 0o600))
	}
}

// Two people with one invitation: one joins, the other is told, and it is on record.
func TestCopiedInvitation(t *testing.T) {
	t.Parallel()
	for range 3 {
		w := newWorld(t)
		i := w.invite("north", false)
		w.serve()
		var group sync.WaitGroup
		errs := make([]error, 2)
		for n := range errs {
			group.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
				defer cancel()
				_, errs[n] = site.Join(ctx, filepath.Join(w.dir, fmt.Sprint("copy", n)), i, methods, nil)
			})
		}
		group.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("of two with one invitation: %v and %v", errs[0], errs[1])
		}
		lost := errs[0]
		if lost == nil {
			lost = errs[1]
		}
		t.Log(lost)
		if n := len(audit(t, w.co.Path, "joined north")); n != 1 {
			t.Errorf("%d have joined", n)
		}
		if !strings.Contains(lost.Error(), "used") && !strings.Contains(lost.Error(), "revoked") {
			t.Errorf("whoever came second is told: %v", lost)
		}
		if len(audit(t, w.co.Path, "refused north")) == 0 {
			t.Error("the second is not on record")
		}
		w.halt()
	}
}

// Whoever joins twice with the same folder, because the answer was lost, is the same
// site; keys that were replaced or revoked are good for nothing, also after a
// coordinator that was rebuilt.
func TestKeysThatAreGoodNoMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.join(sites...)
	old := w.folder("north")
	must(w.co.Revoke("south"))
	south := w.folder("south")
	w.eventually("a revoked key does not connect", func() bool {
		_, err := dial(t, south.Config.URLs[0], south.Config.Roots, south.Config.JWT, south.Secrets.User, "south")
		return err != nil
	})
	_, err := site.Join(within(t), w.path("north"), w.invite("north", true), methods, nil)
	check(t, err)
	w.eventually("a replaced key does not connect", func() bool {
		_, err := dial(t, old.Config.URLs[0], old.Config.Roots, old.Config.JWT, old.Secrets.User, "north")
		return err != nil
	})
	w.begin("north", "centre")
	p := plan("after", 3, 2, "north", "centre")
	d := w.submit(p)
	w.approve(d, "north", "centre")
	w.ended(d, "north", "centre")
	w.end("north")
	w.end("centre")

	// Rebuilt from its key, the coordinator knows the certificates, and which are revoked. The
	// broker is asked with its own authority, as one that is somebody else's might.
	w.halt()
	config := w.co.Config
	key := filepath.Join(w.dir, "coordinator.key")
	data, err := os.ReadFile(filepath.Join(w.co.Path, "coordinator.key"))
	check(t, err)
	check(t, os.WriteFile(key, data, 0o600))
	check(t, os.RemoveAll(w.co.Path))
	p = plan("again", 3, 2, "north", "centre")
	w.co, err = coordinator.Rebuild(w.co.Path, key, methods, config, []*study.Plan{p, plan("other", 3, 1, "south")})
	check(t, err)
	w.serve()
	for _, f := range []*site.Folder{old, south} {
		if _, err := dial(t, f.Config.URLs[0], f.Config.Roots, f.Config.JWT, f.Secrets.User,
			f.Config.Site); err == nil {
			t.Errorf("site %s: keys that are good no more connect", f.Config.Site)
		}
		seed, public, err := enats.NewUser()
		check(t, err)
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM([]byte(f.Config.Roots))
		conn, err := enats.Connect(enats.Options{URLs: f.Config.URLs, Roots: pool,
			JWT: must(w.co.Secrets.Authority.Site(f.Config.Site, public, time.Time{})), Seed: seed,
			Name: f.Config.Site})
		check(t, err)
		t.Cleanup(conn.Close)
		put(t, conn, federation.HelloKey(f.Config.Site),
			must(federation.Greet(f.Secrets.Key, f.Coordinator, f.Config.Certificate, f.Config.Site,
				federation.Hello{Program: federation.LocalProgram(methods)})))
	}
	w.begin("north", "centre")
	known := func(name string) bool {
		r, err := w.co.Registry()
		check(t, err)
		for _, m := range r.Members {
			if m.Site == name {
				return true
			}
		}
		return false
	}
	w.eventually("sites are known again by their certificates", func() bool {
		return known("north") && known("centre")
	})
	d = w.submit(p)
	w.approve(d, "north", "centre")
	w.ended(d, "north", "centre")
	if known("south") {
		t.Error("a revoked site is known again")
	}
	if r := must(w.co.Registry()); len(r.Members) > 0 {
		for _, m := range r.Members {
			if m.Site == "north" && bytes.Equal(m.Certificate, old.Config.Certificate) {
				t.Error("a site's replaced keys are known again")
			}
		}
	}
}

// A request that names no key, or somebody else's, is refused, and the coordinator
// goes on.
func TestGuestThatNamesKeysOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	w.join("north")
	user := must(enats.PublicOf(w.folder("north").Secrets.User))
	i := w.invite("south", false)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(i.Roots)
	conn, err := enats.Connect(enats.Options{URLs: i.URLs, Roots: pool, JWT: i.JWT, Seed: i.Seed,
		Name: "guest_" + i.ID})
	check(t, err)
	t.Cleanup(conn.Close)
	key := must(wire.NewKey())
	var seen uint64
	for n := range 100 {
		name := []string{"x", user, "", strings.Repeat("U", 1<<16)}[n%4]
		put(t, conn, federation.RequestKey(i.ID),
			must(i.Ask(federation.Request{Peer: must(key.Peer().MarshalBinary()), User: name,
				Program: federation.LocalProgram(methods)})))
		if n > 3 {
			continue
		}
		w.eventually("an answer", func() bool {
			value, revision, err := conn.Get(within(t), federation.GrantKey(i.ID))
			if err != nil || revision <= seen {
				return false
			}
			seen = revision
			g, err := i.OpenGrant(key, value)
			if err != nil || g.Refused == "" {
				t.Errorf("a request with the key %.10q: %+v, %v", name, g, err)
			}
			return true
		})
	}
	if lines := audit(t, w.co.Path, "refused"); len(lines) == 0 || len(lines) > 40 {
		t.Errorf("%d lines of audit", len(lines))
	}
	must(w.co.Revoke("south"))
	w.join("centre") // it serves
	if lines := audit(t, w.co.Path, "joined south"); len(lines) > 0 {
		t.Errorf("%q", lines)
	}
}
