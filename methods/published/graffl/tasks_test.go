package graffl

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/engine/local"
	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/options"
	"parley/methods/published/graffl/abc"
	"parley/study"
)

// The tasks of a plan cover its rounds once, and stay few.
func TestTasksCoverTheRounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := &Options{Rounds: rapid.IntRange(1, 100_000).Draw(t, "rounds")}
		tasks, first := 0, 0
		for first < o.Rounds {
			if first%o.batch() != 0 {
				t.Fatalf("a task begins with round %d, and batches have %d", first, o.batch())
			}
			first += o.together(first)
			tasks++
		}
		if first != o.Rounds || tasks != (rows{o}).Times(nil) || tasks > 256 || o.together(first) != 0 {
			t.Fatalf("%d tasks for %d rounds end at %d", tasks, o.Rounds, first)
		}
	})
}

// waiting is the coordinator of a small plan, and its state that waits for the first answers.
func waiting(t *testing.T, name string) (method.Coordinator, method.State) {
	t.Helper()
	p, _ := planned(t, small[name])
	c := testkit.Get(Method{}.Coordinator(p))(t)
	return c, testkit.Get(c.Next(testkit.Get(c.Init())(t)))(t).State
}

func packed(t *testing.T, v any) []byte {
	t.Helper()
	return testkit.Get(wire.Marshal(v))(t)
}

func ones(n int) wire.Vector { return slices.Repeat(wire.Vector{1}, n) }

// A site that answers another number of distances than it has rows and rounds, or
// twice, is refused.
func TestAnswersOfTheWrongLengthAreRefused(t *testing.T) {
	c, s := waiting(t, "rows")
	fold := func(site string, distances wire.Vector) error {
		_, err := c.Fold(s, method.Contribution{Site: site, Kind: taskDistances, Body: packed(t, distancesAnswer{Distances: distances})})
		return err
	}
	refused := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	next := func() {
		t.Helper()
		if _, err := c.Next(s); err != nil {
			t.Fatal(err)
		}
	}
	refused(fold("a", ones(4*leastBatch+1)), "as many in each as the site has rows")
	if err := fold("a", ones(4*leastBatch)); err != nil {
		t.Fatal(err)
	}
	refused(fold("a", ones(4*leastBatch)), "already answered")
	if err := fold("b", nil); err != nil { // a site may have no row with all features
		t.Fatal(err)
	}
	next()
	refused(fold("a", ones(5*leastBatch)), "5 rows from a site that had 4")
	refused(fold("a", nil), "0 rows from a site that had 4")
	if err := fold("a", ones(4*leastBatch)); err != nil {
		t.Fatal(err)
	}
	next() // the last has three rounds
	refused(fold("a", ones(4*leastBatch)), "as many in each")
	if err := fold("a", ones(4*3)); err != nil {
		t.Fatal(err)
	}
}

