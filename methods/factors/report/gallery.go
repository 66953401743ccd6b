package report

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"parley/dataset"
	"parley/figure"
	"parley/methods/factors/assess"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// gallery is what one reading of a site's subjects keeps for the pictures of
// its own report.
type gallery struct {
	set      options.Setup
	scores   *scores
	mean     string // whose mean the model has: in words
	others   *assess.Predictor
	subjects int
	kept     []keptSubject
	every    int                  // one subject in so many is kept
	tests    *fitted.Associations // of the factors against the label columns
	worst    []described          // of all subjects, the worst first
}

// keptSubject is a subject that is drawn.
type keptSubject struct {
	id     string
	labels []string
	z      []float64
}

// maxPoints bounds the subjects that are drawn: of more, every second is kept,
// or every fourth, and so on.
const maxPoints = 3000

// look reads the rows once.
func look(ctx context.Context, set options.Setup, s *scores) (*gallery, error) {
	others := assess.Of(s.predictor)
	g := &gallery{set: set, scores: s, others: others, every: 1, tests: fitted.NewAssociations(s.data.Schema().Subject, nil, nil, s.rank)}
	z := make([]float64, s.rank)
	return g, fitted.EachSubject(ctx, s.predictor, s.scale, s.data, func(row *dataset.Row, post *ppca.Posterior, values []float64) error {
		post.Latent(z, values)
		if len(values) > 0 {
			g.tests.Add(row.Subject, z)
		}
		views := g.describe(row.ID, post, values)
		g.rank(views)
		g.keep(row, z)
		return nil
	})
}

// keep keeps a subject if it is one of those that are drawn.
func (g *gallery) keep(row *dataset.Row, z []float64) {
	g.subjects++
	if (g.subjects-1)%g.every != 0 {
		return
	}
	if len(g.kept) == maxPoints {
		for i := range maxPoints / 2 {
			g.kept[i] = g.kept[2*i]
		}
		g.kept, g.every = g.kept[:maxPoints/2], 2*g.every
		if (g.subjects-1)%g.every != 0 {
			return
		}
	}
	g.kept = append(g.kept, keptSubject{row.ID, slices.Clone(row.Subject), slices.Clone(z)})
}

const (
	worstNamed = 10 // subjects who are named because the model describes them badly
	leastR2    = -1 // below which R² of single subjects is not told apart: they are near the mean
)

// described is how well the model describes one view of one subject.
type described struct {
	id    string
	view  int
	r2    float64
	times float64 // squared residuals over what the model expects of them
}

// describe says how well the model describes each view of a subject; r2 is NaN where nothing
// of the view was measured.
func (g *gallery) describe(id string, post *ppca.Posterior, values []float64) (all []described) {
	near, mean := make([]float64, len(values)), make([]float64, len(values))
	post.Describe(near, values)
	post.Reconstruct(mean, values)
	for k := range g.set.Layout.Views() {
		lo, hi := g.set.Layout.View(k)
		left, total, squares, n := 0.0, 0.0, 0.0, 0.0
		for i, j := range post.Observed {
			if j < lo || j >= hi {
				continue
			}
			left += (values[i] - near[i]) * (values[i] - near[i])
			total += (values[i] - g.others.Mean(j)) * (values[i] - g.others.Mean(j))
			if expected := post.ResidualVar(i); expected > 0 {
				squares += (values[i] - mean[i]) * (values[i] - mean[i]) / expected
				n++
			}
		}
		all = append(all, described{id, k, max(1-left/total, leastR2), squares / n})
	}
	return all
}

// rank keeps a subject's views if they are among the worst described of all.
func (g *gallery) rank(all []described) {
	for _, x := range all {
		if math.IsNaN(x.times) || len(g.worst) == worstNamed && x.times <= g.worst[worstNamed-1].times {
			continue
		}
		at, _ := slices.BinarySearchFunc(g.worst, x, func(a, b described) int { return cmp.Compare(b.times, a.times) })
		g.worst = slices.Insert(g.worst, at, x)
		g.worst = g.worst[:min(len(g.worst), worstNamed)]
	}
}

// mostGroups is how many groups a picture can tell apart.
const mostGroups = 8

// grouping parts the kept subjects by the values of a label column; nothing if there are more than a picture can tell
// apart, as of numbers, whose place is the table of associations.
func (g *gallery) grouping(column int) (names []string, of []int) {
	number := func(s string) float64 {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return math.Inf(1)
		}
		return x
	}
	label := func(s keptSubject) string {
		if dataset.IsMissing(s.labels[column]) {
			return "unknown"
		}
		return s.labels[column]
	}
	for _, s := range g.kept {
		if name := label(s); !slices.Contains(names, name) {
			if names = append(names, name); len(names) > mostGroups {
				return nil, nil
			}
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a, b)) })
	for _, s := range g.kept {
		of = append(of, slices.Index(names, label(s)))
	}
	return names, of
}

// describedSection names the subjects whom the model describes worst.
func (g *gallery) describedSection() figure.Section {
	t := figure.Table{ID: "worst-described", Title: "Subjects whom the model describes worst",
		Caption: fmt.Sprintf("The %d views of subjects that are furthest from what the model expects. Residuals are the squared distances of the values from the model's description, over what the model expects of them: 1 is as expected. A subject far above 1 may be a different kind of patient, or have a value that is wrong.", len(g.worst)),
		Columns: []figure.Column{{Name: "subject"}, {Name: "view"}, {Name: "residuals, times the expected", Numbers: figure.Numbers{}}, {Name: "R²", Format: figure.Percent, Numbers: figure.Numbers{}}}}
	for _, x := range g.worst {
		t.Add(x.id, g.set.Plan.Views[x.view].Name, x.times, x.r2)
	}
	return figure.Section{ID: "described", Title: "How well subjects are described", Items: []figure.Item{{Table: &t}},
		Lead: "R² of one subject is the share of the subject's distance from the mean of " + g.mean + " that the factors account for. Subjects near the mean have little to account for, so that their R² is small or below 0 without anything being wrong; the table names those who really are far from the model."}
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
	err := fitted.EachSubject(ctx, s.predictor, s.scale, s.data, func(row *dataset.Row, post *ppca.Posterior, values []float64) error {
		post.Latent(z, values)
		record = append(record[:0], row.ID)
		for _, x := range z {
			record = append(record, fitted.Number(x))
		}
		for a := range z {
			record = append(record, fitted.Number(math.Sqrt(post.Cov[a*s.rank+a])))
		}
		return w.Write(record)
	})
	w.Flush()
	return errors.Join(err, w.Error())
}
