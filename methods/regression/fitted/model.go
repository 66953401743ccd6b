// Package fitted is a fitted model and what can be done with it: [LoadModel] reads model.json, and a [Model] then
// describes itself, predicts rows, is compared with others and exported, as the interfaces of package method ask. A
// model is a function of its file alone; a file that does not fit together gives an error. What people see of a study
// is [Prediction], for everybody, and [OwnReport] for a site's own people: functions of the model and of sums over
// rows, which show no single subject.
package fitted

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"parley/dataset"
	"parley/figure"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/problem"
	"parley/study"
)

// ModelFormat names the format of model.json and its version.
const ModelFormat = "parley/pvi-model/2"

// Model is a fitted model with everything that its use needs. It is what model.json holds. The weights of class k are
// entries k·d … (k+1)·d − 1 of Posterior and of the factors, for the d columns that Encoding makes.
type Model struct {
	Format    string             `json:"format"`
	By        string             `json:"method,omitempty"` // the method, if it is another one
	Plan      string             `json:"plan_sha256"`
	Study     string             `json:"study"`
	Seed      uint64             `json:"seed"`
	Private   bool               `json:"private"` // fitted from noised releases alone
	Options   *options.Options   `json:"options"`
	Views     []method.ModelView `json:"views"`
	Encoding  glm.Encoding       `json:"encoding"`
	Prior     glm.Gaussian       `json:"prior"`
	Posterior glm.Gaussian       `json:"posterior"` // of each weight by itself
	// Covariance is that of all weights together, its lower triangle by rows; left out
	// where the approximation takes them as independent.
	Covariance []float64 `json:"covariance,omitempty"`
	// Free is how many degrees of freedom rows leave to the noise of a number, if it was
	// estimated from them: weights, and the next outcome, have Student's t distribution then.
	Free  float64     `json:"degrees_of_freedom,omitempty"`
	Sites []ModelSite `json:"sites"`
	// Converged says whether the fit ended because it had settled; left out where a
	// plan's number of rounds ends it in any case.
	Converged *bool `json:"converged,omitempty"`
	// Verdicts are what the report of the fit says first: why it may not be relied on.
	Verdicts []glm.Finding `json:"verdicts,omitempty"`
	// BetweenSites is the standard deviation of the sites' random intercepts, where they
	// have any. The intercepts themselves stay at the sites.
	BetweenSites *glm.Spread `json:"between_sites,omitempty"`
	// Site is what a site knows of its own intercept, in a model that is kept there: it is of
	// that site's subjects alone.
	Site    *ownSite        `json:"site,omitempty"`
	Effects []outcomeEffect `json:"effects"` // the posterior in the features' own units
	hidden  []string        // features whose numbers of subjects are in no table
}

// ModelSite is what one site contributed.
type ModelSite struct {
	Name        string       `json:"name"`
	Updates     int          `json:"updates"`               // of its factor, or exchanges of a joint fit
	Rows        int          `json:"rows,omitempty"`        // of a joint fit
	Information float64      `json:"information,omitempty"` // of the factor, in units of the prior's
	Left        bool         `json:"left,omitempty"`
	Factor      glm.Gaussian `json:"factor,omitzero"` // of a product of factors
}

// ownSite is a site's own intercept.
type ownSite struct {
	Name string `json:"name"`
	glm.Intercept
}

// At returns the model of a site's own subjects, which stays there.
func (m *Model) At(site string, b glm.Intercept) *Model {
	own := *m
	own.Site = &ownSite{site, b}
	return &own
}

// outcomeEffect is a [glm.Effect] on the activation of one class; of binary and
// linear models there is only one, without a name.
type outcomeEffect struct {
	Class string `json:"class,omitempty"`
	glm.Effect
	// Subjects is how many have the level, where that is known.
	Subjects *float64 `json:"subjects,omitempty"`
	// Robust is a standard error that holds where outcomes vary otherwise than the likelihood says, and BySite one
	// that allows for sites to be clusters, where there are enough.
	Robust *float64 `json:"robust_sd,omitempty"`
	BySite *float64 `json:"robust_sd_by_site,omitempty"`
}

// Robust puts in robust covariances of the weights; nil if they are not known.
func (m *Model) Robust(rows, sites []float64) {
	sd := func(covariance []float64, r glm.Row) *float64 {
		if covariance == nil {
			return nil
		}
		x := math.Sqrt(max(glm.Normal{Covariance: covariance}.Between(r, r), 0))
		return &x
	}
	for j, r := range m.own() {
		m.Effects[j].Robust, m.Effects[j].BySite = sd(rows, r), sd(sites, r)
	}
}

// Label is the feature, with the class if there are several.
func (e *outcomeEffect) Label() string {
	if e.Class == "" {
		return e.Feature
	}
	return e.Class + ": " + e.Feature
}

