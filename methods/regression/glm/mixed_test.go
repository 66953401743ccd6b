package glm

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"parley/internal/testkit"
	"parley/method"
)

// families are the likelihoods that take a random intercept, with draws of outcomes.
var families = []struct {
	name string
	l    Likelihood
	draw func(r *rand.Rand, a float64) float64
}{
	{"logistic", Logistic{}, func(r *rand.Rand, a float64) float64 {
		if r.Float64() < 1/(1+math.Exp(-a)) {
			return 1
		}
		return -1
	}},
	{"poisson", Poisson{}, func(r *rand.Rand, a float64) float64 {
		k, left := 0.0, math.Exp(a) // arrivals until time exp(a)
		for left -= r.ExpFloat64(); left > 0; left -= r.ExpFloat64() {
			k++
		}
		return k
	}},
	{"linear", Linear{Variance: 0.7}, func(r *rand.Rand, a float64) float64 {
		return a + math.Sqrt(0.7)*r.NormFloat64()
	}},
}

// site draws a design of two features and an intercept, under weights and a site's own
// intercept. Rows have offsets and weights if varied.
func site(r *rand.Rand, family int, n int, weights []float64, b float64, varied bool) *Design {
	d := NewDesign(len(weights))
	for range n {
		x := Row{}
		a := b
		for j, w := range weights {
			v := r.NormFloat64()
			if j == len(weights)-1 {
				v = 1
			}
			x.Index, x.Value = append(x.Index, int32(j)), append(x.Value, v)
			a += v * w
		}
		if varied {
			x.Offset, x.Weight = r.NormFloat64()/2, 0.5+r.Float64()
			a += x.Offset
		}
		if err := d.Append(x, families[family].draw(r, a)); err != nil {
			panic(err)
		}
	}
	return d
}

func nearBy(t rapid.TB, what string, want, got, tol float64) {
	t.Helper()
	if !(math.Abs(want-got) <= tol*(1+math.Abs(want))) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

func TestDerivativesAreThoseOfTheMarginal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		f := rapid.IntRange(0, len(families)-1).Draw(t, "family")
		d := site(r, f, rapid.IntRange(1, 30).Draw(t, "rows"), []float64{0.5, -1, 0.3}, r.NormFloat64(), true)
		m := testkit.Get(New(families[f].l, d))(t)
		x := MixedPoint{Weights: []float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()},
			LogTau: rapid.Float64Range(-3, 0.3).Draw(t, "ln τ")}
		move := func(i int, by float64) MixedPoint {
			y := MixedPoint{append([]float64(nil), x.Weights...), x.LogTau}
			if i == 3 {
				y.LogTau += by
			} else {
				y.Weights[i] += by
			}
			return y
		}
		at := func(x MixedPoint) *Derivatives {
			return testkit.Get(m.At(x))(t)
		}
		const h = 1e-5 // of counts with large rates, the third derivative is large
		here := at(x)
		place := 0
		for i := range 4 {
			up, down := at(move(i, h)), at(move(i, -h))
			nearBy(t, "gradient", (up.Value-down.Value)/(2*h), here.Gradient[i], 1e-4)
			for j := range i + 1 {
				nearBy(t, "curvature", -(up.Gradient[j]-down.Gradient[j])/(2*h), here.Information[place], 1e-4)
				place++
			}
		}
	})
}

