package fedmvppca

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/internal/stats"
	"parley/internal/vectors"
	"parley/methods/factors/ppca"
	"parley/methods/published/fedmvppca/waic"
	"parley/privacy/account"
)

// evaluationJSON is one centre under the global parameters.
type evaluationJSON struct {
	ID             int         `json:"id"`
	LatentMean     [][]float64 `json:"latent_mean"`
	LatentCov      [][]float64 `json:"latent_cov"`
	Reconstruction [][]float64 `json:"reconstruction"`
	MAE            float64     `json:"mae"`
	LogLik         []float64   `json:"loglik_rows"`
	// The key of an imputed view holds its number.
	Imputed map[string]imputedJSON `json:"-"`
}

type imputedJSON struct {
	Mean         [][]float64 `json:"mean"`
	Cov          [][]float64 `json:"cov"`
	MarginalMean []float64   `json:"marginal_mean"`
	MarginalCov  [][]float64 `json:"marginal_cov"`
}

// UnmarshalJSON sorts the keys "imputed_view_k" from the fixed ones.
func (e *evaluationJSON) UnmarshalJSON(b []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	e.Imputed = make(map[string]imputedJSON)
	for key, value := range raw {
		if view, ok := strings.CutPrefix(key, "imputed_view_"); ok {
			var v imputedJSON
			if err := vectors.Decode(value, &v); err != nil {
				return err
			}
			e.Imputed[view] = v
			delete(raw, key)
		}
	}
	fixed, err := json.Marshal(raw)
	if err != nil {
		return err
	}
	type plain evaluationJSON
	return vectors.Decode(fixed, (*plain)(e))
}

func verifyEvaluation(list *vectors.List, want []evaluationJSON, l ppca.Layout, p *ppca.Params, sites []*siteRows) error {
	list.Equal("evaluation_global: sites", len(want), len(sites))
	if len(want) != len(sites) {
		return nil
	}
	pred, err := ppca.NewPredictor(l, p)
	if err != nil {
		return err
	}
	for i := range want {
		e, s, entry := &want[i], sites[i], fmt.Sprintf("evaluation_global[%d]", i)
		list.Equal(entry+".id", e.ID, i)
		if err := e.latents(list, entry, "", l, p, s); err != nil {
			return err
		}
		post, err := pred.Given(s.features)
		if err != nil {
			return err
		}
		var all []float64
		sum := 0.0
		row := make([]float64, len(s.features))
		for _, t := range s.rows {
			post.Reconstruct(row, t)
			for j, x := range row {
				sum += math.Abs(x - t[j])
			}
			all = append(all, row...)
		}
		list.Floats(entry+".reconstruction", flat(e.Reconstruction), all, tolPublished)
		list.Float(entry+".mae", e.MAE, sum/float64(len(all)), tolPublished)
		if err := e.imputed(list, entry, l, pred, s); err != nil {
			return err
		}
	}
	return nil
}

// imputed checks the views which the centre lacks.
func (e *evaluationJSON) imputed(list *vectors.List, entry string, l ppca.Layout, pred *ppca.Predictor, s *siteRows) error {
	post, err := pred.Given(s.features)
	if err != nil {
		return err
	}
	marginal, err := pred.Given(nil)
	if err != nil {
		return err
	}
	views := l.ViewsOf(post.Missing)
	list.Equal(entry+": imputed views", len(e.Imputed), len(views))
	for _, k := range views {
		entry := fmt.Sprintf("%s.imputed_view_%d", entry, k)
		want := e.Imputed[strconv.Itoa(k)]
		lo, hi := l.View(k)
		var mean []float64
		all := make([]float64, l.Features())
		for _, t := range s.rows {
			post.Impute(all, t)
			at, _ := slices.BinarySearch(post.Missing, lo)
			mean = append(mean, all[at:at+hi-lo]...)
		}
		list.Floats(entry+".mean", flat(want.Mean), mean, tolPublished)
		list.Floats(entry+".cov", flat(want.Cov), missingCov(post, lo, hi), tolPublished)
		marginal.Impute(all, nil)
		list.Floats(entry+".marginal_mean", want.MarginalMean, all[lo:hi], tolPublished)
		list.Floats(entry+".marginal_cov", flat(want.MarginalCov), missingCov(marginal, lo, hi), tolPublished)
	}
	return nil
}

// missingCov is the part of MissingCov on the features lo ≤ j < hi.
func missingCov(p *ppca.Posterior, lo, hi int) []float64 {
	cov, m := p.MissingCov(), len(p.Missing)
	var out []float64
	for i, j := range p.Missing {
		if j < lo || j >= hi {
			continue
		}
		for k, c := range p.Missing {
			if c >= lo && c < hi {
				out = append(out, cov[i*m+k])
			}
		}
	}
	return out
}