// New is the model of a plan whose posterior is q, over columns that e makes; what single
// sites contributed is still to be added.
func New(plan *study.Plan, o *options.Options, prior glm.Gaussian, q glm.Normal, e *glm.Encoding) (*Model, error) {
	digest, err := plan.Digest()
	if err != nil {
		return nil, err
	}
	posterior, err := glm.FromMoments(q.Mean, q.Variance)
	if err != nil {
		return nil, err
	}
	m := &Model{Format: ModelFormat, Plan: digest.String(), Study: plan.Name, Seed: plan.Seed,
		Private: plan.Privacy.Differential(), Options: o, Encoding: *e, Prior: prior, Posterior: posterior,
		Covariance: q.Covariance,
		Views:      method.ModelViews(plan)}
	if plan.Method.Name != options.Name {
		m.By = plan.Method.Name
	}
	classes, width := o.Classes(), e.Width()
	for j, own := range e.Effects(m.Weights()) {
		m.Effects = append(m.Effects, outcomeEffect{Class: classes[j/width], Effect: own})
	}
	return m, nil
}

// Of is [New] for another method, whose options say the outcome in the words of ours.
func Of(plan *study.Plan, own any, prior glm.Gaussian, q glm.Normal, e *glm.Encoding) (*Model, error) {
	o, err := OptionsOf(own)
	if err != nil {
		return nil, err
	}
	return New(plan, o, prior, q, e)
}

// OptionsOf are those of another method's options that ours have, too.
func OptionsOf(own any) (*options.Options, error) {
	o := new(options.Options)
	data, err := json.Marshal(own)
	if err == nil {
		err = json.Unmarshal(data, o)
	}
	return o, err
}

// Weights is the posterior of all weights.
func (m *Model) Weights() glm.Normal {
	q := m.Posterior.Normal()
	q.Covariance = m.Covariance
	return q
}

// Before has mean and variance of each weight before the data. Of a joint posterior of several
// classes weights are what is left without what all classes have in common: see [glm.Centre].
func (m *Model) Before() (mean, variance []float64) {
	mean, variance = m.Prior.Moments()
	if classes := float64(len(m.Options.Classes())); classes > 1 && m.Covariance != nil {
		for j := range mean {
			mean[j], variance[j] = 0, variance[j]*(1-1/classes)
		}
	}
	return mean, variance
}

// own are the effects in the features' own units as combinations of weights.
func (m *Model) own() []glm.Row { return m.Encoding.Own(len(m.Options.Classes())) }

// Encode writes model.json.
func (m *Model) Encode() ([]byte, error) { return method.EncodeModel(m) }

// LoadModel reads model.json. A model of another format or version is refused by
// name; so is one whose numbers do not fit together.
func LoadModel(data []byte) (*Model, error) {
	return method.DecodeModel(data, (*Model).check, ModelFormat)
}

// check says what is wrong with a model that came from elsewhere.
func (m *Model) check() error {
	o := m.Options
	if o == nil {
		return fmt.Errorf("it has no options")
	}
	var err error
	o.Outcome.Check(&study.Plan{Subjects: o.Outcome.Judged().Columns()}, o.Likelihood, func(key, what, _ string) {
		err = cmp.Or(err, fmt.Errorf("%s: %s", key, what))
	})
	switch {
	case err != nil:
		return err
	case o.Likelihood == glm.LikelihoodLinear && (o.NoiseVariance == nil || !(*o.NoiseVariance > 0)):
		return fmt.Errorf("a linear model without a positive noise variance")
	case !slices.Equal(o.Outcome.Cuts, m.Encoding.Periods):
		return fmt.Errorf("periods until %v in a model of periods until %v", m.Encoding.Periods, o.Outcome.Cuts)
	case !glm.Inside(m.Free, 0, math.MaxFloat64) || m.Free > 0 && o.Likelihood != glm.LikelihoodLinear:
		return fmt.Errorf("%v degrees of freedom in a %s model", m.Free, o.Likelihood)
	case !slices.Contains(options.Likelihoods, o.Likelihood):
		return fmt.Errorf("the likelihood %q is not known", o.Likelihood)
	}
	if err := m.Encoding.Check(); err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	if _, err := m.Encoding.Bind(m.Schema(), nil); err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	p := o.Family().Activations() * m.Encoding.Width()
	if err := m.Posterior.CheckProper(p); err != nil {
		return fmt.Errorf("posterior: %w", err)
	}
	if err := m.Prior.CheckProper(p); err != nil {
		return fmt.Errorf("prior: %w", err)
	}
	if t := m.BetweenSites; t != nil {
		if err := t.Check(); err != nil {
			return fmt.Errorf("between sites: %w", err)
		}
	}
	if b := m.Site; b != nil {
		if m.BetweenSites == nil || !(b.Variance >= 0) || !glm.Finite(b.Mean) || !glm.Finite(b.Variance) ||
			len(b.Slope) != p {
			return fmt.Errorf("site %q: an intercept of %v with variance %v and %d slopes for %d weights", b.Name,
				b.Mean, b.Variance, len(b.Slope), p)
		}
	}
	if m.Covariance != nil {
		full := slices.Clone(m.Covariance) // singular by what all classes have in common
		if len(full) == glm.Triangle(p) {
			glm.Pin(full, p, o.Family().Activations())
		}
		if _, err := glm.NewNormal(m.Weights().Mean, full); err != nil {
			return fmt.Errorf("covariance: %w", err)
		}
		var chol mat.Cholesky
		if !chol.Factorize(glm.Symmetric(full, p)) {
			return fmt.Errorf("the covariance is not positive definite")
		}
	}
	if len(m.Effects) != p {
		return fmt.Errorf("%d effects of %d weights", len(m.Effects), p)
	}
	for _, s := range m.Sites {
		if s.Factor.Eta == nil && m.Covariance != nil {
			continue // a joint fit has no factors
		}
		if err := s.Factor.Check(p); err != nil {
			return fmt.Errorf("site %s: %w", s.Name, err)
		}
	}
	return nil
}

