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
	"parley/methods/factors/fitted"
	"parley/methods/factors/ppca"
)

// gallery is what one reading of a site's subjects keeps for the pictures of
// its own report.
type gallery struct {
	scores   *scores
	mean     string // whose mean the model has: in words
	subjects int
	kept     []keptSubject
	every    int // one subject in so many is kept
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
func look(ctx context.Context, s *scores) (*gallery, error) {
	g := &gallery{scores: s, every: 1}
	z := make([]float64, s.rank)
	return g, fitted.EachSubject(ctx, s.predictor, s.scale, s.data, func(row *dataset.Row, post *ppca.Posterior, values []float64) error {
		post.Latent(z, values)
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

// mostGroups is how many groups a picture can tell apart.
const mostGroups = 8

// grouping parts the kept subjects by the values of a label column; nothing if there are more than a picture can tell
// apart, as of numbers.
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
