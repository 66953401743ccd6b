package methodtest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/method"
	"parley/privacy"
	"parley/privacy/privacytest"
	"parley/sitestore"
	"parley/study"
)

// Case is a plan and data on which a method is tried.
type Case struct {
	Plan   *study.Plan
	Data   map[string]dataset.Source
	Digest string // of messages and results on amd64, under seeded noise; of none if it is empty
}

// Options say how much is tried, and what of the contract a method has in its own way.
type Options struct {
	Studies int           // whole studies for each promise of a case, at most, and 20 times as many with the tag long; 4 if it is 0
	Models  method.Opener // of the method's models; nil if it is the method
	// Draw draws a study of data that hospitals have on bad days; so many with the tag long, and else a tenth.
	Draw    func(t testing.TB, r *rand.Rand) Case
	Drawn   int
	Excuses []string // what such a study may end with, and one of a hostile site or of any noise
}

func (o Options) excused(err error) bool {
	return slices.ContainsFunc(o.Excuses, func(words string) bool { return strings.Contains(err.Error(), words) })
}

// Run holds a method to every promise of its contract, on each case: it runs the honest study, and changes one
// leaf at a time of what its sites and its coordinator have said. What is taken in spite of a change is held
// against testdata/taken.txt, so that a check which is lost shows; whole studies follow a sample of it to their end.
func Run(t *testing.T, m method.Method, cases map[string]Case, o Options) {
	if o.Models == nil {
		o.Models, _ = m.(method.Opener)
	}
	o.Studies = testkit.Sized(1, 20) * cmp.Or(o.Studies, 4)
	b := board{changes: map[string]*[2]int{}, bodies: map[string][][]byte{}}
	whole := 0
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t, m, cases[name], o, name, b)
			for _, of := range []struct {
				promise string
				test    func(*testing.T)
			}{
				{"Answers", x.answersAreChecked}, {"Tasks", x.tasksAreChecked}, {"States", x.statesAreChecked}, {"Crash", x.crashesChangeNothing},
				{"Leave", x.sitesMayLeave}, {"Declared", x.releasesAreDeclared}, {"Noised", x.noiseIsAll}, {"Models", x.modelsAreChecked}, {"Told", x.peopleAreTold},
			} {
				t.Run(of.promise, func(t *testing.T) {
					of.test(t)
					whole++
				})
			}
		})
	}
	if whole == 9*len(cases) {
		b.compare(t)
	}
	if o.Draw != nil {
		t.Run("Awkward", func(t *testing.T) { awkward(t, m, o) })
	}
}

// trial is one honest study of a case.
type trial struct {
	Case
	m      method.Method
	o      Options
	name   string
	board  board
	c      method.Coordinator
	states []moment
	ends   Ends
	said   []said
}

// said is a task, what its site carried then, and its answer.
type said struct {
	task    method.Task
	carried []byte
	in      method.Contribution
}

func newTrial(t testing.TB, m method.Method, x Case, o Options, name string, b board) *trial {
	t.Helper()
	y := &trial{Case: x, m: m, o: o, name: name, board: b, c: testkit.Get(m.Coordinator(x.Plan))(t)}
	h, d := &history{Method: m}, y.drive()
	d.Method = h
	d.Passed = func(task method.Task, in method.Contribution) {
		own := d.carried[task.Site]
		y.said = append(y.said, said{task, own[len(own)-1], in})
	}
	y.ends = testkit.Get(d.Run(t))(t)
	if len(d.Left) > 0 {
		t.Fatalf("of honest sites %v left", d.Left)
	}
	y.states = h.states
	return y
}

func (x *trial) drive() *Drive { return &Drive{Method: x.m, Plan: x.Plan, Data: x.Data} }

// rand is a stream of its own for each promise.
func (x *trial) rand(promise string) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, x.name, "/", promise)
	return rand.New(rand.NewPCG(h.Sum64(), 17))
}

