package mvppca

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"parley/figure"
	"parley/method"
)

// ReleasedName is the file of a result that holds what the sites released under
// [MechanismStatistics].
const ReleasedName = "model/released.json"

// ReleasedFormat names the format of that file and its version.
const ReleasedFormat = "parley/mvppca-released/1"

// releasedFile is the noised sums as they left the sites. Everything that is
// computed from them, by whomever, is covered by the study's guarantee.
type releasedFile struct {
	Format string            `json:"format"`
	Plan   string            `json:"plan_sha256"`
	Sites  []releasedOfASite `json:"sites"`
}

type releasedOfASite struct {
	Site string `json:"site"`
	*statisticsAnswer
	Diagnostics *checkAnswer `json:"diagnostics,omitempty"`
}

// fromStatistics is the result where the sites released noised statistics.
func (c *coordinator) fromStatistics(s *state, m *Model, files []method.File) (*method.Result, error) {
	out := releasedFile{Format: ReleasedFormat, Plan: m.Plan}
	var releases []Released
	for _, name := range c.plan.Sites {
		site := s.Sites[name]
		if site == nil || site.Released == nil {
			continue
		}
		r, err := c.noised.released(site.Released)
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", name, err)
		}
		releases = append(releases, *r)
		out.Sites = append(out.Sites, releasedOfASite{name, site.Released, site.Checked})
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", ReleasedName, err)
	}
	explained := s.Pooled.explained()
	r := &method.Result{
		Files:   append(files, method.File{Name: ReleasedName, Data: append(data, '\n')}),
		Metrics: map[string]float64{"factors": float64(c.opts.Latent), "subjects_noised": math.Round(subjectsOf(releases))},
		Headline: []figure.Fact{
			{Name: "subjects at " + plural(len(releases), "site") + ", noised", Value: fmt.Sprintf("%.0f", subjectsOf(releases))},
			{Name: "factors", Value: fmt.Sprint(len(m.Factors))},
			{Name: "of a view's variance explained", Value: spread(s.Pooled)},
		},
	}
	for k, v := range c.plan.Views {
		if r2 := explained.R2(k, explained.Rank); !math.IsNaN(r2) {
			r.Metrics["r2/"+v.Name] = r2
		}
	}
	variance := c.varianceSection(s.Pooled, nil)
	variance.Lead += " Both sums are estimates from noised releases, repaired for the noise that is known to be in them."
	r.Sections = []figure.Section{readingSection(), c.releasedSection(out.Sites, releases), variance, m.loadingSection(), c.doubtSection(s)}
	if c.noised.check != nil {
		checks, err := c.checks(s)
		if err != nil {
			return nil, err
		}
		c.checkMetrics(checks, r.Metrics)
		r.Sections = append(r.Sections, c.checkSection(s, checks))
	}
	return r, nil
}

// releasedSection says what each site released, and how much of it is noise.
func (c *coordinator) releasedSection(sites []releasedOfASite, releases []Released) figure.Section {
	t := figure.Table{ID: "released", Title: "Patterns of views that the sites released sums for",
		Caption: "Counts are noised: each is given with the standard deviation of its noise, and may be negative. Subjects with other views count under the largest of these patterns that theirs contain.",
		Columns: []figure.Column{{Name: "site"}, {Name: "views"}, {Name: "subjects, noised", Format: figure.Count, Numbers: figure.Numbers{}},
			{Name: "noise, sd", Numbers: figure.Numbers{}}, {Name: "directions that stood out", Format: figure.Count, Numbers: figure.Numbers{}}}}
	for i, site := range sites {
		for _, lens := range releases[i].Fine {
			names := make([]string, len(lens.Views))
			for n, k := range lens.Views {
				names[n] = c.plan.Views[k].Name
			}
			t.Columns[0].Text = append(t.Columns[0].Text, site.Site)
			t.Columns[1].Text = append(t.Columns[1].Text, strings.Join(names, ", "))
			for n, x := range []float64{math.Round(lens.Count), math.Sqrt(lens.CountVar), float64(len(lens.Squeeze))} {
				t.Columns[n+2].Numbers = append(t.Columns[n+2].Numbers, x)
			}
		}
	}
	return figure.Section{ID: "released", Title: "What the sites released",
		Lead: "Each site released noised counts, sums and second moments of its subjects, once. The model below, and any other that is made of them, costs no more privacy; they are in " + ReleasedName + ".",
		Items: []figure.Item{{Table: &t}, {Note: &figure.Note{Title: "Nothing is known of how sites differ",
			Text: "What two sites released differs by the noise of each, and by how their subjects differ; this version does not tell these apart, and describes all sites together."}}}}
}

// doubtSection shows how much of the uncertainty of predictions is noise.
func (c *coordinator) doubtSection(s *state) figure.Section {
	b := figure.Bars{X: figure.Axis{Label: "standard deviation that privacy noise adds, parts of the feature's range"}, Top: 15, Bottom: 5}
	j := 0
	for _, v := range c.plan.Views {
		for _, f := range v.Features {
			b.Labels, b.Groups, b.Values = append(b.Labels, f.Name), append(b.Groups, v.Name), append(b.Values, math.Sqrt(s.Doubt[j]))
			j++
		}
	}
	return figure.Section{ID: "privacy-noise", Title: "What privacy noise adds to predictions",
		Lead: "The noise in the releases is known, so its effect on the model is known too: the study was repeated with fresh noise on the repaired sums, and this is how far predictions of each feature from the other views then missed, beyond what the model says of itself. Intervals of imputed values include it.",
		Items: []figure.Item{{Figure: &figure.Figure{ID: "privacy-noise", Title: "Uncertainty of predictions that comes from privacy noise", Chart: b,
			Caption: "Features with the most and the least of it, coloured by view.",
			Alt:     "Bars of the standard deviation that privacy noise adds to predictions of each feature."}}}}
}
