package federation_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"parley/engine"
	enats "parley/engine/nats"
	"parley/engine/wire"
	"parley/federation"
	"parley/internal/testkit"
	encoding "parley/internal/wire"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/mixture"
	"parley/methods/published/dppvi"
	"parley/methods/published/fedmvppca"
	"parley/methods/regression"
	"parley/privacy"
	"parley/privacy/privacytest"
	"parley/study"
)

// privateStudies are the variants of every method with differential privacy.
var privateStudies = map[string]struct {
	method.Method
	options, privacy string
}{
	"factors":           {factors.Method{}, "  name: factors\n  latent: 1\n", ""},
	"published factors": {fedmvppca.Method{}, "  name: fed-mv-ppca\n  latent: 1\n  rounds: 2\n", ""},
	"regression": {regression.Method{}, "  name: regression\n  outcome: {column: y, levels: [\"no\", \"yes\"]}\n",
		", diagnostics: 0.1"},
	"published regression": {dppvi.Method{}, "  name: dp-pvi\n  schedule: synchronous\n  rounds: 1\n  update: " +
		"{noise: 20, steps: 2}\n  rows: [{site: north, rows: 200}, {site: south, rows: 200}, {site: west, rows: " +
		"200}]\n  outcome: {column: y, levels: [\"no\", \"yes\"]}\n", ""},
	"mixture": {mixture.Method{}, "  name: mixture\n  components: 2\n", ""},
}

// neighbour makes of the files of 200 people those of a site with other people, and with
// damaged records of each kind. What says nothing of all of them says nothing of one.
func neighbour(f map[string][]string) {
	v, w, y := f["view_v.csv"], f["view_w.csv"], f["subjects.csv"]
	v[200] = "000199,-5,5,-5"                     // other values
	v[199] = "000198,1e9,-1e300,0"                // beyond the ranges
	v[198] = "000197,tall,1,1"                    // text for a number
	w[197] = "000196,,1,1"                        // without a value
	w[196] = "000195,1,1"                         // a cell too few
	y[195] = "000194,perhaps"                     // a level that is none
	y[194] = "000193,"                            // without an outcome
	y[193] = y[192]                               // an id twice, and one who is nobody
	f["view_v.csv"] = v[:len(v)-60]               // without a view
	f["view_w.csv"] = append(w, "000198.5,1,1,1") // nobody: and so the ids look like measurements
	f["subjects.csv"] = y
}

// Two sites that differ in one person put the same bytes, but for the noised numbers, which
// are made equal here: from a hello to the end of a study and beyond it, in the same order
// and as long, whatever the coordinator asks.
func TestNeighboursSayTheSame(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(privateStudies)) {
		if testkit.Sized(strings.Contains(name, " "), false) { // one of each of our methods
			continue
		}
		t.Run(name, func(t *testing.T) {
			want := life(t, name, func(map[string][]string) {})
			if n := strings.Count(fmt.Sprint(want), "release"); n < 1 {
				t.Fatalf("north has released nothing:\n%q", want)
			}
			got := life(t, name, neighbour)
			for i := range max(len(got), len(want)) {
				if i >= len(got) || i >= len(want) || got[i] != want[i] {
					t.Fatalf("from value %d on:\n%.2000q\nand with all people\n%.2000q", i, got[min(i, len(got)):],
						want[min(i, len(want)):])
				}
			}
		})
	}
}

// tap keeps what a site puts, without repetitions, by value.
type tap struct {
	mu   sync.Mutex
	said map[string][]string
}

