package private

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"parley/figure"
	"parley/internal/testkit"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/privacy/account"
	"parley/study"
)

// number is a measurement with the range that a clinician writes, and what one more unit of it does to log-odds.
type number struct {
	name      string
	low, high float64
	effect    float64
	draw      func(r *rand.Rand) float64
}

// category has levels with so many shares of the rows, and an effect of each beside the first.
type category struct {
	name            string
	shares, effects []float64
}

// table is what a study is about: numbers, categories, and log-odds where all numbers are at their means and all
// categories at their first levels.
type table struct {
	name       string
	numbers    []number
	categories []category
	odds       float64
	offset     *number
	third      []float64 // effects on the log-odds of a third class, of few, beside the first; of two classes nil
	// left is, of an outcome that is a number, what the rest leaves of it; nil of classes
	left *number
}

// centred are means and standard deviations of the numbers, which a public source may tell.
func (t *table) centred() (mean, sd []float64) {
	const many = 100_000
	r := rand.New(rand.NewPCG(7, 7))
	for _, x := range t.numbers {
		sum, square := 0.0, 0.0
		for range many {
			v := x.draw(r)
			sum, square = sum+v, square+v*v
		}
		mean = append(mean, sum/many)
		sd = append(sd, math.Sqrt(square/many-sum/many*sum/many))
	}
	return mean, sd
}

// rows draws so many subjects, with outcomes ±1, or 0 to 2 of three classes.
func (t *table) rows(n int, mean []float64, r *rand.Rand) (cells [][]float64, outcomes []float64) {
	const few = -2.7
	for range n {
		var row, f []float64
		for k, x := range t.numbers {
			v := min(max(x.draw(r), x.low), x.high)
			row, f = append(row, v), append(f, v-mean[k])
		}
		for _, x := range t.categories {
			level, u := 0, r.Float64()
			for ; level < len(x.shares)-1 && u > x.shares[level]; level++ {
				u -= x.shares[level]
			}
			row, f = append(row, float64(level)), append(f, make([]float64, len(x.shares)-1)...)
			if level > 0 {
				f[len(f)-len(x.shares)+level] = 1
			}
		}
		a, y := t.odds+floats.Dot(f, t.truth()), -1.0
		if t.offset != nil {
			v := t.offset.draw(r)
			row, a = append(row, v), a+v
		}
		switch u := r.Float64(); {
		case t.left != nil:
			y = a + t.left.draw(r)
		case t.third != nil:
			p := []float64{0, a, few + floats.Dot(f, t.third)}
			glm.SoftmaxOf(p)
			for y = 0; y < 2 && u > p[int(y)]; y++ {
				u -= p[int(y)]
			}
		case u < 1/(1+math.Exp(-a)):
			y = 1
		}
		cells, outcomes = append(cells, row), append(outcomes, y)
	}
	return cells, outcomes
}

// truth are the effects in the order of an encoding's features, without that of the intercept.
func (t *table) truth() (all []float64) {
	for _, x := range t.numbers {
		all = append(all, x.effect)
	}
	for _, x := range t.categories {
		all = append(all, x.effects[1:]...)
	}
	return all
}

// common is a plan of the table, with constants or without.
func (t *table) common(tb testing.TB, epsilon float64, mean, sd []float64) *common {
	tb.Helper()
	p := &study.Plan{Subjects: []string{"y"}, Sites: []string{"a"}, Views: []study.View{{Name: "v"}}}
	p.Privacy = study.Privacy{Protection: study.ProtectionDifferential, Unit: study.UnitSubject,
		Adjacency: account.AddRemove, Total: &account.Budget{Epsilon: epsilon, Delta: 1e-6}}
	o, classes := options.Default(), []string{"no", "yes"}
	if t.third != nil {
		classes = append(classes, "other")
	}
	o.Outcome = glm.Outcome{Column: "y", Levels: classes}
	if t.left != nil {
		o.Outcome = glm.Outcome{Column: "y", Range: &[2]float64{t.left.low, t.left.high}}
	}
	for k, x := range t.numbers {
		p.Views[0].Features = append(p.Views[0].Features,
			study.Feature{Name: x.name, Range: &[2]float64{x.low, x.high}})
		if mean != nil {
			o.Constants = append(o.Constants, glm.Constant{Feature: x.name, Centre: mean[k], Scale: sd[k]})
		}
	}
	for _, x := range t.categories {
		levels := []string{"l0", "l1", "l2", "l3", "l4"}[:len(x.shares)]
		p.Views[0].Features = append(p.Views[0].Features, study.Feature{Name: x.name, Kind: study.Category,
			Levels: levels})
	}
	if t.offset != nil {
		o.Offset, o.OffsetRange = "exposure", &[2]float64{t.offset.low, t.offset.high}
		p.Subjects = append(p.Subjects, o.Offset)
	}
	o.Fill(p, func(string) bool { return true })
	p.Method.Options = o
	s := testkit.Get(options.New(p))(tb)
	return testkit.Get(newCommon(s))(tb)
}

