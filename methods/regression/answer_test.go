package regression

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/method/methodtest"
	"parley/methods/regression/exact"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/privacy"
	"parley/privacy/privacytest"
	"parley/study"
)

// hostileNumbers are what a hostile site may write.
var hostileNumbers = []float64{0, 1, -1, 1e-300, 5e-324, 1e-60, 1e3, -1e3, 1e6, 1e9, -1e15, 1e30, -1e45, 1e59, 1e61, 1e75, -1e75, 1e150, 1e308, -1e308, math.MaxFloat64}

// spoil changes an exact answer: some of its numbers, or their number.
func spoil(t testing.TB, r *rand.Rand, in *method.Contribution) {
	t.Helper()
	var vectors []*wire.Vector
	var answer any
	decode := func(a any) {
		answer = a
		if err := wire.Unmarshal(in.Body, a); err != nil {
			t.Fatal(err)
		}
	}
	switch in.Kind {
	case options.TaskScale:
		a := new(options.ScaleAnswer)
		decode(a)
		vectors = []*wire.Vector{&a.N, &a.Mean, &a.Squares}
		if len(a.Levels) > 0 {
			vectors = append(vectors, &a.Levels)
		}
	case options.TaskAssess:
		a := new(predict.Assessment)
		decode(a)
		vectors = []*wire.Vector{&a.Count, &a.Expected, &a.Observed}
		if p := a.Periods; p != nil && r.IntN(3) > 0 {
			vectors = []*wire.Vector{&p.Rows, &p.Events, &p.Net, &p.Variance, &p.Score, &p.First, &p.Second, &p.Third, &p.Fourth}
		} else if s := anyResiduals(r, a); s != nil && r.IntN(3) > 0 {
			vectors = []*wire.Vector{&s.Score, &s.BinNet, &s.BinVariance, &s.Meat, &s.Bread, &s.MeatSquares, &s.Xs, &s.Tilt, &s.PairNet, &s.PairVariance, &s.PairBread, &s.PairSquares}
		}
		scalar := r.IntN(12)
		if scalar < 6 {
			vectors = nil
		}
		switch scalar {
		case 0:
			a.Rows, a.Correct = math.MaxInt, math.MaxInt
		case 1:
			a.LogLik = hostileNumbers[r.IntN(len(hostileNumbers))]
		case 2:
			a.Squares = hostileNumbers[r.IntN(len(hostileNumbers))]
		case 3:
			a.Noise = hostileNumbers[r.IntN(len(hostileNumbers))]
		case 4:
			a.Correct = -a.Correct
		case 5:
			a.LogLik = math.NaN()
		case 6:
			a.Classes, vectors = a.Classes[:len(a.Classes)/2], nil
		case 7:
			a.Classes, vectors = append(a.Classes, nil), nil
		}
	case "sums":
		a := new(exact.Sums)
		decode(a)
		vectors = []*wire.Vector{&a.Gradient, &a.Information}
		switch r.IntN(12) {
		case 0:
			a.Rows, vectors = math.MaxInt, nil
		case 1:
			a.Value, vectors = hostileNumbers[r.IntN(len(hostileNumbers))], nil
		case 2:
			a.Weight, vectors = hostileNumbers[r.IntN(len(hostileNumbers))], nil
		case 3:
			a.Classes, vectors = []float64{hostileNumbers[r.IntN(len(hostileNumbers))], 1, 1}, nil
		}
	case options.TaskUpdate:
		a := new(options.UpdateAnswer)
		decode(a)
		vectors = []*wire.Vector{&a.Change.Eta, &a.Change.Lambda}
	}
	x := hostileNumbers[r.IntN(len(hostileNumbers))]
	if len(vectors) > 0 && r.IntN(3) > 0 { // one of them alone
		i := r.IntN(len(vectors))
		vectors = vectors[i : i+1]
	}
	for _, v := range vectors {
		switch r.IntN(12) {
		case 0:
			*v = (*v)[:len(*v)/2]
		case 1:
			*v = append(*v, 1)
		case 2, 3:
			for i := range *v {
				(*v)[i] = x
			}
		case 4:
			for i := range *v {
				(*v)[i] *= 1e6
			}
		case 5:
			for i := range *v {
				(*v)[i] = -(*v)[i]
			}
		default:
			(*v)[r.IntN(len(*v))] = hostileNumbers[r.IntN(len(hostileNumbers))]
		}
	}
	if body, err := wire.Marshal(answer); err == nil {
		in.Body = body
	} else {
		in.Body = nil
	}
}

