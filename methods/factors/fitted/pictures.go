package fitted

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/figure"
	"parley/method"
	"parley/methods/factors/assess"
	"parley/methods/factors/options"
)

// LoadingSection shows which features make each factor.
func (m *Model) LoadingSection() figure.Section {
	const top = 12
	sec := figure.Section{ID: "loadings", Title: "What the factors are made of",
		Lead: "A standardised loading is the correlation of a feature with the factor over the study's population: " +
			"−1 to 1, without a unit. Signs follow a rule, the largest loading relative to its noise being positive, " +
			"and mean nothing by themselves: a factor and its mirror image describe the same pattern."}
	caption := ""
	errors := m.hasErrors()
	if errors {
		caption = " Whiskers are intervals of 90 %, by how far leaving sites or groups of subjects out moves the " +
			"loadings."
	}
	if note := m.unstableNote(); note != nil {
		sec.Items = append([]figure.Item{{Note: note}}, sec.Items...)
	}
	for a := range min(len(m.Factors), DrawnFactors) {
		b := figure.Bars{X: figure.Axis{Label: fmt.Sprintf("standardised loading on factor %d", a+1)}, Top: top}
		for _, f := range m.features() {
			x := f.standardised(a)
			b.Labels, b.Groups, b.Values = append(b.Labels, f.Name), append(b.Groups, f.view), append(b.Values, x)
			if errors {
				e := assess.Half * f.StandardisedSE[a]
				b.Low, b.High = append(b.Low, max(-1, x-e)), append(b.High, min(1, x+e))
			}
		}
		sec.Items = append(sec.Items, figure.Item{Figure: &figure.Figure{
			ID: fmt.Sprintf("loadings-%d", a+1), Title: fmt.Sprintf("Factor %d: the %d features that show it most", a+1,
				min(top, len(b.Labels))), Chart: b,
			Caption: "Subjects who are high on the factor are high on features at the right and low on those at the " +
				"left. Coloured by view." + caption,
			Alt: "Ranked bars of the largest standardised loadings, coloured by view.", Choice: "Factor",
		}})
	}
	t := m.loadingTable(5)
	t.ID, t.Title = "top-loadings", "The five features that show each factor most"
	t.Columns = slices.DeleteFunc(t.Columns, func(c figure.Column) bool {
		return c.Name == "unit" && strings.Join(c.Text, "") == ""
	})
	t.Caption = "Loadings for one standard deviation of the factor: standardised, in the scaled units of the model, " +
		"and in the feature's own unit. model/loadings.csv has all."
	sec.Items = append(sec.Items, figure.Item{Table: &t})
	return sec
}

// BetweenSection shows what differs between sites beyond who is there.
func (m *Model) BetweenSection() figure.Section {
	t := figure.Table{ID: "between-sites", Title: "Spread between sites, in numbers",
		Caption: "Standard deviations between sites, in scaled units, of a feature's loadings and of its mean, after " +
			"each site's own distribution of scores has been allowed for; where sites have means of their own, that " +
			"of the means is the total one. Beside them stands the size of what differs: the root mean square of the " +
			"loadings over all sites, a feature's standard deviation, and that of its noise. Zero means that the " +
			"sites are as alike as samples from one population would be. From few sites these are rough numbers.",
		Columns: []figure.Column{{Name: "view"}, {Name: "loadings, between sites", Numbers: figure.Numbers{}},
			{Name: "loadings, size", Numbers: figure.Numbers{}},
			{Name: "means, between sites", Numbers: figure.Numbers{}},
			{Name: "features", Unit: "sd", Numbers: figure.Numbers{}},
			{Name: "noise", Unit: "sd", Numbers: figure.Numbers{}}}}
	for _, v := range m.Views {
		d, squares, noise, variance := float64(len(v.Features)), 0.0, 0.0, 0.0
		for i := range v.Features {
			f := &v.Features[i]
			noise, variance = noise+f.Noise/d, variance+f.overall()*f.overall()/d
			for _, w := range f.Loadings {
				squares += w * w / (d * float64(len(f.Loadings)))
			}
		}
		t.Add(v.Name, value(v.LoadingSD), math.Sqrt(squares), value(v.MeanSD), math.Sqrt(variance), math.Sqrt(noise))
	}
	return figure.Section{ID: "between", Title: "How much the sites differ", Items: []figure.Item{{Table: &t}},
		Lead: "Even when their subjects are alike, sites measure with other devices and habits. The table says how " +
			"much means and loadings differ from site to site."}
}

// Strongest names the n features with the largest standardised loadings on factor a, from 0.
func (m *Model) Strongest(a, n int) (names []string) {
	for _, f := range m.ranked(a, n) {
		if f.standardised(a) != 0 {
			names = append(names, f.Name)
		}
	}
	return names
}

// Summary implements [method.Summariser].
func (m *Model) Summary(top int) (*method.Account, error) {
	m = m.shown()
	total, features, names := 0, 0, make([]string, len(m.Sites))
	for _, v := range m.Views {
		features += len(v.Features)
	}
	for i, x := range m.Sites {
		total += x.Subjects
		names[i] = fmt.Sprintf("%s (%d)", x.Name, x.Subjects)
	}
	logLik := "not known"
	if m.LogLik != nil {
		logLik = figure.General.Text(*m.LogLik) + " nats, scaled units"
	}
	rounds, noise := "as published", "view"
	if m.Options != nil {
		rounds = fmt.Sprintf("at most %s", figure.Plural(m.Options.Rounds, "round"))
		noise = m.Options.Noise
	}
	subjects := "not known: the sites did not release it"
	if len(m.Sites) > 0 {
		subjects = fmt.Sprintf("%d at %s: %s", total, figure.Plural(len(m.Sites), "site"), strings.Join(names, ", "))
	}
	loadings := m.loadingTable(max(1, top))
	loadings.Title = "Strongest loadings"
	loadings.Caption = "Standardised is the correlation of feature and factor. Own is the feature's own unit for one " +
		"standard deviation of the factor. The sign of a factor is a rule, not a finding."
	account := &method.Account{
		Facts: []figure.Fact{
			{Name: "study", Value: m.Study},
			{Name: "method", Value: m.Method() + ", " + rounds},
			{Name: "format", Value: m.Format},
			{Name: "plan", Value: fmt.Sprintf("%.12s", m.Plan)},
			{Name: "seed", Value: strconv.FormatUint(m.Seed, 10)},
			{Name: "subjects", Value: subjects},
			{Name: "features", Value: fmt.Sprintf("%d in %s", features, figure.Plural(len(m.Views), "view"))},
			{Name: "scaling", Value: m.Scaling + ", noise per " + noise},
			{Name: "log-likelihood", Value: logLik + ", per subject"},
		},
		Tables: []figure.Table{m.factorTable(), loadings},
		Notes:  m.verdictNotes(func(*Verdict) bool { return true }),
		Value:  m,
	}
	if m.Adjusts() {
		account.Facts = append(account.Facts, figure.Fact{Name: "adjusted for",
			Value: options.AdjustedFor(m.adjustedFor())})
	}
	if m.Rotation != nil {
		account.Facts = append(account.Facts, figure.Fact{Name: "rotation", Value: m.Rotation.Method})
	}
	return account, nil
}

// DrawnFactors is how many factors get pictures of their own; the files have all.
const DrawnFactors = 6

// value returns what x points to; NaN if nothing is known.
func value(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}
