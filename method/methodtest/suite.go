package methodtest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
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
	// whole studies for each promise of a case, at most, and 20 times as many with the tag long; 4 if it is 0
	Studies int
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
				{"Answers", x.answersAreChecked}, {"Tasks", x.tasksAreChecked}, {"States", x.statesAreChecked},
				{"Crash", x.crashesChangeNothing},
				{"Leave", x.sitesMayLeave}, {"Declared", x.releasesAreDeclared}, {"Noised", x.noiseIsAll},
				{"Models", x.modelsAreChecked}, {"Told", x.peopleAreTold},
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
				for what, sums := range map[string][]*privacy.Noised{"none of": nil,
					"twice": append(slices.Clone(in.Sums[name]), in.Sums[name]...)} {
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

func (x *trial) differential(t testing.TB, of method.Task) bool {
	list := testkit.Get(x.m.Requests(x.Plan, of.Site))(t)
	i := slices.IndexFunc(list, func(l privacy.Listed) bool { return l.Kind == of.Kind })
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
		if !x.differential(t, a.task) {
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
	gate := privacy.NewGate(s.study, privacy.SimulationPolicy(), carrying{sitestore.NewMemory(), carried},
		x.Data[task.Site], privacytest.Seeded(11))
	return gate.Admit(privacy.Ask{Study: s.study.Digest, Site: task.Site, Round: 1, Kind: task.Kind,
		Task: sha256.Sum256(task.Body)})
}

// carrying is a store of a site that has done something before.
type carrying struct {
	*sitestore.Memory
	state []byte
}

func (c carrying) State(study string) ([]byte, error) { return c.state, nil }

// FuzzAnswers tries any bytes as the answer of the first site of some study to each of its tasks in turn; excuses
// are those of [Options].
func FuzzAnswers(f *testing.F, m method.Method, cases map[string]Case, excuses ...string) {
	all, seeds := trials(f, m, cases, excuses...), map[string]bool{}
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

func trials(f *testing.F, m method.Method, cases map[string]Case, excuses ...string) (all []*trial) {
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		all = append(all, newTrial(f, m, cases[name], Options{Excuses: excuses}, name, board{}))
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
	text := "Changes to one leaf of an honest study's messages that are taken, and of how many cases.\n" +
		strings.Join(lines, "")
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
