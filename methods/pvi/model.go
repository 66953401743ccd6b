package pvi

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"parley/dataset"
	"parley/internal/version"
	"parley/method/fitted"
	"parley/methods/pvi/gvi"
	"parley/methods/pvi/options"
	"parley/study"
)

// modelFormat names the format of model.json and its version.
const modelFormat = "parley/pvi-model/1"

// Model is a fitted model with everything that its use needs. It is what
// model.json holds. The weights of class k are entries k·d … (k+1)·d − 1 of
// Posterior and of the factors, for the d columns that Encoding makes.
type Model struct {
	Format    string           `json:"format"`
	Program   string           `json:"program"`
	Plan      string           `json:"plan_sha256"`
	Study     string           `json:"study"`
	Seed      uint64           `json:"seed"`
	Private   bool             `json:"private"` // fitted from noised releases alone
	Options   *options.Options `json:"options"`
	Views     []ModelView      `json:"views"`
	Encoding  gvi.Encoding     `json:"encoding"`
	Prior     gvi.Gaussian     `json:"prior"`
	Posterior gvi.Gaussian     `json:"posterior"`
	Sites     []ModelSite      `json:"sites"`
	Effects   []OutcomeEffect  `json:"effects"` // the posterior in the features' own units
}

// ModelView is a view of a model: its columns in their order.
type ModelView struct {
	Name    string        `json:"name"`
	Columns []ModelColumn `json:"columns"`
}

// ModelColumn is a feature; a category if it has levels.
type ModelColumn struct {
	Name   string   `json:"name"`
	Unit   string   `json:"unit,omitempty"`
	Levels []string `json:"levels,omitempty"`
	Other  string   `json:"other,omitempty"` // level that one not listed counts as
}

// ModelSite is what one site contributed.
type ModelSite struct {
	Name        string       `json:"name"`
	Updates     int          `json:"updates"`
	Information float64      `json:"information"` // of the factor, in units of the prior's: see [Information]
	Left        bool         `json:"left,omitempty"`
	Factor      gvi.Gaussian `json:"factor"`
}

// OutcomeEffect is an [Effect] on the activation of one class; of binary and
// linear models there is only one, without a name.
type OutcomeEffect struct {
	Class string `json:"class,omitempty"`
	gvi.Effect
}

func (s *setup) model(q gvi.Gaussian, e *gvi.Encoding) (*Model, error) {
	digest, err := s.plan.Digest()
	if err != nil {
		return nil, err
	}
	m := &Model{Format: modelFormat, Program: "parley " + version.String(), Plan: digest.String(), Study: s.plan.Name, Seed: s.plan.Seed,
		Private: s.plan.Privacy.Differential(), Options: s.opts, Encoding: *e, Prior: s.prior, Posterior: q}
	for _, v := range s.plan.Views {
		view := ModelView{Name: v.Name}
		for _, f := range v.Features {
			c := ModelColumn{Name: f.Name, Unit: f.Unit}
			if f.Kind == study.Category {
				c.Levels, c.Other = f.Levels, f.Other
			}
			view.Columns = append(view.Columns, c)
		}
		m.Views = append(m.Views, view)
	}
	m.Effects, err = m.effects()
	return m, err
}

// effects brings the posterior to the features' own units.
func (m *Model) effects() (all []OutcomeEffect, err error) {
	mean, variance := m.Posterior.Moments()
	d := m.Encoding.Width()
	for k, class := range m.Options.Classes() {
		effects, err := m.Encoding.Effects(mean[k*d:(k+1)*d], variance[k*d:(k+1)*d])
		if err != nil {
			return nil, err
		}
		for _, e := range effects {
			all = append(all, OutcomeEffect{class, e})
		}
	}
	return all, nil
}

// Encode writes model.json: the same model always gives the same bytes.
func (m *Model) Encode() ([]byte, error) {
	data, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, fmt.Errorf("writing the model: %w", err)
	}
	return append(data, '\n'), nil
}