// some draws a sample of a list.
func some[T any](r *rand.Rand, list []T, most int) []T {
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(len(list), most)]
}

// guarded turns a panic into an error of the test.
func guarded(t testing.TB, what string, do func() error) (err error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s: panic: %v\n%s", what, p, stack())
			err = errors.New("panic")
		}
	}()
	return do()
}

// ends runs a study that something is done to, at one site, to its end: there must be one, and nobody else may leave.
func (x *trial) endsFor(t testing.TB, what string, d *Drive, site string) {
	t.Helper()
	if _, err := d.Run(t); err != nil && (errors.Is(err, errPanic) || !x.o.excused(err)) {
		t.Errorf("%s: %v", what, err)
	}
	if slices.ContainsFunc(d.Left, func(s string) bool { return s != site }) {
		t.Errorf("%s: %v left", what, d.Left)
	}
}

// Of an answer each leaf is changed: it is refused, or the study goes on to its end. So it does with noised
// sums of any size. An answer of nobody, to nothing, to another task, or given twice is refused.
func (x *trial) answersAreChecked(t *testing.T) {
	type attempt struct {
		kind string
		nth  int // of the site's answers
		site string
		what string
		in   method.Contribution
	}
	var taken []attempt
	seen, nth := map[string]bool{}, map[string]int{}
	for i, at := range x.states {
		for k, in := range at.answers {
			nth[in.Site]++
			if seen[in.Kind] || k < len(at.answers)-1 && len(at.tasks) > 1 {
				continue
			}
			seen[in.Kind] = true
			before := func() method.State {
				s := testkit.Get(x.c.Restore(at.data))(t)
				for _, a := range at.answers[:k] {
					s = testkit.Get(x.c.Fold(s, a))(t)
				}
				return s
			}
			fold := func(s method.State, what string, in method.Contribution) bool {
				return guarded(t, fmt.Sprintf("an answer to %q, %s", in.Kind, what), func() error {
					_, err := x.c.Fold(s, in)
					return err
				}) == nil
			}
			try := func(path, what string, a method.Contribution) {
				ok := fold(before(), what, a)
				x.board.note("answer", in.Kind, path, what, ok)
				if ok {
					taken = append(taken, attempt{in.Kind, nth[in.Site], in.Site, what, a})
				}
			}
			if len(in.Body) > 0 {
				list := damages(t, in.Body, uint64(i))
				for _, other := range x.board.bodies[in.Kind] {
					list = append(list, damage{"of another study", "", other})
				}
				x.board.bodies[in.Kind] = append(x.board.bodies[in.Kind], in.Body)
				for _, d := range list {
					if !bytes.Equal(d.data, in.Body) {
						a := in
						a.Body = d.data
						try(d.path, d.what, a)
					}
				}
			}
			for _, name := range slices.Sorted(maps.Keys(in.Sums)) {
				for what, sums := range map[string][]*privacy.Noised{"none of": nil, "twice": append(slices.Clone(in.Sums[name]), in.Sums[name]...)} {
					a := in
					a.Sums = maps.Clone(in.Sums)
					a.Sums[name] = sums
					try("", what+" sum "+name, a)
				}
			}
			for what, change := range map[string]func(*method.Contribution){
				"of nobody":       func(a *method.Contribution) { a.Site = "nobody" },
				"to another task": func(a *method.Contribution) { a.Kind += "s" },
			} {
				a := in
				if change(&a); fold(before(), what, a) {
					t.Errorf("an answer to %q, %s, is taken", in.Kind, what)
				}
			}
			if s, err := x.c.Fold(before(), in); err != nil {
				t.Errorf("an honest answer to %q: %v", in.Kind, err)
			} else if fold(s, "twice", in) {
				t.Errorf("an answer to %q is taken twice", in.Kind)
			}
			if fold(testkit.Get(x.c.Init())(t), "early", in) {
				t.Errorf("an answer to %q is taken before it was asked for", in.Kind)
			}
		}
	}
	r := x.rand("Answers")
	for _, a := range some(r, taken, x.o.Studies) {
		d, n := x.drive(), 0
		d.Tamper = func(site string, in *method.Contribution) {
			if site == a.site {
				if n++; n == a.nth && in.Kind == a.kind {
					in.Body, in.Sums = a.in.Body, a.in.Sums
				}
			}
		}
		x.endsFor(t, fmt.Sprintf("with the answer to %q of site %s, %s", a.kind, a.site, a.what), d, a.site)
	}
	if !x.Plan.Privacy.Differential() {
		return
	}
	for i := range x.o.Studies {
		d := x.drive()
		d.Noise = map[string]privacy.Option{}
		for _, site := range x.Plan.Sites[:1+i%len(x.Plan.Sites)] {
			d.Noise[site] = anyNoise(r)
		}
		x.endsFor(t, "with noise of any size", d, "")
	}
}

