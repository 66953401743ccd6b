package dppvi

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/predict"
)

// coordinator is the coordinator's half: a common scale where the plan has none, updates of the sites' factors in the
// order of a schedule (Algorithm 1), an assessment of the model by every site.
type coordinator struct{ *common }

// State is what a coordinator carries of a posterior that is the prior times a factor of each site.
type State struct {
	Phase string `cbor:"phase"`
	// place in the plan's sites of the next to be asked, where all are asked in turn
	Turn    int                            `cbor:"turn"`
	Round   int                            `cbor:"round"` // complete rounds
	Asked   int                            `cbor:"asked"` // updates asked for, of all sites
	Left    []string                       `cbor:"left"`
	Scale   *scale                         `cbor:"scale"`
	Sites   map[string]*siteFactor         `cbor:"sites"`
	Reports map[string]*predict.Assessment `cbor:"reports"`
	Trace   trace                          `cbor:"trace"`
	// of a posterior that is no product: means, then logarithms of variances
	Point wire.Vector `cbor:"point,omitempty"`
}

// MarshalBinary implements [method.State].
func (f *State) MarshalBinary() ([]byte, error) { return method.SealState(f) }

// Restore implements [method.Coordinator].
func (coordinator) Restore(data []byte) (method.State, error) {
	s := new(State)
	return s, method.OpenState(data, s)
}

// Result implements [method.Coordinator].
func (c coordinator) Result(ms method.State) (*method.Result, error) {
	f := ms.(*State)
	if f.Phase != method.Done {
		return nil, fmt.Errorf("the study is not done: it waits for %q", f.Phase)
	}
	q, err := c.posterior(f)
	if err != nil {
		return nil, err
	}
	e, err := c.scaled(f.Scale)
	if err != nil {
		return nil, err
	}
	m, err := fitted.Of(c.Plan, c.own, c.prior, q.Normal(), e)
	if err != nil {
		return nil, err
	}
	for _, name := range c.Plan.Sites {
		site := f.Sites[name]
		m.Sites = append(m.Sites, fitted.ModelSite{Name: name, Updates: site.Folded,
			Information: informationOf(site.Factor, c.prior), Left: slices.Contains(f.Left, name), Factor: site.Factor})
	}
	sites, pooled := fitted.Reports(c.Plan.Sites, f.Reports)
	m.Verdicts = slices.Concat(fitted.OutcomeVerdicts(m.Options, pooled, nil),
		fitted.Dispersion(m.Options, pooled, len(m.Effects)), m.HeldBack())
	if c.own.Tolerance != nil { // updates are exact, and have an end
		c.converged(f, m)
	}
	r, err := fitted.Result(m, pooled, map[string]float64{"updates": float64(f.Trace.Folded)},
		figure.Fact{Name: "updates of factors", Value: strconv.Itoa(f.Trace.Folded)})
	if err != nil {
		return nil, err
	}
	for _, site := range m.Sites {
		r.Metrics["information/"+site.Name] = site.Information
	}
	if pooled != nil {
		r.Sections = append(r.Sections, fitted.Data(c.Plan, m.Options, sites, nil))
	}
	weights := effects(m)
	r.Sections = append(r.Sections, weights)
	if pooled != nil {
		r.Sections = append(r.Sections, fitted.Prediction(m.Options, sites, pooled))
	}
	r.Sections = append(r.Sections, siteFactors(m, f.Trace.Projected))
	return r, nil
}

// converged says whether updates have come to their end.
func (c coordinator) converged(f *State, m *fitted.Model) {
	left := c.remaining(f.Sites, c.staying(f))
	converged := left <= closeEnough
	m.Converged = &converged
	if !converged {
		far := "their steps have not begun to shrink"
		if !math.IsInf(left, 1) {
			far = fmt.Sprintf("by the last two steps a weight is still about %.2g of its standard deviations from "+
				"where they would lead", left)
		}
		m.Verdicts = append(m.Verdicts, glm.OnConvergence.Say("The updates", "", far)...)
	}
}

// checkAlone refuses what no rows can give, and residuals, which are not asked for.
func (c *common) checkAlone(a *predict.Assessment) error {
	return a.Check(predict.Form(0, 1, 0, false), len(c.Outcome.Levels))
}

// effects shows the strongest effects.
func effects(m *fitted.Model) figure.Section {
	weights, caption := fitted.Strongest(m)
	section := figure.Section{ID: "effects", Title: "What goes with the outcome",
		Lead: "Each feature with the posterior mean of its effect and the interval that holds it with a probability " +
			"of 95 %, given the other features. An interval across zero leaves the direction open. Effects describe " +
			"what goes together in these data; they do not say what causes what. The approximation takes weights as " +
			"independent, so that intervals of features that go together are too narrow. model/coefficients.csv has " +
			"every effect in the features' own units.",
		Items: []figure.Item{{Figure: &figure.Figure{ID: "weights", Title: "The strongest effects, on one scale",
			Chart: weights, Caption: caption, Alt: "Forest plot of the largest weights with intervals of 95 %."}}}}
	if m.Private {
		section.Items = append([]figure.Item{{Note: &figure.Note{Title: "Trust the predictions, not single weights",
			Warning: true,
			Text: "The updates that the budget pays for end before features that say nearly the same, such as being " +
				"married and being a husband, have settled what each of them adds. Predictions barely depend on " +
				"that. Single weights do, and may be several of their standard deviations from where they would have " +
				"ended, whatever the intervals say."}}}, section.Items...)
	}
	return section
}

// siteFactors shows what each site contributed, and in how many weights a factor was projected.
func siteFactors(m *fitted.Model, projected int) figure.Section {
	t := figure.Table{ID: "contributions", Title: "Updates by site",
		Columns: []figure.Column{{Name: "site"}, {Name: "updates", Format: figure.Count}, {Name: "information"},
			{Name: "took part"}}}
	for _, s := range m.Sites {
		stayed := "to the end"
		if s.Left {
			stayed = "left; its factor stays"
		}
		t.Add(s.Name, s.Updates, s.Information, stayed)
	}
	section := figure.Section{ID: "sites", Title: "What each site contributed", Items: []figure.Item{{Table: &t}},
		Lead: "The posterior is the prior times one factor of each site. A factor's information is the precision " +
			"that it adds, summed over weights, in units of the prior's: a site with more subjects, or with more " +
			"telling ones, adds more."}
	if projected > 0 {
		section.Items = append(section.Items, figure.Item{
			Note: &figure.Note{Title: "Precisions that would have become negative",
				Text: fmt.Sprintf("%d times an update would have made a factor take precision away from a weight; "+
					"there the factor was set to 1.", projected)}})
	}
	return section
}
