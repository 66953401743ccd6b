package graffl

import (
	"fmt"
	"strconv"

	"parley/figure"
	"parley/method"
	"parley/methods/mixture"
	"parley/methods/mixture/gmm"
)

// Result implements [method.Coordinator].
func (c *setsCoordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*setsState)
	p, err := c.Draws(s)
	if err != nil {
		return nil, err
	}
	v := mixture.NewView(c.Setup, p)
	v.Published = c.says()
	files, err := v.Files()
	if err != nil {
		return nil, err
	}
	metrics := map[string]float64{"proposals": float64(s.SMC.Used), "generations": float64(s.SMC.Generation), "draws": float64(len(p.Draws))}
	v.Components(metrics)
	facts := []figure.Fact{{Name: "components", Value: strconv.Itoa(c.Options.Components)}, {Name: "proposals", Value: figure.Count.Text(float64(s.SMC.Used))}, {Name: "generations", Value: strconv.Itoa(s.SMC.Generation)}}
	return &method.Result{Files: files, Metrics: metrics, Found: v.Found(), Sure: "That is not known: the intervals of such a sample are not calibrated.", Headline: append(facts, v.Weights()...),
		Sections: []figure.Section{setWarning(), v.OverviewOf(s.Rows), v.ComponentsSection(), c.generationsSection(s), setsAttacks(c.setup, s.SMC.Used)}}, nil
}

// setWarning says first what a reader of all that follows has to know.
func setWarning() figure.Section {
	return figure.Section{ID: "set", Title: "What this sample is, and what it gives away",
		Items: []figure.Item{{Note: &figure.Note{Warning: true, Title: "Intervals are not calibrated, and nothing is private",
			Text: "This study compared simulated sets with all rows, to be compared with other ways. The sample is the posterior only in the limit of a threshold that cannot be lowered. At this one nothing is calibrated: intervals of means and weights are mostly too wide, and after very many proposals too narrow, as simulated sets have less chance in them than rows do; covariances still lean towards the prior, mostly too large, and their intervals often miss the truth.\n\nEach answer of a site is an exact mean over its rows, for a set that is known: enough of them tell of single rows."}}}}
}

// generationsSection shows how close the sample came.
func (c *setsCoordinator) generationsSection(s *setsState) figure.Section {
	line := figure.Line{Name: "threshold"}
	for _, p := range s.Trace {
		line.X, line.Y = append(line.X, float64(p.Used)), append(line.Y, p.Threshold)
	}
	ended := fmt.Sprintf("It ended when all %s proposals were used", figure.Count.Text(float64(s.SMC.Used)))
	if s.SMC.Stopped == fewAccepted {
		ended = fmt.Sprintf("It ended after %s proposals, when hardly one more was accepted", figure.Count.Text(float64(s.SMC.Used)))
	}
	return figure.Section{ID: "generations", Title: "How close the sample came",
		Lead: "Of each proposal a set of rows was simulated, and every site answered how far it lies from its own. Generation by generation the threshold on that distance was lowered. " + ended + ".",
		Items: []figure.Item{
			{Figure: &figure.Figure{ID: "threshold", Title: "The threshold by proposals", Chart: figure.Lines{X: figure.Axis{Label: "proposals", Log: true}, Y: figure.Axis{Label: "discrepancy, less a constant"}, Series: []figure.Line{line}},
				Caption: "Each step to the right on this axis is so many times more proposals. Where the curve still falls, more of them would bring the sample nearer.", Alt: "The threshold against the number of proposals."}},
		}}
}

// attackSection says what an attacker can do with so many means of each site.
func setsAttacks(s setup, proposals int) figure.Section {
	var t mixture.Attacks
	d := len(s.Names)
	given := figure.Count.Text(float64(proposals)) + " means of each site"
	t.Add("differencing two studies", "a study of the same plan, before or after one person joins or leaves", fmt.Sprintf("%d means of each study", d+1), given,
		mixture.Found(proposals, d+1, "that person's row, exactly, if the other study is ever run", "a surface that the person's row lies on, if the other study is ever run"))
	t.Add("solving for all rows", "nothing but to read the answers: the sets follow from the plan's seed", fmt.Sprintf("%s for each row", figure.Plural(d, "mean")), given,
		fmt.Sprintf("there are as many equations as unknown numbers for a site of up to %s rows; the fewer it has, the easier they are solved", figure.Count.Text(float64(proposals/d))))
	finds := "nothing more: the energy distance has no width to choose"
	if s.own.Set.Discrepancy == string(gmm.MMD) {
		finds = "single rows, if they lie further apart than a few bandwidths"
	}
	t.Add("scanning with narrow kernels", "to choose the sets that sites compare their rows with, which a task of this variant does", "some dozens of means for each row", given, finds)
	return t.Section(s.Setup)
}
