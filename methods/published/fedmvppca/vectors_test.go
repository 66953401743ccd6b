package fedmvppca

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"parley/internal/linalg"
	"parley/internal/stats"
	"parley/internal/testkit"
	"parley/internal/vectors"
	"parley/methods/factors/ppca"
	"parley/privacy/account"
)

var (
	tolPublished = vectors.Tolerance{Rel: 1e-9, Floor: 0.1}
	tolGamma     = vectors.Tolerance{Rel: 1e-6} // a difference of logarithms of nearly equal numbers

	// unused are inputs on which nothing in the files depends, and what a test of papers compares.
	unused = regexp.MustCompile(`^\.prior\.sigma2_mean\[[12]\]$|^\.waic\.(lppd|p_waic|waic)$`)
)

// verifyVectors holds the numerics to one file of numbers from an independent implementation;
// testdata/README.md says what they are. Whatever cannot be computed is an error.
func verifyVectors(file []byte) (checks []vectors.Check, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return vectors.Run(file, map[string]func([]byte, *vectors.List) error{
		"fedmvppca/case/1":          vectors.Format((*caseJSON).verify),
		"fedmvppca/rounds/1":        vectors.Format((*roundsJSON).verify),
		"fedmvppca/inverse-gamma/1": vectors.Format((*inverseGammaJSON).verify),
	})
}

func TestVectorsAgreeAndChangedOnesDoNot(t *testing.T) {
	for name, file := range testkit.Files(t, "testdata/*.json", 4) {
		t.Run(name, func(t *testing.T) {
			testkit.Agree(t, testkit.Get(verifyVectors(file))(t), 14)
			testkit.Changed(t, file, unused, 30, verifyVectors)
		})
	}
}