// outcome is how a study ended: its fits, the posterior in the features' own units, and what its report says first.
type outcome struct {
	fits     []*fit
	encoding *glm.Encoding
	q        glm.Normal
	effects  []glm.Effect
	units    units
	said     []string
	numbers  string // what is said of them
	noise    float64
	people   *figure.Table
	window   *options.Scale
}

// noise is the standard deviation of the noise of so many sites in what a task asks for.
func (c *common) noise(kind string, sites int) float64 {
	s := c.release(kind)
	unit := s.Bound
	if kind == taskProducts {
		unit *= s.Bound
	}
	return s.Mechanism.Noise * unit * math.Sqrt(float64(sites))
}

// encode brings cells to columns at units.
func (c *common) encode(tb testing.TB, m *options.Scale, histogram bool, cells [][]float64) (*glm.Encoding, []glm.Row) {
	tb.Helper()
	e := testkit.Get(c.encoding(m, histogram))(tb)
	rows := make([]glm.Row, len(cells))
	for i, row := range cells {
		cells := row[:len(e.Columns)] // and an offset
		testkit.Do(tb, e.Encode(cells, &rows[i]))
		for _, offset := range row[len(cells):] {
			rows[i].Offset = offset
		}
	}
	return e, rows
}

// ask makes the histograms of rows, with noise, and says what they tell, what the last are, and over which window.
func (c *common) ask(tb testing.TB, cells [][]float64, outcomes []float64, sites int, r *rand.Rand) (u units,
	last *released, window *options.Scale) {
	tb.Helper()
	for c.learned() && u.After < histograms {
		m := c.window(&u)
		_, rows := c.encode(tb, m, true, cells)
		all, v := make([]float64, bins*len(c.columns.told)), make([]float64, bins*len(c.columns.told))
		for i, x := range rows {
			clear(v)
			c.columns.histogram(&columnsTask{m, u.After > 0}, x, c.columns.outcome(m, x, outcomes[i]), v)
			for j := range v {
				all[j] += v[j]
			}
		}
		sd := c.noise(taskHistogram, sites)
		for j := range all {
			all[j] += sd * r.NormFloat64()
		}
		last, window = &released{all, sd * sd}, m
		u = c.tell(&u, last)
	}
	return u, last, window
}

