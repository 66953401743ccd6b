package private

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"parley/methods/regression/glm"
)

// example has numbers, a category of three levels and one of two, by reference.
func example(numbers int) *columns {
	c := &columns{features: numbers + 2}
	for j := range numbers {
		c.numbers = append(c.numbers, j)
		c.Feature, c.Category = append(c.Feature, j), append(c.Category, false)
	}
	c.Feature = append(c.Feature, numbers, numbers, numbers+1, -1)
	c.Category = append(c.Category, true, true, true, false)
	return c
}

// draw is one row of the example: correlated numbers, which decide about the last category.
func draw(c *columns, r *rand.Rand) glm.Row {
	var x glm.Row
	add := func(j int, v float64) { x.Index, x.Value = append(x.Index, int32(j)), append(x.Value, v) }
	common := r.NormFloat64()
	for _, j := range c.numbers {
		add(j, min(max(0.3+0.6*common+0.8*r.NormFloat64(), -4), 4))
	}
	d := c.width()
	if l := r.IntN(3); l > 0 {
		add(d-4+l-1, 1)
	}
	if common+r.NormFloat64() > 0.5 {
		add(d-2, 1)
	}
	add(d-1, 1)
	return x
}

type data struct {
	rows    []glm.Row
	outcome []float64
}

// simulate draws rows, and outcomes of which weights are true.
func simulate(c *columns, n int, w []float64, r *rand.Rand) (d data) {
	for range n {
		x := draw(c, r)
		a := 0.0
		for i, j := range x.Index {
			a += x.Value[i] * w[j]
		}
		y := -1.0
		if r.Float64() < 1/(1+math.Exp(-a)) {
			y = 1
		}
		d.rows, d.outcome = append(d.rows, x), append(d.outcome, y)
	}
	return d
}

// sums are those that sites release, with noise of the given standard deviations: of rows shortened
// by site and gate, the products of rows divided by a scale; of rows as they are if it is 0.
func (d data) sums(c *columns, scale, totals, products float64, r *rand.Rand) ([]float64, *mat.SymDense) {
	p := c.width()
	all, square := make([]float64, c.totalsLen()), mat.NewSymDense(p, nil)
	for i, x := range d.rows {
		v := make([]float64, len(all))
		c.totals(x, d.outcome[i], v)
		short := 1.0
		if scale > 0 {
			c.shorten(v)
			short = min(1, c.reach()*scale/x.Norm()) / scale
		}
		for j := range v {
			all[j] += v[j]
		}
		for i, j := range x.Index {
			for k := range i + 1 {
				square.SetSym(int(j), int(x.Index[k]), square.At(int(j), int(x.Index[k]))+
					short*short*x.Value[i]*x.Value[k])
			}
		}
	}
	for j := range all {
		all[j] += totals * r.NormFloat64()
	}
	for i := range p {
		square.SetSym(i, i, square.At(i, i)+products*r.NormFloat64())
		for j := range i {
			square.SetSym(i, j, square.At(i, j)+products/math.Sqrt2*r.NormFloat64())
		}
	}
	return all, square
}

// gradient is the sum that one round releases.
func (d data) gradient(m []float64, clip, sd float64, r *rand.Rand) []float64 {
	sum, v := make([]float64, len(m)), make([]float64, len(m))
	for i, x := range d.rows {
		clear(v)
		score(m, clip, x, d.outcome[i], v)
		for j := range v {
			sum[j] += v[j]
		}
	}
	for j := range sum {
		sum[j] += sd * r.NormFloat64()
	}
	return sum
}

// Without noise the Gram matrix is that of the rows.
func TestGramWithoutNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	c := example(3)
	d := simulate(c, 4000, make([]float64, c.width()), r)
	totals, products := d.sums(c, 0, 0, 0, r)
	g := newGram(c, totals, 0, products, 0, 1)
	if g.Rows != 4000 {
		t.Errorf("%v rows", g.Rows)
	}
	alike(t, "products", g.Matrix, products, 1e-6*4000)
}

