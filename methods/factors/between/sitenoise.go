package between

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/mathext"

	"parley/internal/wire"
	"parley/methods/factors/ppca"
)

// Sums is what a site says of the residuals of its subjects, by view. For a subject with
// residuals r_j = t_j − w_jᵀ⟨x⟩ − μ_j, u = Σ_j r_j²/ψ_j over its values of the view, divided by
// what the model expects of that: 1 on average, if the model is right.
type Sums struct {
	Subjects wire.Vector `cbor:"subjects"` // who have the view
	U        wire.Vector `cbor:"u"`        // Σ u
	Squares  wire.Vector `cbor:"squares"`  // Σ u²
}

// NewSums returns sums of no subjects.
func NewSums(views int) *Sums {
	return &Sums{make(wire.Vector, views), make(wire.Vector, views), make(wire.Vector, views)}
}

// Values is how many numbers the sums hold.
func Values(views int) int { return 3 * views }

// Add takes in a subject, of whom the model says this, with its values in the order of the
// posterior's observed features, and x, what [ppca.Posterior.Latent] makes of them.
func (s *Sums) Add(model *ppca.Predictor, post *ppca.Posterior, values, x []float64) {
	l, md := model.Model()
	expected := post.ExpectedResiduals(l)
	i, end := 0, 0
	for k, d := range l.Dims {
		first, squares, expected := i, 0.0, expected[k]
		for end += d; i < len(post.Observed) && post.Observed[i] < end; i++ {
			j := post.Observed[i]
			r := values[i] - md.Mu[j]
			for a, w := range md.W[j*md.LD:][:len(x)] {
				r -= w * x[a]
			}
			squares += r * r / md.Psi[j]
		}
		if u := squares / expected; i > first && u < ppca.LargestValue { // else the factors take up all of it
			s.Subjects[k]++
			s.U[k] += u
			s.Squares[k] += u * u
		}
	}
}

// Check says what is wrong with sums that came from elsewhere.
func (s *Sums) Check(views int) error {
	if err := cmp.Or(ppca.Numbers("residuals", views, 0, s.Subjects, s.U, s.Squares),
		ppca.Counts("subjects with residuals", s.Subjects, ppca.LargestCount)); err != nil {
		return err
	}
	for k, n := range s.Subjects {
		// By Cauchy and Schwarz, rounding aside, and because none is negative.
		u, squares := s.U[k], s.Squares[k]
		if !(u >= 0 && u <= n*ppca.LargestValue) || !(squares*n >= u*u*(1-1e-9)) || !(squares <= u*u*(1+1e-9)) {
			return fmt.Errorf("residuals of view %d: %v subjects cannot have the sums %v and %v", k, n, u, squares)
		}
	}
	return nil
}

// most bounds what noise at a site can be, in that of the model.
const most = 1e6

// level is the probability with which [Estimate] is wrong about sites whose noise is the same,
// over all views.
const noiseLevel = 0.001

