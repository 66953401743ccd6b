package factors

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/problem"
)

// world is a population with known parameters.
type world struct {
	dims []int
	q    int
	w    [][]float64 // d × q
	mu   []float64
	sd   []float64 // of the noise, by view
}

// bounds are those of the loadings and means of each view.
var bounds = []float64{10, 5, 15}

// paperWorld draws parameters as the synthetic data of the Fed-mv-PPCA paper (section 4.1) have them, but with q
// factors: three views of 15, 8 and 10 features, which differ in size and noise.
func paperWorld(r *rand.Rand, q int) *world {
	x := &world{dims: []int{15, 8, 10}, q: q, sd: []float64{math.Sqrt2, 1, math.Sqrt(3)}}
	for k, bound := range bounds {
		for range x.dims[k] {
			row := make([]float64, x.q)
			for a := range row {
				row[a] = bound * (2*r.Float64() - 1)
			}
			x.w, x.mu = append(x.w, row), append(x.mu, bound*(2*r.Float64()-1))
		}
	}
	return x
}

// site moves every parameter by its own amount, of the given standard
// deviation relative to the size of its view's loadings.
func (x *world) site(r *rand.Rand, relative float64) *world {
	y := *x
	y.w, y.mu = nil, nil
	j := 0
	for k, d := range x.dims {
		sd := relative * bounds[k] / math.Sqrt(3) // of a uniform variable
		for range d {
			moved := slices.Clone(x.w[j])
			for a := range moved {
				moved[a] += sd * r.NormFloat64()
			}
			y.w, y.mu = append(y.w, moved), append(y.mu, x.mu[j]+sd*r.NormFloat64())
			j++
		}
	}
	return &y
}

// draw draws subjects whose factors have the given mean.
func (x *world) draw(r *rand.Rand, prefix string, n int, mean []float64) []dataset.Row {
	rows := make([]dataset.Row, n)
	f := make([]float64, x.q)
	for i := range rows {
		rows[i] = dataset.Row{ID: fmt.Sprintf("%s%04d", prefix, i)}
		for a := range f {
			f[a] = r.NormFloat64()
			if mean != nil {
				f[a] += mean[a]
			}
		}
		j := 0
		for k, d := range x.dims {
			values := make([]float64, d)
			for c := range values {
				values[c] = x.mu[j] + x.sd[k]*r.NormFloat64()
				for a, w := range x.w[j] {
					values[c] += w * f[a]
				}
				j++
			}
			rows[i].Views = append(rows[i].Views, values)
		}
	}
	return rows
}

// coverage hides each view in turn and returns the share of its values that
// the model's 90 % intervals hold: the mean over the views. The model has nothing to say of the
// subjects but what is excused.
func coverage(t testing.TB, m *fitted.Model, schema dataset.Schema, rows []dataset.Row, newSite bool,
	excused ...string) float64 {
	t.Helper()
	full := testkit.Get(dataset.NewTable(schema, rows))(t)
	truth, at := map[string]float64{}, 0
	for _, row := range rows {
		for k, v := range schema.Views {
			for j, c := range v.Columns {
				truth[row.ID+" "+c.Name] = row.Views[k][j]
			}
		}
	}
	share := 0.0
	for k := range schema.Views {
		var b bytes.Buffer
		n, notes, err := m.Impute(context.Background(), full.Without(k), &b,
			method.ImputeOptions{Level: 0.9, NewSite: newSite})
		notes = slices.DeleteFunc(notes, func(p problem.Problem) bool {
			return slices.ContainsFunc(excused, func(said string) bool { return strings.Contains(p.What, said) })
		})
		if err != nil || len(notes) > 0 {
			t.Fatal(err, notes)
		}
		records := testkit.Get(csv.NewReader(&b).ReadAll())(t)
		if n != len(records)-1 || n != len(rows)*len(schema.Views[k].Columns) {
			t.Fatalf("%d values imputed in %d lines", n, len(records)-1)
		}
		inside := 0
		for _, line := range records[1:] {
			low, _ := strconv.ParseFloat(line[5], 64)
			high, _ := strconv.ParseFloat(line[6], 64)
			if x := truth[line[0]+" "+line[2]]; low <= x && x <= high {
				inside++
			}
			at++
		}
		share += float64(inside) / float64(n) / float64(len(schema.Views))
	}
	return share
}

// meanAndError returns the mean and its standard error.
func meanAndError(x []float64) (mean, se float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v / n
	}
	for _, v := range x {
		se += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(se / (n - 1) / n)
}