// alike demands that no entries of two matrices differ by more than so much.
func alike(t *testing.T, what string, got, want mat.Matrix, most float64) {
	t.Helper()
	var off mat.Dense
	off.Sub(got, want)
	if x := max(mat.Max(&off), -mat.Min(&off)); !(x <= most) {
		t.Errorf("%s off by up to %v:\n%v\nwant\n%v", what, x, mat.Formatted(got), mat.Formatted(want))
	}
}

// Where noise drowns all products, they are those of independent features, and totals
// decide about the rest.
func TestGramShrinks(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	c := example(3)
	d := simulate(c, 4000, make([]float64, c.width()), r)
	totals, products := d.sums(c, 0, 1, 1e6, r)
	g := newGram(c, totals, 1, products, 1e12, 1)
	exact, _ := d.sums(c, 0, 0, 0, r)
	if want := exact[0] * exact[1] / 4000; math.Abs(g.Matrix.At(0, 1)-want) > 0.02*4000 {
		t.Errorf("product of numbers: %v, want %v", g.Matrix.At(0, 1), want)
	}
	if math.Abs(g.Rows-4000) > 5 || math.Abs(g.Matrix.At(0, 0)-2*exact[c.width()]) > 0.01*4000 {
		t.Errorf("%v rows with squares %v, want 4000 and %v", g.Rows, g.Matrix.At(0, 0), 2*exact[c.width()])
	}
}

// Sums of numbers that noise drowns are taken as centred, with squares alike, and the error
// that is told of each is about as large as the one that is made.
func TestPooledSumsShrink(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 1))
	c := example(30)
	d := simulate(c, 2000, make([]float64, c.width()), r)
	exact, products := d.sums(c, 0, 0, 0, r)
	const sd = 1500
	noised, _ := d.sums(c, 0, sd, 0, r)
	sum, square, _ := c.pooled(noised, sd*sd, products, 1e18, 1)
	var plain, made, told float64
	for k, j := range c.numbers {
		plain += math.Pow(noised[j]-exact[j], 2) + math.Pow(2*(noised[c.width()+k]-exact[c.width()+k]), 2)
		made += math.Pow(sum.value[j]-exact[j], 2) + math.Pow(square.value[j]-2*exact[c.width()+k], 2)
		told += sum.doubt[j] + square.doubt[j]
	}
	if made > plain/3 || told > plain {
		t.Errorf("squared errors of %.2g, of which %.2g are told, without shrinkage %.2g", made, told, plain)
	}
}

// With little noise nothing of importance is shrunk.
func TestPooledSumsStay(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 1))
	c := example(6)
	d := simulate(c, 4000, make([]float64, c.width()), r)
	exact, products := d.sums(c, 0, 0, 0, r)
	sum, square, _ := c.pooled(exact, 25, products, 25, 1)
	for k, j := range c.numbers {
		if math.Abs(sum.value[j]-exact[j]) > 5 || math.Abs(square.value[j]-2*exact[c.width()+k]) > 10 {
			t.Errorf("number %d: %v and %v, want %v and %v", j, sum.value[j], square.value[j], exact[j],
				2*exact[c.width()+k])
		}
	}
}

// Where the truth is spread around m, Hessian and sum are averages over where it may be:
// against ten draws of w for each of 20 000 rows, whose standard errors are below .3 %.
func TestExpectationsOverAPosterior(t *testing.T) {
	const n = 20_000
	r := rand.New(rand.NewPCG(14, 1))
	c := &columns{Feature: []int{0, 1, -1}, Category: make([]bool, 3), numbers: []int{0, 1}, features: 2}
	m, sd := []float64{1, -0.5, -1}, []float64{0, 0, 0.9} // the same variance for every row
	products := mat.NewSymDense(3, nil)
	covariance := mat.NewSymDense(3, nil)
	for j, s := range sd {
		covariance.SetSym(j, j, s*s)
	}
	var rows [][]float64
	for range n {
		x := []float64{0.3 + r.NormFloat64(), r.NormFloat64(), 1}
		rows = append(rows, x)
		products.SymRankOne(products, 1, mat.NewVecDense(3, x))
	}
	g := &gram{Columns: c, Matrix: products, Rows: n}
	const clip = 50 // none, so that h is p (1 − p) and its integral p
	hessian, shift := mat.NewSymDense(3, nil), make([]float64, 3)
	const draws = 10
	for _, x := range rows {
		at := 0.0
		for j := range x {
			at += x[j] * m[j]
		}
		for range draws {
			a := at
			for j := range x {
				a += x[j] * sd[j] * r.NormFloat64()
			}
			p := 1 / (1 + math.Exp(-a))
			hessian.SymRankOne(hessian, p*(1-p)/draws, mat.NewVecDense(3, x))
			for j := range x {
				shift[j] += (p - 1/(1+math.Exp(-at))) * x[j] / draws
			}
		}
	}
	got := g.expect(m, clip, g.spread(covariance))
	alike(t, "shift", mat.NewVecDense(3, got.Shift), mat.NewVecDense(3, shift), 0.003*n)
	alike(t, "Hessian", got.Hessian, hessian, 0.005*n)
}