// hostileSums are integers of noised sums at the ends of what there is.
func hostileSums(r *rand.Rand) privacy.Option {
	return privacytest.Replaced(func(_ string, exact [][]int64) [][]int64 {
		ends := []int64{0, 1, -1, 1 << 62, -(1 << 62), math.MaxInt64, -math.MaxInt64, 1 << 40, -(1 << 50)}
		all := ends[r.IntN(len(ends))]
		mixed := r.IntN(2) == 0
		out := make([][]int64, len(exact))
		for i := range exact {
			out[i] = slices.Clone(exact[i])
			for j := range out[i] {
				switch {
				case !mixed:
					out[i][j] = all
				case r.IntN(2) == 0:
					out[i][j] = ends[r.IntN(len(ends))]
				}
			}
		}
		return out
	})
}

// A hostile site can spoil a study's result, and no more: an answer is refused when it is
// folded, or the study goes on with the other sites to its end.
func TestHostileSitesEndNoStudy(t *testing.T) {
	for _, plans := range []map[string]driven{exactPlans, privatePlans} {
		for name, x := range plans {
			t.Run(name, func(t *testing.T) {
				p := x.plan(t)
				data := dataFor(t, p)
				exact := !p.Privacy.Differential()
				refused, taken, seeds := 0, 0, 5
				if exact {
					seeds = 60
				}
				for seed := range seeds {
					r := rand.New(rand.NewPCG(uint64(seed), uint64(10*len(name))+uint64(name[len(name)-1])))
					d := methodtest.Drive{Method: Method{}, Plan: p, Data: data, Noise: map[string]privacy.Option{"b": hostileSums(r)}}
					d.Tamper = func(site string, in *method.Contribution) {
						only := []string{"", options.TaskScale, options.TaskUpdate, options.TaskAssess}[seed%4]
						if only == options.TaskUpdate && strings.HasPrefix(name, "joint") {
							only = "sums"
						}
						if site == "b" && len(in.Body) > 0 && r.IntN(3) > 0 && (only == "" || in.Kind == only) {
							spoil(t, r, in)
						}
					}
					if _, err := d.Run(t); err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					if slices.ContainsFunc(d.Left, func(site string) bool { return site != "b" }) {
						t.Fatalf("seed %d: left %v", seed, d.Left)
					}
					if refused += len(d.Left); len(d.Left) == 0 {
						taken++
					}
				}
				if exact && refused == 0 {
					t.Errorf("no answer was refused, %d studies went on", taken)
				}
				// Sums that are noise alone are an honest site's, as far as anybody can tell.
				if !exact && p.Method.Options.(*options.Options).Form == options.FormIndependent && refused > 0 {
					t.Errorf("noised sums were refused %d times", refused)
				}
			})
		}
	}
}

// Noise of any size is repaired at both ends: nobody leaves for it.
func TestNoiseOfAnySizeIsRepaired(t *testing.T) {
	for name, x := range privatePlans {
		p := x.plan(t)
		for seed := range uint64(4) {
			d := methodtest.Drive{Method: Method{}, Plan: p, Data: dataFor(t, p), Noise: map[string]privacy.Option{}}
			for i, site := range p.Sites {
				d.Noise[site] = hostileSums(rand.New(rand.NewPCG(seed, uint64(i))))
			}
			if _, err := d.Run(t); err != nil || len(d.Left) > 0 {
				t.Errorf("%s, seed %d: %v, left %v", name, seed, err, d.Left)
			}
		}
	}
}

// From the bytes of a release on: whatever is in them, it is refused, or the study
// goes on to its end.
func FuzzReleases(f *testing.F) {
	type fuzzed struct {
		plan *study.Plan
		data map[string]dataset.Source
		list []privacy.Listed
	}
	var all []fuzzed
	for i, name := range []string{"exact, logistic", "exact, softmax", "joint, softmax", "exact, linear", "softmax, diagnostics"} {
		x, ok := exactPlans[name]
		if !ok {
			x = privatePlans[name]
		}
		p := x.plan(f)
		list, err := Method{}.Requests(p, "b")
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, fuzzed{p, dataFor(f, p), list})
		d := methodtest.Drive{Method: Method{}, Plan: p, Data: all[i].data}
		if _, err := d.Run(f); err != nil {
			f.Fatal(err)
		}
		for _, sealed := range d.Releases["b"] {
			f.Add(uint8(i), sealed)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, sealed []byte) {
		x := all[int(which)%len(all)]
		for _, l := range x.list {
			o, err := privacy.Open(sealed, l.Request)
			if err != nil {
				continue
			}
			d := methodtest.Drive{Method: Method{}, Plan: x.plan, Data: x.data}
			d.Tamper = func(site string, in *method.Contribution) {
				if site == "b" && in.Kind == l.Kind {
					in.Body, in.Sums = o.Body, o.Sums
				}
			}
			if _, err := d.Run(t); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// anyResiduals are those of some activation; nil if an answer has none.
func anyResiduals(r *rand.Rand, a *predict.Assessment) *predict.Residuals {
	if n := len(a.Classes); n > 0 {
		return a.Classes[r.IntN(n)]
	}
	return a.Residuals
}