// TestIntervalsHoldAfterASmallStudy draws 40 studies of three sites with twelve subjects each and
// imputes each view of 100 new subjects: 90 % intervals hold 88 to 92 %, at a new site no fewer, and
// with the parameters taken for known fewer than 86 %, so that the test can fail. With other seeds this fails in
// fewer than one of a thousand runs, by the standard errors (logged).
func TestIntervalsHoldAfterASmallStudy(t *testing.T) {
	const draws = 40
	for name, options := range map[string]string{"noise of a view": ", noise: view",
		"noise of a feature": ", noise: feature"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, known, newSite := make([]float64, draws), make([]float64, draws), []float64(nil)
			for seed := range got {
				r := rand.New(rand.NewPCG(uint64(seed), 73))
				x := paperWorld(r, 5)
				schema := viewsNamed(x.dims...)
				sites := make([][]dataset.Row, 3)
				for i := range sites {
					sites[i] = x.draw(r, string(rune('a'+i)), 12, nil)
				}
				m, _, _ := modelOf(t, ofRows(t, "", "latent: 5, site_means: pooled"+options, schema, sites))
				m.Verdicts = nil // so few subjects have some
				rows := x.draw(r, "n", 100, nil)
				got[seed] = coverage(t, m, schema, rows, false)
				if m.HasSpread() {
					newSite = append(newSite, coverage(t, m, schema, rows, true)-got[seed])
				}
				for k := range m.Views {
					m.Views[k].SamplingTimes = 0
				}
				known[seed] = coverage(t, m, schema, rows, false)
			}
			mean, se := meanAndError(got)
			without, _ := meanAndError(known)
			t.Logf("coverage %.4f, standard error %.4f; with parameters taken for known %.4f", mean, se, without)
			if mean < 0.88 || mean > 0.92 {
				t.Errorf("90 %% intervals hold %.1f %%", 100*mean)
			}
			if more, _ := meanAndError(newSite); len(newSite) < draws/2 || slices.Min(newSite) < -0.01 || more < 0 {
				t.Errorf("at a new site they hold %.4f more, in %d studies, and %.4f at least", more, len(newSite),
					slices.Min(newSite))
			}
			if without > 0.86 {
				t.Errorf("with the parameters taken for known 90 %% intervals hold %.1f %%: sampling costs nothing",
					100*without)
			}
		})
	}
}

// TestIntervalsHoldAtASiteNeverSeen draws sites whose loadings and means
// differ by 5 and by 20 % of the loadings' size, fits three of them, and
// imputes at six others: with what sites differ by, 90 % intervals hold 86 to
// 93 %; without it they hold fewer, so that the test can fail.
//
// With other seeds this fails in fewer than one of a thousand runs: the means are .92
// and .91 with standard errors of .001 and .004 (logged).
func TestIntervalsHoldAtASiteNeverSeen(t *testing.T) {
	const draws, fresh = 6, 6
	for i, sd := range []float64{0.05, 0.2} {
		t.Run(fmt.Sprint(sd), func(t *testing.T) {
			t.Parallel()
			plain, spread := make([]float64, draws), make([]float64, draws)
			for seed := range uint64(draws) {
				r := rand.New(rand.NewPCG(seed, 72))
				x := paperWorld(r, 5)
				schema := viewsNamed(x.dims...)
				sites := make([][]dataset.Row, 3)
				for i := range sites {
					sites[i] = x.site(r, sd).draw(r, "s", 90, nil)
				}
				m, _, _ := modelOf(t, ofRows(t, "", "latent: 5, scaling: view", schema, sites))
				for range fresh {
					rows := x.site(r, sd).draw(r, "n", 60, nil)
					plain[seed] += coverage(t, m, schema, rows, false, "as a group") / fresh
					spread[seed] += coverage(t, m, schema, rows, true) / fresh
				}
			}
			without, _ := meanAndError(plain)
			with, se := meanAndError(spread)
			t.Logf("coverage %.4f without the spread between sites, %.4f with it, standard error %.4f",
				without, with, se)
			if with < 0.86 || with > 0.93 {
				t.Errorf("90 %% intervals hold %.1f %%", 100*with)
			}
			if without > with-[]float64{0.01, 0.05}[i] {
				t.Errorf("without the spread 90 %% intervals hold %.1f %%: there is nothing to add", 100*without)
			}
		})
	}
}
