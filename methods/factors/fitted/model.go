package fitted

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/figure"
	"parley/method"
	"parley/methods/factors/assess"
	"parley/methods/factors/between"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
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
	Format  string           `json:"format"`
	Plan    string           `json:"plan_sha256"`
	Study   string           `json:"study"`
	Seed    uint64           `json:"seed"`
	Options *options.Options `json:"options,omitempty"` // of factors
	// Published is the method that made the model as a paper has it; nil for factors.
	Published *Published `json:"published,omitempty"`
	Scaling   string     `json:"scaling"`
	Factors   []float64  `json:"factor_strengths"` // eigenvalues of WᵀΨ⁻¹W, falling
	// LogLik is the mean log-likelihood of a training subject, in nats and
	// scaled units; null where a site did not say.
	LogLik *float64    `json:"log_likelihood_per_subject"`
	Views  []ModelView `json:"views"`
	// Covariates are what the features are adjusted for, and AdjustedSubjects and
	// LackingCovariates how many subjects of the fit have all, and how many took no part
	// because they do not; left out where the plan adjusts for nothing. All else is then of
	// features less what covariates add.
	Covariates        []modelCovariate `json:"covariates,omitempty"`
	AdjustedSubjects  int              `json:"subjects_with_covariates,omitempty"`
	LackingCovariates int              `json:"subjects_without_covariates,omitempty"`
	// Errors are how far subjects who are left out move the factors; nil where nobody was.
	Errors *assess.Errors `json:"factor_errors,omitempty"`
	// Rotation says on which axes factors are shown; left out for those of the loadings.
	Rotation *factorRotation `json:"rotation,omitempty"`
	// Sites is empty where no site said how the model describes it, which under
	// differential privacy would be a further release. Then Values and R2 of the
	// views are not known either.
	Sites []ModelSite `json:"sites"`
	// SiteMeans is how the sites' means differ, where these are separate: then all else
	// is about how subjects of one site differ. Left out where sites are taken for
	// samples of one population.
	SiteMeans []modelSiteMeans `json:"site_means,omitempty"`
	// NewSiteDirections are those along which the means of a new site shift together, in scaled units over the features
	// of all views in order: a part of their variances. See [between.Offsets.Together].
	NewSiteDirections [][]float64 `json:"mean_directions_at_new_site,omitempty"`
	// SiteNoise is how the noise of sites differs; left out where nothing says that it does.
	SiteNoise []modelSiteNoise `json:"site_noise,omitempty"`
	// Biases is how far predictions miss on average at single sites, where one mean for all sites
	// cannot follow; left out where nothing tells.
	Biases *Biases `json:"site_biases,omitempty"`
	// Verdicts are what speaks against relying on the model, most severe first.
	Verdicts []Verdict `json:"verdicts,omitempty"`
}

// Published says which method made a model, and how.
type Published struct {
	Method string `json:"method"`
	// TypicalSite says that the model is that of a typical site; otherwise it describes the
	// pooled population.
	TypicalSite bool            `json:"typical_site"`
	Private     bool            `json:"private,omitempty"` // under differential privacy
	Options     json.RawMessage `json:"options"`           // what its plan said under method
}

// Kind is what a verdict is about. A model has one verdict of a kind at most, which has all reasons.
type Kind string

// The kinds of verdicts.
const (
	OnLinks       Kind = "views that nobody connects, and subjects who do not count"
	OnScale       Kind = "values far apart"
	OnSites       Kind = "sites that differ"
	OnPrediction  Kind = "views that are not predicted"
	OnIntervals   Kind = "intervals"
	OnOutliers    Kind = "outliers"
	OnFactors     Kind = "too many factors"
	OnMissing     Kind = "missing values"
	OnOrder       Kind = "the order of rows"
	OnComposition Kind = "compositions"
	OnAdjustment  Kind = "covariates"
)

// Verdict is something that a user of a model must know before relying on it.
type Verdict struct {
	Kind   Kind     `json:"kind,omitempty"`
	Says   string   `json:"says"`            // one sentence, without a full stop
	Advice string   `json:"advice"`          // what it means, and what would help
	Views  []string `json:"views,omitempty"` // of which values that are imputed are concerned
	// Voids names the views of which the study's own numbers on how well the model describes
	// them, such as R², must not be relied on.
	Voids []string `json:"voids,omitempty"`
}

// Found is what a verdict names, with the views that it is about.
type Found struct{ what, views []string }

