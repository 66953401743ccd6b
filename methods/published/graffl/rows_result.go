package graffl

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"parley/figure"
	"parley/method"
	"parley/methods/mixture/fitted"
	"parley/methods/mixture/gmm"
)

// notPosterior and notPrivate are what a reader has to know first.
const (
	notPosterior = `This study ran Algorithm 2 as it was published, for comparison. However many proposals are made, ` +
		`those that are accepted follow the prior times the mean of the rows' likelihoods, not their product: the ` +
		`posterior given one row picked at random. Intervals do not shrink with more rows, weights are close to what ` +
		`the prior says, and only the component that made an accepted row has learned anything. What is real is the ` +
		`place of the modes of that cloud.`
	notPrivate = `It gives the rows away. Each answer is an exact squared distance to a known point; as many ` +
		`answers as there are features, and one more, are the row. Whoever ran this study can compute every row of ` +
		`every site: the command “parley attack graffl-abc” does it on simulated studies.`
)

// Result implements [method.Coordinator].
func (c *rowsCoordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*rowsState)
	p, made, err := c.accepted(s)
	if err != nil {
		return nil, err
	}
	v := fitted.NewView(c.Setup, p)
	v.Published, v.Options, v.Accepted = c.says(), c.own, true
	files, err := v.Files()
	if err != nil {
		return nil, err
	}
	largest, next := s.Kept.Thresholds()
	proposals := 0
	for site, n := range s.Rows {
		proposals += n * s.Folded[site]
	}
	metrics := map[string]float64{"proposals": float64(proposals), "accepted": float64(len(p.Draws)),
		"largest_accepted_distance": largest}
	if !math.IsInf(next, 1) {
		metrics["smallest_rejected_distance"] = next
	}
	v.Components(metrics)
	facts := []figure.Fact{{Name: "not a posterior, see the warning", Value: "published"},
		{Name: "components", Value: strconv.Itoa(c.Prior.Components())},
		{Name: "proposals", Value: figure.Count.Text(float64(proposals))},
		{Name: "accepted", Value: figure.Count.Text(float64(len(p.Draws)))},
		{Name: "largest accepted squared distance", Value: fmt.Sprintf("%.3g", largest)}}
	first := figure.Section{ID: "published", Title: "What this algorithm does, and what it gives away",
		Items: []figure.Item{{Note: &figure.Note{Warning: true, Title: "What was found is not the posterior",
			Text: notPosterior}},
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
		Lead: "Means over the accepted parameters and the intervals that hold 90 % of them, components matched to " +
			"the parameter whose row came closest. This is not the posterior.",
		Items: []figure.Item{{Table: v.ComponentTable("Means over what was accepted, and the intervals that hold " +
			"nine tenths of it.")}}}
	return &method.Result{Files: files, Metrics: metrics, Headline: facts,
		Found: fmt.Sprintf("Of %s proposals %d were accepted. The modes of their cloud say where rows lie.",
			figure.Count.Text(float64(proposals)), len(p.Draws)),
		Sure:     "That is not known: what was accepted does not follow the posterior.",
		Sections: []figure.Section{first, overview(v, s.Rows), c.modesSection(peaks, made), section}}, nil
}

// overview shows how many rows of each site a sample was made from.
func overview(v fitted.View, rows map[string]int) figure.Section {
	var all []figure.SiteSubjects
	for _, name := range v.Plan.Sites {
		if n, ok := rows[name]; ok {
			all = append(all, method.Complete(v.Plan, name, float64(n), 0))
		}
	}
	return v.Overview(all)
}

// peaks are the modes of all component means that were accepted.
type peaks struct {
	means     []float64 // of all components of all accepted parameters
	bandwidth []float64
	modes     []mode
}

func (c *rowsCoordinator) modes(p *gmm.Posterior) (*peaks, error) {
	h, err := modeBandwidth(c.Prior, len(p.Draws))
	if err != nil {
		return nil, err
	}
	out := &peaks{bandwidth: h}
	for _, m := range p.Draws {
		out.means = append(out.means, m.Means...)
	}
	out.modes = modes(out.means, h, c.Prior.Components())
	return out, nil
}

// modesSection shows what is real of the cloud.
func (c *rowsCoordinator) modesSection(p *peaks, made []float64) figure.Section {
	var widths []string
	for i, h := range p.bandwidth {
		widths = append(widths, fmt.Sprintf("%.3g in %s", h, c.Names[i]))
	}
	table := &figure.Table{ID: "modes", Title: "The highest modes",
		Caption: "Modes of the kernel density of the means of all components of all accepted parameters, the highest " +
			"first. The bandwidth, " + strings.Join(widths, ", ") + ", follows from the prior and the number of " +
			"accepted parameters."}
	number, height := figure.Column{Name: "mode"}, figure.Column{Name: "density, as a share of the highest",
		Format: figure.Percent}
	places := make([]figure.Column, len(c.Names))
	for i, name := range c.Names {
		places[i].Name = name
	}
	for k, m := range p.modes {
		number.Text, height.Numbers = append(number.Text, fmt.Sprint(k+1)), append(height.Numbers, m.Density)
		for i, x := range m.At {
			places[i].Numbers = append(places[i].Numbers, x)
		}
	}
	table.Columns = append(append([]figure.Column{number}, places...), height)
	section := figure.Section{ID: "modes", Title: "The modes of the cloud",
		Lead: "This is what the published figures show, and it is real: where accepted component means lie densest, " +
			"the rows do too. How surely a mode is known does not follow from it, and how high it is says little " +
			"about how many rows it has.",
		Items: []figure.Item{{Table: table}}}
	if len(c.Names) == 2 {
		section.Items = append(section.Items, figure.Item{Figure: c.modesFigure(p, made)})
	}
	return section
}

// modesFigure draws the density of the cloud over two features, and that of the components that made accepted rows.
func (c *rowsCoordinator) modesFigure(p *peaks, made []float64) *figure.Figure {
	const places = 49
	labels := c.Names
	f := figure.Contours{X: figure.Axis{Label: labels[0]}, Y: figure.Axis{Label: labels[1]}}
	for i := range places {
		at := float64(i) / (places - 1)
		f.XAt, f.YAt = append(f.XAt, c.Lo[0]+at*(c.Hi[0]-c.Lo[0])), append(f.YAt, c.Lo[1]+at*(c.Hi[1]-c.Lo[1]))
	}
	for _, cloud := range []struct {
		title  string
		points []float64
	}{{"all components", p.means}, {"components that made the accepted rows", made}} {
		k := NewKernelDensity(cloud.points, p.bandwidth)
		scale := 1 / (2 * math.Pi * p.bandwidth[0] * p.bandwidth[1] * float64(k.Len()))
		panel := figure.Panel{Title: cloud.title, Legend: "density"}
		for _, y := range f.YAt {
			row := make(figure.Numbers, 0, places)
			for _, x := range f.XAt {
				row = append(row, scale*k.At([]float64{x / p.bandwidth[0], y / p.bandwidth[1]}, nil))
			}
			panel.Values = append(panel.Values, row)
		}
		f.Panels = append(f.Panels, panel)
	}
	for k, m := range p.modes {
		f.Groups = append(f.Groups, figure.Group{Name: fmt.Sprintf("mode %d", k+1), Mean: m.At})
	}
	return &figure.Figure{ID: "modes-map", Title: "Where accepted component means lie", Chart: f,
		Caption: "Components that made an accepted row lie near the rows, as near-copies of them; the others are " +
			"still where the prior put them.",
		Alt: "Densities of accepted component means over the two features, with the modes marked."}
}
