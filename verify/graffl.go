package verify

import (
	"fmt"

	"parley/internal/vectors"
	"parley/methods/mixture/gmm"
	"parley/methods/published/graffl"
	"parley/privacy/account"
)

var mixtureFormats = map[string]func([]byte, *vectors.List) error{
	"graffl/priors/1":      vectors.Format((*priorsFile).verify),
	"graffl/setdistance/1": vectors.Format((*setDistanceFile).verify),
	"graffl/privacy/1":     vectors.Format((*privacyFile).verify),
}

// The description's tolerances; the floors keep entries near zero from asking for
// more digits than float64 has.
var (
	tolNumber = vectors.Tolerance{Rel: 1e-9, Floor: 1e-3}
	tolSolved = vectors.Tolerance{Rel: 1e-9, Floor: 1}
)

// flat joins rows that must all have one length.
func flatRows(what string, rows [][]float64, length int) ([]float64, error) {
	var out []float64
	for i, r := range rows {
		if len(r) != length {
			return nil, fmt.Errorf("row %d of %s has %d numbers: want %d", i, what, len(r), length)
		}
		out = append(out, r...)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no rows", what)
	}
	return out, nil
}

func width(rows [][]float64) int {
	if len(rows) == 0 {
		return 0
	}
	return len(rows[0])
}

type privacyFile struct {
	Schema        string `json:"schema"`
	Trilateration struct {
		Probes  [][]float64 `json:"probes"`
		Squared []float64   `json:"squared_distances"`
		Row     []float64   `json:"row"`
		Note    string      `json:"note"`
	} `json:"trilateration"`
	Gaussian []struct {
		Epsilon float64 `json:"epsilon"`
		Delta   float64 `json:"delta"`
		Value   float64 `json:"value"`
	} `json:"gaussian_mechanism_sigma_over_sensitivity"`
}

func (f *privacyFile) verify(list *vectors.List) error {
	d := len(f.Trilateration.Row)
	points, err := flatRows("probes", f.Trilateration.Probes, d)
	if err != nil {
		return err
	}
	row, err := graffl.Trilaterate(points, f.Trilateration.Squared, d)
	if err != nil {
		return err
	}
	list.Floats("trilateration.row", f.Trilateration.Row, row, tolSolved)
	for i, c := range f.Gaussian {
		got, err := account.AnalyticGaussian(c.Epsilon, c.Delta)
		if err != nil {
			return err
		}
		list.Float(fmt.Sprintf("gaussian_mechanism_sigma_over_sensitivity[%d]", i), c.Value, got, tolNumber)
	}
	return nil
}

// square reads a d × d matrix.
func square(what string, a [][]float64, d int) ([]float64, error) {
	if len(a) != d {
		return nil, fmt.Errorf("%s has %d rows: want %d", what, len(a), d)
	}
	out, err := flatRows(what, a, d)
	if err == nil {
		err = gmm.CheckPositiveDefinite(out, d)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return out, nil
}

// mixtureJSON is a parameter as the files write it.
type mixtureJSON struct {
	Pi    []float64     `json:"pi"`
	Mu    [][]float64   `json:"mu"`
	Sigma [][][]float64 `json:"Sigma"`
}

func (f mixtureJSON) mixture() (gmm.Mixture, error) {
	d := width(f.Mu)
	mu, err := flatRows("mu", f.Mu, d)
	if err != nil {
		return gmm.Mixture{}, err
	}
	m := gmm.Mixture{Dim: d, Weights: f.Pi, Means: mu}
	for _, s := range f.Sigma {
		cov, err := square("Sigma", s, d)
		if err != nil {
			return gmm.Mixture{}, err
		}
		m.Covs = append(m.Covs, cov...)
	}
	return m, m.Check()
}

// priorsFile is a file of densities of priors.
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
		U []float64 `json:"u"`
		mixtureJSON
		LogTheta float64 `json:"log_prior_theta"`
		LogU     float64 `json:"log_prior_u"`
	} `json:"unconstrained"`
}

