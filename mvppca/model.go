package mvppca

import (
	"encoding/json"
	"fmt"
	"slices"

	"parley/dataset"
	"parley/evaluate"
	"parley/internal/version"
	"parley/study"
)

// ModelFormat names the format of model.json and its version.
const ModelFormat = "parley/mvppca-model/1"

// Model is a fitted model with everything that its use needs: names, units,
// scale, settings. It is what model.json holds. Factors are in canonical form:
// strongest first, each with its largest weighted loading positive, so that
// they are a function of the data and not of the run.
//
// In scaled units z_j = (t_j − shift_j)·factor_j, a subject has
// z_j = mean_j + Σ_a loading_ja x_a + ε_j, x ~ N(0, I), Var ε_j = noise_j.
type Model struct {
	Format  string    `json:"format"`
	Program string    `json:"program"`
	Plan    string    `json:"plan_sha256"`
	Study   string    `json:"study"`
	Seed    uint64    `json:"seed"`
	Options *Options  `json:"options"`
	Scaling string    `json:"scaling"`
	Factors []float64 `json:"factor_strengths"` // eigenvalues of WᵀΨ⁻¹W, falling
	// LogLik is the mean log-likelihood of a training subject, in nats and
	// scaled units; null where a site did not say.
	LogLik *float64    `json:"log_likelihood_per_subject"`
	Views  []ModelView `json:"views"`
	Sites  []ModelSite `json:"sites"`
}

// ModelView is a view of a model.
type ModelView struct {
	Name string `json:"name"`
	// Standard deviations between sites, in scaled units, of the entries of the
	// loadings and of the means; null where nothing estimated them.
	LoadingSD *float64       `json:"loading_sd_between_sites"`
	MeanSD    *float64       `json:"mean_sd_between_sites"`
	Features  []ModelFeature `json:"features"`
}

// ModelFeature is a feature of a model. Shift is in the feature's own unit and
// Factor in its inverse; all else is in scaled units.
type ModelFeature struct {
	Name     string    `json:"name"`
	Unit     string    `json:"unit,omitempty"`
	Shift    float64   `json:"shift"`
	Factor   float64   `json:"factor"`
	Mean     float64   `json:"mean"`
	Noise    float64   `json:"noise_variance"`
	Loadings []float64 `json:"loadings"`
}

// ModelSite is what the model says of one site.
type ModelSite struct {
	Name       string      `json:"name"`
	Subjects   int         `json:"subjects"`
	Views      []string    `json:"views"` // that at least one of its subjects has
	LatentMean []float64   `json:"latent_mean"`
	LatentCov  [][]float64 `json:"latent_covariance"`
}