// Noise is what the noise variance of a view at a site is, in those of the model, with an
// interval of 90 %; all 1 where nothing is known.
type Noise struct {
	Times float64 `json:"times"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Estimate returns the noise of each view at each site; nil if in no view it differs by more than chance has it in one
// study of a thousand, by Bartlett's test (1937) with fewer degrees of freedom for heavy tails (Layard 1973). Where it
// differs, a site's is its posterior mean under an inverse gamma law, σ² ~ d₀s₀²/χ²_d₀ (Smyth 2004). With M the
// posterior covariance of the factors and A_k = W_kᵀΨ_k⁻¹W_k, noise c_k times the model's gives
//
//	E ū_k (d_k − tr MA_k) = tr M²A_k + c_k (d_k − 2 tr MA_k) + Σ_l c_l tr MA_lMA_k,
//
// of which c is the solution. Single missing cells are not in it.
func Estimate(predictor *ppca.Predictor, sites []SiteNoise) ([][]Noise, error) {
	l, _ := predictor.Model()
	out := make([][]Noise, len(sites))
	for i := range out {
		out[i] = slices.Repeat([]Noise{{1, 1, 1}}, l.Views())
	}
	solved := make([]solution, len(sites))
	known := map[string]*taken{} // by pattern: sites share them
	for i := range sites {
		var err error
		if solved[i], err = solve(predictor, &sites[i], known); err != nil {
			return nil, err
		}
	}
	differs := false
	for k, d := range l.Dims {
		v := newVariances(k, d, sites, solved)
		if !(v.test() < noiseLevel/float64(l.Views())) {
			continue
		}
		for i, x := range v.shrunken() {
			out[v.site[i]][k], differs = x, true
		}
	}
	if !differs {
		return nil, nil
	}
	return out, nil
}

// SiteNoise is what a site said: its sums, and how many of its subjects have which views.
type SiteNoise struct {
	*Sums
	Patterns []ppca.Pattern
	// OwnMean says that the residuals are about a mean of the site's own, from which its N
	// subjects are (N − 1)/N times as far in squares as from a mean that others tell.
	OwnMean bool
}

// Mean is the mean of u over the subjects who have a view.
func (s *SiteNoise) Mean(k int) float64 {
	n := s.Subjects[k]
	if s.OwnMean && n > 1 {
		n--
	}
	return s.U[k] / n
}

// solution is the noise of each view at a site, and how many degrees of freedom of ū are left
// to it; 0 where the factors take up nearly all noise.
type solution struct{ times, share []float64 }

// determined is the share of a view's noise that must be left by the factors.
const determined = 0.1

func solve(predictor *ppca.Predictor, site *SiteNoise, known map[string]*taken) (s solution, err error) {
	l, _ := predictor.Model()
	views := l.Views()
	s = solution{make([]float64, views), make([]float64, views)}
	system, right, rows := mat.NewDense(views, views, nil), mat.NewVecDense(views, nil), make([]float64, views)
	for _, pt := range site.Patterns {
		pattern, subjects := fmt.Sprint(pt.Views), float64(pt.Subjects)
		n := known[pattern]
		if n == nil {
			if n, err = newTaken(predictor, pt.Views); err != nil {
				return s, err
			}
			known[pattern] = n
		}
		for i, k := range n.views {
			rows[k] += subjects
			expected := n.width[i] - mat.Trace(n.ma[i])
			var m2a, mama mat.Dense
			m2a.Mul(n.m, n.ma[i])
			right.SetVec(k, right.AtVec(k)-subjects*mat.Trace(&m2a)/expected)
			system.Set(k, k, system.At(k, k)+subjects*(n.width[i]-2*mat.Trace(n.ma[i]))/expected)
			for e, other := range n.views {
				mama.Mul(n.ma[e], n.ma[i])
				system.Set(k, other, system.At(k, other)+subjects*mat.Trace(&mama)/expected)
			}
		}
	}
	for k, n := range rows {
		if !(n > 0 && site.Subjects[k] > 0 && system.At(k, k) > determined*n) {
			rows[k] = 0
			for e := range rows {
				system.Set(k, e, 0)
			}
			system.Set(k, k, 1)
			right.SetVec(k, 1)
			continue
		}
		right.SetVec(k, right.AtVec(k)+n*site.Mean(k))
	}
	var inverse mat.Dense
	if inverse.Inverse(system) != nil {
		return s, nil
	}
	var c mat.VecDense
	c.MulVec(&inverse, right)
	for k, n := range rows {
		if n == 0 {
			continue
		}
		mean := site.Mean(k)
		s.times[k] = max(c.AtVec(k), determined*mean)
		gain := inverse.At(k, k) * n * mean / s.times[k]
		s.share[k] = min(1/(gain*gain), 1)
	}
	return s, nil
}

// taken is what the factors take up of the noise of subjects who have some views.
type taken struct {
	views []int
	width []float64    // features of each view
	m     *mat.Dense   // M
	ma    []*mat.Dense // M A_k of each view
}

func newTaken(predictor *ppca.Predictor, views []int) (*taken, error) {
	l, md := predictor.Model()
	post, err := predictor.GivenViews(views)
	if err != nil {
		return nil, err
	}
	q, view := md.Q, l.ViewOf()
	t := &taken{m: mat.NewDense(q, q, slices.Clone(post.Cov))}
	for at := 0; at < len(post.Observed); {
		k, width := view[post.Observed[at]], 0
		a := mat.NewSymDense(q, nil)
		for ; at < len(post.Observed) && view[post.Observed[at]] == k; at++ {
			j := post.Observed[at]
			a.SymRankOne(a, 1/md.Psi[j], mat.NewVecDense(q, md.W[j*md.LD:][:q]))
			width++
		}
		ma := new(mat.Dense)
		ma.Mul(t.m, a)
		t.views, t.width, t.ma = append(t.views, k), append(t.width, float64(width)), append(t.ma, ma)
	}
	return t, nil
}

// variances are those of the sites that have a view, with their degrees of freedom.
type variances struct {
	site      []int
	s2, f     []float64
	all, pool float64 // Σ f, and the pooled variance
}

// newVariances takes the mean ū of a site's N subjects as a variance with f = 2N/κ degrees of freedom, κ being the
// squared coefficient of variation of u over the subjects of a site, pooled over sites, and at least the 2/d of
// normal values.
func newVariances(k, d int, sites []SiteNoise, solved []solution) (v variances) {
	squares, left := 0.0, 0.0
	for i, s := range sites {
		if mean := s.U[k] / s.Subjects[k]; mean > 1/ppca.LargestValue && solved[i].share[k] > 0 {
			v.site, v.s2, v.f = append(v.site, i), append(v.s2, solved[i].times[k]),
				append(v.f, s.Subjects[k]*solved[i].share[k])
			squares += max(0, s.Squares[k]/(mean*mean)-s.Subjects[k])
			left += s.Subjects[k] - 1
		}
	}
	kappa := 2 / float64(d)
	if left > 0 {
		kappa = max(kappa, squares/left)
	}
	for i := range v.f {
		v.f[i] *= 2 / kappa
		v.all += v.f[i]
		v.pool += v.f[i] * v.s2[i]
	}
	v.pool /= v.all
	return v
}

// test returns the p value of equal variances.
func (v *variances) test() float64 {
	between := float64(len(v.s2) - 1)
	if between < 1 {
		return 1
	}
	g, few := 0.0, -1/v.all
	for i, f := range v.f {
		g += f * math.Log(v.pool/v.s2[i])
		few += 1 / f
	}
	return mathext.GammaIncRegComp(between/2, max(0, g/(1+few/(3*between)))/2)
}

// shrunken are the posterior means and intervals.
func (v *variances) shrunken() []Noise {
	var z, w []float64
	sum, squares, mean := 0.0, 0.0, 0.0
	for i, f := range v.f {
		x := 1 / trigamma(f/2)
		z, w = append(z, math.Log(v.s2[i])-mathext.Digamma(f/2)+math.Log(f/2)), append(w, x)
		sum, squares, mean = sum+x, squares+x*x, mean+x*z[i]
	}
	mean /= sum
	q := -float64(len(z) - 1)
	for i := range z {
		q += w[i] * (z[i] - mean) * (z[i] - mean)
	}
	// By moments, as of a random-effects model (DerSimonian and Laird 1986).
	tau2 := max(q/(sum-squares/sum), 1e-6)
	sum, mean = 0, 0
	for i := range z {
		x := 1 / (1/w[i] + tau2)
		sum, mean = sum+x, mean+x*z[i]
	}
	half := inverseTrigamma(tau2) // d₀/2
	prior := 2 * half * math.Exp(mean/sum+mathext.Digamma(half)-math.Log(half))
	out := make([]Noise, len(z))
	for i, f := range v.f {
		total, freedom := prior+f*v.s2[i], 2*half+f
		times := func(x float64) float64 { return min(max(x, 1/most), most) }
		quantile := func(tail float64) float64 {
			return times(total / 2 / mathext.GammaIncRegCompInv(freedom/2, tail))
		}
		out[i] = Noise{times(total / max(freedom-2, freedom/2)), quantile(0.05), quantile(0.95)}
	}
	return out
}

// trigamma is ψ′(x), the Hurwitz zeta function of 2 and x.
func trigamma(x float64) float64 { return mathext.Zeta(2, x) }

// inverseTrigamma is the x above 0 of which ψ′(x) is y, which falls with x.
func inverseTrigamma(y float64) float64 {
	low, high := 1e-6, 1e9
	for range 200 {
		mid := math.Sqrt(low * high)
		if trigamma(mid) > y {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// At returns the parameters with the noise of each view times a number.
func At(l ppca.Layout, p *ppca.Params, times []float64) (*ppca.Params, error) {
	if len(times) == 0 {
		return p, nil
	}
	if len(times) != l.Views() {
		return nil, fmt.Errorf("the noise of %d views, not %d", len(times), l.Views())
	}
	out := *p
	out.Noise = make([]float64, len(p.Noise))
	view, group := l.ViewOf(), l.GroupOf()
	for j, g := range group {
		if x := times[view[j]]; x >= 1/most && x <= most {
			out.Noise[g] = p.Noise[g] * x
		} else {
			return nil, fmt.Errorf("the noise of a site's view is %v times that of the model", x)
		}
	}
	return &out, out.Check(l)
}