func (f *priorsFile) verify(list *vectors.List) error {
	if err := f.dirichlet(list); err != nil {
		return err
	}
	if err := f.normal(list); err != nil {
		return err
	}
	box, err := f.box(list)
	if err != nil {
		return err
	}
	return f.unconstrained(box, list)
}

func (f *priorsFile) dirichlet(list *vectors.List) error {
	for i, c := range f.Dirichlet {
		sum := 0.0
		for _, p := range c.Pi {
			sum += p
		}
		if len(c.Pi) != len(c.Alpha) || len(c.Pi) == 0 {
			return fmt.Errorf("dirichlet[%d] has %d weights and %d α", i, len(c.Pi), len(c.Alpha))
		}
		entry := fmt.Sprintf("dirichlet[%d]", i)
		list.Float(entry+".pi (sum)", 1, sum, tolNumber)
		list.Float(entry+".log_density", c.Log, gmm.DirichletLogDensity(c.Alpha, c.Pi), tolNumber)
	}
	return nil
}

func (f *priorsFile) normal(list *vectors.List) error {
	for i, c := range f.Normal {
		entry, d := fmt.Sprintf("normal_inverse_wishart[%d]", i), len(c.M)
		psi, err := square("Psi", c.Psi, d)
		if err != nil {
			return err
		}
		sigma, err := square("Sigma", c.Sigma, d)
		if err != nil {
			return err
		}
		if len(c.Mu) != d || !(c.Kappa > 0) {
			return fmt.Errorf("%s: %d entries of μ and κ %v", entry, len(c.Mu), c.Kappa)
		}
		spread := make([]float64, d*d)
		for k, v := range sigma {
			spread[k] = v / c.Kappa
		}
		p := gmm.Prior{Alpha: []float64{1}, Mean: c.M, Kappa: c.Kappa, Nu: c.Nu, Psi: psi}
		if err := p.Check(); err != nil {
			return fmt.Errorf("%s: %w", entry, err)
		}
		list.Float(entry+".log_invwishart", c.LogIW, gmm.InverseWishartLogDensity(c.Nu, psi, sigma, d), tolNumber)
		list.Float(entry+".log_normal_given_sigma", c.LogN, gmm.NormalLogDensity(c.Mu, c.M, spread), tolNumber)
		list.Float(entry+".log_niw", c.LogNIW, p.LogDensity(gmm.Mixture{Dim: d, Weights: []float64{1}, Means: c.Mu, Covs: sigma}), tolNumber)
		mean := p.MeanCovariance()
		list.Equal(entry+".invwishart_mean (exists)", c.Mean != nil, mean != nil)
		if c.Mean != nil {
			want, err := flatRows("invwishart_mean", c.Mean, d)
			if err != nil {
				return err
			}
			list.Floats(entry+".invwishart_mean", want, mean, tolNumber)
		}
	}
	return nil
}

// box returns the prior that other entries are under.
func (f *priorsFile) box(list *vectors.List) (gmm.Prior, error) {
	box, err := gmm.BoxPrior(f.Box.Lo, f.Box.Hi, f.Box.K)
	if err != nil {
		return box, err
	}
	psi, err := square("Psi", f.Box.Psi, len(f.Box.M))
	if err != nil {
		return box, err
	}
	const entry = "default_prior_from_box"
	list.Floats(entry+".m", f.Box.M, box.Mean, tolNumber)
	list.Floats(entry+".kappa, nu", []float64{f.Box.Kappa, f.Box.Nu}, []float64{box.Kappa, box.Nu}, tolNumber)
	list.Floats(entry+".Psi", psi, box.Psi, tolNumber)
	list.Floats(entry+".alpha", f.Box.Alpha, box.Alpha, tolNumber)
	return box, nil
}

