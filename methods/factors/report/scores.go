package report

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"

	"parley/dataset"
	"parley/methods/factors/fitted"
	"parley/methods/factors/ppca"
)

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