// anyNoise releases integers at the ends of what there is.
func anyNoise(r *rand.Rand) privacy.Option {
	most := []int64{0, 1, -1, 1 << 62, -(1 << 62), math.MaxInt64, -math.MaxInt64, 1 << 40, -(1 << 50)}
	all, mixed := most[r.IntN(len(most))], r.IntN(2) == 0
	return privacytest.Replaced(func(_ string, exact [][]int64) [][]int64 {
		out := make([][]int64, len(exact))
		for i := range exact {
			out[i] = slices.Clone(exact[i])
			for j := range out[i] {
				switch {
				case !mixed:
					out[i][j] = all
				case r.IntN(2) == 0:
					out[i][j] = most[r.IntN(len(most))]
				}
			}
		}
		return out
	})
}

// kinds are the last tasks of each kind at the first site, in order.
func (x *trial) kinds() []said { return x.kindsAt(x.Plan.Sites[0]) }

func (x *trial) kindsAt(site string) (last []said) {
	for _, a := range x.said {
		if a.task.Site == site {
			last = append(slices.DeleteFunc(last, func(b said) bool { return b.task.Kind == a.task.Kind }), a)
		}
	}
	return last
}

func (x *trial) differential(t testing.TB, kind string) bool {
	list := testkit.Get(x.m.Requests(x.Plan, x.Plan.Sites[0]))(t)
	i := slices.IndexFunc(list, func(l privacy.Listed) bool { return l.Kind == kind })
	return list[i].Request.Protection == privacy.Differential
}

// Of a task each leaf is changed: a site refuses it, or seals an answer as declared. Where noised sums are all
// that leaves, it tells no more of the rows than they do. What a site is given at the end may be wrong, too.
func (x *trial) tasksAreChecked(t *testing.T) {
	site, r := x.Plan.Sites[0], x.rand("Tasks")
	half := func() *drivenSite { return testkit.Get(x.drive().site(site))(t) }
	rows := Collect(t, x.Data[site])
	all := Neighbours(rows)
	few := map[string]dataset.Source{}
	for _, who := range []string{"all rows", "no rows", "a huge row", "a row of NaN"} {
		few[who] = all[who]
	}
	for _, a := range x.kinds() {
		list := damages(t, a.task.Body, 1)
		var taken []damage
		for _, d := range list {
			if bytes.Equal(d.data, a.task.Body) {
				continue
			}
			task := a.task
			task.Body = d.data
			s := half()
			ok := guarded(t, fmt.Sprintf("a task %q, %s", task.Kind, d.what), func() error {
				session, err := x.session(s, task, a.carried)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := s.half.Run(t.Context(), task, session)
				if err != nil {
					return err
				}
				if _, err := session.Seal(answer.Body, answer.State); err != nil {
					t.Errorf("a task %q, %s: %v", task.Kind, d.what, err)
				}
				return nil
			}) == nil
			if x.board.note("task", task.Kind, d.path, d.what, ok); ok {
				taken = append(taken, d)
			}
		}
		if !x.differential(t, a.task.Kind) {
			continue
		}
		for _, d := range some(r, taken, 2*x.o.Studies) {
			task := a.task
			task.Body = d.data
			x.transcript(t, said{task: task, carried: a.carried}, 1e5, few)
		}
	}
	share := x.ends.Shares[site]
	if len(share) == 0 || share[0]>>5 < 4 { // no CBOR
		return
	}
	for _, d := range some(r, damages(t, share, 2), 10*x.o.Studies) {
		guarded(t, "the report of what was shared, "+d.what, func() error {
			_, err := half().half.Report(t.Context(), d.data, x.Data[site])
			return err
		})
	}
}