// What a gradient is off by once it is carried along a step is at most three times what its noise
// tells, and of the first step at least a third: on the way to large effects, without noise of sites.
func TestCarriedGradientsTellTheirError(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 1))
	c := &columns{features: 6, numbers: []int{0, 1, 2, 3, 4, 5}, Feature: []int{0, 1, 2, 3, 4, 5, -1},
		Category: make([]bool, 7)}
	w := []float64{2, -1.5, 1, 3, 0, -2, -1}
	d := normalRows(20_000, w, r)
	totals, products := d.sums(c, 0, 0, 0, r)
	g, f, p := newGram(c, totals, 1e-6, products, 1e-6, 1), newFit(c, 20), priorOf(c)
	for range 4 {
		f.Take(g, p, d.gradient(f.Mean, f.Clip, 0, r), 1e-3)
		clip := f.Clip
		f.Clip = f.Clipped
		at := g.expect(f.Mean, f.Clip, 0)
		carried, noise := f.carried(g, at)
		off := 0.0
		for j, x := range d.gradient(f.Mean, f.Clip, 0, r) {
			off += math.Pow(f.Clip*x-at.Bias[j]-carried[j], 2) / float64(len(w))
		}
		if ratio := math.Sqrt(off / noise); !(ratio < 3) || f.Round == 1 && ratio < 1./3 {
			t.Errorf("round %d: off by %.1f, told %.1f", f.Round, math.Sqrt(off), math.Sqrt(noise))
		}
		f.Clip = clip
	}
}

// The clip is as short as it may be where noise outweighs people, and where it hardly counts longer than
// rows are.
func TestClipFollowsNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 1))
	c := example(4)
	d := simulate(c, 5000, make([]float64, c.width()), r)
	totals, products := d.sums(c, 0, 0, 0, r)
	g := newGram(c, totals, 0, products, 0, 1)
	f := newFit(c, 20)
	copy(f.Mean, []float64{1, -0.5, 0.5, 0.2, 0.4, -0.6, 0.8, -1.5})
	if short, long := f.choose(g, 1e4), f.choose(g, 0.1); short != c.reach()/4 || long < 2*c.reach() {
		t.Errorf("clips of %v and %v, want %v and at least %v", short, long, c.reach()/4, 2*c.reach())
	}
}

// A prior that is wide for the weights becomes narrower than the plan's, and one that is narrow for
// them wider, within a bound; one of a weight of its own stays, and so does its mean.
func TestPriorFollowsTheWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 1))
	c := example(20)
	for name, size := range map[string]float64{"small": 0.05, "large": 3} {
		w := make([]float64, c.width())
		for j := range w {
			w[j] = size * r.NormFloat64()
		}
		d := simulate(c, 20_000, w, r)
		totals, products := d.sums(c, 0, 1, 1, r)
		g := newGram(c, totals, 1, products, 1, 1)
		f, p := newFit(c, 20), priorOf(c)
		p.kind[0], p.precision[0], p.mean[0] = ownPrior, 1e8, 0.7
		for range 20 {
			f.Take(g, p, d.gradient(f.Mean, f.Clip, 1, r), 1)
		}
		if (f.Narrow[ofNumbers] > 2) != (name == "small") || (f.Narrow[ofNumbers] == p.widest) != (name == "large") {
			t.Errorf("%s weights: %v times the plan's precision", name, f.Narrow)
		}
		if math.Abs(f.Mean[0]-0.7) > 0.05 {
			t.Errorf("%s weights: the weight with a prior of its own is %v, want 0.7", name, f.Mean[0])
		}
	}
}

