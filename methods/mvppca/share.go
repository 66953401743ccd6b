package mvppca

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"parley/dataset"
	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
	"parley/methods/mvppca/use"
)

// model names what the coordinator fitted.
func (c *coordinator) model(s *state) (*use.Model, error) {
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
	m := use.NewModelFile(c.plan, c.opts, digest.String(), scale, prior, s.Strengths)
	if c.way.estimatesSpread() {
		m.Spread(prior, c.layout)
	}
	c.way.describe(s, m)
	if sites, pooled := c.reports(s); len(sites) > 0 {
		m.LogLik = &s.LogLik
		assessed(m, sites, pooled)
	}
	return m, nil
}

// Share gives every site the whole model: it is the study's result.
func (c *coordinator) Share(ms method.State, _ string) ([]byte, error) {
	s := ms.(*state)
	return wire.Marshal(assessTask{Scale: *s.Scale, Model: s.Model.Params, Doubt: s.Doubt})
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
	if h.opts.Scaling == options.ScaleSiteRange {
		sums, err := h.read(ctx, data)
		if err != nil {
			return nil, err
		}
		scale = sums.extremes.ownRange()
	}
	predictor, err := ppca.NewPredictor(h.layout, model)
	if err != nil {
		return nil, err
	}
	if err := predictor.Widen(share.Doubt); err != nil {
		return nil, err
	}
	scores := &scores{predictor: predictor, scale: scale, rank: model.Rank, data: data}
	g, err := h.look(ctx, scores, model)
	if err != nil {
		return nil, fmt.Errorf("scoring the site's subjects: %w", err)
	}
	sections, err := g.sections(ctx)
	if err != nil {
		return nil, fmt.Errorf("drawing the site's subjects: %w", err)
	}
	return &method.Result{
		Files:    []method.File{{Name: "scores.csv", Write: func(w io.Writer) error { return scores.write(ctx, w) }}},
		Headline: []figure.Fact{{Name: "subjects here", Value: fmt.Sprint(g.subjects)}, {Name: "factors", Value: fmt.Sprint(model.Rank)}},
		Sections: sections,
	}, nil
}

// scores reads the site's subjects on the factors, as often as they are asked for.
type scores struct {
	predictor *ppca.Predictor
	scale     *ppca.Scale
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
	err := use.EachSubject(ctx, s.predictor, s.scale, s.data, func(row *dataset.Row, post *ppca.Posterior, values []float64) error {
		post.Latent(z, values)
		record = append(record[:0], row.ID)
		for _, x := range z {
			record = append(record, use.Number(x))
		}
		for a := range z {
			record = append(record, use.Number(math.Sqrt(post.Cov[a*s.rank+a])))
		}
		return w.Write(record)
	})
	w.Flush()
	return errors.Join(err, w.Error())
}

// assessed puts in what the sites said of the finished model.
func assessed(m *use.Model, sites []namedReport, pooled *assessment) {
	q := len(m.Factors)
	m.Explains(pooled.explained())
	for _, site := range sites {
		out := use.ModelSite{Name: site.name, Subjects: site.subjects(), LatentMean: site.Mean, Views: []string{}, Patterns: []use.ModelPattern{}}
		for _, p := range site.Patterns {
			views := make([]string, len(p.Views))
			for i, k := range p.Views {
				views[i] = m.Views[k].Name
			}
			out.Patterns = append(out.Patterns, use.ModelPattern{Views: views, Subjects: p.Subjects})
		}
		for _, v := range m.Views {
			if slices.ContainsFunc(out.Patterns, func(p use.ModelPattern) bool { return slices.Contains(p.Views, v.Name) }) {
				out.Views = append(out.Views, v.Name)
			}
		}
		for row := range slices.Chunk([]float64(site.Cov), q) {
			out.LatentCov = append(out.LatentCov, row)
		}
		m.Sites = append(m.Sites, out)
	}
}