// life is everything that site north puts in two studies: one that a coordinator runs as it
// should, and one that it ends before it has begun, and asks what it likes.
func life(t *testing.T, name string, change func(map[string][]string)) (said []string) {
	x := privateStudies[name]
	methods = method.Registry{x.Method}
	defer func() { methods = method.Registry{toy} }()
	w := newWorld(t)
	defer w.halt()
	w.serve()
	names := []string{"north", "south", "west"}
	w.join(names...)
	for k, site := range names {
		people(t, w, site, uint64(k), x.Name(), change)
	}
	conn, north := w.broker(), w.folder("north")
	honest, hostile := privatePlan(t, x.options, x.privacy, 1), privatePlan(t, x.options, x.privacy, 2)
	tapped := w.tap(t, north.Secrets.Key.Peer(), honest, hostile)
	for _, site := range names {
		w.quietly(site)
	}
	lives := map[string][]byte{}
	count := uint64(1 << 40) // above those of the coordinator's own boards, which are passed over from here on
	post := func(plans ...*study.Plan) {
		count++
		for _, site := range names {
			f := w.folder(site)
			var b federation.Board
			w.eventually("the coordinator's own board, which this continues", func() bool {
				value, _, err := conn.Get(within(t), federation.BoardKey(site))
				if err == nil {
					b, err = federation.OpenBoard(f.Secrets.Key, f.Coordinator, site, value)
				}
				return err == nil
			})
			b.Studies, b.Count = nil, count
			for _, p := range plans {
				b.Studies = append(b.Studies, federation.Posted{Study: must(p.Digest()).String(),
					Plan: federation.Compress(must(p.Encode()))})
			}
			board := must(federation.Post(w.co.Secrets.Key, f.Secrets.Key.Peer(), site, b))
			w.eventually("site "+site+" approves by its rule", func() bool {
				if held, _, err := conn.Get(within(t), federation.BoardKey(site)); err != nil ||
					!bytes.Equal(held, board) {
					put(t, conn, federation.BoardKey(site), board)
				}
				value, _, err := conn.Get(within(t), federation.HelloKey(site))
				if err != nil {
					return false
				}
				h, _, err := federation.OpenHello(w.co.Secrets.Key, site, value)
				lives[site] = h.Life
				return err == nil && len(h.Studies) == len(plans) &&
					!slices.ContainsFunc(h.Studies, func(s federation.Standing) bool {
						return s.Word == federation.Pending
					})
			})
		}
	}
	terms := map[string]uint64{}
	link := func(digest, site string) *wire.Link {
		term := terms[digest]
		if term == 0 {
			term = must(wire.Claim(within(t), conn, w.co.Secrets.Key, digest, 0))
			terms[digest] = term
		}
		return &wire.Link{Wire: conn, Key: w.co.Secrets.Key, Peer: w.folder(site).Secrets.Key.Peer(), Study: digest,
			Site: site, Term: term, Life: lives[site], Again: again}
	}
	post(honest)
	digest := must(honest.Digest()).String()
	c := &engine.Coordinator{
		Study: digest, Revision: x.Revision(), Sites: honest.Sites, Quorum: honest.Quorum,
		Method: must(x.Coordinator(honest)), Simulation: true,
		Requests: map[string][]privacy.Listed{}, Links: map[string]engine.Link{},
	}
	links := map[string]*wire.Link{}
	for _, site := range names {
		links[site] = link(digest, site)
		c.Requests[site], c.Links[site] = must(x.Requests(honest, site)), links[site]
	}
	out, err := c.Run(within(t))
	check(t, err)
	if len(out.Left) > 0 {
		t.Fatalf("%s has left", out.Left)
	}
	for _, site := range names {
		body := must(federation.Ending{Share: out.Shares[site]}.Encode())
		check(t, links[site].End(within(t), body, out.Pasts[site]))
	}
	post(honest, hostile)
	attack := link(must(hostile.Digest()).String(), "north")
	for _, share := range [][]byte{out.Shares["north"], bytes.Repeat([]byte{0xff}, 100), nil} {
		check(t, attack.End(within(t), must(federation.Ending{Share: share}.Encode()), engine.History{}))
		w.eventually("north has made its report, or tried", func() bool {
			return must(north.Ended(must(hostile.Digest()).String())) != nil
		})
	}
	for _, task := range [][]byte{nil, []byte("no task"), bytes.Repeat([]byte{0x81}, 1000)} {
		var refused *engine.Refusal
		if _, err := attack.Exchange(within(t), task, engine.History{}); !errors.As(err, &refused) {
			t.Errorf("to no task it says %v", err)
		}
	}
	check(t, attack.Dismiss(within(t), []byte("gone")))
	if n := len(audit(t, w.path("north"), "ended north")); n != 2 {
		t.Errorf("%d reports of two studies: each is for the first share", n)
	}
	w.end("north") // what it says last has come
	return tapped()
}

var toy = methods[0]