// What the model expects of clipped residuals is integrated to 3 %, and the smaller of .01/sd and .002,
// however widely activations spread: against far more nodes.
func TestExpectationsWhereActivationsSpread(t *testing.T) {
	for _, sd := range []float64{0.02, 0.3, 1, 3, 8, 20, 100} {
		for _, mean := range []float64{-20, -4, 0, 1.5, 7} {
			for _, k := range []float64{0.1, 0.25, 0.5, 1} {
				var want, got [3]float64
				const step = 2e-4
				for z := -8.0; z <= 8; z += step {
					h, _ := clipped(mean+sd*z, k, 1)
					w := step * math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
					for i, f := range []float64{1, z / sd, (z*z - 1) / (sd * sd)} {
						want[i] += w * h * f
					}
				}
				got[0], got[1], got[2] = derivatives(mean, sd*sd, k, 1)
				for i := range got {
					if math.Abs(got[i]-want[i]) > min(0.01/sd, 0.002)+0.03*math.Abs(want[i]) {
						t.Errorf("mean %v, sd %v, clip %v: κ%d is %v, want %v", mean, sd, k, i, got[i], want[i])
					}
				}
			}
		}
	}
}

// Stein's identity holds against rows that are normal, entry by entry: the sums of t x and
// h x xᵀ over 400 000 of them, whose standard errors are below .3 % of the largest.
func TestExpectationsOfNormalRows(t *testing.T) {
	const n = 400_000
	r := rand.New(rand.NewPCG(3, 1))
	// no numbers: norms that are alike for all
	c := &columns{Feature: []int{0, 1, 2, -1}, Category: make([]bool, 4), features: 3}
	m := []float64{0.9, -0.6, 0.4, -1.2}
	products, hessian, bias := mat.NewSymDense(4, nil), mat.NewSymDense(4, nil), make([]float64, 4)
	var rows [][]float64
	for range n {
		z := r.NormFloat64()
		x := []float64{0.5 + z, 0.7*z + 0.6*r.NormFloat64(), r.NormFloat64() - 0.3, 1}
		rows = append(rows, x)
		products.SymRankOne(products, 1, mat.NewVecDense(4, x))
	}
	const clip = 0.8
	g := &gram{Columns: c, Matrix: products, Rows: n}
	size := math.Sqrt(mat.Trace(products) / n)
	for _, x := range rows {
		a := 0.0
		for j := range x {
			a += x[j] * m[j]
		}
		h, b := clipped(a, clip/size, 1)
		hessian.SymRankOne(hessian, h, mat.NewVecDense(4, x))
		for j := range x {
			bias[j] += b * x[j]
		}
	}
	got := g.expect(m, clip, 0)
	alike(t, "bias", mat.NewVecDense(4, got.Bias), mat.NewVecDense(4, bias), 0.001*n)
	alike(t, "Hessian", got.Hessian, hessian, 0.002*n)
}

// Rows with large numbers are long, and clipped more: slopes have the Hessian of real clipping to a
// twelfth, of one feature or several.
func TestLongRowsAreClippedMore(t *testing.T) {
	const n, clip = 200_000, 0.8
	for _, features := range []int{1, 3, 8} {
		r := rand.New(rand.NewPCG(8, 1))
		c, w := numbersOnly(features), make([]float64, features+1)
		for j := range features {
			w[j] = 0.6 / math.Sqrt(float64(features))
		}
		products, want := mat.NewSymDense(features+1, nil), mat.NewSymDense(features+1, nil)
		for range n {
			x, square, a := make([]float64, features+1), 1.0, 0.0
			for j := range features {
				x[j] = r.NormFloat64()
				square, a = square+x[j]*x[j], a+x[j]*w[j]
			}
			x[features] = 1
			p, k := 1/(1+math.Exp(-a)), clip/math.Sqrt(square)
			row := mat.NewVecDense(features+1, x)
			products.SymRankOne(products, 1, row)
			want.SymRankOne(want, p*(1-p)*(min(1-p, k)+min(p, k)), row)
		}
		got := (&gram{Columns: c, Matrix: products, Rows: n}).expect(w, clip, 0).Hessian
		for j := range features {
			if ratio := got.At(j, j) / want.At(j, j); math.Abs(ratio-1) > 0.083 {
				t.Errorf("%d features, slope %d: %.3f of the Hessian", features, j, ratio)
			}
		}
	}
}