// A state between two tasks is of another plan, or damaged.
func TestStatesBetweenTasksAreRefused(t *testing.T) {
	c, _ := waiting(t, "rows")
	rounds := c.(*rowsCoordinator).own.Rounds
	kept := abc.Acceptance{Limit: 17}
	for name, s := range map[string]*rowsState{
		"inside a task":   {Iteration: 1, Kept: kept},
		"asked when done": {Iteration: rounds, Asked: true, Kept: kept},
		"too many":        {Folded: map[string]int{"a": rounds + 1}, Kept: kept},
	} {
		if _, err := c.Restore(packed(t, s)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	whole := &rowsState{Iteration: leastBatch, Asked: true, Kept: kept}
	if _, err := c.Restore(packed(t, whole)); err != nil {
		t.Error(err)
	}
}

// What sites answer about sets is taken as what it is, or refused.
func TestAnswersOfSetsAreChecked(t *testing.T) {
	for name, x := range map[string]struct {
		answer  discrepanciesAnswer
		problem string
	}{
		"fine":   {discrepanciesAnswer{ones(16), 3}, ""},
		"short":  {discrepanciesAnswer{ones(15), 3}, "where 16 were sent"},
		"signed": {discrepanciesAnswer{slices.Repeat(wire.Vector{-1}, 16), 3}, "not negative"},
		"rows":   {discrepanciesAnswer{ones(16), -3}, "-3 rows"},
	} {
		c, s := waiting(t, "sets")
		in := method.Contribution{Site: "a", Kind: taskDiscrepancies, Body: packed(t, x.answer)}
		_, err := c.Fold(s, in)
		if (x.problem == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), x.problem) {
			t.Errorf("%s: got %v, want %q", name, err, x.problem)
		}
		if err != nil {
			continue
		}
		for _, again := range []method.Contribution{in, {Site: "z", Kind: in.Kind, Body: in.Body}, {Site: "b", Kind: "else", Body: in.Body}} {
			if _, err := c.Fold(s, again); err == nil {
				t.Errorf("%s: taken from site %s as %q", name, again.Site, again.Kind)
			}
		}
	}
}

// A site trusts no task: what no study asks is refused before anything is read.
func TestTasksThatNoStudyAsksAreRefused(t *testing.T) {
	zeros := func(n int) wire.Vector { return make(wire.Vector, n) }
	bad := map[string][]any{
		"rows": {distancesTask{-1}, distancesTask{1}, distancesTask{leastBatch * 3}, "text"},
		"sets": {discrepanciesTask{}, discrepanciesTask{First: 160, Proposals: zeros(5)}, discrepanciesTask{Proposals: zeros(4)}, discrepanciesTask{First: -1, Proposals: zeros(5)}},
	}
	for at := range 5 { // a logit, two means, two logarithms of standard deviations
		for _, x := range []float64{1e75, -1e75, 1e308, -math.MaxFloat64} {
			u := zeros(5)
			u[at] = x
			bad["sets"] = append(bad["sets"], discrepanciesTask{Proposals: u})
		}
	}
	for name, bodies := range bad {
		p, _ := planned(t, small[name])
		half, kind := testkit.Get(Method{}.Site(p, "a"))(t), testkit.Get(setUp(p))(t).sampler().Task()
		for _, body := range bodies {
			if _, err := half.Run(t.Context(), method.Task{Kind: kind, Body: packed(t, body)}, nil); err == nil {
				t.Errorf("%s: %+v was answered", name, body)
			}
		}
		if _, err := half.Run(t.Context(), method.Task{Kind: "else"}, nil); err == nil {
			t.Errorf("%s: a task that the plan does not have was answered", name)
		}
	}
}

// lying is a coordinator that hears of site a what it likes, until that is taken.
type lying struct {
	method.Coordinator
	lie   func(in method.Contribution) method.Contribution
	taken *int
}

func (l lying) Fold(s method.State, in method.Contribution) (method.State, error) {
	before, err := s.MarshalBinary()
	if err != nil || in.Site != "a" {
		return l.Coordinator.Fold(s, in)
	}
	if next, err := l.Coordinator.Fold(s, l.lie(in)); err == nil {
		*l.taken++
		return next, nil
	}
	if s, err = l.Coordinator.Restore(before); err != nil {
		return nil, err
	}
	return l.Coordinator.Fold(s, in)
}

type liar struct {
	Method
	lying
}

func (l liar) Coordinator(p *study.Plan) (method.Coordinator, error) {
	c, err := l.Method.Coordinator(p)
	l.lying.Coordinator = c
	return l.lying, err
}

// Whatever the coordinator takes of a site that answers what it likes, the study ends with numbers.
func TestTheStudyEndsWhateverASiteAnswers(t *testing.T) {
	taken := 0
	for _, name := range []string{"rows", "sets", "mmd"} {
		for try := range testkit.Sized(30, 300) {
			r := rand.New(rand.NewPCG(uint64(try), 11))
			p, data := planned(t, small[name])
			spoil := func(v wire.Vector) {
				for i := range v {
					if try%3 == 0 || r.IntN(3) == 0 {
						v[i] = []float64{0, 1e-300, 1, 1e300, 0.9 * math.MaxFloat64}[r.IntN(5)]
					}
				}
			}
			lie := func(in method.Contribution) method.Contribution {
				if in.Kind == taskDistances {
					a := new(distancesAnswer)
					testkit.Do(t, method.DecodeAnswer(in, a))
					spoil(a.Distances)
					in.Body = packed(t, a)
					return in
				}
				a := new(discrepanciesAnswer)
				testkit.Do(t, method.DecodeAnswer(in, a))
				spoil(a.Across)
				if try%5 == 0 {
					a.Rows = options.MaxRows
				}
				in.Body = packed(t, a)
				return in
			}
			out, err := local.Run(t.Context(), local.Config{Plan: p, Methods: method.Registry{liar{lying: lying{lie: lie, taken: &taken}}}, Data: data})
			if err != nil {
				t.Fatalf("%s, try %d: %v", name, try, err)
			}
			for metric, x := range out.Result.Metrics {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					t.Errorf("%s, try %d: %s is %v", name, try, metric, x)
				}
			}
		}
	}
	if taken < 50 {
		t.Errorf("%d lies were taken: that is hardly a test", taken)
	}
}

