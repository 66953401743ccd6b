package mixture

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"parley/dataset"
	"parley/figure"
	"parley/method"
	"parley/methods/mixture/gmm"
	"parley/study"
)

// ModelFormat names the format of model.json.
const ModelFormat = "parley/graffl-model/1"

// Model is what a study found, as model.json: the sample itself is beside it, in
// posterior.csv.
type Model struct {
	Format string `json:"format"` // ModelFormat
	// Published is the method that made it as a paper has it; nil for graffl.
	Published *Published       `json:"published,omitempty"`
	Program   string           `json:"program,omitempty"` // what wrote it, if it was older: a model does not depend on that
	Plan      string           `json:"plan_sha256"`
	Study     string           `json:"study"`
	Seed      uint64           `json:"seed"`
	Private   bool             `json:"private"` // made from noised releases alone
	Options   *Options         `json:"options"`
	Views     []ModelView      `json:"views"`
	Prior     gmm.Prior        `json:"prior"`
	Mean      gmm.Mixture      `json:"mean"` // of the posterior, or of what was accepted; components matched
	Summed    []ModelParameter `json:"parameters"`
	Doubts    []string         `json:"doubts,omitempty"` // reasons against the mixture
	// Sample has some of the posterior's draws, which stand for all, for what is said of single
	// rows. Nil of Algorithm 2 as published, which has no posterior.
	Sample *gmm.Posterior `json:"sample,omitempty"`
}

// Published says which method made a model, and how.
type Published struct {
	Method  string `json:"method"`
	Options any    `json:"options"` // what its plan said under method
}

// ModelView is a view with its features.
type ModelView struct {
	Name    string        `json:"name"`
	Columns []ModelColumn `json:"columns"`
}

// ModelColumn is a feature.
type ModelColumn struct {
	Name    string   `json:"name"`
	Unit    string   `json:"unit,omitempty"`
	Missing []string `json:"missing,omitempty"` // cells that stand for a missing value
}

// ModelParameter is one number of the mixture, with the interval that holds it
// with a probability of 90 %.
type ModelParameter struct {
	Component int     `json:"component"` // from 1
	Name      string  `json:"name"`      // weight, mean of …, standard deviation of …
	Mean      float64 `json:"mean"`
	Low       float64 `json:"low_90"`
	High      float64 `json:"high_90"`
}

// parameters lists what people read of a posterior.
func (v *View) parameters() (all []ModelParameter) {
	add := func(k int, name string, x interval) {
		all = append(all, ModelParameter{k + 1, name, x.mean, x.low, x.high})
	}
	for k := range v.Options.Components {
		add(k, "weight", weightOf(v.Posterior, k))
		for i, name := range v.Names {
			add(k, "mean of "+name, locationOf(v.Posterior, k, i))
		}
		for i, name := range v.Names {
			add(k, "standard deviation of "+name, deviationOf(v.Posterior, k, i))
		}
	}
	return all
}

// Files are those of the model.
func (v *View) Files() ([]method.File, error) {
	digest, err := v.Plan.Digest()
	if err != nil {
		return nil, err
	}
	m := &Model{Format: ModelFormat, Published: v.Published, Plan: digest.String(), Study: v.Plan.Name, Seed: v.Plan.Seed,
		Private: v.Plan.Privacy.Differential(), Options: v.Options, Views: viewsOf(v.Plan), Prior: v.Prior, Mean: v.Mean, Summed: v.parameters(), Doubts: v.Doubted}
	if !v.Accepted {
		m.Sample = kept(v.Posterior)
	}
	data, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, fmt.Errorf("writing the model: %w", err)
	}
	posterior, err := v.posteriorCSV()
	if err != nil {
		return nil, err
	}
	return []method.File{{Name: "model/model.json", Data: append(data, '\n')}, {Name: "model/posterior.csv", Data: posterior}}, nil
}

// viewsOf lists the plan's features.
func viewsOf(p *study.Plan) (all []ModelView) {
	for k, x := range p.Views {
		view := ModelView{Name: x.Name}
		for j, f := range x.Features {
			view.Columns = append(view.Columns, ModelColumn{f.Name, f.Unit, p.Codes(k, j)})
		}
		all = append(all, view)
	}
	return all
}