// ok is a value without which a file cannot be computed.
func ok[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func flat(rows [][]float64) []float64 { return slices.Concat(rows...) }

// theta is parameters: one entry per view, null where the centre lacks it.
type theta struct {
	Mu     [][]float64   `json:"mu"`
	W      [][][]float64 `json:"W"`
	Sigma2 []*float64    `json:"sigma2"`
}

func (t *theta) params(l ppca.Layout, q int) ppca.Params {
	p := ppca.Params{Rank: q, W: make([]float64, l.Features()*q), Mu: make([]float64, l.Features()),
		Noise: make([]float64, l.Views())}
	for k, s := range t.Sigma2 {
		if s == nil {
			continue
		}
		p.Noise[k] = *s
		p.Features = append(p.Features, l.FeaturesOf([]int{k})...)
		lo, _ := l.View(k)
		copy(p.W[lo*q:], flat(t.W[k]))
		if t.Mu != nil {
			copy(p.Mu[lo:], t.Mu[k])
		}
	}
	return p
}

func (t *theta) compare(list *vectors.List, entry string, l ppca.Layout, got ppca.Params) {
	want := t.params(l, got.Rank)
	list.Equal(entry+": features", want.Features, got.Features)
	list.Floats(entry+".mu", want.Mu, got.Mu, tolPublished)
	list.Floats(entry+".W", want.W, got.W, tolPublished)
	list.Floats(entry+".sigma2", want.Noise, got.Noise, tolPublished)
}

// globalJSON is global parameters.
type globalJSON struct {
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

func (j *globalJSON) prior(l ppca.Layout, q int) *Prior {
	t := theta{j.Mu, j.W, j.Sigma2Mean}
	return &Prior{Params: t.params(l, q), VarMu: j.Sigma2Mu, VarW: j.Sigma2W, Alpha: j.Alpha, Beta: j.Beta}
}

func (j *globalJSON) compare(list *vectors.List, entry string, l ppca.Layout, got *Prior) {
	t := theta{j.Mu, j.W, j.Sigma2Mean}
	t.compare(list, entry, l, got.Params)
	list.Floats(entry+".sigma2_mu", j.Sigma2Mu, got.VarMu, tolPublished)
	list.Floats(entry+".sigma2_W", j.Sigma2W, got.VarW, tolPublished)
	list.Floats(entry+".alpha", j.Alpha, got.Alpha, tolGamma)
	list.Floats(entry+".beta", j.Beta, got.Beta, tolGamma)
	for k := range j.Alpha {
		list.Float(fmt.Sprintf("%s.beta/alpha[%d]", entry, k), j.Beta[k]/j.Alpha[k], got.Beta[k]/got.Alpha[k],
			tolPublished)
	}
}

// rows are one centre's, over the features that it has.
type rows struct {
	features []int
	t        [][]float64
}

// blocks returns the rows as statistics, and as they are.
func (r rows) blocks(l ppca.Layout) (own, plain ppca.Block) {
	a := ppca.NewAccumulator(l)
	for _, t := range r.t {
		views := make([][]float64, l.Views())
		for i, j := range r.features {
			k := l.ViewOf()[j]
			views[k] = append(views[k], t[i])
		}
		if err := a.Add(views); err != nil {
			panic(err)
		}
	}
	own = a.Blocks()[0]
	plain = ppca.Block{Features: own.Features, N: own.N, Mean: own.Mean, Factor: flat(r.t)}
	for i := range plain.Factor {
		plain.Factor[i] -= own.Mean[i%len(own.Mean)]
	}
	return own, plain
}

type caseJSON struct {
	Schema  string     `json:"schema"`
	Name    string     `json:"name"`
	Dims    []int      `json:"dims"`
	Q       int        `json:"q"`
	QEff    []int      `json:"q_eff"`
	Prior   globalJSON `json:"prior"`
	Centres []struct {
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
	} `json:"centres"`
	Master     globalJSON                   `json:"master_after_map_15"`
	Evaluation []map[string]json.RawMessage `json:"evaluation_global"`
	WAIC       struct {
		Draws  []theta     `json:"draws"`
		LogLik [][]float64 `json:"loglik"`
		LPPD   float64     `json:"lppd"`
		P      float64     `json:"p_waic"`
		WAIC   float64     `json:"waic"`
	} `json:"waic"`
	DP []dpJSON `json:"dp"`
}

func (f *caseJSON) verify(list *vectors.List) error {
	l := ok(ppca.NewLayout(f.Dims, ppca.NoisePerView))
	for k, d := range l.Dims {
		list.Equal(fmt.Sprintf("q_eff[%d]", k), f.QEff[k], effectiveRank(d, f.Q))
	}
	prior := f.Prior.prior(l, f.Q)
	var sites []ppca.Params
	var all []rows
	for i, c := range f.Centres {
		entry := fmt.Sprintf("centres[%d]", i)
		r := rows{l.FeaturesOf(c.Views), make([][]float64, c.N)}
		for _, k := range c.Views {
			for n := range r.t {
				r.t[n] = append(r.t[n], c.T[k][n]...)
			}
		}
		own, plain := r.blocks(l)
		dense := own.Dense()
		list.Equal(entry+".id", c.ID, i)
		list.Equal(entry+".stats.N", c.Stats.N, int(own.N))
		list.Floats(entry+".stats.mean", c.Stats.Mean, dense.Mean, tolPublished)
		list.Floats(entry+".stats.scatter", flat(c.Stats.Scatter), dense.Scatter, tolPublished)
		start := c.Theta0.params(l, f.Q)
		// the column rule
		list.Floats(entry+".theta0.W", start.W, ok(newEM(l, []ppca.Block{own}, f.Q, start.W, start.Noise)).params().W,
			tolPublished)
		var last ppca.Params
		for form, block := range []ppca.Block{own, plain} {
			for _, run := range []struct {
				name  string
				want  *theta
				n     int
				prior *Prior
			}{{"em_1", &c.EM1, 1, nil}, {"em_30", &c.EM30, 30, nil}, {"map_1", &c.MAP1, 1, prior},
				{"map_15", &c.MAP15, 15, prior}} {
				last = iterations(l, block, f.Q, start.W, start.Noise, run.n, run.prior)
				run.want.compare(list, fmt.Sprintf("%s.%s (form %d)", entry, run.name, form), l, last)
			}
		}
		list.Float(entry+".expected_ll_map_15", c.ExpectedLL, ok(expectedLogLik(l, &last, []ppca.Block{own})),
			tolPublished)
		latents(list, entry+" (map_15)", l, &last, r, c.LatentMean, c.LatentCov, c.LogLik)
		sites, all = append(sites, last), append(all, r)
	}
	master, counts, err := updateMaster(l, sites)
	if err != nil {
		return err
	}
	f.Master.compare(list, "master_after_map_15", l, master)
	list.Equal("master_after_map_15.n_centres", f.Master.NCentres, counts)
	for k, want := range f.Master.VarIG { // of order beta²/alpha³, which has alpha's own relative error
		list.Float(fmt.Sprintf("master_after_map_15.var_inverse_gamma[%d]", k), want,
			InverseGammaVariance(master.Alpha[k], master.Beta[k]), tolGamma)
	}
	for i, e := range f.Evaluation {
		evaluated(list, fmt.Sprintf("evaluation_global[%d]", i), i, e, l, &master.Params, all[i])
	}
	var logLik [][]float64
	for i := range f.WAIC.Draws {
		p := f.WAIC.Draws[i].params(l, f.Q)
		var row []float64
		for _, r := range all {
			post := ok(ok(ppca.NewPredictor(l, &p)).Given(r.features))
			for _, t := range r.t {
				row = append(row, post.LogLik(t))
			}
		}
		logLik = append(logLik, row)
	}
	list.Floats("waic.loglik", flat(f.WAIC.LogLik), flat(logLik), tolPublished)
	for i := range f.DP {
		f.DP[i].verify(list, fmt.Sprintf("dp[%d]", i), l, prior, sites)
	}
	return nil
}

// iterations is what iterations at a site come to.
func iterations(l ppca.Layout, b ppca.Block, q int, w, noise []float64, n int, prior *Prior) ppca.Params {
	s := ok(newEM(l, []ppca.Block{b}, q, w, noise))
	for range n {
		if err := s.step(prior); err != nil {
			panic(err)
		}
	}
	return s.params()
}

// latents checks the posterior of the factors and the log-likelihood of each row.
func latents(list *vectors.List, entry string, l ppca.Layout, p *ppca.Params, r rows, wantMean, wantCov [][]float64,
	wantLogLik []float64) {
	post := ok(ok(ppca.NewPredictor(l, p)).Given(r.features))
	var mean, ll []float64
	x := make([]float64, p.Rank)
	for _, t := range r.t {
		post.Latent(x, t)
		mean, ll = append(mean, x...), append(ll, post.LogLik(t))
	}
	list.Floats(entry+".latent_mean", flat(wantMean), mean, tolPublished)
	list.Floats(entry+".latent_cov", flat(wantCov), post.Cov, tolPublished)
	list.Floats(entry+".loglik", wantLogLik, ll, tolPublished)
}

// evaluated checks one centre under the global parameters. The key of a view that it lacks, and
// that is imputed, holds the view's number.
func evaluated(list *vectors.List, entry string, id int, e map[string]json.RawMessage, l ppca.Layout,
	p *ppca.Params, r rows) {
	read := func(key string, into any) {
		if err := json.Unmarshal(e[key], into); err != nil {
			panic(err)
		}
	}
	var at int
	var latentMean, latentCov, reconstruction [][]float64
	var mae float64
	var logLik []float64
	read("id", &at)
	read("latent_mean", &latentMean)
	read("latent_cov", &latentCov)
	read("reconstruction", &reconstruction)
	read("mae", &mae)
	read("loglik_rows", &logLik)
	list.Equal(entry+".id", at, id)
	latents(list, entry, l, p, r, latentMean, latentCov, logLik)
	predictor := ok(ppca.NewPredictor(l, p))
	post, marginal := ok(predictor.Given(r.features)), ok(predictor.Given(nil))
	var all []float64
	sum, z := 0.0, make([]float64, p.Rank)
	for _, t := range r.t {
		post.Latent(z, t)
		for i, j := range post.Observed {
			all = append(all, p.Mu[j]+floats.Dot(p.W[j*p.Rank:][:p.Rank], z))
			sum += math.Abs(all[len(all)-1] - t[i])
		}
	}
	list.Floats(entry+".reconstruction", flat(reconstruction), all, tolPublished)
	list.Float(entry+".mae", mae, sum/float64(len(all)), tolPublished)
	for key := range e {
		number, imputed := strings.CutPrefix(key, "imputed_view_")
		if !imputed {
			continue
		}
		var want struct {
			Mean         [][]float64 `json:"mean"`
			Cov          [][]float64 `json:"cov"`
			MarginalMean []float64   `json:"marginal_mean"`
			MarginalCov  [][]float64 `json:"marginal_cov"`
		}
		read(key, &want)
		lo, hi := l.View(ok(strconv.Atoi(number)))
		var mean []float64
		values := make([]float64, l.Features())
		first, _ := slices.BinarySearch(post.Missing, lo)
		for _, t := range r.t {
			post.Impute(values, t)
			mean = append(mean, values[first:first+hi-lo]...)
		}
		list.Floats(entry+"."+key+".mean", flat(want.Mean), mean, tolPublished)
		list.Floats(entry+"."+key+".cov", flat(want.Cov), missingCov(predictor, post, lo, hi), tolPublished)
		marginal.Impute(values, nil)
		list.Floats(entry+"."+key+".marginal_mean", want.MarginalMean, values[lo:hi], tolPublished)
		list.Floats(entry+"."+key+".marginal_cov", flat(want.MarginalCov), missingCov(predictor, marginal, lo, hi),
			tolPublished)
	}
}

// missingCov is the conditional covariance W M Wᵀ + Ψ of the features lo ≤ j < hi, which are missing.
func missingCov(of *ppca.Predictor, p *ppca.Posterior, lo, hi int) (out []float64) {
	_, md := of.Model()
	for j := lo; j < hi; j++ {
		for c := lo; c < hi; c++ {
			noise := map[bool]float64{true: md.Psi[j]}[j == c]
			out = append(out, noise+linalg.Quadratic(p.Cov, md.Q, md.W[j*md.LD:][:md.Q], md.W[c*md.LD:][:md.Q]))
		}
	}
	return out
}

// clippedDifference is what Algorithm 2 computes of one parameter of a view before it adds noise: the
// difference to the global parameter, clipped to g = constant × standard deviation of its prior.
type clippedDifference struct {
	value []float64
	clip  float64
	noise float64 // standard deviation of the Gaussian, or scale of the Laplace noise
}

// clipDifference returns those of μ, W (by rows) and σ² of view k.
func clipDifference(l ppca.Layout, site *ppca.Params, prior *Prior, k int, epsilon, delta,
	constant float64) (mu, w, noise clippedDifference) {
	factor, _, err := account.ZhaoGaussian(epsilon, delta)
	if err != nil {
		panic(err)
	}
	part := func(x, center []float64, sd, times float64) clippedDifference {
		c := clippedDifference{clip: constant * sd, noise: times * 2 * constant * sd}
		squares := 0.0
		for i := range x {
			c.value = append(c.value, x[i]-center[i])
			squares += c.value[i] * c.value[i]
		}
		for i := range c.value {
			c.value[i] *= min(1, c.clip/math.Sqrt(squares))
		}
		return c
	}
	lo, hi := l.View(k)
	q := prior.Rank
	return part(site.Mu[lo:hi], prior.Mu[lo:hi], math.Sqrt(prior.VarMu[k]), factor),
		part(site.W[lo*q:hi*q], prior.W[lo*q:hi*q], math.Sqrt(prior.VarW[k]), factor),
		part(site.Noise[k:k+1], prior.Noise[k:k+1], math.Sqrt(InverseGammaVariance(prior.Alpha[k], prior.Beta[k])),
			1/epsilon)
}

type dpJSON struct {
	Centre        int         `json:"centre"`
	View          int         `json:"view"`
	Theta         string      `json:"theta"`
	Epsilon       float64     `json:"eps"`
	Delta         float64     `json:"delta"`
	Const         float64     `json:"const"`
	Factor        float64     `json:"theorem5_factor"`
	C             float64     `json:"theorem5_c"`
	ClipMu        float64     `json:"clip_mu"`
	ClipW         float64     `json:"clip_W"`
	ClipNoise     float64     `json:"clip_sigma2"`
	SDMu          float64     `json:"sd_mu"`
	SDW           float64     `json:"sd_W"`
	Scale         float64     `json:"laplace_scale_sigma2"`
	ClippedMu     []float64   `json:"clipped_mu"`
	ClippedW      [][]float64 `json:"clipped_W"`
	ClippedNoise  float64     `json:"clipped_sigma2"`
	UnitMu        []float64   `json:"unit_noise_mu"`
	UnitW         [][]float64 `json:"unit_noise_W"`
	UnitNoise     float64     `json:"unit_noise_sigma2"`
	ReleasedMu    []float64   `json:"released_mu"`
	ReleasedW     [][]float64 `json:"released_W"`
	ReleasedNoise float64     `json:"released_sigma2"`
}

func (d *dpJSON) verify(list *vectors.List, entry string, l ppca.Layout, prior *Prior, sites []ppca.Params) {
	list.Equal(entry+".theta", d.Theta, fmt.Sprintf("centres[%d].map_15", d.Centre))
	factor, c, err := account.ZhaoGaussian(d.Epsilon, d.Delta)
	if err != nil {
		panic(err)
	}
	list.Floats(entry+".theorem5", []float64{d.Factor, d.C}, []float64{factor, c}, tolPublished)
	mu, w, noise := clipDifference(l, &sites[d.Centre], prior, d.View, d.Epsilon, d.Delta, d.Const)
	lo, hi := l.View(d.View)
	q := prior.Rank
	for _, x := range []struct {
		name                            string
		clip, sd                        float64
		clipped, unit, released, center []float64
		got                             clippedDifference
	}{
		{"mu", d.ClipMu, d.SDMu, d.ClippedMu, d.UnitMu, d.ReleasedMu, prior.Mu[lo:hi], mu},
		{"W", d.ClipW, d.SDW, flat(d.ClippedW), flat(d.UnitW), flat(d.ReleasedW), prior.W[lo*q : hi*q], w},
		{"sigma2", d.ClipNoise, d.Scale, []float64{d.ClippedNoise}, []float64{d.UnitNoise}, []float64{d.ReleasedNoise},
			prior.Noise[d.View : d.View+1], noise},
	} {
		list.Floats(entry+".clip_"+x.name, []float64{x.clip, x.sd}, []float64{x.got.clip, x.got.noise}, tolPublished)
		list.Floats(entry+".clipped_"+x.name, x.clipped, x.got.value, tolPublished)
		released := slices.Clone(x.center)
		for i := range released {
			released[i] += x.got.value[i] + x.got.noise*x.unit[i]
		}
		list.Floats(entry+".released_"+x.name, x.released, released, tolPublished)
	}
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
		Local  []theta    `json:"local"`
		Global globalJSON `json:"global"`
	} `json:"rounds"`
}

func (f *roundsJSON) verify(list *vectors.List) error {
	l := ok(ppca.NewLayout(f.Dims, ppca.NoisePerView))
	if max(f.Iterations, f.IterationsFirst) > 10000 {
		return fmt.Errorf("%d and %d iterations", f.IterationsFirst, f.Iterations)
	}
	var w []float64
	for _, view := range f.W0 {
		w = append(w, flat(view)...)
	}
	noise, times := f.Sigma20, f.IterationsFirst
	var prior *Prior
	for r, round := range f.Rounds {
		var sites []ppca.Params
		for c, centre := range f.Centres {
			b, _ := rows{l.FeaturesOf(centre.Views), centre.T}.blocks(l)
			sites = append(sites, iterations(l, b, f.Q, w, noise, times, prior))
			round.Local[c].compare(list, fmt.Sprintf("rounds[%d].local[%d]", r, c), l, sites[c])
		}
		var err error
		if prior, _, err = updateMaster(l, sites); err != nil {
			return err
		}
		round.Global.compare(list, fmt.Sprintf("rounds[%d].global", r), l, prior)
		w, noise, times = prior.W, prior.Noise, f.Iterations
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
			return err
		}
		tol := vectors.Tolerance{Rel: 1e-9}
		if alpha > 1e8 { // nearly equal values determine little more than beta/alpha
			tol.Rel = 1e-3
		}
		list.Floats(entry, []float64{c.Alpha, c.Beta, c.Var}, []float64{alpha, beta, InverseGammaVariance(alpha, beta)},
			tol)
		list.Float(entry+".beta/alpha", c.Beta/c.Alpha, beta/alpha, vectors.Tolerance{Rel: 1e-9})
		if c.FixedPoint != nil {
			alpha, beta = inverseGammaSweeps(c.X, 10)
			list.Floats(entry+".fixed_point_10", []float64{c.FixedPoint.Alpha, c.FixedPoint.Beta},
				[]float64{alpha, beta}, tol)
		}
	}
	return nil
}