// At true weights the gate's clipping leaves a sum that the bias foretells to a fifth, of
// rows that are not normal.
func TestBiasOfClipping(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	c := example(4)
	w := []float64{1, -0.5, 0.5, 0.2, 0.4, -0.6, 0.8, -1.5}
	d := simulate(c, 200_000, w, r)
	totals, products := d.sums(c, 0, 0, 0, r)
	g := newGram(c, totals, 0, products, 0, 1)
	const clip = 0.7
	sum := d.gradient(w, clip, 0, r)
	at := g.expect(w, clip, 0)
	left, all := 0.0, 0.0
	for j := range w {
		left += math.Pow(clip*sum[j]-at.Bias[j], 2)
		all += math.Pow(clip*sum[j], 2)
	}
	if ratio := math.Sqrt(left / all); ratio > 0.2 {
		t.Errorf("the bias leaves %.2f of what clipping makes", ratio)
	}
}

// A contribution never exceeds the declared bound, however wild the row's numbers and the weights that
// a coordinator sends, and a row counts as one, of its levels too.
func TestContributionsAreBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	c := example(3)
	for range 2000 {
		x := draw(c, r)
		for i, j := range x.Index {
			if !c.Category[j] { // a level is 1
				x.Value[i] *= math.Exp(4 * r.NormFloat64())
			}
		}
		m := make([]float64, c.width())
		for j := range m {
			m[j] = 3 * r.NormFloat64()
			if r.IntN(20) == 0 {
				m[j] = math.Copysign(glm.FactorLargest, m[j])
			}
		}
		v := make([]float64, len(m))
		score(m, math.Exp(r.NormFloat64()), x, float64(2*r.IntN(2)-1), v)
		norm := 0.0
		for _, e := range v {
			norm += e * e
		}
		if !(math.Sqrt(norm) <= 1+1e-12) {
			t.Fatalf("norm %v, which is more than 1", math.Sqrt(norm))
		}
		v = make([]float64, c.totalsLen())
		c.totals(x, 1, v)
		c.shorten(v)
		norm = 0
		for j, e := range v {
			if norm += e * e; j < c.width() && c.Category[j] && e != 0 && e != 1 {
				t.Fatalf("a level counts as %v", e)
			}
		}
		if !(math.Sqrt(norm) <= c.totalsBound()*(1+1e-12)) || v[len(v)-1] != 1 {
			t.Fatalf("totals of norm %v, which is more than %v, with the count %v", math.Sqrt(norm),
				c.totalsBound(), v[len(v)-1])
		}
	}
}

// Intervals hold: of 40 simulated data sets of 3000 rows with 8 weights, with the noise of
// ten sites at ε of about 1 and 8, 90 % intervals hold the truth in .87 to .97 of the 320
// cases: .82 to .99 allows for three standard errors of .017, so that a false failure is
// rarer than 1 in 300 (noise and truths come from fixed seeds). The same numbers find faults
// that are planted: noise of which a tenth is told, sites that clip at a tenth of what they
// were asked for, and outcomes the wrong way round.
func TestIntervalsHoldAndFaultsShow(t *testing.T) {
	for name, c := range map[string]struct {
		fault  fault
		spread float64   // of the truth
		mu     []float64 // at which it is to be found, or all is well
		holds  bool
	}{
		"no fault":           {fault{told: 1, clips: 1, sign: 1}, 0.7, []float64{0.27, 1.6}, true},
		"large effects":      {fault{told: 1, clips: 1, sign: 1}, 2, []float64{1.6, 5}, true},
		"noise understated":  {fault{told: 0.1, clips: 1, sign: 1}, 0.7, []float64{0.27}, false},
		"clipped at a tenth": {fault{told: 1, clips: 0.1, sign: 1}, 0.7, []float64{1.6}, false},
		"outcomes turned":    {fault{told: 1, clips: 1, sign: -1}, 0.7, []float64{0.27, 1.6}, false},
	} {
		for _, mu := range c.mu {
			held, cases := 0, 0
			for seed := range uint64(40) {
				r := rand.New(rand.NewPCG(seed, 9))
				columns := example(4)
				w := make([]float64, columns.width())
				for j := range w {
					w[j] = c.spread * r.NormFloat64()
				}
				_, _, mean, covariance := rehearse(columns, simulate(columns, 3000, w, r), mu, 10, c.fault, r)
				for j := range w {
					if math.Abs(mean[j]-w[j]) <= 1.645*math.Sqrt(covariance.At(j, j)) {
						held++
					}
					cases++
				}
			}
			share := float64(held) / float64(cases)
			t.Logf("%s, μ %v: %.3f", name, mu, share)
			if holds := share >= 0.82 && share <= 0.99; holds != c.holds {
				t.Errorf("%s, μ = %v: 90 %% intervals hold the truth in %.3f of cases", name, mu, share)
			}
		}
	}
}

