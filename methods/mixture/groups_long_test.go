//go:build long

package mixture

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/method"
	"parley/method/methodtest"
	"parley/methods/mixture/fitted"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/sketch"
)

// shapes are laws of one feature within a group, with a variance of about 1; heavy is the factor of a row.
var shapes = map[string]func(r *rand.Rand) float64{
	"normal": (*rand.Rand).NormFloat64,
	"skewed": func(r *rand.Rand) float64 { // a sum of four exponential numbers, of skewness 1
		return (r.ExpFloat64()+r.ExpFloat64()+r.ExpFloat64()+r.ExpFloat64())/2 - 2
	},
	"lognormal": func(r *rand.Rand) float64 { return (math.Exp(0.6*r.NormFloat64()) - 1.197) / 0.79 },
	"even":      func(r *rand.Rand) float64 { return math.Sqrt(12) * (r.Float64() - 0.5) },
	// over the root of a mean of four squares: Student's law, 4 degrees of freedom
	"heavy": (*rand.Rand).NormFloat64,
}

// Of rows drawn from groups that are at least 4 standard deviations apart, and from one group that two components
// share: how often the report says that groups are found, and how often that their shape is not normal.
func TestHowOftenGroupsAndShapeAreSaid(t *testing.T) {
	for _, c := range []struct {
		shape                   string
		features, groups, k     int
		studies                 int
		leastMisfit, mostMisfit int // studies whose shape is said not to be normal
		leastFound, mostFound   int // whose groups are said to be found
	}{
		{"normal", 3, 3, 3, 30, 0, 2, 28, 30}, {"normal", 2, 2, 2, 30, 0, 2, 28, 30},
		{"normal", 3, 1, 2, 20, 0, 2, 0, 1},
		{"skewed", 3, 3, 3, 8, 6, 8, 6, 8}, {"heavy", 4, 3, 3, 8, 6, 8, 6, 8}, {"lognormal", 3, 2, 2, 8, 6, 8, 6, 8},
		{"lognormal", 3, 1, 2, 10, 8, 10, 0, 1}, {"skewed", 4, 1, 2, 10, 6, 10, 0, 3},
		{"heavy", 3, 1, 2, 10, 0, 10, 0, 1},
		{"even", 2, 1, 2, 10, 8, 10, 0, 10}, // which two components halve, and seem to stand apart in
	} {
		misfits, found := 0, 0
		for seed := range uint64(c.studies) {
			v := drawnStudy(t, c.shape, c.features, c.groups, c.k, 600, 5000+seed)
			if v.misfits() {
				misfits++
			}
			if v.lost == 0 {
				found++
			}
		}
		t.Logf("%s, %d features, %d groups, K %d: of %d studies shape not normal %d, groups found %d", c.shape,
			c.features, c.groups, c.k, c.studies, misfits, found)
		if misfits < c.leastMisfit || misfits > c.mostMisfit || found < c.leastFound || found > c.mostFound {
			t.Errorf("that is not %d to %d, and %d to %d", c.leastMisfit, c.mostMisfit, c.leastFound, c.mostFound)
		}
	}
}

// drawnStudy is the report of a study of three sites without noise.
func drawnStudy(t *testing.T, shape string, d, groups, k, rows int, seed uint64) *view {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 99))
	means := gmm.NewMixture(groups, d)
	for least := 0.0; least < 4; {
		least = math.Inf(1)
		for j := range means.Means {
			means.Means[j] = 3 * r.NormFloat64()
		}
		for a := range groups {
			for b := range a {
				least = min(least, math.Sqrt(gmm.SquaredDistance(means.Mean(a), means.Mean(b))))
			}
		}
	}
	x := make([]float64, rows*d)
	for i := range rows {
		wide := 1.0
		if shape == "heavy" {
			squares := 0.0
			for range 4 {
				z := r.NormFloat64()
				squares += z * z
			}
			wide = math.Sqrt(2 / squares)
		}
		for j := range d {
			x[i*d+j] = means.Mean(i % groups)[j] + wide*shapes[shape](r)
		}
	}
	features := ""
	for j := range d {
		lo, hi := math.Inf(1), math.Inf(-1)
		for i := j; i < len(x); i += d {
			lo, hi = min(lo, x[i]), max(hi, x[i])
		}
		features += fmt.Sprintf("{name: f%d, range: [%v, %v]}, ", j+1, lo-(hi-lo)/7, hi+(hi-lo)/7)
	}
	s := known(fmt.Sprintf("parley: 1\nname: drawn\nseed: %d\nsites: [a]\nviews: [{name: v, features: [%s]}]\nmethod: "+
		"{name: mixture, components: %d}\nprivacy: {protection: none}\n", seed, features, k))
	all := &released{Sums: sumsAt(s.Of, x), Sites: []releasedSite{{"a", counted{Rows: float64(rows)}}}}
	o := testkit.Get(s.observation(all))(t)
	p := testkit.Get(s.posterior(o))(t)
	return testkit.Get(s.view(p, all))(t)
}

func sumsAt(f sketch.Frequencies, rows []float64) []float64 {
	sum, phi := make([]float64, f.Len()), make([]float64, f.Len())
	for row := range slices.Chunk(rows, f.Dim) {
		f.Features(phi, row)
		for i, v := range phi {
			sum[i] += v
		}
	}
	return sum
}

// Answers that pass every check, and that no rows give.
func TestTheStudyEndsOnAnswersThatNoRowsGive(t *testing.T) {
	type sums struct {
		Sums wire.Vector `cbor:"sums"`
		Rows int         `cbor:"rows"`
	}
	for _, c := range []struct {
		what, plan string
		every      int // of so many frequencies one has all rows; none if it is 0
	}{
		{"all at every frequency", "frequencies", 1}, {"no row at any frequency", "frequencies", 0},
		{"many rows at every other", "frequencies", 2}, {"many rows at one", "frequencies", 1 << 20},
	} {
		x := cases(t)[c.plan]
		d := &methodtest.Drive{Method: Method{}, Plan: x.Plan, Data: x.Data}
		d.Tamper = func(site string, in *method.Contribution) {
			var a sums
			switch {
			case site != "a":
			case wire.Unmarshal(in.Body, &a) == nil:
				a.Rows = fitted.MaxRows
				for i := range a.Sums {
					if a.Sums[i] = 0; c.every > 0 && i%c.every == 0 {
						a.Sums[i] = fitted.MaxRows
					}
				}
				in.Body = testkit.Get(wire.Marshal(a))(t)
			}
		}
		if _, err := d.Run(t); err != nil || len(d.Left) > 0 {
			t.Errorf("%s: %v left, %v", c.what, d.Left, err)
		}
	}
}