// session is one for a task, of a site that carries something.
func (x *trial) session(s *drivenSite, task method.Task, carried []byte) (*privacy.Session, error) {
	gate := privacy.NewGate(s.study, privacy.SimulationPolicy(), carrying{sitestore.NewMemory(), carried}, x.Data[task.Site], privacytest.Seeded(11))
	return gate.Admit(privacy.Ask{Study: s.study.Digest, Site: task.Site, Round: 1, Kind: task.Kind, Task: sha256.Sum256(task.Body)})
}

// carrying is a store of a site that has done something before.
type carrying struct {
	*sitestore.Memory
	state []byte
}

func (c carrying) State(study string) ([]byte, error) { return c.state, nil }

// FuzzAnswers tries any bytes as the answer of the first site of some study to each of its tasks in turn.
func FuzzAnswers(f *testing.F, m method.Method, cases map[string]Case) {
	all, seeds := trials(f, m, cases), map[string]bool{}
	for i, x := range all {
		for _, a := range x.kinds() {
			if !seeds[a.task.Kind] {
				seeds[a.task.Kind] = true
				f.Add(uint8(i), a.in.Body)
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		x := all[int(which)%len(all)]
		for _, a := range x.kinds() {
			d, taken := x.drive(), false
			d.Tamper = func(site string, in *method.Contribution) {
				if site == a.task.Site && in.Kind == a.task.Kind && !taken {
					in.Body, taken = body, true
				}
			}
			x.endsFor(t, fmt.Sprintf("with other bytes for %q", a.task.Kind), d, a.task.Site)
		}
	})
}

// FuzzTasks tries any bytes as a task of each kind at the first site of some study, and as what is shared with it.
func FuzzTasks(f *testing.F, m method.Method, cases map[string]Case) {
	all := trials(f, m, cases)
	for i, x := range all {
		for _, a := range x.kinds() {
			f.Add(uint8(i), a.task.Body)
		}
		f.Add(uint8(i), x.ends.Shares[x.Plan.Sites[0]])
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		x := all[int(which)%len(all)]
		s := testkit.Get(x.drive().site(x.Plan.Sites[0]))(t)
		for _, a := range x.kinds() {
			a.task.Body = body
			session := testkit.Get(x.session(s, a.task, a.carried))(t)
			if answer, err := s.half.Run(t.Context(), a.task, session); err == nil {
				_, err := session.Seal(answer.Body, answer.State)
				testkit.Do(t, err)
			}
		}
		s.half.Report(t.Context(), body, x.Data[x.Plan.Sites[0]])
	})
}

func trials(f *testing.F, m method.Method, cases map[string]Case) (all []*trial) {
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		all = append(all, newTrial(f, m, cases[name], Options{}, name, board{}))
	}
	return all
}

// transcript is [Transcript] of one task, where the site carries something.
func (x *trial) transcript(t testing.TB, a said, scale float64, data map[string]dataset.Source) {
	t.Helper()
	transcript(t, x.m, x.Plan, a.task.Site, []method.Task{a.task}, a.carried, scale, data)
}

