package mvppca

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/figure"
	"parley/internal/wire"
	"parley/method"
)

// model names what the coordinator fitted.
func (c *coordinator) model(s *state) (*Model, error) {
	prior, err := s.Model.prior(c.layout)
	if err != nil {
		return nil, err
	}
	scale, err := s.Scale.scale(c.layout)
	if err != nil {
		return nil, err
	}
	digest, err := c.plan.Digest()
	if err != nil {
		return nil, err
	}
	m := newModelFile(c.plan, c.opts, digest.String(), scale, prior, s.Strengths)
	if last := s.Trace[len(s.Trace)-1]; last.Scored {
		m.LogLik = &last.LogLik
	}
	if c.estimatesSpread() {
		varW, varMu := prior.Spread()
		for k := range m.Views {
			w, mu := math.Sqrt(varW[k]), math.Sqrt(varMu[k])
			m.Views[k].LoadingSD, m.Views[k].MeanSD = &w, &mu
		}
	}
	sites, _ := c.reports(s)
	for _, site := range sites {
		out := ModelSite{Name: site.name, Subjects: site.subjects(), LatentMean: site.Mean}
		for k, v := range c.plan.Views {
			if slices.ContainsFunc(site.Patterns, func(p patternCount) bool { return slices.Contains(p.Views, k) }) {
				out.Views = append(out.Views, v.Name)
			}
		}
		for row := range slices.Chunk([]float64(site.Cov), c.opts.Latent) {
			out.LatentCov = append(out.LatentCov, row)
		}
		m.Sites = append(m.Sites, out)
	}
	return m, nil
}

// estimatesSpread says whether anything was learned of how sites differ.
func (c *coordinator) estimatesSpread() bool {
	return c.opts.Variant == PublishedVariant || c.opts.Rounds > 0
}

// Share gives every site the whole model: it is the study's result.
func (c *coordinator) Share(ms method.State, _ string) ([]byte, error) {
	s := ms.(*state)
	return wire.Marshal(assessTask{Scale: *s.Scale, Model: s.Model.Params})
}

// Report projects the site's own subjects on the factors. It is made at the
// site, for the site, from the shared model and its own rows.
func (h *site) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	var share assessTask
	if err := wire.Unmarshal(shared, &share); err != nil {
		return nil, fmt.Errorf("decoding the shared model: %w", err)
	}
	model, err := share.Model.params(h.layout)
	if err != nil {
		return nil, err
	}
	scale, err := share.Scale.scale(h.layout)
	if err != nil {
		return nil, err
	}
	if h.opts.Scaling == ScaleSiteRange {
		sums, err := h.read(ctx, data)
		if err != nil {
			return nil, err
		}
		scale = sums.extremes.ownRange()
	}
	predictor, err := NewPredictor(h.layout, model)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	header := []string{"id"}
	for _, name := range []string{"factor_%d", "sd_%d"} {
		for a := range model.Rank {
			header = append(header, fmt.Sprintf(name, a+1))
		}
	}
	if err := w.Write(header); err != nil {
		return nil, fmt.Errorf("writing scores: %w", err)
	}
	labels := data.Schema().Subject
	points := map[string]*figure.Group{}
	z := make([]float64, model.Rank)
	subjects := 0
	err = eachSubject(ctx, predictor, scale, data, func(row *dataset.Row, post *Posterior, values []float64) error {
		post.Latent(z, values)
		record := []string{row.ID}
		for _, x := range z {
			record = append(record, number(x))
		}
		for a := range z {
			record = append(record, number(math.Sqrt(post.Cov[a*model.Rank+a])))
		}
		subjects++
		level := "all subjects"
		if len(labels) > 0 {
			level = row.Subject[0]
			if level == "" {
				level = "(" + labels[0].Name + " unknown)"
			}
		}
		if points[level] == nil {
			points[level] = &figure.Group{Name: level}
		}
		points[level].X = append(points[level].X, z[0])
		points[level].Y = append(points[level].Y, z[min(1, len(z)-1)])
		return w.Write(record)
	})
	if err != nil {
		return nil, fmt.Errorf("scoring the site's subjects: %w", err)
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return nil, fmt.Errorf("writing scores: %w", err)
	}
	return &method.Result{
		Files:    []method.File{{Name: "scores.csv", Data: out.Bytes()}},
		Headline: []figure.Fact{{Name: "subjects here", Value: fmt.Sprint(subjects)}, {Name: "factors", Value: fmt.Sprint(model.Rank)}},
		Sections: []figure.Section{scoreSection(points, len(z))},
	}, nil
}

// scoreSection shows single subjects.
func scoreSection(points map[string]*figure.Group, q int) figure.Section {
	second := min(2, q)
	chart := figure.Scatter{X: figure.Axis{Label: "score on factor 1"}, Y: figure.Axis{Label: fmt.Sprintf("score on factor %d", second)}}
	levels := make([]string, 0, len(points))
	for level := range points {
		levels = append(levels, level)
	}
	slices.Sort(levels)
	for _, level := range levels {
		chart.Groups = append(chart.Groups, *points[level])
	}
	return figure.Section{ID: "scores", Title: "Your subjects in the latent space",
		Lead: "Every mark is one subject of this site. scores.csv beside this page has the scores on all factors, with their standard deviations given what was measured of the subject.",
		Items: []figure.Item{{Figure: &figure.Figure{
			ID: "subjects", Title: fmt.Sprintf("Subjects on factors 1 and %d", second), Chart: chart,
			Caption: "Subjects close to each other show the factors alike. The scale is that of the whole study: 0 is its mean, 1 its standard deviation.",
			Alt:     "Scatter of this site's subjects on the first two factors.",
		}}}}
}
