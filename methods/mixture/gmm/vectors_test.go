package gmm

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"testing"

	"parley/internal/testkit"
	"parley/internal/vectors"
)

// priorsFile has densities of priors, from an independent implementation.
type priorsFile struct {
	Schema    string `json:"schema"`
	Dirichlet []struct {
		Alpha []float64 `json:"alpha"`
		Pi    []float64 `json:"pi"`
		Log   float64   `json:"log_density"`
	} `json:"dirichlet"`
	Normal []struct {
		M      []float64   `json:"m"`
		Kappa  float64     `json:"kappa"`
		Nu     float64     `json:"nu"`
		Psi    [][]float64 `json:"Psi"`
		Mu     []float64   `json:"mu"`
		Sigma  [][]float64 `json:"Sigma"`
		LogIW  float64     `json:"log_invwishart"`
		LogN   float64     `json:"log_normal_given_sigma"`
		LogNIW float64     `json:"log_niw"`
		Mean   [][]float64 `json:"invwishart_mean"`
	} `json:"normal_inverse_wishart"`
	Box struct {
		Lo    []float64   `json:"lo"`
		Hi    []float64   `json:"hi"`
		K     int         `json:"K"`
		M     []float64   `json:"m"`
		Kappa float64     `json:"kappa"`
		Nu    float64     `json:"nu"`
		Psi   [][]float64 `json:"Psi"`
		Alpha []float64   `json:"alpha"`
	} `json:"default_prior_from_box"`
	Unconstrained []struct {
		U        []float64     `json:"u"`
		Pi       []float64     `json:"pi"`
		Mu       [][]float64   `json:"mu"`
		Sigma    [][][]float64 `json:"Sigma"`
		LogTheta float64       `json:"log_prior_theta"`
		LogU     float64       `json:"log_prior_u"`
	} `json:"unconstrained"`
}

// The floors keep entries near zero from asking for more digits than float64 has.
var (
	tolNumber = vectors.Tolerance{Rel: 1e-9, Floor: 1e-3}
	tolSolved = vectors.Tolerance{Rel: 1e-9, Floor: 1}
)

func (f *priorsFile) verify(list *vectors.List) error {
	for i, c := range f.Dirichlet {
		sum := 0.0
		for _, p := range c.Pi {
			sum += p
		}
		list.Float(fmt.Sprintf("dirichlet[%d].pi (sum)", i), 1, sum, tolNumber)
		list.Float(fmt.Sprintf("dirichlet[%d].log_density", i), c.Log, dirichletLogDensity(c.Alpha, c.Pi), tolNumber)
	}
	for i, c := range f.Normal {
		entry, d, sigma := fmt.Sprintf("normal_inverse_wishart[%d]", i), len(c.M), slices.Concat(c.Sigma...)
		spread := make([]float64, d*d)
		for k, v := range sigma {
			spread[k] = v / c.Kappa
		}
		p := Prior{Alpha: []float64{1}, Mean: c.M, Kappa: c.Kappa, Nu: c.Nu, Psi: slices.Concat(c.Psi...)}
		if err := errors.Join(p.Check(), checkPositiveDefinite(sigma, d)); err != nil {
			return err
		}
		list.Float(entry+".log_invwishart", c.LogIW, inverseWishartLogDensity(c.Nu, p.Psi, sigma, d), tolNumber)
		list.Float(entry+".log_normal_given_sigma", c.LogN, normalLogDensity(c.Mu, c.M, spread), tolNumber)
		list.Float(entry+".log_niw", c.LogNIW, logDensity(p, Mixture{Dim: d, Weights: []float64{1}, Means: c.Mu,
			Covs: sigma}), tolNumber)
		free := c.Nu - float64(d) - 1
		list.Equal(entry+".invwishart_mean (exists)", c.Mean != nil, free > 0)
		if c.Mean != nil {
			mean := slices.Clone(p.Psi)
			for k := range mean {
				mean[k] /= free
			}
			list.Floats(entry+".invwishart_mean", slices.Concat(c.Mean...), mean, tolNumber)
		}
	}
	box, err := BoxPrior(f.Box.Lo, f.Box.Hi, f.Box.K)
	if err != nil {
		return err
	}
	list.Floats("default_prior_from_box.m", f.Box.M, box.Mean, tolNumber)
	list.Floats("default_prior_from_box.kappa, nu", []float64{f.Box.Kappa, f.Box.Nu}, []float64{box.Kappa, box.Nu},
		tolNumber)
	list.Floats("default_prior_from_box.Psi", slices.Concat(f.Box.Psi...), box.Psi, tolNumber)
	list.Floats("default_prior_from_box.alpha", f.Box.Alpha, box.Alpha, tolNumber)
	for i, c := range f.Unconstrained {
		entry, m := fmt.Sprintf("unconstrained[%d]", i),
			Mixture{Dim: len(c.Mu[0]), Weights: c.Pi, Means: slices.Concat(c.Mu...)}
		for _, s := range c.Sigma {
			m.Covs = append(m.Covs, slices.Concat(s...)...)
		}
		if err := m.Check(); err != nil {
			return fmt.Errorf("%s: %w", entry, err)
		}
		to := Coordinates{K: m.Components(), Dim: m.Dim}
		u, back := make([]float64, to.Len()), NewMixture(to.K, to.Dim)
		if err := to.To(u, m); err != nil {
			return fmt.Errorf("%s: %w", entry, err)
		}
		to.From(back, c.U)
		list.Floats(entry+".u", c.U, u, tolSolved)
		list.Floats(entry+".pi", m.Weights, back.Weights, tolNumber)
		list.Floats(entry+".mu", m.Means, back.Means, tolNumber)
		list.Floats(entry+".Sigma", m.Covs, back.Covs, tolNumber)
		list.Float(entry+".log_prior_theta", c.LogTheta, logDensity(box, m), tolNumber)
		list.Float(entry+".log_prior_u", c.LogU, NewUnconstrained(box).LogDensity(c.U), tolNumber)
	}
	return nil
}