type waicJSON struct {
	Draws  []theta     `json:"draws"`
	LogLik [][]float64 `json:"loglik"`
	LPPD   float64     `json:"lppd"`
	P      float64     `json:"p_waic"`
	WAIC   float64     `json:"waic"`
}

func (w *waicJSON) verify(list *vectors.List, l ppca.Layout, q int, sites []*siteRows) error {
	var logLik [][]float64
	for i := range w.Draws {
		p, err := w.Draws[i].params(l, q)
		if err != nil {
			return fmt.Errorf("draws[%d]: %w", i, err)
		}
		pred, err := ppca.NewPredictor(l, &p)
		if err != nil {
			return err
		}
		var row []float64
		for _, s := range sites {
			post, err := pred.Given(s.features)
			if err != nil {
				return err
			}
			for _, t := range s.rows {
				row = append(row, post.LogLik(t))
			}
		}
		logLik = append(logLik, row)
	}
	list.Floats("waic.loglik", flat(w.LogLik), flat(logLik), tolPublished)
	c, err := waic.Of(logLik)
	if err != nil {
		return err
	}
	list.Float("waic.lppd", w.LPPD, c.LPPD, tolPublished)
	list.Float("waic.p_waic", w.P, c.P, tolPublished)
	list.Float("waic.waic", w.WAIC, c.WAIC, tolPublished)
	return nil
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

func (d *dpJSON) verify(list *vectors.List, entry string, l ppca.Layout, prior *ppca.Prior, sites []ppca.Params) error {
	if d.Centre < 0 || d.Centre >= len(sites) {
		return fmt.Errorf("no centre %d", d.Centre)
	}
	list.Equal(entry+".theta", d.Theta, fmt.Sprintf("centres[%d].map_15", d.Centre))
	factor, c, err := account.ZhaoGaussian(d.Epsilon, d.Delta)
	if err != nil {
		return err
	}
	got, err := clipDifference(l, &sites[d.Centre], prior, d.View, d.Epsilon, d.Delta, d.Const)
	if err != nil {
		return err
	}
	for _, x := range []struct {
		name      string
		want, got float64
	}{
		{"theorem5_factor", d.Factor, factor}, {"theorem5_c", d.C, c},
		{"clip_mu", d.ClipMu, got.ClipMu}, {"clip_W", d.ClipW, got.ClipW}, {"clip_sigma2", d.ClipNoise, got.ClipNoise},
		{"sd_mu", d.SDMu, got.SDMu}, {"sd_W", d.SDW, got.SDW}, {"laplace_scale_sigma2", d.Scale, got.ScaleNoise},
		{"clipped_sigma2", d.ClippedNoise, got.Noise},
	} {
		list.Float(entry+"."+x.name, x.want, x.got, tolPublished)
	}
	list.Floats(entry+".clipped_mu", d.ClippedMu, got.Mu, tolPublished)
	list.Floats(entry+".clipped_W", flat(d.ClippedW), got.W, tolPublished)
	lo, hi := l.View(d.View)
	q := prior.Rank
	released := func(center, diff []float64, scale float64, unit []float64) ([]float64, error) {
		if len(unit) != len(diff) {
			return nil, fmt.Errorf("%d unit noises for %d values", len(unit), len(diff))
		}
		out := make([]float64, len(diff))
		for i := range out {
			out[i] = center[i] + diff[i] + scale*unit[i]
		}
		return out, nil
	}
	mu, err := released(prior.Mu[lo:hi], got.Mu, got.SDMu, d.UnitMu)
	if err != nil {
		return err
	}
	w, err := released(prior.W[lo*q:hi*q], got.W, got.SDW, flat(d.UnitW))
	if err != nil {
		return err
	}
	noise, err := released(prior.Noise[d.View:d.View+1], []float64{got.Noise}, got.ScaleNoise, []float64{d.UnitNoise})
	if err != nil {
		return err
	}
	list.Floats(entry+".released_mu", d.ReleasedMu, mu, tolPublished)
	list.Floats(entry+".released_W", flat(d.ReleasedW), w, tolPublished)
	list.Float(entry+".released_sigma2", d.ReleasedNoise, noise[0], tolPublished)
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
		alpha = stats.InverseDigamma(math.Log(n*alpha) - math.Log(inverse) - meanLog)
	}
	return alpha, n * alpha / inverse
}