// The value against the trapezoidal rule, for sites of one row and of thousands.
func TestTheMarginalAgainstIntegration(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for f, family := range families {
		for _, n := range []int{1, 5, 60, 3000} {
			for _, tau := range []float64{0.05, 0.8, 3} {
				d := site(r, f, n, []float64{0.5, -1, 0.3}, tau*r.NormFloat64(), true)
				m := testkit.Get(New(family.l, d))(t)
				x := MixedPoint{[]float64{0.4, -0.9, 0.2}, math.Log(tau)}
				got := testkit.Get(m.At(x))(t)
				own := m.Intercept(x)
				// Centred where the mass is, and as wide as it: nothing of it is assumed there.
				s := math.Sqrt(own.Variance)
				const steps = 400
				top, terms := math.Inf(-1), make([]float64, steps+1)
				for i := range terms {
					b := own.Mean + s*(-12+24*float64(i)/steps)
					v, _, _ := m.rows(b)
					terms[i] = v - b*b/(2*tau*tau) - math.Log(tau) - math.Log(2*math.Pi)/2
					top = max(top, terms[i])
				}
				var sum, mean, square float64
				for i, v := range terms {
					z := -12 + 24*float64(i)/steps
					p := math.Exp(v-top) * 24 / steps * s
					sum, mean, square = sum+p, mean+p*z, square+p*z*z
				}
				tolerance := 1e-6
				if n == 1 && tau > 1 {
					tolerance = 1e-3 // a prior that is wide, and one subject who says little
				}
				nearBy(t, family.name+": value", top+math.Log(sum), got.Value, tolerance)
				nearBy(t, family.name+": mean of the intercept", own.Mean, own.Mean+s*mean/sum, max(tolerance, 1e-5))
				nearBy(t, family.name+": its variance", 1, square/sum, max(10*tolerance, 1e-4))
			}
		}
	}
}

// With normal outcomes the rows are jointly normal, and everything has a closed form.
func TestNormalOutcomesHaveAClosedForm(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const n, tau, noise = 12, 0.9, 0.7
	d := site(r, 2, n, []float64{0.5, -1, 0.3}, 0.6, false)
	m := testkit.Get(New(Linear{Variance: noise}, d))(t)
	x := MixedPoint{[]float64{0.1, -0.5, 0.4}, math.Log(tau)}
	cov := mat.NewSymDense(n, nil)
	res := mat.NewVecDense(n, nil)
	sum := 0.0
	for i := range n {
		a, _ := d.Row(i).Activation(x.Weights, make([]float64, 3))
		res.SetVec(i, d.Outcome(i)-a)
		sum += d.Outcome(i) - a
		for j := range i + 1 {
			v := tau * tau
			if i == j {
				v += noise
			}
			cov.SetSym(i, j, v)
		}
	}
	var l mat.Cholesky
	if !l.Factorize(cov) {
		t.Fatal("no covariance")
	}
	var sol mat.VecDense
	testkit.Do(t, l.SolveVecTo(&sol, res))
	want := -(n*math.Log(2*math.Pi) + l.LogDet() + mat.Dot(res, &sol)) / 2
	got := testkit.Get(m.At(x))(t)
	nearBy(t, "value", want, got.Value, 1e-12)
	own := m.Intercept(x)
	variance := 1 / (1/(tau*tau) + n/noise)
	nearBy(t, "variance of the intercept", variance, own.Variance, 1e-10)
	nearBy(t, "its mean", variance*sum/noise, own.Mean, 1e-10)
	for j := range 3 {
		s := 0.0
		for i := range n {
			s -= d.Row(i).Value[j]
		}
		nearBy(t, "its slope", variance*s/noise, own.Slope[j], 1e-10)
	}
}

// search runs a whole search over sites, and counts exchanges.
func search(t testing.TB, p Prior, sites []*Marginal, most int) (*Posterior, int) {
	t.Helper()
	s := NewSearch(p)
	for exchange := 1; ; exchange++ {
		points := s.Ask()
		sums := make([]*Derivatives, len(points))
		for i, x := range points {
			sums[i] = NewDerivatives(len(x.Weights) + 1)
			for _, m := range sites {
				method.AddSums(sums[i], testkit.Get(m.At(x))(t))
			}
		}
		q := testkit.Get(s.Tell(p, sums, most))(t)
		if q != nil {
			return q, exchange
		}
	}
}

