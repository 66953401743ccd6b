package verify

import (
	"fmt"
	"slices"

	"parley/internal/vectors"
	"parley/methods/factors/ppca"
	"parley/methods/published/fedmvppca"
)

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
		qEff[k] = fedmvppca.EffectiveRank(d, f.Q)
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
	master, counts, err := fedmvppca.Master(l, sites)
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
			s, err := fedmvppca.NewEM(l, []ppca.Block{form.block}, q, start.W, start.Noise)
			if err != nil {
				return ppca.Params{}, nil, err
			}
			if form.name == "statistics" && run.name == "em_1" {
				// The column rule holds for the start too.
				list.Floats(entry+".theta0.W", start.W, s.Params().W, tolPublished)
			}
			for range run.n {
				if err := s.Step(run.prior); err != nil {
					return ppca.Params{}, nil, err
				}
			}
			last = s.Params()
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
			s, err := fedmvppca.NewEM(l, blocks[c:c+1], f.Q, w, noise)
			if err != nil {
				return fmt.Errorf("rounds[%d], centres[%d]: %w", r, c, err)
			}
			for range iterations {
				if err := s.Step(prior); err != nil {
					return fmt.Errorf("rounds[%d], centres[%d]: %w", r, c, err)
				}
			}
			p := s.Params()
			if err := round.Local[c].compare(list, fmt.Sprintf("rounds[%d].local[%d]", r, c), l, p, tolPublished); err != nil {
				return err
			}
			sites = append(sites, p)
		}
		if prior, _, err = fedmvppca.Master(l, sites); err != nil {
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
		alpha, beta, err := fedmvppca.InverseGamma(c.X)
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
