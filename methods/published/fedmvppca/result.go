package fedmvppca

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/ppca"
	"parley/methods/factors/report"
)

// Result implements [method.Coordinator].
func (c coordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*state)
	if s.Phase != method.Done {
		return nil, fmt.Errorf("the study is not done: it waits for %q", s.Phase)
	}
	sites := c.reports(s)
	m, err := c.model(s, sites)
	if err != nil {
		return nil, err
	}
	files, err := m.Files()
	if err != nil {
		return nil, err
	}
	staying := len(method.Staying(c.Plan.Sites, s.Left))
	switch {
	case c.private():
		r := report.Unassessed(c.Frame, m, files, staying, c.releases.section(c.setup, s.Trace))
		r.Headline = append(r.Headline, figure.Fact{Name: "private mechanism", Value: "difference-clipping"})
		r.Metrics["rounds"] = float64(s.Round)
		return r, nil
	case len(sites) == 0:
		return report.Unassessed(c.Frame, m, files, staying), nil
	}
	settled := s.Trace.section(c.Frame)
	return report.Assessed(c.Frame, m, files, sites, s.Trace[len(s.Trace)-1].Round, &settled), nil
}

// reports lists the sites' assessments in the plan's order.
func (c coordinator) reports(s *state) (sites []report.Site) {
	for _, name := range c.Plan.Sites {
		if r := s.Reports[name]; r != nil {
			sites = append(sites, report.Site{Name: name, Assessment: r})
		}
	}
	return sites
}

// model names what was fitted. What private rounds have for the spread between sites is that of
// their noise, or the plan's, and is left out.
func (c coordinator) model(s *state, sites []report.Site) (*fitted.Model, error) {
	said, err := json.Marshal(c.own)
	if err != nil {
		return nil, err
	}
	prior, err := s.Model.unpack(c.Layout)
	if err != nil {
		return nil, err
	}
	m, err := fitted.NewModelFile(c.Frame, &prior.Params, s.Scale, s.Strengths)
	if err != nil {
		return nil, err
	}
	m.Published = &fitted.Published{Method: Name, TypicalSite: true, Private: c.private(),
		Options: said}
	if !c.private() {
		prior.describe(m)
	}
	if len(sites) == 0 {
		return m, nil
	}
	m.LogLik = &s.LogLik
	report.AddSites(m, sites)
	return m, report.Verdicts(c.Frame, m, &prior.Params, sites, s.Apart)
}

// Share gives every site the whole model, which is the study's result.
func (c coordinator) Share(ms method.State, _ string) ([]byte, error) {
	s := ms.(*state)
	return wire.Marshal(s.finished())
}

// section says what clipping and noise do to the result.
func (c bySite) section(set setup, trace trace) figure.Section {
	sec := figure.Section{ID: "mechanism", Title: "What the noise leaves of the model"}
	say := func(warning bool, title, text string) {
		sec.Items = append(sec.Items, figure.Item{Note: &figure.Note{Title: title, Text: text, Warning: warning}})
	}
	if set.own.firstInClear() {
		say(true, "No guarantee: the first round was sent in clear",
			"Every site sent its parameters of round 1 as they are, to repeat the published experiment. Whatever "+
				"noise the later rounds had, nobody can promise how little this study tells about a subject. Nearly "+
				"all that the model knows comes from that round.")
	}
	say(false, "Noise for whole sites",
		"Each message was noised so that everything a site holds stays hidden, and every subject with it. That is "+
			"more than protecting single subjects, and it is paid for: the noise is the same for a site of ten "+
			"subjects and of ten thousand. Method factors protects single subjects, at far less noise.")
	if set.Scaling == ppca.ScaleSiteRange {
		say(true, "Every site had units of its own",
			"Each site scaled its features by its own smallest and largest values, as the published experiment did. "+
				"The ranges were not sent, so the noise covers them; but what the model says is in no common unit.")
	}
	rates := c.recursion(set)
	text := "The clip is the spread between sites, and the noise is a multiple of the clip; so the spread after a " +
		"round is, in the main, the spread of the noise that was just added: a fixed multiple of the spread before, " +
		"whatever the data."
	t := figure.Table{ID: "recursion", Title: "What noise alone does to the spread between sites in a round",
		Caption: "The factor by which the spread changes in each private round if the sites' data play no part. " +
			"Below 1 it drops to 0, above 1 it grows without end. The published figure of the spread's " +
			"\"convergence\" is this factor.",
		Columns: []figure.Column{{Name: "view"}, {Name: "means", Numbers: figure.Numbers{}},
			{Name: "loadings", Numbers: figure.Numbers{}},
			{Name: "sites", Format: figure.Count, Numbers: figure.Numbers{}}}}
	shrinks, grows := false, false
	for k, r := range rates {
		t.Columns[0].Text = append(t.Columns[0].Text, set.Plan.Views[k].Name)
		for i, x := range []float64{r.means, r.loadings, float64(r.sites)} {
			t.Columns[i+1].Numbers = append(t.Columns[i+1].Numbers, x)
		}
		if r.sites > 1 {
			shrinks, grows = shrinks || min(r.means, r.loadings) < 1, grows || max(r.means, r.loadings) > 1
		}
	}
	switch {
	case shrinks && grows:
		text += " Here it drops to 0 for some parameters and grows for others."
	case shrinks:
		text += " Here it drops to 0."
	case grows:
		text += " Here it grows, and the model with it."
	}
	say(true, "The spread between sites is not an estimate", text+" The model's file therefore has none.")
	sec.Items = append(sec.Items, figure.Item{Table: &t})
	for _, item := range trace.section(set.Frame).Items {
		if item.Figure != nil && item.Figure.ID == spreadFigure {
			item.Figure.Caption = "The spread that each round's clip was taken from. It follows the table above, not " +
				"the data. " + item.Figure.Caption
		}
		sec.Items = append(sec.Items, item)
	}
	return sec
}