// drawn draws sites of n rows each.
func drawn(t testing.TB, r *rand.Rand, family, sites, n int, weights []float64, tau float64) (all []*Marginal) {
	for range sites {
		m := testkit.Get(New(families[family].l, site(r, family, n, weights, tau*r.NormFloat64(), false)))(t)
		all = append(all, m)
	}
	return all
}

// With normal outcomes the posterior given τ is normal and known, so that the whole
// posterior is one integral over τ, taken here on a grid of 20 000 points.
func TestTheSearchFindsTheExactPosteriorOfNormalOutcomes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, sites := range []int{3, 12} {
		const n, noise = 20, 0.7
		all := drawn(t, r, 2, sites, n, []float64{0.5, -1, 0.3}, 0.6)
		p := Prior{Weights: Isotropic(3, 0, 4), Tau: TauScale(noise)}
		got, exchanges := search(t, p, all, 40)
		if exchanges > 10 {
			t.Errorf("%d sites: %d exchanges", sites, exchanges)
		}
		const points = 20000
		var total, square float64
		cumulated := make([]float64, points)
		var taus [points]float64
		logP := make([]float64, points)
		means, seconds := make([][3]float64, points), make([][6]float64, points)
		top := math.Inf(-1)
		for k := range points {
			tau := 6 * (float64(k) + 0.5) / points
			taus[k] = tau
			// Precision and linear term of the weights, with intercepts integrated out.
			prec, lin := mat.NewSymDense(3, nil), mat.NewVecDense(3, nil)
			for j := range 3 {
				prec.SetSym(j, j, 0.25)
			}
			value := 0.0
			shrink := tau * tau / (noise + n*tau*tau)
			for _, m := range all {
				var sx, sxy [3]float64
				sy, syy := 0.0, 0.0
				for i := range n {
					x, y := m.data.Row(i).Value, m.data.Outcome(i)
					sy, syy = sy+y, syy+y*y
					for a := range 3 {
						sx[a] += x[a]
						sxy[a] += x[a] * y
						for b := range a + 1 {
							prec.SetSym(a, b, prec.At(a, b)+x[a]*x[b]/noise)
						}
					}
				}
				for a := range 3 {
					lin.SetVec(a, lin.AtVec(a)+(sxy[a]-shrink*sx[a]*sy)/noise)
					for b := range a + 1 {
						prec.SetSym(a, b, prec.At(a, b)-shrink*sx[a]*sx[b]/noise)
					}
				}
				value -= (syy-shrink*sy*sy)/(2*noise) + math.Log(1+n*tau*tau/noise)/2
			}
			var l mat.Cholesky
			if !l.Factorize(prec) {
				t.Fatal("no precision")
			}
			var mean mat.VecDense
			testkit.Do(t, l.SolveVecTo(&mean, lin))
			var cov mat.SymDense
			testkit.Do(t, l.InverseTo(&cov))
			logP[k] = value + mat.Dot(&mean, lin)/2 - l.LogDet()/2 - tau*tau/(2*p.Tau*p.Tau)
			top = max(top, logP[k])
			at := 0
			for a := range 3 {
				means[k][a] = mean.AtVec(a)
				for b := range a + 1 {
					seconds[k][at] = cov.At(a, b) + mean.AtVec(a)*mean.AtVec(b)
					at++
				}
			}
		}
		var mean [3]float64
		var second [6]float64
		for k := range points {
			w := math.Exp(logP[k] - top)
			total += w
			cumulated[k] = total
			square += w * taus[k] * taus[k]
			for j := range mean {
				mean[j] += w * means[k][j]
			}
			for j := range second {
				second[j] += w * seconds[k][j]
			}
		}
		quantile := func(p float64) float64 {
			k := 0
			for cumulated[k] < p*total {
				k++
			}
			return taus[k]
		}
		nearBy(t, "median of τ", quantile(0.5), got.Tau.Median, 0.001)
		nearBy(t, "5 % quantile of τ", quantile(0.05), got.Tau.Low, 0.001)
		nearBy(t, "95 % quantile of τ", quantile(0.95), got.Tau.High, 0.001)
		nearBy(t, "mean square of τ", square/total, got.Tau.Square, 0.001)
		at := 0
		for a := range 3 {
			sd := math.Sqrt(second[a*(a+3)/2]/total - mean[a]*mean[a]/(total*total))
			nearBy(t, "mean", 0, (got.Mean[a]-mean[a]/total)/sd, 0.005)
			for b := range a + 1 {
				want := second[at]/total - mean[a]*mean[b]/(total*total)
				scale := math.Sqrt(
					(second[a*(a+3)/2]/total - mean[a]*mean[a]/(total*total)) * (second[b*(b+
						3)/2]/total - mean[b]*mean[b]/(total*total)))
				nearBy(t, "covariance", want/scale, got.Covariance[at]/scale, 0.005)
				at++
			}
		}
	}
}