// LoadModel reads model.json. A model of another format or version is refused
// by name.
func LoadModel(data []byte) (*Model, error) {
	var head struct {
		Format  string `json:"format"`
		Program string `json:"program"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("reading a model: %w", err)
	}
	if head.Format != ModelFormat {
		return nil, fmt.Errorf("reading a model: its format is %q, written by %q, and this program reads %q", head.Format, head.Program, ModelFormat)
	}
	m := new(Model)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("reading a model: %w", err)
	}
	l, err := m.layout()
	if err != nil {
		return nil, fmt.Errorf("reading a model: %w", err)
	}
	if err := m.params().Check(l); err != nil {
		return nil, fmt.Errorf("reading a model: %w", err)
	}
	return m, m.scale().Check(l)
}

// Encode writes model.json: the same model always gives the same bytes.
func (m *Model) Encode() ([]byte, error) {
	data, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, fmt.Errorf("writing the model: %w", err)
	}
	return append(data, '\n'), nil
}

func (m *Model) layout() (Layout, error) {
	noise := NoisePerView
	if m.Options != nil {
		noise = m.Options.noise()
	}
	dims := make([]int, len(m.Views))
	for k, v := range m.Views {
		dims[k] = len(v.Features)
		for _, f := range v.Features {
			if len(f.Loadings) != len(m.Factors) {
				return Layout{}, fmt.Errorf("feature %s has %d loadings for %d factors", f.Name, len(f.Loadings), len(m.Factors))
			}
		}
	}
	return NewLayout(dims, noise)
}

func (m *Model) params() *Params {
	l, err := m.layout()
	if err != nil {
		return &Params{} // Check refuses it
	}
	p := &Params{Features: l.AllFeatures(), Rank: len(m.Factors), Noise: make([]float64, l.Groups())}
	group := l.GroupOf()
	for _, v := range m.Views {
		for _, f := range v.Features {
			p.Noise[group[len(p.Mu)]] = f.Noise
			p.W = append(p.W, f.Loadings...)
			p.Mu = append(p.Mu, f.Mean)
		}
	}
	return p
}

func (m *Model) scale() *Scale {
	s := &Scale{}
	for _, v := range m.Views {
		for _, f := range v.Features {
			s.Shift, s.Factor = append(s.Shift, f.Shift), append(s.Factor, f.Factor)
		}
	}
	return s
}

// newModelFile puts names to a fitted model.
func newModelFile(p *study.Plan, o *Options, digest string, scale *Scale, prior *Prior, strengths []float64) *Model {
	m := &Model{
		Format: ModelFormat, Program: "parley " + version.Number, Plan: digest, Study: p.Name, Seed: p.Seed,
		Options: o, Scaling: o.Scaling, Factors: strengths,
	}
	q, j := prior.Rank, 0
	l := Layout{Noise: o.noise()}
	for _, v := range p.Views {
		l.Dims = append(l.Dims, len(v.Features))
	}
	group := l.GroupOf()
	for _, v := range p.Views {
		view := ModelView{Name: v.Name}
		for _, f := range v.Features {
			view.Features = append(view.Features, ModelFeature{
				Name: f.Name, Unit: f.Unit, Shift: scale.Shift[j], Factor: scale.Factor[j],
				Mean: prior.Mu[j], Noise: prior.Noise[group[j]], Loadings: slices.Clone(prior.W[j*q : (j+1)*q]),
			})
			j++
		}
		m.Views = append(m.Views, view)
	}
	return m
}

// Predictor returns what answers questions about single subjects in scaled
// units, and the scale that brings their values there.
func (m *Model) Predictor() (*Predictor, *Scale, error) {
	l, err := m.layout()
	if err != nil {
		return nil, nil, err
	}
	p, err := NewPredictor(l, m.params())
	return p, m.scale(), err
}

// Evaluator lets the model be scored on rows in the units that it was fitted
// to: observed values are reconstructed as [Posterior.Describe] does, others
// are expected by the conditional mean. The log-likelihood is in scaled units.
func (m *Model) Evaluator() (evaluate.Model, error) {
	p, scale, err := m.Predictor()
	if err != nil {
		return nil, err
	}
	l, err := m.layout()
	return &rowEvaluator{predictor: p, scale: scale, dims: l.Dims, view: l.ViewOf(), values: make([]float64, l.Features())}, err
}

type rowEvaluator struct {
	predictor *Predictor
	scale     *Scale
	dims      []int
	view      []int
	values    []float64 // scratch
}

// Infer implements [evaluate.Model].
func (e *rowEvaluator) Infer(row *dataset.Row, dst *evaluate.Posterior) error {
	post, t, err := e.predictor.Subject(row.Views, e.scale)
	if err != nil {
		return fmt.Errorf("subject %q: %w", row.ID, err)
	}
	dst.Resize(e.predictor.md.q, e.dims)
	post.Latent(dst.Latent, t)
	dst.LogLik = post.LogLik(t)
	post.Describe(e.values, t)
	e.put(dst, post.Observed)
	post.Impute(e.values, t)
	e.put(dst, post.Missing)
	return nil
}

// put writes scaled values of some features in their own units.
func (e *rowEvaluator) put(dst *evaluate.Posterior, features []int) {
	lo, k := 0, 0
	for i, j := range features {
		for ; k < e.view[j]; k++ {
			lo += e.dims[k]
		}
		dst.Mean[k][j-lo] = e.values[i]/e.scale.Factor[j] + e.scale.Shift[j]
	}
}