// conduct makes a study of rows as the halves do, with the noise that the plan declares for so many sites.
func (c *common) conduct(tb testing.TB, cells [][]float64, outcomes []float64, sites int, r *rand.Rand) outcome {
	tb.Helper()
	co, site := coordinator{c}, c.Plan.Sites[0]
	st := testkit.Get(co.Init())(tb).(*state)
	st.Units, st.Sums[taskHistogram][site], st.Window = c.ask(tb, cells, outcomes, sites, r)
	units := c.scale(&st.Units)
	e, rows := c.encode(tb, units, false, cells)
	outcomes = slices.Clone(outcomes)
	for i, x := range rows {
		outcomes[i] = c.columns.outcome(units, x, outcomes[i])
	}
	noise := func(kind string) float64 { return c.noise(kind, sites) }
	s0, s := noise(taskTotals), noise(taskProducts)
	classes := make([]data, max(c.columns.classes, 1))
	for i, x := range rows {
		x = c.columns.row(x)
		rows[i] = x
		d := &classes[c.columns.class(outcomes[i])]
		d.rows, d.outcome = append(d.rows, x), append(d.outcome, outcomes[i])
	}
	most := 0
	for _, d := range classes {
		most = max(most, len(d.rows))
	}
	st.Scale = scaleOf(float64(most)+s0*r.NormFloat64(), s)
	totals, products := &released{Variance: s0 * s0}, &released{Variance: math.Pow(s*st.Scale*st.Scale, 2)}
	for _, d := range classes {
		sums, square := d.sums(c.columns, st.Scale, s0, s, r)
		totals.Values = append(totals.Values, sums...)
		for i := range c.columns.width() {
			for j := i; j < c.columns.width(); j++ {
				products.Values = append(products.Values, square.At(i, j)*st.Scale*st.Scale)
			}
		}
	}
	st.Sums[taskTotals][site], st.Sums[taskProducts][site] = totals, products
	st.Base = co.largestClass(st)
	sum, v := make([]float64, c.columns.scoresLen()), make([]float64, c.columns.scoresLen())
	for k := range c.Options.Rounds {
		sd := noise(taskLate)
		if k < burn(c.Options.Rounds) {
			sd = noise(taskEarly)
		}
		clear(sum)
		for i, x := range rows {
			clear(v)
			c.columns.scores(st.Base, st.asked(nil).points(), x, outcomes[i], v)
			floats.Add(sum, v)
		}
		for j := range sum {
			sum[j] += sd * r.NormFloat64()
		}
		for i, f := range st.Fits {
			f.Take(co.gram(st, i), co.gram(st, i).prior, sum[i*len(f.Mean):], sd)
		}
	}
	m, _ := co.posterior(st)
	out := outcome{st.Fits, e, testkit.Get(glm.NewNormal(m.Mean, m.Covariance))(tb), nil, st.Units, nil, "", m.Noise,
		co.baseline(st, e), st.Window}
	out.effects = e.Effects(out.q)
	for i, f := range st.Fits {
		g := co.gram(st, i)
		out.numbers += fmt.Sprint(co.misdescribed(st, g))
		for name, says := range map[string][]glm.Finding{"misdescribed": co.misdescribed(st, g),
			"hidden": co.hidden(st, i, g), "unsized": co.unsized(f, g),
			"unsettled": co.unsettled(f, g, f.last(g, g.prior)),
			"drowned":   co.drowned(f, g, f.last(g, g.prior), st.Units.Open)} {
			if len(says) > 0 {
				out.said = append(out.said, name)
			}
		}
	}
	return out
}

// score is the mean log-likelihood of new rows, and that of the shares of outcomes alone.
func (o *outcome) score(tb testing.TB, cells [][]float64, outcomes []float64) (score, base float64) {
	tb.Helper()
	var x glm.Row
	shares, each := map[float64]float64{}, 1/float64(len(cells))
	a, v, p := make([]float64, len(o.fits)+1), make([]float64, len(o.fits)+1), make([]float64, len(o.fits)+1)
	for i, row := range cells {
		testkit.Do(tb, o.encoding.Encode(row, &x))
		shares[outcomes[i]] += each
		if len(o.fits) == 1 {
			a, v := o.q.Activation(x, 0)
			score += glm.LogExpectSigmoid(a*outcomes[i], v) * each
			continue
		}
		for k := range a {
			a[k], v[k] = o.q.Activation(x, k*o.encoding.Width())
		}
		glm.Softmax{Classes: len(a)}.Predict(a, v, p)
		score += math.Log(p[int(outcomes[i])]) * each
	}
	for _, share := range shares {
		base += share * math.Log(share)
	}
	return score, base
}