// rate is what noise alone does to the standard deviation between sites in one
// private round, as a factor.
type rate struct {
	means, loadings float64
	sites           int // that hold the view
}

// recursion returns the rate of each view in a private round: with noise
// of κ clips on every entry, a clip of const standard deviations and the
// maximum-likelihood variance over C sites,
//
//	sd[r] ≈ κ·const·√((C − 1)/C)·sd[r − 1],
//
// which holds no data. NaN where one site alone holds the view. Sites with less
// noise than others, because they hold fewer views, enter by their mean square.
func (c bySite) recursion(set setup) []rate {
	rates := make([]rate, set.Layout.Views())
	d := set.own.Clipping
	for _, site := range set.Plan.Sites {
		at := c[site]
		for i, pt := range at.parts {
			noise := at.sums[i].Mechanism.Noise
			switch r := &rates[pt.view]; pt.kind {
			case ofMeans:
				r.sites++
				r.means += noise * noise * d.Mean.Constant * d.Mean.Constant
			case ofLoadings:
				r.loadings += noise * noise * d.Loadings.Constant * d.Loadings.Constant
			}
		}
	}
	for k := range rates {
		r := &rates[k]
		n := float64(r.sites)
		if r.sites < 2 {
			r.means, r.loadings = math.NaN(), math.NaN()
			continue
		}
		r.means, r.loadings = math.Sqrt(r.means/n*(n-1)/n), math.Sqrt(r.loadings/n*(n-1)/n)
	}
	return rates
}

// record keeps how the sites spread after a round, and returns it as info.
func (t *trace) record(round int, model *Prior) method.Info {
	varW, varMu := model.spread()
	at := point{Round: round, SDW: make(wire.Vector, len(varW)), SDMu: make(wire.Vector, len(varMu))}
	for k := range varW {
		at.SDW[k], at.SDMu[k] = math.Sqrt(varW[k]), math.Sqrt(varMu[k])
	}
	*t = append(*t, at)
	return method.Info{"loadings between sites, largest sd": slices.Max(at.SDW),
		"means between sites, largest sd": slices.Max(at.SDMu)}
}

// spreadFigure is the figure that draws the spread between sites by round.
const spreadFigure = "between-sites-by-round"

// section is on how the spread between sites settled.
func (t trace) section(set ppca.Frame) figure.Section {
	sec := figure.Section{ID: "convergence", Title: "How the fit settled"}
	rounds := make(figure.Numbers, len(t))
	sd := figure.Lines{X: figure.Axis{Label: "round", Count: true},
		Y: figure.Axis{Label: "standard deviation of the loadings between sites", Log: true}}
	for k := range set.Plan.Views {
		sd.Series = append(sd.Series, figure.Line{Name: set.Plan.Views[k].Name, X: rounds})
	}
	some := false
	for i, p := range t {
		rounds[i] = float64(p.Round)
		for k := range sd.Series {
			x := math.NaN() // zero has no place on a logarithmic axis
			if len(p.SDW) > 0 && p.SDW[k] > 0 {
				x, some = p.SDW[k], true
			}
			sd.Series[k].Y = append(sd.Series[k].Y, x)
		}
	}
	if some {
		sec.Items = append(sec.Items, figure.Item{Figure: &figure.Figure{
			ID: spreadFigure, Title: "Spread of the loadings between sites by round", Chart: sd,
			Caption: "One line for each view, on a logarithmic axis; a spread of exactly zero is not drawn.",
			Alt:     "Lines of the standard deviation of loadings between sites over the rounds, one for each view.",
		}})
	}
	return sec
}
