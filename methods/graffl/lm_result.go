package graffl

import (
	"fmt"
	"math"
	"strconv"

	"parley/figure"
	"parley/method"
	"parley/methods/graffl/landmark"
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
	fit, err := c.marks.Fit(o, p)
	if err != nil {
		return nil, err
	}
	v := &landmarkView{newView(c.setup, p), o, fit}
	files, err := v.files()
	if err != nil {
		return nil, err
	}
	return &method.Result{
		Files:    files,
		Metrics:  v.metrics(),
		Headline: v.headline(),
		Sections: []figure.Section{v.componentsSection(), v.posteriorSection(), v.fitSection(), v.samplingSection(s), attackSection(c.setup, s.rows())},
	}, nil
}

// landmarkView is one that was made from landmarks.
type landmarkView struct {
	view
	observed landmark.Observation
	fit      *landmark.Fit
}

func (v *landmarkView) metrics() map[string]float64 {
	p := v.posterior
	out := map[string]float64{"rows": v.observed.Rows, "landmarks": float64(v.marks.Len()), "draws": float64(len(p.Draws)), "effective_sample_size": p.Size,
		"temperatures": float64(p.Stages), "acceptance": p.Acceptance, "largest_residual_sd": v.fit.Largest, "misfit_chi_square": v.fit.ChiSq, "misfit_p": v.fit.Tail,
		"noise_sd_of_landmark_means": math.Sqrt(v.observed.NoiseVar)}
	v.components(out)
	return out
}

func (v *landmarkView) headline() []figure.Fact {
	rows := figure.Fact{Name: "rows", Value: figure.Count.Text(v.observed.Rows)}
	if v.opts.Scarce != nil {
		rows.Name += " of " + v.class()
	}
	if v.observed.RowsVar > 0 {
		rows.Name += fmt.Sprintf(", by a noised count (± %.0f)", math.Sqrt(v.observed.RowsVar))
	}
	facts := []figure.Fact{{Name: "components", Value: strconv.Itoa(v.opts.Components)}}
	facts = append(facts, v.weights()...)
	return append(facts, rows,
		figure.Fact{Name: fmt.Sprintf("effective sample size, of %d draws", len(v.posterior.Draws)), Value: fmt.Sprintf("%.0f", v.posterior.Size)},
		figure.Fact{Name: fmt.Sprintf("largest residual, sd (below %.1f if it fits)", landmark.LikelyLargest(v.marks.Len())), Value: fmt.Sprintf("%.1f", v.fit.Largest)})
}