// Sites take any task, and any shared model, without a panic, and coordinators any state.
func FuzzBytes(f *testing.F) {
	names := []string{"rows", "sets", "rows codes"}
	f.Add([]byte{0xa0})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range names {
			p, rows := planned(t, small[name])
			half, c := testkit.Get(Method{}.Site(p, "a"))(t), testkit.Get(Method{}.Coordinator(p))(t)
			if _, err := half.Report(t.Context(), data, rows["a"]); err != nil {
				t.Log(err)
			}
			s, err := c.Restore(data)
			if err != nil {
				continue
			}
			if _, err := c.Next(s); err != nil {
				t.Log(err)
			}
		}
	})
}

// Only the algorithm of rows goes on without a site: a threshold on sets would mean two things.
func TestSitesThatLeave(t *testing.T) {
	for name, goes := range map[string]bool{"rows": true, "sets": false} {
		p, _ := planned(t, small[name])
		c := testkit.Get(Method{}.Coordinator(p))(t)
		s, err := c.Leave(testkit.Get(c.Init())(t), "b")
		if (err == nil) != goes {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		if step := testkit.Get(c.Next(s))(t); len(step.Tasks) != 1 || step.Tasks[0].Site != "a" {
			t.Errorf("%s: %+v: want a task of site a alone", name, step.Tasks)
		}
	}
}

// A class that no site has is named.
func TestAClassThatNobodyHasIsNamed(t *testing.T) {
	for _, name := range []string{"rows codes", "sets class"} {
		p, _ := planned(t, strings.Replace(small[name], sick, strings.Replace(sick, "levels: [no, yes]}", "levels: [no, yes, maybe]}, class: maybe", 1), 1))
		_, data := planned(t, small[name])
		if _, err := local.Run(t.Context(), local.Config{Plan: p, Methods: methods, Data: data}); err == nil || !strings.Contains(err.Error(), "maybe") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A scan's set is a single point, whatever the plan's prior.
func TestTightSetsAreOnePoint(t *testing.T) {
	p, _ := toy(t, ", algorithm: sets, set: {rows: 5}", 1, 1)
	s := testkit.Get(setUp(p))(t)
	want := []float64{3.25, -7.5}
	each(s, 0, [][]float64{single(s, want)}, func(_ int, set []float64) {
		for k := 0; k < len(set); k += 2 {
			if e := math.Sqrt(gmm.SquaredDistance(set[k:k+2], want)); e > 1e-9 {
				t.Errorf("row %d of the set is %v", k/2, set[k:k+2])
			}
		}
		if len(set) != 10 {
			t.Errorf("a set of %d numbers", len(set))
		}
	})
}

func TestTwoDigits(t *testing.T) {
	for x, want := range map[float64]float64{1234: 1200, 0.0678: 0.068, 99.6: 100, 5: 5, 0: 0} {
		if got := twoDigits(x); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v is rounded to %v, want %v", x, got, want)
		}
	}
}