// held are how many of the intervals of 90 % hold a table's effects, by class, of all of each.
func (o *outcome) held(t *table) (held [3]int, all int) {
	truth := [][]float64{t.truth()}
	if t.third != nil { // effects are beside the mean of all classes
		truth = [][]float64{make([]float64, len(t.third)), t.truth(), t.third}
	}
	for k := range truth {
		for j, effect := range truth[k] {
			for _, other := range truth {
				if len(truth) > 1 {
					effect -= other[j] / 3
				}
			}
			if e := o.effects[k*o.encoding.Width()+j]; math.Abs(e.Mean-effect) < 1.645*e.SD {
				held[k]++
			}
		}
	}
	return held, len(truth[0])
}

// Shapes from which numbers are made.
func normal(mean, sd float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return mean + sd*r.NormFloat64() }
}

func logNormal(median, sd float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return median * math.Exp(sd*r.NormFloat64()) }
}

// Table 1 holds what it says, whatever the rows: of its numbers .90 lie within 1.645 ±, and of 320 less than .85 by
// chance in one run of 300 (seeds are fixed). One in ten is in intensive care, where values are far from the others',
// one in a hundred has a rare level, one number has a heavy tail, one few whole values, and the outcome is seldom.
func TestTableOfPeopleIsTrue(t *testing.T) {
	ward := normal(80, 15)
	x := table{name: "people", odds: -2.5, numbers: []number{
		{"lactate", 0, 200, 0.05, logNormal(1.6, 1.2)},
		{"score", 0, 16, 0.1, func(r *rand.Rand) float64 { return math.Floor(r.ExpFloat64()) }},
		{"creatinine", 0, 3000, 0.001, ward}, {"crp", 0, 3000, 0.001, ward}},
		categories: []category{{"unit", []float64{0.9, 0.1}, []float64{0, 1}},
			{"rare", []float64{0.6, 0.39, 0.01}, []float64{0, 0.5, 1}}}}
	for _, of := range []struct {
		n       int
		epsilon float64
		seeds   uint64
	}{{4000, 1, 40}, {4000, 8, 40}, {40_000, 3, 12}} {
		held, all := map[string]float64{}, map[string]float64{}
		for seed := range of.seeds {
			r := rand.New(rand.NewPCG(seed, 115))
			cells, y := x.rows(of.n, []float64{3, 0.6, 80, 80}, r)
			for _, row := range cells {
				if row[4] == 1 {
					row[2], row[3] = 10*row[2]+300*r.ExpFloat64(), 12*row[3]
				}
			}
			c := x.common(t, of.epsilon, nil, nil)
			c.Options.Rounds = 1 // of gradients, which the table does not need
			o := c.conduct(t, cells, y, 3, r)
			want := []float64{float64(of.n)}
			for k := range x.numbers {
				var values []float64
				for _, row := range cells {
					limits := coordinator{c}.described(&state{Window: o.window}, k)
					values = append(values, min(max(row[k], limits[0]), limits[bins]))
				}
				mean, sd := stat.MeanStdDev(values, nil)
				want = append(want, mean, sd)
			}
			shares := make([]float64, 7) // of two levels, of three, and of the outcome
			for i, row := range cells {
				for _, k := range []int{int(row[4]), 2 + int(row[5]), 5 + int(y[i]+1)/2} {
					shares[k] += 100 / float64(of.n)
				}
			}
			for i, is := range append(want, shares...) {
				kind := []string{"sd", "mean"}[i%2]
				if i == 0 || i > 2*len(x.numbers) {
					kind = "count"
				}
				cell := o.people.Columns[2].Text[i]
				var value, off float64
				if _, err := fmt.Sscanf(strings.Replace(cell, "−", "-", 1), "%f ± %f", &value, &off); err != nil {
					all[cell]++
					continue
				}
				if all[kind]++; math.Abs(value-is) <= within*off {
					held[kind]++
				}
			}
		}
		t.Logf("%d subjects, ε %v: held %v of %v", of.n, of.epsilon, held, all)
		for kind := range held {
			if held[kind] < 0.85*all[kind] {
				t.Errorf("%d subjects, ε %v: %v of %v %ss", of.n, of.epsilon, held[kind], all[kind], kind)
			}
		}
		if all[drowned] > float64(of.seeds) || all["count"] < 8*float64(of.seeds) {
			t.Errorf("%d subjects, ε %v: %v", of.n, of.epsilon, all)
		}
	}
}
