package graffl

import (
	"fmt"
	"math"
	"strconv"

	"parley/figure"
	"parley/method"
	"parley/methods/mixture"
)

// notPosterior and notPrivate are what a reader has to know first.
const (
	notPosterior = `This study ran Algorithm 2 as it was published, for comparison. However many proposals are made, those that are accepted follow the prior times the mean of the rows' likelihoods, not their product: the posterior given one row picked at random. Intervals do not shrink with more rows, weights are close to what the prior says, and only the component that made an accepted row has learned anything. What is real is the place of the modes of that cloud.`
	notPrivate   = `It gives the rows away. Each answer is an exact squared distance to a known point; as many answers as there are features, and one more, are the row. Whoever ran this study can compute every row of every site.`
)

// Result implements [method.Coordinator].
func (c *rowsCoordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*rowsState)
	p, made, err := c.accepted(s)
	if err != nil {
		return nil, err
	}
	v := mixture.NewView(c.Setup, p)
	v.Published, v.Accepted = c.says(), true
	files, err := v.Files()
	if err != nil {
		return nil, err
	}
	largest, next := s.Kept.Thresholds()
	proposals := 0
	for site, n := range s.Rows {
		proposals += n * s.Folded[site]
	}
	metrics := map[string]float64{"proposals": float64(proposals), "accepted": float64(len(p.Draws)), "largest_accepted_distance": largest}
	if !math.IsInf(next, 1) {
		metrics["smallest_rejected_distance"] = next
	}
	v.Components(metrics)
	facts := []figure.Fact{{Name: "not a posterior, see the warning", Value: "published"}, {Name: "components", Value: strconv.Itoa(c.Options.Components)},
		{Name: "proposals", Value: figure.Count.Text(float64(proposals))}, {Name: "accepted", Value: figure.Count.Text(float64(len(p.Draws)))},
		{Name: "largest accepted squared distance", Value: fmt.Sprintf("%.3g", largest)}}
	first := figure.Section{ID: "published", Title: "What this algorithm does, and what it gives away",
		Items: []figure.Item{{Note: &figure.Note{Warning: true, Title: "What was found is not the posterior", Text: notPosterior}},
			{Note: &figure.Note{Warning: true, Title: "Do not use this with data of persons", Text: notPrivate}}}}
	peaks, err := c.modes(p)
	if err != nil {
		return nil, err
	}
	for k, m := range peaks.modes {
		for i, name := range c.Names {
			metrics[fmt.Sprintf("mode/%d/%s", k+1, name)] = m.At[i]
		}
	}
	section := figure.Section{ID: "components", Title: "The accepted parameters",
		Lead:  "Means over the accepted parameters and the intervals that hold 90 % of them, components matched to the parameter whose row came closest. This is not the posterior.",
		Items: []figure.Item{{Table: v.ComponentTable("Means over what was accepted, and the intervals that hold nine tenths of it.")}}}
	return &method.Result{Files: files, Metrics: metrics, Headline: facts,
		Found:    fmt.Sprintf("Of %s proposals %d were accepted. The modes of their cloud say where rows lie.", figure.Count.Text(float64(proposals)), len(p.Draws)),
		Sure:     "That is not known: what was accepted does not follow the posterior.",
		Sections: []figure.Section{first, v.OverviewOf(s.Rows), c.modesSection(peaks, made), section, rowsAttacks(c.Setup, s.Iteration)}}, nil
}

// attackSection says what an attacker can do with so many distances of each row.
func rowsAttacks(s *mixture.Setup, rounds int) figure.Section {
	var t mixture.Attacks
	d := len(s.Names)
	given := fmt.Sprintf("%d distances of each row", rounds)
	t.Add("trilateration", "nothing but to read the answers: the points follow from the plan's seed", fmt.Sprintf("%d distances of each row", d+1), given,
		mixture.Found(rounds, d+1, "every row of every site, exactly", "for each row a sphere that it lies on, of fewer dimensions with each distance"))
	t.Add("differencing", "nothing: rows come one by one", "the same", given, "whoever has joined or left is seen as a row more or less")
	return t.Section(s)
}
