package mvppca

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
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
		m.spread(prior, c.layout)
	}
	m.assessed(c.reports(s))
	return m, nil
}

// estimatesSpread says whether anything was learned of how sites differ.
func (c *coordinator) estimatesSpread() bool {
	return c.opts.Variant == PublishedVariant || c.opts.Rounds > 0
}

// Share gives every site the whole model: it is the study's result.
func (c *coordinator) Share(ms method.State, _ string) ([]byte, error) {
	s := ms.(*state)
	return wire.Marshal(assessTask{Scale: *s.Scale, Model: *s.Model})
}

// Report projects the site's own subjects on the factors. It is made at the
// site, for the site, from the shared model and its own rows.
func (h *site) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	var share assessTask
	if err := wire.Unmarshal(shared, &share); err != nil {
		return nil, fmt.Errorf("decoding the shared model: %w", err)
	}
	prior, err := share.Model.prior(h.layout)
	if err != nil {
		return nil, err
	}
	model := &prior.Params
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
	scores := &scores{predictor: predictor, scale: scale, rank: model.Rank, data: data}
	chart, subjects, err := scores.chart(ctx)
	if err != nil {
		return nil, err
	}
	return &method.Result{
		Files:    []method.File{{Name: "scores.csv", Write: func(w io.Writer) error { return scores.write(ctx, w) }}},
		Headline: []figure.Fact{{Name: "subjects here", Value: fmt.Sprint(subjects)}, {Name: "factors", Value: fmt.Sprint(model.Rank)}},
		Sections: []figure.Section{scoreSection(chart, model.Rank)},
	}, nil
}

// scores reads the site's subjects on the factors, as often as they are asked for.
type scores struct {
	predictor *Predictor
	scale     *Scale
	rank      int
	data      dataset.Source
}

// write writes a line for each subject: the scores, and their standard
// deviations given what was measured of the subject.
func (s *scores) write(ctx context.Context, to io.Writer) error {
	w := csv.NewWriter(to)
	header := []string{"id"}
	for _, name := range []string{"factor_%d", "sd_%d"} {
		for a := range s.rank {
			header = append(header, fmt.Sprintf(name, a+1))
		}
	}
	if err := w.Write(header); err != nil {
		return err
	}
	z, record := make([]float64, s.rank), make([]string, 0, len(header))
	err := eachSubject(ctx, s.predictor, s.scale, s.data, func(row *dataset.Row, post *Posterior, values []float64) error {
		post.Latent(z, values)
		record = append(record[:0], row.ID)
		for _, x := range z {
			record = append(record, number(x))
		}
		for a := range z {
			record = append(record, number(math.Sqrt(post.Cov[a*s.rank+a])))
		}
		return w.Write(record)
	})
	w.Flush()
	return errors.Join(err, w.Error())
}

// maxPoints bounds the subjects that are drawn: of more, every second is kept,
// or every fourth, and so on.
const maxPoints = 6000

// chart draws the subjects on the first two factors, by the first label
// column, and counts them.
func (s *scores) chart(ctx context.Context) (figure.Scatter, int, error) {
	labels := s.data.Schema().Subject
	type point struct {
		level string
		x, y  float64
	}
	var points []point
	z := make([]float64, s.rank)
	subjects, every := 0, 1
	err := eachSubject(ctx, s.predictor, s.scale, s.data, func(row *dataset.Row, post *Posterior, values []float64) error {
		subjects++
		if (subjects-1)%every != 0 {
			return nil
		}
		if len(points) == maxPoints {
			for i := range maxPoints / 2 {
				points[i] = points[2*i]
			}
			points, every = points[:maxPoints/2], 2*every
			if (subjects-1)%every != 0 {
				return nil
			}
		}
		level := "all subjects"
		if len(labels) > 0 {
			if level = row.Subject[0]; level == "" {
				level = "(" + labels[0].Name + " unknown)"
			}
		}
		post.Latent(z, values)
		points = append(points, point{level, z[0], z[min(1, s.rank-1)]})
		return nil
	})
	if err != nil {
		return figure.Scatter{}, 0, fmt.Errorf("scoring the site's subjects: %w", err)
	}
	groups := map[string]*figure.Group{}
	for _, p := range points {
		g := groups[p.level]
		if g == nil {
			g = &figure.Group{Name: p.level}
			groups[p.level] = g
		}
		g.X, g.Y = append(g.X, p.x), append(g.Y, p.y)
	}
	var chart figure.Scatter
	for _, level := range slices.Sorted(maps.Keys(groups)) {
		chart.Groups = append(chart.Groups, *groups[level])
	}
	return chart, subjects, nil
}

// scoreSection shows single subjects.
func scoreSection(chart figure.Scatter, q int) figure.Section {
	second := min(2, q)
	chart.X, chart.Y = figure.Axis{Label: "score on factor 1"}, figure.Axis{Label: fmt.Sprintf("score on factor %d", second)}
	return figure.Section{ID: "scores", Title: "Your subjects in the latent space",
		Lead: "Every mark is one subject of this site; of very many, an even selection is drawn. scores.csv beside this page has the scores on all factors, with their standard deviations given what was measured of the subject.",
		Items: []figure.Item{{Figure: &figure.Figure{
			ID: "subjects", Title: fmt.Sprintf("Subjects on factors 1 and %d", second), Chart: chart,
			Caption: "Subjects close to each other show the factors alike. The scale is that of the whole study: 0 is its mean, 1 its standard deviation.",
			Alt:     "Scatter of this site's subjects on the first two factors.",
		}}}}
}
