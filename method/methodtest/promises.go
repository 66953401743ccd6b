package methodtest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"parley/engine/local"
	"parley/internal/testkit"
	"parley/method"
	"parley/privacy"
)

// A coordinator that is restored after each step and answer, answers in any order of arrival, and one that never
// crashes come to the same bytes.
func (x *trial) crashesChangeNothing(t *testing.T) {
	for what, change := range map[string]func(*Drive){
		"that never crashes":           func(d *Drive) { d.Keeps = true },
		"whose answers come backwards": func(d *Drive) { d.Order = slices.Reverse[[]answered] },
	} {
		d := x.drive()
		change(d)
		out, err := d.Run(t)
		if err != nil || len(d.Left) > 0 {
			t.Errorf("a study %s: %v, left %v", what, err, d.Left)
			continue
		}
		if got, want := bytesOf(t, out), bytesOf(t, x.ends); !bytes.Equal(got, want) {
			t.Errorf("a study %s ends otherwise: %s", what, difference(got, want))
		}
	}
}

// bytesOf is all that a study ends with.
func bytesOf(t testing.TB, e Ends) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, f := range e.Result.Files {
		fmt.Fprintf(&b, "%s\n", f.Name)
		testkit.Do(t, f.Stream(&b))
	}
	fmt.Fprintln(&b, e.Result.Metrics, e.Result.Found, e.Result.Sure, e.Result.Headline, e.Result.Verdicts())
	for _, site := range slices.Sorted(maps.Keys(e.Shares)) {
		fmt.Fprintf(&b, "%s %x\n", site, e.Shares[site])
	}
	return b.Bytes()
}

func difference(a, b []byte) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	from := max(i-40, 0)
	return fmt.Sprintf("%q and %q", a[from:min(i+40, len(a))], b[from:min(i+40, len(b))])
}

// Any site may leave at any of its tasks, and all of them: the study ends with a result, or says at once that it
// cannot do without.
func (x *trial) sitesMayLeave(t *testing.T) {
	type leaving struct {
		site string
		nth  int
	}
	var all []leaving
	seen := map[string]bool{}
	count := map[string]int{}
	for _, a := range x.said {
		site := a.task.Site
		count[site]++
		if key := site + a.task.Kind; !seen[key] || count[site]%5 == 0 {
			seen[key] = true
			all = append(all, leaving{site, count[site]})
		}
	}
	ended := 0
	all = some(x.rand("Leave"), all, 2*x.o.Studies)
	for _, l := range all {
		d, n := x.drive(), 0
		d.Absent = func(task method.Task) bool {
			if task.Site == l.site {
				n++
			}
			return task.Site == l.site && n >= l.nth
		}
		switch _, err := d.Run(t); {
		case err == nil || x.o.excused(err):
			ended++
		case !errors.Is(err, errLeft):
			t.Errorf("site %s leaves at its task %d: %v", l.site, l.nth, err)
		}
	}
	if ended == 0 && len(x.Plan.Sites) > 1 {
		t.Errorf("none of %d studies could do without a site", len(all))
	}
	for _, first := range []int{0, len(x.Plan.Sites)} {
		d, n := x.drive(), 0
		d.Absent = func(method.Task) bool { n++; return n > first }
		if _, err := d.Run(t); errors.Is(err, errPanic) {
			t.Errorf("all sites leave after %d tasks: %v", first, err)
		}
	}
}

// What sites release is what the plan lists, no more often, and no longer; and what is listed keeps the plan's promise.
func (x *trial) releasesAreDeclared(t *testing.T) {
	if _, err := (method.Registry{x.m}).Cost(x.Plan); err != nil {
		t.Error(err)
	}
	asked := map[string]int{}
	for _, a := range x.said {
		asked[a.task.Site+"\n"+a.task.Kind]++
	}
	for _, site := range x.Plan.Sites {
		list := testkit.Get(x.m.Requests(x.Plan, site))(t)
		for _, l := range list {
			key := site + "\n" + l.Kind
			if n := asked[key]; n > l.Times || n == 0 {
				t.Errorf("task %q is listed %d times for site %s, which is asked %d times", l.Kind, l.Times, site, n)
			}
			delete(asked, key)
			values := 0
			for _, c := range l.Request.Contents {
				values += c.Values
			}
			for _, a := range x.said {
				if a.task.Site != site || a.task.Kind != l.Kind {
					continue
				}
				if n := len(a.in.Body); n > 9*values+400 {
					t.Errorf("task %q: a body of %d bytes, and %d numbers are declared", l.Kind, n, values)
				}
				for _, s := range l.Request.Sums {
					if n := len(a.in.Sums[s.Name]); s.Kept && n > 0 || !s.Kept && n > s.Mechanism.Count {
						t.Errorf("task %q: %d sums %q", l.Kind, n, s.Name)
					}
				}
			}
		}
	}
	for key := range asked {
		t.Errorf("task %q is not listed for the site before it", key)
	}
}

// Whoever the rows are, equal noised sums make equal answers, and a row moves a sum by what it gives alone.
func (x *trial) noiseIsAll(t *testing.T) {
	r := x.rand("Noised")
	for _, site := range some(r, slices.Clone(x.Plan.Sites), testkit.Sized(1, 2)) {
		x.noiseIsAllAt(t, r, site)
	}
}