// numbers reads a file of numbers apart by white space.
func numbers(t *testing.T, name string) (all []float64) {
	data := testkit.Get(os.ReadFile("testdata/" + name))(t)
	for _, s := range strings.Fields(string(data)) {
		v := testkit.Get(strconv.ParseFloat(s, 64))(t)
		all = append(all, v)
	}
	return all
}

// The whole posterior against an independent program: see testdata/README.md.
func TestAnotherImplementationAgrees(t *testing.T) {
	for f, family := range families[:2] {
		in, want := numbers(t, family.name+".txt"), numbers(t, family.name+".want")
		n, columns, sites := int(in[0]), int(in[1]), int(in[2])
		variance := in[5]
		p := Prior{Weights: Isotropic(columns, 0, variance), Tau: in[5+columns]}
		designs := make([]*Design, sites)
		for i := range designs {
			designs[i] = NewDesign(columns)
		}
		rows := in[6+columns:]
		for i := range n {
			r := rows[i*(4+columns):]
			x := Row{Offset: r[1], Weight: r[2]}
			for j, v := range r[4 : 4+columns] {
				x.Index, x.Value = append(x.Index, int32(j)), append(x.Value, v)
			}
			testkit.Do(t, designs[int(r[3])].Append(x, r[0]))
		}
		var all []*Marginal
		for _, d := range designs {
			m := testkit.Get(New(families[f].l, d))(t)
			all = append(all, m)
		}
		got, _ := search(t, p, all, 40)
		for j := range columns {
			sd := math.Sqrt(want[columns+j*columns+j])
			nearBy(t, "mean, in standard deviations", 0, (got.Mean[j]-want[j])/sd, 4e-4)
			for k := range j + 1 {
				scale := sd * math.Sqrt(want[columns+k*columns+k])
				nearBy(t, "covariance", want[columns+j*columns+k]/scale, got.Covariance[j*(j+1)/2+k]/scale, 1e-3)
			}
		}
		for i, v := range []float64{got.Tau.Low, got.Tau.Median, got.Tau.High, got.Tau.Square} {
			nearBy(t, "τ", want[columns+columns*columns+i], v, 5e-3)
		}
	}
}

// At no spread of sites is the marginal likelihood of a row or two convex in the weights,
// though the quadrature alone would have it so.
func TestSmallSitesAreConcave(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 2))
		m := testkit.Get(New(families[0].l, site(r, 0, 1+int(seed%2), []float64{0.5, -1, 0.3},
			r.NormFloat64(), true)))(t)
		for log := -4.0; log <= 6; log++ {
			d := testkit.Get(m.At(MixedPoint{Weights: []float64{3 * r.NormFloat64(), 3 * r.NormFloat64(),
				3 * r.NormFloat64()}, LogTau: log}))(t)
			for j := range 3 {
				if v := d.Information[Packed(j, j)]; v < 0 {
					t.Errorf("seed %d, ln τ %v: curvature %v of weight %d", seed, log, v, j)
				}
			}
		}
	}
}