func TestVectorsAgreeAndChangedOnesDoNot(t *testing.T) {
	verify := func(file []byte) ([]vectors.Check, error) {
		return vectors.Run(file, map[string]func([]byte, *vectors.List) error{
			"graffl/priors/1": vectors.Format((*priorsFile).verify)})
	}
	for _, file := range testkit.Files(t, "testdata/priors.json", 1) {
		testkit.Agree(t, testkit.Get(verify(file))(t), 20)
		testkit.Changed(t, file, regexp.MustCompile("^$"), 60, verify)
	}
}

// dirichletLogDensity returns ln Dir(π | α), with respect to the first K − 1 weights.
func dirichletLogDensity(alpha, pi []float64) float64 {
	s := dirichletConstant(alpha)
	for k, a := range alpha {
		if a != 1 {
			s += (a - 1) * math.Log(pi[k])
		}
	}
	return s
}

// inverseWishartLogDensity returns ln IW(Σ | ν, Ψ), with respect to the entries of
// the lower triangle: −½[(ν+d+1) ln|Σ| − ν ln|Ψ| + tr(ΨΣ⁻¹)] − ½νd ln 2 − ln Γ_d(ν/2).
// It is −Inf where Σ is not positive definite.
func inverseWishartLogDensity(nu float64, psi, sigma []float64, d int) float64 {
	w, ok1 := newWishart(nu, psi, d)
	l := append([]float64(nil), sigma...)
	logDet, ok2 := Cholesky(l, d)
	if !ok1 || !ok2 {
		return math.Inf(-1)
	}
	return w.log(l, logDet)
}

// normalLogDensity returns ln N(x | mean, Σ); −Inf where Σ is not positive definite.
func normalLogDensity(x, mean, sigma []float64) float64 {
	d := len(x)
	l, e := append([]float64(nil), sigma...), make([]float64, d)
	logDet, ok := Cholesky(l, d)
	if !ok {
		return math.Inf(-1)
	}
	for i := range e {
		e[i] = x[i] - mean[i]
	}
	Forward(l, d, e)
	return -(float64(d)*math.Log(2*math.Pi) + logDet + Squares(e)) / 2
}

// logDensity returns ln p(θ), with respect to the first K − 1 weights, the means and
// the lower triangles of the covariances. It is −Inf where a covariance is not
// positive definite.
func logDensity(p Prior, m Mixture) float64 {
	d := p.Dim()
	s := dirichletLogDensity(p.Alpha, m.Weights)
	spread := make([]float64, d*d)
	for k := range m.Weights {
		s += inverseWishartLogDensity(p.Nu, p.Psi, m.Cov(k), d)
		for i, v := range m.Cov(k) {
			spread[i] = v / p.Kappa
		}
		s += normalLogDensity(m.Mean(k), p.Mean, spread)
	}
	return s
}