func (x *trial) statesAreChecked(t *testing.T) {
	damagedStates(t, x.m, x.Plan, x.states, 4*x.o.Studies)
}

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
		case err == nil:
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
			strange.List[i].Subject = slices.Repeat([]string{[]string{"", "NaN", "1e999", "nobody"}[i%4]}, len(rows.Of.Subject))
		}
		others["columns that nobody knows"] = strange
	}
	for _, name := range x.Plan.Sites {
		others["the rows of "+name] = x.Data[name]
	}
	for _, a := range x.kindsAt(site) {
		if !x.differential(t, a.task.Kind) {
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
		if e, ok := m.(method.Exporter); ok {
			for _, f := range e.ExportFormats() {
				if _, err := e.Export(f); err != nil {
					t.Errorf("export to %s: %v", f, err)
				}
			}
		}
		rows := x.Data[x.Plan.Sites[0]]
		if u, ok := m.(method.Transformer); ok {
			_, _, err = u.Transform(t.Context(), rows, io.Discard, method.TransformOptions{})
		}
		if u, ok := m.(method.Imputer); ok {
			_, _, err = u.Impute(t.Context(), rows, io.Discard, method.ImputeOptions{Level: 0.9})
		}
		if u, ok := m.(method.Predictor); ok {
			_, _, err = u.Predict(t.Context(), rows, io.Discard, method.PredictOptions{Level: 0.9})
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
		if says := d.Describe(x.Plan); !strings.HasSuffix(says, ".") || strings.Contains(says, "  ") || strings.Contains(says, "%!") {
			t.Errorf("the method says of the plan: %q", says)
		}
	}
	if x.Digest == "" {
		return
	}
	h := sha256.New()
	for _, a := range x.said {
		fmt.Fprintf(h, "%s %s %d %d\n%s%s", a.task.Site, a.task.Kind, len(a.task.Body), len(a.in.Body), a.task.Body, a.in.Body)
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
			if !bytes.Contains(line, []byte(`"plan_sha256"`)) && !bytes.Contains(line, []byte(`"program"`)) { // which decide no number
				h.Write(line)
			}
		}
	}
	if got := fmt.Sprintf("%x", h.Sum(nil)); got != x.Digest && runtime.GOARCH == "amd64" {
		t.Errorf("the numbers of revision %d have changed, or the form of a message: if that was meant, raise Revision by one, and put in the new digest:\n%s", x.m.Revision(), got)
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

// board is what was taken and tried of each change, and what was said to tasks of each kind.
type board struct {
	changes map[string]*[2]int
	bodies  map[string][][]byte
}

func (b board) note(side, kind, path, what string, taken bool) {
	if path != bits {
		b.count(fmt.Sprintf("%s %q: %s", side, kind, strings.TrimSpace(what)), taken)
	}
}

func (b board) count(what string, taken bool) {
	if b.changes[what] == nil {
		b.changes[what] = &[2]int{}
	}
	if b.changes[what][1]++; taken {
		b.changes[what][0]++
	}
}

// compare holds the changes that were taken against those on file.
func (b board) compare(t *testing.T) {
	t.Helper()
	var lines []string
	for what, n := range b.changes {
		if n[0] > 0 && what != "model" {
			lines = append(lines, fmt.Sprintf("%s, %d of %d\n", what, n[0], n[1]))
		}
	}
	slices.Sort(lines)
	if n := b.changes["model"]; n != nil && n[0] == n[1] {
		t.Errorf("none of %d damaged models was refused", n[1])
	}
	name := filepath.Join("testdata", "taken.txt")
	text := "Changes to one leaf of an honest study's messages that are taken, and of how many cases.\n" + strings.Join(lines, "")
	if *updateTaken {
		testkit.Do(t, os.WriteFile(name, []byte(text), 0o666))
		return
	}
	was := strings.SplitAfter(string(testkit.Get(os.ReadFile(name))(t)), "\n")[1:]
	for _, l := range lines {
		if !slices.Contains(was, l) {
			t.Errorf("taken, and not in %s: %s", name, l)
		}
	}
	for _, l := range was {
		if l != "" && !slices.Contains(lines, l) {
			t.Errorf("in %s, and no longer taken as often: %s", name, l)
		}
	}
}