// Method implements [method.Model].
func (m *Model) Method() string { return cmp.Or(m.By, options.Name) }

// Cautions implements [method.Cautious].
func (m *Model) Cautions() (notes method.Notes) {
	for _, v := range m.Verdicts {
		notes.Add(problem.Problem{What: "the fit: " + strings.TrimSuffix(v.String(), ".")})
	}
	return notes
}

// Schema implements [method.Model]: the views and features in the model's order, and of
// subject columns that of offsets, if there are any.
func (m *Model) Schema() dataset.Schema {
	s := method.ViewsSchema(m.Views)
	if offset := m.Encoding.Offset; offset != "" {
		s.Subject = []dataset.Column{{Name: offset, Kind: dataset.Label}}
	}
	return s
}

// Evaluator opens the model of a study for predictions of rows of a plan's schema.
func Evaluator(p *study.Plan, files []method.File) (evaluate.Model, error) {
	data, err := method.ModelJSON(files)
	if err != nil {
		return nil, err
	}
	m, err := LoadModel(data)
	if err != nil {
		return nil, err
	}
	return m.Forecaster(p.Schema())
}

// Z90 and z95 are the 95 % and 97.5 % quantiles of the standard normal distribution: so many
// standard deviations to both sides hold 90 and 95 %.
const (
	Z90 = 1.6448536269514722
	z95 = 1.959963984540054
)

// Deviate is how many standard deviations to both sides hold as much of a weight, or of the next
// outcome, as z of a normal one: z, unless the noise was estimated. Then it is the deviate of
// Student's t distribution with Free degrees of freedom.
func (m *Model) Deviate(z float64) float64 {
	if !(m.Free > 0) {
		return z
	}
	return -studentOf(m.Free).Quantile(math.Erfc(z/math.Sqrt2) / 2)
}

func studentOf(free float64) distuv.StudentsT { return distuv.StudentsT{Sigma: 1, Nu: free} }

// Summary implements [method.Summariser]: the effects that are surest to be there.
func (m *Model) Summary(top int) (*method.Account, error) {
	ranked := slices.Clone(m.Effects)
	slices.SortStableFunc(ranked, func(a, b outcomeEffect) int {
		return cmp.Compare(math.Abs(b.Mean)/b.SD, math.Abs(a.Mean)/a.SD)
	})
	ranked = ranked[:min(top, len(ranked))]
	surest := figure.Table{Title: "Surest effects, in the features' own units",
		Columns: []figure.Column{{Name: "feature"}, {Name: "mean"}, {Name: "sd"}}}
	for _, e := range ranked {
		surest.Add(e.Label(), e.Mean, e.SD)
	}
	protection := "none: fitted from exact releases"
	if m.Private {
		protection = "differential: fitted from noised releases"
	}
	facts := []figure.Fact{{Name: "study", Value: m.Study}}
	if m.Converged != nil && !*m.Converged {
		facts = append(facts, figure.Fact{Name: "converged", Value: "no: do not rely on the estimates"})
	}
	if m.Site != nil {
		facts = append(facts, figure.Fact{Name: "of the subjects of",
			Value: fmt.Sprintf("%s: its own intercept is %.3g ± %.2g", m.Site.Name, m.Site.Mean,
				m.Site.SD(m.Weights()))})
	}
	return &method.Account{
		Notes: m.Cautions(),
		Facts: append(facts, []figure.Fact{{Name: "method", Value: m.Method()},
			{Name: "outcome", Value: m.Options.Outcome.Column},
			{Name: "likelihood", Value: m.Options.Likelihood}, {Name: "weights", Value: strconv.Itoa(len(m.Effects))},
			{Name: "privacy", Value: protection}, {Name: "plan", Value: m.Plan}}...),
		Tables: []figure.Table{surest},
		Value: struct {
			Format  string           `json:"format"`
			Study   string           `json:"study"`
			Plan    string           `json:"plan_sha256"`
			Options *options.Options `json:"options"`
			Private bool             `json:"private"`
			Effects []outcomeEffect  `json:"effects"` // the surest first
		}{m.Format, m.Study, m.Plan, m.Options, m.Private, ranked},
	}, nil
}