// LoadModel reads model.json. A model of another format or version is refused by
// name; so is one whose numbers do not fit together.
func LoadModel(data []byte) (*Model, error) {
	if err := fitted.CheckFormat(data, modelFormat); err != nil {
		return nil, err
	}
	m := new(Model)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("reading a model: %w", err)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("reading a model: %w", err)
	}
	return m, nil
}

// check says what is wrong with a model that came from elsewhere.
func (m *Model) check() error {
	o := m.Options
	switch {
	case o == nil:
		return fmt.Errorf("it has no options")
	case o.Likelihood == options.LikelihoodLinear && (o.NoiseVariance == nil || !(*o.NoiseVariance > 0)):
		return fmt.Errorf("a linear model without a positive noise variance")
	case o.Likelihood == options.LikelihoodLogistic && len(o.Outcome.Levels) != 2:
		return fmt.Errorf("a logistic model of %d levels", len(o.Outcome.Levels))
	case o.Likelihood == options.LikelihoodSoftmax && (len(o.Outcome.Levels) < 2 || len(o.Outcome.Levels) > gvi.MaxClasses):
		return fmt.Errorf("a softmax model of %d levels", len(o.Outcome.Levels))
	case o.Likelihood != options.LikelihoodLinear && o.Likelihood != options.LikelihoodLogistic && o.Likelihood != options.LikelihoodSoftmax:
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
	if len(m.Effects) != p {
		return fmt.Errorf("%d effects of %d weights", len(m.Effects), p)
	}
	for _, s := range m.Sites {
		if err := s.Factor.Check(p); err != nil {
			return fmt.Errorf("site %s: %w", s.Name, err)
		}
	}
	return nil
}

// Method implements [fitted.Model].
func (m *Model) Method() string { return Method{}.Name() }

// Schema implements [fitted.Model]: the views and features in the model's order,
// and no subject columns.
func (m *Model) Schema() dataset.Schema {
	var s dataset.Schema
	for _, v := range m.Views {
		view := dataset.View{Name: v.Name}
		for _, c := range v.Columns {
			kind := dataset.Number
			if len(c.Levels) > 0 {
				kind = dataset.Category
			}
			view.Columns = append(view.Columns, dataset.Column{Name: c.Name, Kind: kind, Levels: c.Levels, Other: c.Other})
		}
		s.Views = append(s.Views, view)
	}
	return s
}

// ModelFormats implements [fitted.Opener].
func (Method) ModelFormats() []string { return []string{modelFormat} }

// OpenModel implements [fitted.Opener].
func (Method) OpenModel(data []byte) (fitted.Model, error) { return LoadModel(data) }

// posteriorCSV is the posterior as a table for other programs: effects in the
// features' own units with an interval of 90 %, and the weights of scaled columns.
func (m *Model) posteriorCSV() ([]byte, error) {
	mean, variance := m.Posterior.Moments()
	records := [][]string{{"class", "feature", "mean", "sd", "low_90", "high_90", "weight_mean", "weight_sd"}}
	for j, e := range m.Effects {
		records = append(records, []string{e.Class, e.Feature, decimal(e.Mean), decimal(e.SD),
			decimal(e.Mean - z90*e.SD), decimal(e.Mean + z90*e.SD), decimal(mean[j]), decimal(math.Sqrt(variance[j]))})
	}
	return writeCSV(records)
}

// z90 is the 95 % quantile of the standard normal distribution: ± z90 standard
// deviations hold 90 %.
const z90 = 1.6448536269514722

// factorsCSV is what each site contributed, in natural parameters.
func (m *Model) factorsCSV() ([]byte, error) {
	records := [][]string{{"site", "class", "feature", "precision_mean", "precision"}}
	names := m.Encoding.Features()
	for _, s := range m.Sites {
		for k, class := range m.Options.Classes() {
			for j, name := range names {
				i := k*len(names) + j
				records = append(records, []string{s.Name, class, name, decimal(s.Factor.Eta[i]), decimal(s.Factor.Lambda[i])})
			}
		}
	}
	return writeCSV(records)
}

func writeCSV(records [][]string) ([]byte, error) {
	var b bytes.Buffer
	err := csv.NewWriter(&b).WriteAll(records)
	return b.Bytes(), err
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