func (x *trial) noiseIsAllAt(t *testing.T, r *rand.Rand, site string) {
	scales := []float64{0, 1e5, 1e9, 1e17}
	rows := Collect(t, x.Data[site])
	others := Neighbours(rows)
	if len(rows.Of.Subject) > 0 {
		strange := Rows{Of: rows.Of, List: slices.Clone(rows.List)}
		for i := range strange.List {
			strange.List[i].Subject = slices.Repeat([]string{[]string{"", "NaN", "1e999", "nobody"}[i%4]},
				len(rows.Of.Subject))
		}
		others["columns that nobody knows"] = strange
	}
	for _, name := range x.Plan.Sites {
		others["the rows of "+name] = x.Data[name]
	}
	for _, a := range x.kindsAt(site) {
		if !x.differential(t, a.task) {
			continue
		}
		for _, scale := range some(r, slices.Clone(scales), testkit.Sized(1, 4)) {
			x.transcript(t, a, scale, others)
		}
		list := testkit.Get(x.m.Requests(x.Plan, site))(t)
		sums := list[slices.IndexFunc(list, func(l privacy.Listed) bool { return l.Kind == a.task.Kind })].Request.Sums
		if !slices.ContainsFunc(sums, func(s privacy.Sum) bool { return s.Unit != privacy.Subject }) {
			additive(t, x.m, x.Plan, site, []method.Task{a.task}, a.carried, 1e5, rows, testkit.Sized(1, 3))
		}
	}
}

// A model reads back to its bytes, and a damaged one is refused or of use.
func (x *trial) modelsAreChecked(t *testing.T) {
	data, err := method.ModelJSON(x.ends.Result.Files)
	if err != nil || x.o.Models == nil {
		return
	}
	use := func(data []byte) error {
		m, err := x.o.Models.OpenModel(data)
		if err != nil {
			return err
		}
		if s, ok := m.(method.Summariser); ok {
			if _, err := s.Summary(3); err != nil {
				t.Errorf("a summary: %v", err)
			}
		}
		rows := x.Data[x.Plan.Sites[0]]
		if u, ok := m.(method.Transformer); ok {
			_, _, _ = u.Transform(t.Context(), rows, io.Discard, method.TransformOptions{})
		}
		if u, ok := m.(method.Imputer); ok {
			_, _, _ = u.Impute(t.Context(), rows, io.Discard, method.ImputeOptions{Level: 0.9})
		}
		if u, ok := m.(method.Predictor); ok {
			_, _, _ = u.Predict(t.Context(), rows, io.Discard, 0.9)
		}
		return nil
	}
	if err := use(data); err != nil {
		t.Errorf("the study's model: %v", err)
	}
	for _, d := range some(x.rand("Models"), damagedJSON(t, data), 20*x.o.Studies) {
		err := guarded(t, "a model "+d.what, func() error { return use(d.data) })
		x.board.count("model", err == nil)
	}
}

// What people are told is one sentence or more, and messages and numbers are those of the revision.
func (x *trial) peopleAreTold(t *testing.T) {
	if d, ok := x.m.(method.Describer); ok {
		if says := d.Describe(x.Plan); !strings.HasSuffix(says, ".") || strings.Contains(says, "  ") ||
			strings.Contains(says, "%!") {
			t.Errorf("the method says of the plan: %q", says)
		}
	}
	if x.Digest == "" {
		return
	}
	h := sha256.New()
	for _, a := range x.said {
		fmt.Fprintf(h, "%s %s %d %d\n%s%s", a.task.Site, a.task.Kind, len(a.task.Body), len(a.in.Body),
			a.task.Body, a.in.Body)
		for _, name := range slices.Sorted(maps.Keys(a.in.Sums)) {
			for _, n := range a.in.Sums[name] {
				data := testkit.Get(n.MarshalCBOR())(t)
				fmt.Fprintf(h, "%s %d\n%s", name, len(data), data)
			}
		}
	}
	for _, f := range x.ends.Result.Files {
		var b bytes.Buffer
		testkit.Do(t, f.Stream(&b))
		for line := range bytes.Lines(b.Bytes()) {
			// which decide no number
			if !bytes.Contains(line, []byte(`"plan_sha256"`)) && !bytes.Contains(line, []byte(`"program"`)) {
				h.Write(line)
			}
		}
	}
	if got := fmt.Sprintf("%x", h.Sum(nil)); got != x.Digest && runtime.GOARCH == "amd64" {
		t.Errorf("the numbers of revision %d have changed, or the form of a message: if that was meant, raise "+
			"Revision by one, and put in the new digest:\n%s", x.m.Revision(), got)
	}
}

// awkward runs studies of data that nobody wishes for: each ends with finite numbers, or says what cannot be modelled.
func awkward(t *testing.T, m method.Method, o Options) {
	n := testkit.Sized(o.Drawn/10, o.Drawn)
	ended := 0
	for seed := range uint64(n) {
		x := o.Draw(t, rand.New(rand.NewPCG(seed, 15)))
		run, err := local.Run(t.Context(), local.Config{Plan: x.Plan, Methods: method.Registry{m}, Data: x.Data})
		if err != nil {
			if !o.excused(err) {
				t.Errorf("seed %d: %v", seed, err)
			}
			continue
		}
		ended++
		for name, z := range run.Result.Metrics {
			if !finite(z) {
				t.Errorf("seed %d: %s is %v", seed, name, z)
			}
		}
	}
	if ended < n/2 {
		t.Errorf("%d of %d studies had a result", ended, n)
	}
}

var updateTaken = flag.Bool("taken", false, "write testdata/taken.txt")