// inverseGammaSweeps is the estimator that the original software used: a fixed
// number of sweeps α ← ψ⁻¹(ln(nα) − ln Σ 1/x − mean ln x), from
// mean²/variance + 2. It is not converged, and serves only as a comparison.
func inverseGammaSweeps(x []float64, sweeps int) (alpha, beta float64) {
	n := float64(len(x))
	mean, square, inverse, meanLog := 0.0, 0.0, 0.0, 0.0
	for _, v := range x {
		mean += v / n
		inverse += 1 / v
		meanLog += math.Log(v) / n
	}
	for _, v := range x {
		square += (v - mean) * (v - mean)
	}
	alpha = mean*mean/(square/(n-1)) + 2
	for range sweeps {
		low, high := 1e-9, 1e9 // of ψ, which rises
		for target := math.Log(n*alpha) - math.Log(inverse) - meanLog; high-low > 1e-15*high; {
			if alpha = (low + high) / 2; alpha == low || alpha == high {
				break
			} else if math.Log(alpha)-stats.LogMinusDigamma(alpha) < target {
				low = alpha
			} else {
				high = alpha
			}
		}
	}
	return alpha, n * alpha / inverse
}

// expectedLogLik is (15): the expected complete-data log-likelihood without
// the terms in 2π, the moments of the factors taken at the same parameters.
func expectedLogLik(l ppca.Layout, p *ppca.Params, blocks []ppca.Block) (float64, error) {
	md, e, total := ppca.NewModel(l, p.Rank), ppca.NewEStep(p.Rank, blocks), 0.0
	md.Load(p)
	for n := range blocks {
		b := &blocks[n]
		if err := e.Run(md, b); err != nil {
			return 0, err
		}
		for i, j := range b.Features {
			w := md.W[j*md.LD:][:md.Q]
			s := e.Square[i] + linalg.Quadratic(e.SXX, md.LD, w, w) - 2*floats.Dot(w, e.STX[i*md.LD:][:md.Q])
			total -= (b.N*math.Log(md.Psi[j]) + s/md.Psi[j]) / 2
		}
		for a := range md.Q {
			total -= e.SXX[a*md.LD+a] / 2
		}
	}
	return total, nil
}
