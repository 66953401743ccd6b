package fedmvppca

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"parley/internal/testkit"
	"parley/internal/vectors"
	"parley/methods/factors/ppca"
)

var (
	// 1e-9 relative, 1e-10 absolute below 0.1.
	tolPublished = vectors.Tolerance{Rel: 1e-9, Floor: 0.1}
	// Inverse-gamma parameters: a difference of logarithms of nearly equal numbers.
	tolGamma = vectors.Tolerance{Rel: 1e-6}
)

// verifyVectors holds the numerics to one file of numbers from an independent implementation;
// testdata/README.md says what they are.
func verifyVectors(file []byte) ([]vectors.Check, error) {
	return vectors.Run(file, map[string]func([]byte, *vectors.List) error{
		"fedmvppca/case/1":          vectors.Format((*caseJSON).verify),
		"fedmvppca/rounds/1":        vectors.Format((*roundsJSON).verify),
		"fedmvppca/inverse-gamma/1": vectors.Format((*inverseGammaJSON).verify),
	})
}

// unused are inputs on which nothing in the files depends.
var unused = regexp.MustCompile(`^\.prior\.sigma2_mean\[[12]\]$`)

func TestVectorsAgreeAndChangedOnesDoNot(t *testing.T) {
	for name, file := range testkit.Files(t, "testdata/*.json", 4) {
		t.Run(name, func(t *testing.T) {
			testkit.Agree(t, testkit.Get(verifyVectors(file))(t), 20)
			testkit.Changed(t, file, unused, 30, verifyVectors)
		})
	}
}

// theta is parameters as the files write them: one entry per view, null where
// the centre lacks the view.
type theta struct {
	Mu     [][]float64   `json:"mu"`
	W      [][][]float64 `json:"W"`
	Sigma2 []*float64    `json:"sigma2"`
}

// loadings returns W as d × q by rows, zero for views that are null.
func loadings(l ppca.Layout, q int, w [][][]float64) ([]float64, error) {
	if len(w) != l.Views() {
		return nil, fmt.Errorf("loadings have %d views, the file %d", len(w), l.Views())
	}
	if q < 1 || q > l.Features() {
		return nil, fmt.Errorf("%d factors for %d features", q, l.Features())
	}
	out := make([]float64, 0, l.Features()*q)
	for k, view := range w {
		if view == nil {
			out = append(out, make([]float64, l.Dims[k]*q)...)
			continue
		}
		if len(view) != l.Dims[k] {
			return nil, fmt.Errorf("loadings have %d rows in view %d, want %d", len(view), k, l.Dims[k])
		}
		for _, row := range view {
			if len(row) != q {
				return nil, fmt.Errorf("loadings have a row of %d entries in view %d, want %d", len(row), k, q)
			}
			out = append(out, row...)
		}
	}
	return out, nil
}

// params turns theta into parameters. The means may be left out.
func (t *theta) params(l ppca.Layout, q int) (ppca.Params, error) {
	p := ppca.Params{Rank: q, Mu: make([]float64, l.Features()), Noise: make([]float64, l.Views())}
	var err error
	if p.W, err = loadings(l, q, t.W); err != nil {
		return p, err
	}
	if len(t.Sigma2) != l.Views() || t.Mu != nil && len(t.Mu) != l.Views() {
		return p, fmt.Errorf("parameters of %d means and %d variances for %d views", len(t.Mu), len(t.Sigma2), l.Views())
	}
	var views []int
	for k, s := range t.Sigma2 {
		if (s == nil) != (t.W[k] == nil) {
			return p, fmt.Errorf("view %d is null in part", k)
		}
		if s == nil {
			continue
		}
		views = append(views, k)
		p.Noise[k] = *s
		if t.Mu == nil {
			continue
		}
		lo, hi := l.View(k)
		if len(t.Mu[k]) != hi-lo {
			return p, fmt.Errorf("mu has %d entries in view %d, want %d", len(t.Mu[k]), k, hi-lo)
		}
		copy(p.Mu[lo:hi], t.Mu[k])
	}
	if p.Features, err = l.FeaturesOf(views); err != nil {
		return p, err
	}
	return p, p.Check(l)
}