// LoadModel reads model.json. A model of another format or version is refused by
// name, and whatever else is wrong with it is an error.
func LoadModel(data []byte) (*Model, error) {
	if err := method.CheckFormat(data, ModelFormat); err != nil {
		return nil, err
	}
	m := new(Model)
	err := json.Unmarshal(data, m)
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return nil, fmt.Errorf("reading a model: %w", err)
	}
	return m, nil
}

func (m *Model) check() error {
	d := 0
	for _, v := range m.Views {
		d += len(v.Columns)
	}
	if m.Options == nil {
		return errors.New("it has no options")
	}
	switch {
	case m.Mean.Dim != d || m.Prior.Dim() != d || m.Mean.Components() != m.Prior.Components():
		return fmt.Errorf("a mixture of %d components in %d dimensions, a prior of %d in %d, of %d features", m.Mean.Components(), m.Mean.Dim, m.Prior.Components(), m.Prior.Dim(), d)
	}
	if err := m.Mean.Check(); err != nil {
		return err
	}
	if err := m.Prior.Check(); err != nil {
		return err
	}
	if err := checkKept(m.Sample, m.Mean.Components(), m.Mean.Dim); err != nil {
		return err
	}
	for i, p := range m.Summed {
		if p.Component < 1 || p.Component > m.Mean.Components() || math.IsNaN(p.Mean) || !(p.Low <= p.High) {
			return fmt.Errorf("parameter %d is of component %d, from %v to %v", i+1, p.Component, p.Low, p.High)
		}
	}
	return nil
}

// Method implements [method.Model].
func (m *Model) Method() string {
	if m.Published != nil {
		return m.Published.Method
	}
	return Name
}

// accepted says whether the model is of what Algorithm 2 accepted.
func (m *Model) accepted() bool { return m.Sample == nil && m.Published != nil }

// schemaOf implements [method.Model].
func (m *Model) Schema() dataset.Schema { return schemaOf(m.Views) }

// schemaOf is that of data with some views.
func schemaOf(views []ModelView) (s dataset.Schema) {
	for _, v := range views {
		view := dataset.View{Name: v.Name}
		for _, c := range v.Columns {
			view.Columns = append(view.Columns, dataset.Column{Name: c.Name, Kind: dataset.Number, Missing: c.Missing})
		}
		s.Views = append(s.Views, view)
	}
	return s
}

// Summary implements [method.Summariser]. Of the parameters it gives the first.
func (m *Model) Summary(top int) (*method.Account, error) {
	shown := m.Summed[:min(max(top, 0), len(m.Summed))]
	protection := "none: fitted from exact releases"
	if m.Private {
		protection = "differential: fitted from noised releases"
	}
	table := parameterTable(shown)
	facts := []figure.Fact{{Name: "study", Value: m.Study}, {Name: "method", Value: strings.TrimSuffix(m.Method()+", "+m.Options.Form, ", ")},
		{Name: "components", Value: strconv.Itoa(m.Mean.Components())}, {Name: "privacy", Value: protection}, {Name: "plan", Value: m.Plan}}
	if m.accepted() {
		facts = append(facts, figure.Fact{Name: "not a posterior", Value: "what the published algorithm accepts does not contract to it"})
	}
	return &method.Account{
		Facts:  facts,
		Tables: []figure.Table{*table},
		Value: struct {
			Format     string           `json:"format"`
			Study      string           `json:"study"`
			Plan       string           `json:"plan_sha256"`
			Options    *Options         `json:"options"`
			Private    bool             `json:"private"`
			Parameters []ModelParameter `json:"parameters"`
		}{m.Format, m.Study, m.Plan, m.Options, m.Private, shown},
	}, nil
}

func parameterTable(all []ModelParameter) *figure.Table {
	var component, name []string
	var mean, low, high figure.Numbers
	for _, p := range all {
		component, name = append(component, strconv.Itoa(p.Component)), append(name, p.Name)
		mean, low, high = append(mean, p.Mean), append(low, p.Low), append(high, p.High)
	}
	return &figure.Table{ID: "components", Title: "Parameters", Caption: "Mean, and the ends of the interval that holds 90 %.",
		Columns: []figure.Column{{Name: "component", Text: component}, {Name: "parameter", Text: name}, {Name: "mean", Numbers: mean}, {Name: "5 %", Numbers: low}, {Name: "95 %", Numbers: high}}}
}