// people writes a site's files and its policy.
func people(t *testing.T, w *world, site string, seed uint64, method string, change func(map[string][]string)) {
	r := rand.New(rand.NewPCG(seed, 7))
	f := map[string][]string{"view_v.csv": {"id,f0,f1,f2"}, "view_w.csv": {"id,f3,f4,f5"}, "subjects.csv": {"id,y"}}
	for i := range 200 {
		a, b := r.NormFloat64(), r.NormFloat64()
		f["view_v.csv"] = append(f["view_v.csv"], fmt.Sprintf("%06d,%.3f,%.3f,%.3f", i, a, b, a+r.NormFloat64()))
		f["view_w.csv"] = append(f["view_w.csv"], fmt.Sprintf("%06d,%.3f,%.3f,%.3f", i, b, a-b, r.NormFloat64()))
		f["subjects.csv"] = append(f["subjects.csv"], fmt.Sprintf("%06d,%s", i, []string{"no", "yes"}[r.IntN(2)]))
	}
	if site == "north" {
		change(f)
	}
	for name, lines := range f {
		check(t, os.WriteFile(filepath.Join(w.path(site), "data", name), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	}
	check(t, os.WriteFile(filepath.Join(w.path(site), "policy.yaml"),
		[]byte("policy: 1\nsize: 250\nstudy: {epsilon: 3, delta: 1e-5}\nlifetime: {epsilon: 100, delta: 1e-5}\n"+
			"minimum: {subjects: 200, sites: 3}\npre_approval:\n  methods: ["+method+
			"]\n  study: {epsilon: 1, delta: 1e-5}\n"), 0o600))
}

func privatePlan(t *testing.T, options, more string, seed int) *study.Plan {
	features := func(from int) (s string) {
		for i := range 3 {
			s += fmt.Sprintf("      - {name: f%d, range: [-5, 5]}\n", from+i)
		}
		return s
	}
	p, err := study.Parse("plan.yaml", fmt.Appendf(nil, "parley: 1\nname: x\nseed: %d\nsites: [north, south, "+
		"west]\nviews:\n  - name: v\n    features:\n%s  - name: w\n    features:\n%ssubjects: "+
		"[y]\nmethod:\n%sprivacy: {protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: "+
		"1, delta: 1e-5}%s}\n", seed, features(0), features(3), options, more), methods)
	check(t, err)
	return p
}

// quietly starts a site whose noised sums are the same whatever its rows are, and whose
// clock stands.
func (w *world) quietly(name string) {
	w.begin1(name, privacytest.Replaced(func(sum string, exact [][]int64) [][]int64 {
		h := fnv.New64a()
		h.Write([]byte(sum))
		rng := rand.New(rand.NewPCG(h.Sum64(), 7))
		for _, block := range exact {
			for i := range block {
				block[i] = int64(1e5 * rng.NormFloat64())
			}
		}
		return exact
	}), privacy.Clock(func() time.Time { return time.Unix(0, 0) }))
}

// tap listens to what site north puts. The function that it returns ends that.
func (w *world) tap(t *testing.T, north wire.Peer, plans ...*study.Plan) func() []string {
	names := map[string]string{"control": "control"} // of buckets
	for _, p := range plans {
		digest := must(p.Digest()).String()
		names["s"+digest[:16]] = digest
	}
	f := w.folder("north")
	seed, public, err := enats.NewUser()
	check(t, err)
	r, err := dial(t, f.Config.URLs[0], f.Config.Roots, must(w.co.Secrets.Authority.Coordinator(public)), seed,
		"coordinator")
	check(t, err)
	said := &tap{said: map[string][]string{}}
	_, err = r.Subscribe("$KV.*.answer.north", func(m *nats.Msg) {
		// after the form of the value, which is in one part
		bucket, value := strings.Split(m.Subject, ".")[1], m.Data[1:]
		line := ""
		if h, _, err := federation.OpenHello(w.co.Secrets.Key, "north", value); err == nil {
			line = fmt.Sprintf("hello: %v %v", h.Program, h.Studies)
			if len(h.Studies) == 0 {
				return
			}
		} else {
			plain, err := w.co.Secrets.Key.Open(north, wire.AnswerKey(names[bucket], "north"), value)
			check(t, err)
			var up []encoding.Raw
			check(t, encoding.Unmarshal(plain, &up))
			if bytes.Equal(up[1], []byte{1}) {
				line = "release: "
			}
			up[2] = nil // the digest of what was asked, which may have been a number used once
			line += fmt.Sprintf("%s, %d bytes and %d more: %x", bucket, len(plain), len(value)-len(plain), up)
		}
		said.mu.Lock()
		defer said.mu.Unlock()
		if all := said.said[bucket]; len(all) == 0 || all[len(all)-1] != line {
			said.said[bucket] = append(all, line)
		}
	})
	check(t, err)
	check(t, r.Flush())
	return func() (all []string) {
		check(t, r.Flush())
		r.Close()
		said.mu.Lock()
		defer said.mu.Unlock()
		for _, bucket := range slices.Sorted(maps.Keys(said.said)) {
			all = append(all, said.said[bucket]...)
		}
		return all
	}
}