// Add names something that is about some views.
func (f *Found) Add(what string, views ...string) {
	f.what, f.views = append(f.what, what), append(f.views, views...)
}

// Verdict is one of a kind, which says last what was found; nothing if nothing was.
func (f *Found) Verdict(kind Kind, advice, says string, a ...any) Verdict {
	if f.what == nil {
		return Verdict{}
	}
	return Verdict{Kind: kind, Says: fmt.Sprintf(says, append(a, Shortened(f.what))...), Advice: advice, Views: f.views}
}

// Shortened lists the first few.
func Shortened(list []string) string {
	const shown = 5
	if more := len(list) - shown; more > 0 {
		return strings.Join(list[:shown], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(list, ", ")
}

// Warn adds verdicts, each to that of its kind if there is one. Those that say nothing add nothing.
func (m *Model) Warn(list ...Verdict) {
	for _, v := range list {
		at := slices.IndexFunc(m.Verdicts, func(o Verdict) bool { return o.Kind == v.Kind })
		switch {
		case v.Says == "":
		case at < 0:
			v.Views = m.inOrder(v.Views, nil)
			m.Verdicts = append(m.Verdicts, v)
		default:
			o := &m.Verdicts[at]
			o.Says += "; " + strings.ToLower(v.Says[:1]) + v.Says[1:]
			if !strings.Contains(o.Advice, v.Advice) {
				o.Advice += " " + v.Advice
			}
			o.Views, o.Voids = m.inOrder(o.Views, v.Views), m.inOrder(o.Voids, v.Voids)
		}
	}
}

// inOrder names the views that are in either list.
func (m *Model) inOrder(a, b []string) (all []string) {
	for _, v := range m.Views {
		if slices.Contains(a, v.Name) || slices.Contains(b, v.Name) {
			all = append(all, v.Name)
		}
	}
	return all
}

// Void says whether a verdict voids the numbers of a view.
func (m *Model) Void(view string) bool {
	return slices.ContainsFunc(m.Verdicts, func(v Verdict) bool { return slices.Contains(v.Voids, view) })
}

// ModelView is a view of a model.
type ModelView struct {
	Name   string  `json:"name"`
	Values float64 `json:"values"` // observed at all sites, over features
	// R2 is the share of the view's variance within sites that all factors
	// together explain, and R2Each what each explains by itself; see
	// [ppca.Explained.R2]. Null where the view does not vary.
	R2     *float64       `json:"r2"`
	R2Each figure.Numbers `json:"r2_by_factor"`
	// Standard deviations between sites, in scaled units, of the entries of the
	// loadings and of the means; null where nothing estimated them. That of the means
	// is the total one where sites have means of their own, and otherwise what the
	// factors' means at the sites leave of it.
	LoadingSD *float64 `json:"loading_sd_between_sites"`
	MeanSD    *float64 `json:"mean_sd_between_sites"`
	// SamplingTimes is how many times as large as the parameters say the variance of a value
	// that is predicted is, because they come from so many subjects; see [ppca.SamplingTimes].
	// Left out where that is not known.
	SamplingTimes float64 `json:"predicted_variance_times,omitempty"`
	// HeldOut is how well the view is predicted from the others for subjects who took no part in the fit; left out
	// where nobody has it and another, or nobody could be left out.
	HeldOut  *ModelHeldOut  `json:"held_out,omitempty"`
	Features []ModelFeature `json:"features"`
}

// ModelHeldOut is what [assess.HeldOut] says of a view: the share of the squared error of its mean that predictions
// take away, and by how much more of its values their intervals hold than those of the fit's own subjects.
type ModelHeldOut struct {
	Gain   float64 `json:"gain"`
	GainSE float64 `json:"gain_se"`
	Shift  float64 `json:"coverage_more"`
}

// PutHeldOut adds how well views are predicted for subjects who took no part in the fit, and how far leaving
// them out moves the loadings.
func (m *Model) PutHeldOut(h *assess.HeldOut) {
	for k, cells := range h.Cells {
		if cells > 0 {
			m.Views[k].SamplingTimes = h.Times[k]
		}
		if cells > 0 && h.Squares[k] > 0 {
			m.Views[k].HeldOut = &ModelHeldOut{h.Gain(k), h.GainSE[k], h.Shift[k]}
		}
	}
	m.Errors = h.Errors
	loading, ratio, q := h.Errors.Loading, h.Errors.Standardised, len(m.Factors)
	for _, f := range m.features() {
		f.LoadingSE, loading = loading[:q:q], loading[q:]
		f.StandardisedSE, ratio = ratio[:q:q], ratio[q:]
	}
}

// ModelFeature is a feature of a model. Shift is in the feature's own unit and
// Factor in its inverse; all else is in scaled units.
type ModelFeature struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit,omitempty"`
	Shift  float64 `json:"shift"`
	Factor float64 `json:"factor"`
	Mean   float64 `json:"mean"`
	Noise  float64 `json:"noise_variance"` // 0: no site had the view, so the model does not describe it
	// SiteVariance is the variance between sites of the feature's mean, and
	// NewSiteVariance that with which the mean at a site that took no part differs from
	// Mean; left out where sites have no means of their own.
	SiteVariance    float64 `json:"mean_variance_between_sites,omitempty"`
	NewSiteVariance float64 `json:"mean_variance_at_new_site,omitempty"`
	// Missing are cells that stand for a missing value.
	Missing []string `json:"missing,omitempty"`
	// Doubt is the variance that privacy noise in the model adds to predictions
	// of the feature; left out where there is none.
	Doubt float64 `json:"privacy_noise_variance,omitempty"`
	// Effects are what the model's covariates add, in the feature's own unit: for one more of
	// a number, or for a level instead of the first. An effect that is null could not be told,
	// and was taken as 0.
	Effects  figure.Numbers `json:"covariate_effects,omitempty"`
	Loadings []float64      `json:"loadings"`
	// Standard errors of the loadings, and of the standardised ones, on the fit's own axes; left out where nobody was
	// left out of the fit. 0 where nothing is known.
	LoadingSE      []float64 `json:"loading_standard_errors,omitempty"`
	StandardisedSE []float64 `json:"standardised_loading_standard_errors,omitempty"`
}

// feature is a feature with its view.
type feature struct {
	view string
	*ModelFeature
}

// features lists those of all views in order.
func (m *Model) features() (all []feature) {
	for k := range m.Views {
		v := &m.Views[k]
		for i := range v.Features {
			all = append(all, feature{v.Name, &v.Features[i]})
		}
	}
	return all
}

// described lists those that the model describes: others no site had.
func (m *Model) described() []feature {
	return slices.DeleteFunc(m.features(), func(f feature) bool { return f.Noise == 0 })
}

// ModelSite is a site of the fit.
type ModelSite struct {
	Name     string   `json:"name"`
	Subjects int      `json:"subjects"`
	Views    []string `json:"views"` // that at least one of its subjects has
}

// modelCovariate is a subject column that a model's features are adjusted for.
type modelCovariate struct {
	options.Covariate
	// Mean has one number for a column of numbers, and one for each level but the first of a category: the mean over
	// the subjects of all sites.
	Mean []float64 `json:"mean"`
}

// modelSiteMeans is by how much the means of one site differ from the model's, in scaled
// units: offset ~ N(Offset, diag(Variance) + FactorᵀFactor), over the features of all views
// in order. See package offsets.
type modelSiteMeans struct {
	Name     string      `json:"name"`
	Offset   []float64   `json:"offset"`
	Variance []float64   `json:"variance"`
	Factor   [][]float64 `json:"factor"`
}

// modelSiteNoise is the noise of one site, by view in the order of the model's.
type modelSiteNoise struct {
	Name  string          `json:"name"`
	Views []between.Noise `json:"views"`
}

// NoiseTimes are the factors of the noise variances alone.
func NoiseTimes(noise []between.Noise) (times []float64) {
	for _, v := range noise {
		times = append(times, v.Times)
	}
	return times
}

// Encode writes model.json.
func (m *Model) Encode() ([]byte, error) { return method.EncodeModel(m) }

// Files are those of a result: the model, its loadings, and tables of what else it has.
func (m *Model) Files() ([]method.File, error) {
	data, err := m.Encode()
	if err != nil {
		return nil, err
	}
	loadings, err := m.LoadingsCSV()
	if err != nil {
		return nil, err
	}
	files := []method.File{{Name: "model/model.json", Data: data}, {Name: "model/loadings.csv", Data: loadings}}
	if m.Separate() {
		means, err := m.siteMeansCSV()
		if err != nil {
			return nil, err
		}
		files = append(files, method.File{Name: "model/site-means.csv", Data: means})
	}
	return files, nil
}

func (m *Model) Layout() (ppca.Layout, error) {
	noise := ppca.NoisePerView
	if m.Options != nil {
		noise = m.Options.NoiseGroups()
	}
	dims := make([]int, len(m.Views))
	for k, v := range m.Views {
		dims[k] = len(v.Features)
	}
	for _, f := range m.features() {
		if len(f.Loadings) != len(m.Factors) {
			return ppca.Layout{}, fmt.Errorf("feature %s has %d loadings for %d factors", f.Name, len(f.Loadings),
				len(m.Factors))
		}
	}
	return ppca.NewLayout(dims, noise)
}

func (m *Model) params() *ppca.Params {
	l, err := m.Layout()
	if err != nil {
		return &ppca.Params{} // Check refuses it
	}
	p := &ppca.Params{Rank: len(m.Factors), Noise: make([]float64, l.Groups())}
	group := l.GroupOf()
	for j, f := range m.features() {
		if f.Noise != 0 {
			p.Features = append(p.Features, j)
		}
		p.Noise[group[j]] = f.Noise
		p.W, p.Mu = append(p.W, f.Loadings...), append(p.Mu, f.Mean)
	}
	return p
}

func (m *Model) scale() *ppca.Scale {
	s := &ppca.Scale{}
	for _, f := range m.features() {
		s.Shift, s.Factor = append(s.Shift, f.Shift), append(s.Factor, f.Factor)
	}
	return s
}

// NewModelFile puts names to a fitted model; who made it is still to be added.
func NewModelFile(set ppca.Frame, model *ppca.Params, scale *ppca.Scale, strengths []float64) (*Model, error) {
	if err := scale.Check(set.Layout); err != nil {
		return nil, err
	}
	p := set.Plan
	digest, err := p.Digest()
	if err != nil {
		return nil, err
	}
	m := &Model{
		Format: ModelFormat, Plan: digest.String(), Study: p.Name, Seed: p.Seed,
		Scaling: set.Scaling, Factors: strengths, Sites: []ModelSite{},
	}
	q, j := model.Rank, 0
	group := set.Layout.GroupOf()
	for k, v := range p.Views {
		view := ModelView{Name: v.Name}
		for i, f := range v.Features {
			view.Features = append(view.Features, ModelFeature{
				Name: f.Name, Unit: f.Unit, Missing: p.Codes(k, i), Shift: scale.Shift[j], Factor: scale.Factor[j],
				Mean: model.Mu[j], Noise: model.Noise[group[j]], Loadings: slices.Clone(model.W[j*q : (j+1)*q]),
			})
			j++
		}
		m.Views = append(m.Views, view)
	}
	return m, nil
}

// PutSpread puts in how sites differ: standard deviations between sites of loadings and means by view; negative where
// nothing is known.
func (m *Model) PutSpread(loadings, means []float64) {
	for k := range m.Views {
		m.Views[k].LoadingSD, m.Views[k].MeanSD = known(loadings[k]), known(means[k])
	}
}

// known is a number that there is.
func known(x float64) *float64 {
	if x < 0 {
		return nil
	}
	return &x
}

// HasSpread says whether anything is known of how sites differ.
func (m *Model) HasSpread() bool {
	return slices.ContainsFunc(m.Views, func(v ModelView) bool { return v.LoadingSD != nil && v.MeanSD != nil })
}

// Explains puts in how much of each view the factors account for.
func (m *Model) Explains(x *ppca.Explained) {
	for k := range m.Views {
		v := &m.Views[k]
		v.Values, v.R2Each = x.Cells[k], make(figure.Numbers, x.Rank())
		for f := range x.Rank() {
			v.R2Each[f] = x.R2(k, f)
		}
		if r2 := x.R2(k, x.Rank()); !math.IsNaN(r2) {
			v.R2 = &r2
		}
	}
}

// Doubts puts in what privacy noise adds to predictions.
func (m *Model) Doubts(variance []float64) {
	for j, f := range m.features() {
		f.Doubt = variance[j]
	}
}

// Population says whom predictions are about.
type Population struct {
	// Site names a site of the fit, whose subjects are predicted as its own; empty for
	// subjects of all sites.
	Site string
	// New says that the subjects are of a site that took no part.
	New bool
}

// doubt lists what privacy noise, and the biases of sites, add to predictions of features; nil for
// nothing.
func (m *Model) doubt(who Population) (out []float64) {
	any := false
	for _, f := range m.features() {
		x := f.Doubt + m.Biases.of(f.view, who.Site, who.New)*f.total()*f.total()
		out, any = append(out, x), any || x != 0
	}
	if !any {
		return nil
	}
	return out
}