func (f *priorsFile) unconstrained(box gmm.Prior, list *vectors.List) error {
	for i, c := range f.Unconstrained {
		entry := fmt.Sprintf("unconstrained[%d]", i)
		m, err := c.mixture()
		if err != nil {
			return fmt.Errorf("%s: %w", entry, err)
		}
		to := gmm.Coordinates{K: m.Components(), Dim: m.Dim}
		if to.K != box.Components() || to.Dim != box.Dim() || len(c.U) != to.Len() {
			return fmt.Errorf("%s: %d components in %d dimensions and %d coordinates", entry, to.K, to.Dim, len(c.U))
		}
		u, back := make([]float64, to.Len()), gmm.NewMixture(to.K, to.Dim)
		if err := to.To(u, m); err != nil {
			return fmt.Errorf("%s: %w", entry, err)
		}
		to.From(back, c.U)
		list.Floats(entry+".u", c.U, u, vectors.Tolerance{Rel: 1e-9, Floor: 1})
		list.Floats(entry+".pi", m.Weights, back.Weights, tolNumber)
		list.Floats(entry+".mu", m.Means, back.Means, tolNumber)
		list.Floats(entry+".Sigma", m.Covs, back.Covs, tolNumber)
		list.Float(entry+".log_prior_theta", c.LogTheta, box.LogDensity(m), tolNumber)
		list.Float(entry+".log_prior_u", c.LogU, to.LogDensity(box, c.U), tolNumber)
	}
	return nil
}

// setDistanceFile is a file of discrepancies over some sites.
type setDistanceFile struct {
	Schema    string        `json:"schema"`
	Sites     [][][]float64 `json:"sites"`
	Generated [][]float64   `json:"generated"`
	Bandwidth float64       `json:"bandwidth"`
	Kernel    string        `json:"kernel"`
	Energy    struct {
		Definition string    `json:"definition"`
		Cross      []float64 `json:"cross_mean_by_site"`
		Self       float64   `json:"self_generated"`
		Pooled     float64   `json:"pooled"`
		Sum        float64   `json:"sum_over_sites_weighted_n_j"`
		Difference float64   `json:"difference_does_not_depend_on_generated"`
	} `json:"energy"`
	MMD struct {
		Pooled float64   `json:"pooled"`
		Cross  []float64 `json:"cross_mean_by_site"`
	} `json:"mmd2_v"`
}

func (f *setDistanceFile) verify(list *vectors.List) error {
	d := width(f.Generated)
	g, err := flatRows("generated", f.Generated, d)
	if err != nil {
		return err
	}
	mmd := gmm.Discrepancy{Kind: gmm.MMD, Bandwidth: f.Bandwidth}
	var pooled []float64
	var counts []int
	energy := gmm.Discrepancy{Kind: gmm.Energy}
	var crossEnergy, crossMMD []float64
	for j, s := range f.Sites {
		rows, err := flatRows(fmt.Sprintf("sites[%d]", j), s, d)
		if err != nil {
			return err
		}
		pooled = append(pooled, rows...)
		counts = append(counts, len(s))
		crossEnergy = append(crossEnergy, energy.Cross(g, rows, d))
		crossMMD = append(crossMMD, mmd.Cross(g, rows, d))
	}
	bySite := 0.0
	at := 0
	for _, n := range counts {
		bySite += float64(n) / float64(len(pooled)/d) * energy.Between(g, pooled[at*d:(at+n)*d], d)
		at += n
	}
	within := energy.Cross(g, g, d)
	between := energy.Between(g, pooled, d)
	list.Floats("energy.cross_mean_by_site", f.Energy.Cross, crossEnergy, tolNumber)
	list.Float("energy.self_generated", f.Energy.Self, within, tolNumber)
	list.Float("energy.pooled", f.Energy.Pooled, between, tolNumber)
	list.Float("energy.pooled (from sites)", f.Energy.Pooled, energy.Over(within, crossEnergy, counts)-energy.Cross(pooled, pooled, d), tolNumber)
	list.Float("energy.sum_over_sites_weighted_n_j", f.Energy.Sum, bySite, tolNumber)
	list.Float("energy.difference_does_not_depend_on_generated", f.Energy.Difference, bySite-between, tolNumber)
	list.Floats("mmd2_v.cross_mean_by_site", f.MMD.Cross, crossMMD, tolNumber)
	list.Float("mmd2_v.pooled", f.MMD.Pooled, mmd.Between(g, pooled, d), tolNumber)
	return nil
}
