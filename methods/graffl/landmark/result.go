package landmark

import (
	"fmt"
	"math"
	"strconv"

	"parley/figure"
	"parley/method"
	"parley/method/rounds"
	"parley/methods/graffl/kernelmean"
	"parley/methods/graffl/mixture"
	"parley/methods/graffl/report"
)

// Result implements [method.Coordinator].
func (c *coordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*state)
	p, err := c.sample(s)
	if err != nil {
		return nil, err
	}
	o, err := c.observation(s)
	if err != nil {
		return nil, err
	}
	fit, err := c.Of.Fit(o, p)
	if err != nil {
		return nil, err
	}
	v := newView(c.Setup, p, o, fit)
	files, err := v.Files()
	if err != nil {
		return nil, err
	}
	var counted []figure.SiteSubjects
	for _, name := range c.Plan.Sites {
		if a := s.Sites[name]; a != nil {
			counted = append(counted, rounds.Complete(c.Plan, name, a.Rows, a.RowsSD))
		}
	}
	return &method.Result{
		Files:    files,
		Metrics:  v.metrics(),
		Found:    v.Found(),
		Sure:     v.sure(),
		Headline: v.headline(),
		Sections: []figure.Section{v.Overview(counted), v.componentsSection(), v.PosteriorSection(), v.fitSection(), v.samplingSection(s), attackSection(c.Setup, s.rows())},
	}, nil
}

// view is a posterior that was made from landmarks.
type view struct {
	report.View
	rel      *release
	observed kernelmean.Observation
	fit      *kernelmean.Fit
	// imprecision is [report.Imprecision], and doubts what speaks against the posterior.
	imprecision float64
	doubts      []string
}

func newView(s *Setup, p *mixture.Posterior, o kernelmean.Observation, fit *kernelmean.Fit) *view {
	v := &view{View: report.NewView(s.Setup, p), rel: &s.release, observed: o, fit: fit}
	v.Called = "posterior"
	v.imprecision = report.Imprecision(p, o.Rows, s.Seed("imprecision"))
	v.doubts = v.doubt()
	if !s.sketched() {
		v.Marks = &s.Marks
	}
	return v
}

func (v *view) metrics() map[string]float64 {
	p := v.Posterior
	out := map[string]float64{"rows": v.observed.Rows, v.rel.points(): float64(v.rel.Of.Len()), "draws": float64(len(p.Draws)), "effective_sample_size": p.Size,
		"temperatures": float64(p.Stages), "acceptance": p.Acceptance, "largest_residual_sd": v.fit.Largest, "misfit_chi_square": v.fit.ChiSq, "misfit_p": v.fit.Tail,
		"noise_sd_of_" + v.rel.point() + "_means": math.Sqrt(v.observed.NoiseVar)}
	out["doubts"], out["imprecision"] = float64(len(v.doubts)), v.imprecision
	v.Components(out)
	return out
}

func (v *view) headline() []figure.Fact {
	rows := figure.Fact{Name: "rows", Value: figure.Count.Text(v.observed.Rows)}
	if v.Options.Scarce != nil {
		rows.Name += " of " + v.Class()
	}
	if v.observed.RowsVar > 0 {
		rows.Name += fmt.Sprintf(", by a noised count (± %.0f)", math.Sqrt(v.observed.RowsVar))
	}
	facts := []figure.Fact{{Name: "components", Value: strconv.Itoa(v.Options.Components)}}
	facts = append(facts, v.Weights()...)
	return append(facts, rows,
		figure.Fact{Name: fmt.Sprintf("effective sample size, of %d draws", len(v.Posterior.Draws)), Value: fmt.Sprintf("%.0f", v.Posterior.Size)})
}

// sure says in words how well the mixture fits, and how precisely it was computed.
func (v *view) sure() string {
	says := "The mixture agrees with what the sites released, as far as that tells."
	switch {
	case v.merelyImprecise():
		says = "The mixture agrees with what the sites released, but it is less precise than its rows would allow: see below."
	case len(v.doubts) > 0:
		says = "The mixture is not to be relied on as it is: see below."
	}
	return says + fmt.Sprintf(" The largest residual is %.1f standard deviations, and a misfit as large would come by chance with probability %s. The effective sample size is %.0f of %d draws.",
		v.fit.Largest, figure.General.Text(v.fit.Tail), v.Posterior.Size, len(v.Posterior.Draws))
}
