package scarce

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"parley/figure"
	"parley/method"
	"parley/methods/mixture/options"
)

// Result implements [method.Coordinator]: the sampler's, and what the phases around it found.
func (c *coordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*state)
	if s.Phase != method.Done {
		return nil, fmt.Errorf("the study is not done: it is in phase %q", s.Phase)
	}
	r, err := c.sampler.Coordinator(with(c.Setup, s.Encoder)).Result(s.inner)
	if err != nil {
		return nil, err
	}
	r.Metrics = maps.Clone(r.Metrics)
	if c.Options.Scarce != nil {
		if !c.sampler.CountsRows() {
			r.Headline = append(r.Headline, figure.Fact{Name: "rows are of", Value: c.Class()})
		}
		if c.Plan.Privacy.Differential() {
			r.Sections = slices.Insert(r.Sections, 0, c.untestedSection())
		}
	}
	if c.Options.Encoder != nil {
		r.Sections = append(r.Sections, c.encoderSection())
	}
	if c.Tested() {
		r.Sections = slices.Insert(r.Sections, 0, c.worthSection(s)) // it is what the study is for
		kept := 0
		for _, site := range c.Plan.Sites {
			if a := s.Worth[site]; a != nil {
				a.metrics(site+"/", r.Metrics)
				if a.Verdict == Kept {
					kept++
				}
			}
		}
		r.Headline = slices.Insert(r.Headline, 0, figure.Fact{Name: "sites that keep synthetic rows", Value: fmt.Sprintf("%d of %d", kept, len(c.Plan.Sites))})
	}
	return r, nil
}

// untestedSection says where to look for what synthetic rows are worth, if sites do not
// tell.
func (c *coordinator) untestedSection() figure.Section {
	return figure.Section{ID: "worth", Title: "What synthetic rows are worth",
		Lead: fmt.Sprintf("Below is what subjects of %s are like, over all sites. Whether rows drawn from that help a site is on the site's own page, with what it can do alone beside: sites do not release such scores, for which nobody has paid.", c.Class())}
}

// encoderSection says what codes are.
func (c *coordinator) encoderSection() figure.Section {
	e := c.Options.Encoder
	lead := fmt.Sprintf("The mixture is not of the %d features but of codes: %d numbers that an encoder leaves of each row. ", options.Features(c.Plan), e.Dimension)
	var note figure.Note
	switch {
	case e.Kind == options.EncoderProjection:
		lead += "The encoder is a projection on random directions, which follow from the plan: no row had a part in it."
		note = figure.Note{Title: "What is lost", Text: "Random directions keep distances on average and know nothing of the outcome: what sets classes apart may be gone from the codes."}
	case e.Shared:
		lead += fmt.Sprintf("Site %s trained it, SuffiAE, to keep what the row was and what tells its outcome; all sites use it.", e.Site)
		note = figure.Note{Warning: true, Title: "The encoder is not private", Text: fmt.Sprintf("It was trained on rows of site %s without noise, and every other site has it. Codes are not anonymous: of an outlier they tell much.", e.Site)}
	default:
		lead += "Every site trained its own, SuffiAE, as published."
		note = figure.Note{Warning: true, Title: "The sites' codes are not comparable", Text: "Encoders that are trained apart have axes that have nothing to do with one another's: code 1 of one site is not code 1 of the next. A mixture of all of them describes nobody's, and rows made of it usually harm. It is there to compare with; encoder.shared: true is what helps."}
	}
	return figure.Section{ID: "encoder", Title: "What the codes are", Lead: lead, Items: []figure.Item{{Note: &note}}}
}

// worthSection compares the sites' scores.
func (c *coordinator) worthSection(s *state) figure.Section {
	section := figure.Section{ID: "worth", Title: "What synthetic rows are worth, by site",
		Lead: fmt.Sprintf("Every site drew rows of %s from the mixture, to bring the class level with the others, and tried a classifier with them next to what it can do without: nothing, drawing its own rows again, SMOTE, and the classifier of another site as it is. It keeps synthetic rows only if cross-validation on its own rows is better beyond chance (a one-sided test at 10 %%), and neither of the two simple remedies does better.", c.Class())}
	var names, verdict []string
	var all []*worthAnswer
	var scarce, other, held, gain, gainError figure.Numbers
	auc := make([]figure.Numbers, len(arms))
	f1 := make([]figure.Numbers, len(arms))
	for _, site := range c.Plan.Sites {
		a := s.Worth[site]
		names = append(names, site)
		if a == nil || a.Verdict == "" {
			a = &worthAnswer{Verdict: "nothing to compare"}
			if s.Worth[site] == nil {
				a.Verdict = "did not answer"
			}
		}
		all = append(all, a)
		verdict = append(verdict, string(a.Verdict))
		for _, x := range []struct {
			column *figure.Numbers
			rows   int
		}{{&scarce, a.Scarce}, {&other, a.Other}, {&held, a.HeldScarce}} {
			n := math.NaN()
			if len(a.Arms) > 0 {
				n = float64(x.rows)
			}
			*x.column = append(*x.column, n)
		}
		g, e := a.Gain, a.GainError
		if e == 0 { // nothing was cross-validated
			g, e = math.NaN(), math.NaN()
		}
		gain, gainError = append(gain, g), append(gainError, e)
		for i, arm := range arms {
			x, f := math.NaN(), math.NaN()
			if at := slices.IndexFunc(a.Arms, func(r result) bool { return r.Arm == arm }); at >= 0 && a.Arms[at].Held != nil {
				x, f = number(a.Arms[at].Held.AUC), a.Arms[at].Held.F1
			}
			auc[i], f1[i] = append(auc[i], x), append(f1[i], f)
		}
	}
	if f := aucFigure(c.Plan.Sites, all); f != nil {
		section.Items = append(section.Items, figure.Item{Figure: f})
	}
	section.Items = append(section.Items, figure.Item{Table: &figure.Table{ID: "worth-verdicts", Title: "What each site decided",
		Caption: "The gain in AUC is that of cross-validation on the site's own rows, by which it decides: not of the held rows, which are the test.",
		Columns: []figure.Column{{Name: "site", Text: names}, {Name: "rows of the class", Format: figure.Count, Numbers: scarce}, {Name: "others", Format: figure.Count, Numbers: other},
			{Name: "held of the class", Format: figure.Count, Numbers: held}, {Name: "gain in AUC", Format: figure.Score, Numbers: gain}, {Name: "standard error", Format: figure.Score, Numbers: gainError}, {Name: "synthetic rows", Text: verdict}}}})
	table := func(id, title, caption string, values []figure.Numbers) {
		columns := []figure.Column{{Name: "site", Text: names}}
		for i, arm := range arms {
			columns = append(columns, figure.Column{Name: armNames[arm], Format: figure.Score, Numbers: values[i]})
		}
		section.Items = append(section.Items, figure.Item{Table: &figure.Table{ID: id, Title: title, Caption: caption, Columns: columns}})
	}
	table("worth-auc", "AUC on held rows", "Held rows are those that nothing was learned from. Where there are few of the class, the AUC is rough: with 10 and 100 others the standard error of an AUC of .8 is .09.", auc)
	table("worth-f1", "F1 on held rows", "At a probability of ½. It is mostly the cut-off: whatever levels the classes raises it, whether or not it knows more.", f1)
	section.Items = append(section.Items, figure.Item{Note: &figure.Note{Title: "Scores and classifiers were released without noise", Text: "Sites counted and scored their own rows exactly. Under differential privacy nobody would have paid for that: each site would see its own table alone."}})
	return section
}