// fault is what is wrong with the halves of a rehearsal.
type fault struct {
	told  float64 // share of the noise's standard deviation that the coordinator is told
	clips float64 // where sites clip gradients, of where they were asked to
	sign  float64 // of outcomes
}

// priorOf is N(0, 1) of each weight.
func priorOf(c *columns) *prior {
	p := &prior{mean: make([]float64, c.width()), widest: widestOf(c.features, 1)}
	for j := range p.mean {
		kind := ownPrior
		if c.Feature[j] >= 0 {
			kind = ofNumbers
			if c.Category[j] {
				kind = ofLevels
			}
		}
		p.precision, p.kind = append(p.precision, 1), append(p.kind, kind)
	}
	return p
}

// rehearse fits with the noise of so many sites at a total signal over noise of mu, and returns how
// the fit ends.
func rehearse(c *columns, d data, mu float64, sites int, wrong fault,
	r *rand.Rand) (*fit, *gram, []float64, *mat.SymDense) {
	m := math.Sqrt(float64(sites)) / mu
	p := priorOf(c)
	s0 := m * c.totalsBound() / math.Sqrt(shareTotals)
	s := m * c.reach() * c.reach() / math.Sqrt(shareProducts)
	scale := scaleOf(float64(len(d.rows)), s)
	totals, products := d.sums(c, scale, s0, s, r)
	products.ScaleSym(scale*scale, products)
	s *= scale * scale
	g := newGram(c, totals, wrong.told*wrong.told*s0*s0, products, wrong.told*wrong.told*s*s, scale)
	for i := range d.outcome {
		d.outcome[i] *= wrong.sign
	}
	f := newFit(c, 20)
	for k := range 20 {
		sd := m / math.Sqrt(share(20, k))
		f.Take(g, p, d.gradient(f.Mean, wrong.clips*f.Clip, sd, r), wrong.told*sd)
	}
	mean, covariance := f.Mean, f.last(g, p).covariance
	return f, g, mean, covariance
}

// Whatever a row, its gradients for all pairs are together no longer than the clip; a row of the base alone is in all.
func TestScoresOfAllPairsAreShort(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 103))
	c := example(3)
	c.classes = 4
	d := c.width()
	for range 500 {
		points, base, y := make([]point, c.pairs()), r.IntN(4), r.IntN(4)
		for i := range points {
			points[i].Clip = math.Exp(2 * r.NormFloat64())
			for range d {
				points[i].Mean = append(points[i].Mean, 3*r.NormFloat64())
			}
		}
		v, pairs := make([]float64, len(points)*d), 0
		c.scores(base, points, draw(c, r), float64(y), v)
		for i := range points {
			if floats.Norm(v[i*d:][:d], 2) > 0 {
				pairs++
			}
		}
		if want := map[bool]int{true: 3, false: 1}[y == base]; floats.Norm(v, 2) > 1+1e-12 || pairs != want {
			t.Fatalf("class %d against %d: a norm of %v, in %d pairs", y, base, floats.Norm(v, 2), pairs)
		}
	}
}