// compare checks parameters view by view.
func (t *theta) compare(list *vectors.List, entry string, l ppca.Layout, got ppca.Params, tol vectors.Tolerance) error {
	want, err := t.params(l, got.Rank)
	if err != nil {
		return fmt.Errorf("%s: %w", entry, err)
	}
	list.Equal(entry+": features", want.Features, got.Features)
	list.Floats(entry+".mu", want.Mu, got.Mu, tol)
	list.Floats(entry+".W", want.W, got.W, tol)
	list.Floats(entry+".sigma2", want.Noise, got.Noise, tol)
	return nil
}

// flat concatenates rows.
func flat(rows [][]float64) []float64 {
	var out []float64
	for _, r := range rows {
		out = append(out, r...)
	}
	return out
}

// siteRows is one site's rows over its views, concatenated.
type siteRows struct {
	features []int
	rows     [][]float64
}

func newSiteRows(l ppca.Layout, views []int, rows [][]float64) (*siteRows, error) {
	f, err := l.FeaturesOf(views)
	if err != nil {
		return nil, err
	}
	for n, r := range rows {
		if len(r) != len(f) {
			return nil, fmt.Errorf("row %d has %d values, want %d", n, len(r), len(f))
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("a site without rows")
	}
	return &siteRows{f, rows}, nil
}

// blocks returns the rows as one block through the accumulator, and as the
// other of the two forms.
func (s *siteRows) blocks(l ppca.Layout) (own, other ppca.Block, err error) {
	a, err := ppca.NewAccumulator(l, nil)
	if err != nil {
		return own, other, err
	}
	for _, r := range s.rows {
		views := make([][]float64, l.Views())
		for _, k := range l.ViewsOf(s.features) {
			lo, hi := l.View(k)
			at := len(views[k])
			for i, j := range s.features {
				if j >= lo && j < hi {
					views[k] = append(views[k][:at], r[i])
					at++
				}
			}
		}
		if err := a.Add(views); err != nil {
			return own, other, err
		}
	}
	blocks := a.Blocks()
	if len(blocks) != 1 {
		return own, other, fmt.Errorf("rows of a site observe different features")
	}
	own = blocks[0]
	if own.Scatter == nil {
		return own, own.Dense(), nil
	}
	other = ppca.Block{Features: own.Features, N: own.N, Mean: own.Mean, Factor: flat(s.rows)}
	for i := range other.Factor {
		other.Factor[i] -= own.Mean[i%len(own.Mean)]
	}
	return own, other, nil
}

// priorJSON is global parameters as the files write them.
type priorJSON struct {
	Mu         [][]float64   `json:"mu"`
	W          [][][]float64 `json:"W"`
	Sigma2Mu   []float64     `json:"sigma2_mu"`
	Sigma2W    []float64     `json:"sigma2_W"`
	Alpha      []float64     `json:"alpha"`
	Beta       []float64     `json:"beta"`
	Sigma2Mean []*float64    `json:"sigma2_mean"`
	VarIG      []float64     `json:"var_inverse_gamma,omitempty"`
	NCentres   []int         `json:"n_centres,omitempty"`
}

func (j *priorJSON) theta() theta { return theta{Mu: j.Mu, W: j.W, Sigma2: j.Sigma2Mean} }

func (j *priorJSON) prior(l ppca.Layout, q int) (*ppca.Prior, error) {
	t := j.theta()
	p, err := t.params(l, q)
	if err != nil {
		return nil, err
	}
	out := &ppca.Prior{Params: p, VarMu: j.Sigma2Mu, VarW: j.Sigma2W, Alpha: j.Alpha, Beta: j.Beta}
	return out, out.Check(l)
}

// compareMaster checks an update of the global parameters.
func (j *priorJSON) compareMaster(list *vectors.List, entry string, l ppca.Layout, got *ppca.Prior) error {
	t := j.theta()
	if err := t.compare(list, entry, l, got.Params, tolPublished); err != nil {
		return err
	}
	list.Floats(entry+".sigma2_mu", j.Sigma2Mu, got.VarMu, tolPublished)
	list.Floats(entry+".sigma2_W", j.Sigma2W, got.VarW, tolPublished)
	list.Floats(entry+".alpha", j.Alpha, got.Alpha, tolGamma)
	list.Floats(entry+".beta", j.Beta, got.Beta, tolGamma)
	if len(j.Alpha) == len(j.Beta) && len(j.Alpha) == len(got.Alpha) {
		want, have := make([]float64, len(j.Alpha)), make([]float64, len(j.Alpha))
		for k := range want {
			want[k], have[k] = j.Beta[k]/j.Alpha[k], got.Beta[k]/got.Alpha[k]
		}
		list.Floats(entry+".beta/alpha", want, have, tolPublished)
	}
	return nil
}

type centreJSON struct {
	ID    int           `json:"id"`
	Views []int         `json:"observed_views"`
	N     int           `json:"N"`
	T     [][][]float64 `json:"T"`
	Stats struct {
		N       int         `json:"N"`
		Mean    []float64   `json:"mean"`
		Scatter [][]float64 `json:"scatter"`
	} `json:"stats"`
	Theta0     theta       `json:"theta0"`
	EM1        theta       `json:"em_1"`
	EM30       theta       `json:"em_30"`
	MAP1       theta       `json:"map_1"`
	MAP15      theta       `json:"map_15"`
	LogLik     []float64   `json:"loglik_map_15_rows"`
	ExpectedLL float64     `json:"expected_ll_map_15"`
	LatentMean [][]float64 `json:"latent_mean_map_15"`
	LatentCov  [][]float64 `json:"latent_cov_map_15"`
}

type caseJSON struct {
	Schema     string           `json:"schema"`
	Name       string           `json:"name"`
	Dims       []int            `json:"dims"`
	Q          int              `json:"q"`
	QEff       []int            `json:"q_eff"`
	Prior      priorJSON        `json:"prior"`
	Centres    []centreJSON     `json:"centres"`
	Master     priorJSON        `json:"master_after_map_15"`
	Evaluation []evaluationJSON `json:"evaluation_global"`
	WAIC       waicJSON         `json:"waic"`
	DP         []dpJSON         `json:"dp"`
}

// rows returns a centre's rows over its views, concatenated.
func (c *centreJSON) rows(l ppca.Layout) (*siteRows, error) {
	if len(c.T) != l.Views() {
		return nil, fmt.Errorf("rows have %d views, want %d", len(c.T), l.Views())
	}
	out := make([][]float64, c.N)
	for k, view := range c.T {
		if (view != nil) != slices.Contains(c.Views, k) {
			return nil, fmt.Errorf("observed_views and T disagree on view %d", k)
		}
		if view == nil {
			continue
		}
		if len(view) != c.N {
			return nil, fmt.Errorf("%d rows in view %d, want %d", len(view), k, c.N)
		}
		for n, r := range view {
			if len(r) != l.Dims[k] {
				return nil, fmt.Errorf("row %d has %d values in view %d, want %d", n, len(r), k, l.Dims[k])
			}
			out[n] = append(out[n], r...)
		}
	}
	return newSiteRows(l, c.Views, out)
}

func (f *caseJSON) verify(list *vectors.List) error {
	l, err := ppca.NewLayout(f.Dims, ppca.NoisePerView)
	if err != nil {
		return err
	}
	qEff := make([]int, l.Views())
	for k, d := range l.Dims {
		qEff[k] = effectiveRank(d, f.Q)
	}
	list.Equal("q_eff", f.QEff, qEff)
	prior, err := f.Prior.prior(l, f.Q)
	if err != nil {
		return fmt.Errorf("prior: %w", err)
	}
	var sites []ppca.Params
	var rows []*siteRows
	for i := range f.Centres {
		c := &f.Centres[i]
		list.Equal(fmt.Sprintf("centres[%d].id", i), c.ID, i)
		p, r, err := c.verify(list, fmt.Sprintf("centres[%d]", i), l, f.Q, prior)
		if err != nil {
			return fmt.Errorf("centres[%d]: %w", i, err)
		}
		sites, rows = append(sites, p), append(rows, r)
	}
	master, counts, err := updateMaster(l, sites)
	if err != nil {
		return err
	}
	if err := f.Master.compareMaster(list, "master_after_map_15", l, master); err != nil {
		return err
	}
	list.Equal("master_after_map_15.n_centres", f.Master.NCentres, counts)
	variance := make([]float64, l.Views())
	for k := range variance {
		variance[k] = ppca.InverseGammaVariance(master.Alpha[k], master.Beta[k])
	}
	// A variance of order beta²/alpha³ has alpha's own relative error.
	list.Floats("master_after_map_15.var_inverse_gamma", f.Master.VarIG, variance, tolGamma)
	if err := verifyEvaluation(list, f.Evaluation, l, &master.Params, rows); err != nil {
		return err
	}
	if err := f.WAIC.verify(list, l, f.Q, rows); err != nil {
		return fmt.Errorf("waic: %w", err)
	}
	for i := range f.DP {
		if err := f.DP[i].verify(list, fmt.Sprintf("dp[%d]", i), l, prior, sites); err != nil {
			return fmt.Errorf("dp[%d]: %w", i, err)
		}
	}
	return nil
}

// verify runs one centre and returns its parameters after 15 MAP iterations.
func (c *centreJSON) verify(list *vectors.List, entry string, l ppca.Layout, q int, prior *ppca.Prior) (ppca.Params, *siteRows, error) {
	rows, err := c.rows(l)
	if err != nil {
		return ppca.Params{}, nil, err
	}
	own, other, err := rows.blocks(l)
	if err != nil {
		return ppca.Params{}, nil, err
	}
	dense := own.Dense()
	list.Equal(entry+".stats.N", c.Stats.N, int(own.N))
	list.Floats(entry+".stats.mean", c.Stats.Mean, dense.Mean, tolPublished)
	list.Floats(entry+".stats.scatter", flat(c.Stats.Scatter), dense.Scatter, tolPublished)
	start, err := c.Theta0.params(l, q)
	if err != nil {
		return ppca.Params{}, nil, fmt.Errorf("theta0: %w", err)
	}
	var last ppca.Params
	for _, form := range []struct {
		name  string
		block ppca.Block
	}{{"statistics", own}, {"rows", other}} {
		for _, run := range []struct {
			name  string
			want  *theta
			n     int
			prior *ppca.Prior
		}{{"em_1", &c.EM1, 1, nil}, {"em_30", &c.EM30, 30, nil}, {"map_1", &c.MAP1, 1, prior}, {"map_15", &c.MAP15, 15, prior}} {
			s, err := newEM(l, []ppca.Block{form.block}, q, start.W, start.Noise)
			if err != nil {
				return ppca.Params{}, nil, err
			}
			if form.name == "statistics" && run.name == "em_1" {
				// The column rule holds for the start too.
				list.Floats(entry+".theta0.W", start.W, s.params().W, tolPublished)
			}
			for range run.n {
				if err := s.step(run.prior); err != nil {
					return ppca.Params{}, nil, err
				}
			}
			last = s.params()
			if err := run.want.compare(list, entry+"."+run.name+" ("+form.name+")", l, last, tolPublished); err != nil {
				return ppca.Params{}, nil, err
			}
		}
	}
	ll, err := ppca.ExpectedLogLik(l, &last, []ppca.Block{own})
	if err != nil {
		return ppca.Params{}, nil, err
	}
	list.Float(entry+".expected_ll_map_15", c.ExpectedLL, ll, tolPublished)
	e := evaluationJSON{LatentMean: c.LatentMean, LatentCov: c.LatentCov, LogLik: c.LogLik}
	return last, rows, e.latents(list, entry, "_map_15", l, &last, rows)
}

// latents checks the posterior of the factors and the log-likelihood of each row.
func (e *evaluationJSON) latents(list *vectors.List, entry, suffix string, l ppca.Layout, p *ppca.Params, s *siteRows) error {
	pred, err := ppca.NewPredictor(l, p)
	if err != nil {
		return err
	}
	post, err := pred.Given(s.features)
	if err != nil {
		return err
	}
	var mean, ll []float64
	x := make([]float64, p.Rank)
	for _, r := range s.rows {
		post.Latent(x, r)
		mean, ll = append(mean, x...), append(ll, post.LogLik(r))
	}
	list.Floats(entry+".latent_mean"+suffix, flat(e.LatentMean), mean, tolPublished)
	list.Floats(entry+".latent_cov"+suffix, flat(e.LatentCov), post.Cov, tolPublished)
	list.Floats(entry+".loglik"+suffix+"_rows", e.LogLik, ll, tolPublished)
	return nil
}

type roundsJSON struct {
	Schema          string        `json:"schema"`
	Dims            []int         `json:"dims"`
	Q               int           `json:"q"`
	IterationsFirst int           `json:"iterations_first"`
	Iterations      int           `json:"iterations"`
	W0              [][][]float64 `json:"W0"`
	Sigma20         []float64     `json:"sigma2_0"`
	Centres         []struct {
		Views []int       `json:"observed_views"`
		T     [][]float64 `json:"T"`
	} `json:"centres"`
	Rounds []struct {
		Local  []theta   `json:"local"`
		Global priorJSON `json:"global"`
	} `json:"rounds"`
}

func (f *roundsJSON) verify(list *vectors.List) error {
	l, err := ppca.NewLayout(f.Dims, ppca.NoisePerView)
	if err != nil {
		return err
	}
	if f.Iterations < 1 || f.IterationsFirst < 1 || max(f.Iterations, f.IterationsFirst) > 10000 {
		return fmt.Errorf("%d and %d iterations", f.IterationsFirst, f.Iterations)
	}
	var blocks []ppca.Block
	for i, c := range f.Centres {
		rows, err := newSiteRows(l, c.Views, c.T)
		if err != nil {
			return fmt.Errorf("centres[%d]: %w", i, err)
		}
		b, _, err := rows.blocks(l)
		if err != nil {
			return fmt.Errorf("centres[%d]: %w", i, err)
		}
		blocks = append(blocks, b)
	}
	w, err := loadings(l, f.Q, f.W0)
	if err != nil {
		return fmt.Errorf("W0: %w", err)
	}
	noise, iterations := f.Sigma20, f.IterationsFirst
	var prior *ppca.Prior
	for r, round := range f.Rounds {
		list.Equal(fmt.Sprintf("rounds[%d]: sites", r), len(round.Local), len(blocks))
		if len(round.Local) != len(blocks) {
			return nil
		}
		var sites []ppca.Params
		for c := range blocks {
			s, err := newEM(l, blocks[c:c+1], f.Q, w, noise)
			if err != nil {
				return fmt.Errorf("rounds[%d], centres[%d]: %w", r, c, err)
			}
			for range iterations {
				if err := s.step(prior); err != nil {
					return fmt.Errorf("rounds[%d], centres[%d]: %w", r, c, err)
				}
			}
			p := s.params()
			if err := round.Local[c].compare(list, fmt.Sprintf("rounds[%d].local[%d]", r, c), l, p, tolPublished); err != nil {
				return err
			}
			sites = append(sites, p)
		}
		if prior, _, err = updateMaster(l, sites); err != nil {
			return err
		}
		if err := round.Global.compareMaster(list, fmt.Sprintf("rounds[%d].global", r), l, prior); err != nil {
			return err
		}
		w, noise, iterations = prior.W, prior.Noise, f.Iterations
	}
	return nil
}

type inverseGammaJSON struct {
	Schema string `json:"schema"`
	Cases  []struct {
		X          []float64 `json:"x"`
		Alpha      float64   `json:"alpha"`
		Beta       float64   `json:"beta"`
		Var        float64   `json:"var"`
		FixedPoint *struct {
			Alpha float64 `json:"alpha"`
			Beta  float64 `json:"beta"`
		} `json:"fixed_point_10"`
		Note string `json:"note"`
	} `json:"cases"`
}

func (f *inverseGammaJSON) verify(list *vectors.List) error {
	for i, c := range f.Cases {
		entry := fmt.Sprintf("cases[%d]", i)
		alpha, beta, err := inverseGamma(c.X)
		if err != nil {
			return fmt.Errorf("%s: %w", entry, err)
		}
		tol, ratio := vectors.Tolerance{Rel: 1e-9}, vectors.Tolerance{Rel: 1e-9}
		if alpha > 1e8 { // nearly equal values determine little more than beta/alpha
			tol.Rel = 1e-3
		}
		list.Float(entry+".alpha", c.Alpha, alpha, tol)
		list.Float(entry+".beta", c.Beta, beta, tol)
		list.Float(entry+".beta/alpha", c.Beta/c.Alpha, beta/alpha, ratio)
		list.Float(entry+".var", c.Var, ppca.InverseGammaVariance(alpha, beta), tol)
		if c.FixedPoint != nil {
			alpha, beta = inverseGammaSweeps(c.X, 10)
			list.Float(entry+".fixed_point_10.alpha", c.FixedPoint.Alpha, alpha, tol)
			list.Float(entry+".fixed_point_10.beta", c.FixedPoint.Beta, beta, tol)
		}
	}
	return nil
}
