package fitted

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"parley/dataset"
	"parley/method"
	"parley/methods/factors/ppca"
)

// Transform implements [method.Transformer]: the posterior of each subject's
// factors given what was observed of the subject, N(M WᵀΨ⁻¹(t − μ), M) with
// M = (I + WᵀΨ⁻¹W)⁻¹ over the observed features, its covariance widened by what the sampling of the
// fit's subjects leaves unknown where that is known ([assess.Scores]). A subject without any value
// has the prior, N(0, I). Of a rotated model it is that of the rotated factors, with the
// prior N(0, Φ). The columns are id, values (how many were observed),
// factor_1 to factor_q, their standard deviations sd_1 to sd_q, and with
// Covariance cov_1_2, cov_1_3 to cov_(q−1)_q.
//
// Verdicts that void what the study says of the model are repeated: by each of them the
// factors themselves are not to be relied on.
func (m *Model) Transform(ctx context.Context, data dataset.Source, to io.Writer, opts method.TransformOptions) (int, method.Notes, error) {
	r, notes, err := m.use(Population{opts.Site, opts.NewSite})
	if err != nil {
		return 0, nil, err
	}
	q := len(m.Factors)
	w := newLines(to, transformHeader(q, opts.Covariance)...)
	z, sampling := make([]float64, q), m.scoreErrors()
	n, err := r.each(ctx, data, func(row *dataset.Row, post *ppca.Posterior, values []float64) error {
		w.text(row.ID).text(strconv.Itoa(len(values)))
		post.Latent(z, values)
		var cov []float64
		if sampling != nil {
			cov = sampling.Widen(post.Cov, z, len(values))
		} else {
			cov = r.rotation.covariance(post.Cov)
		}
		r.rotation.latent(z)
		for _, x := range z {
			w.number(x)
		}
		for a := range z {
			w.number(math.Sqrt(cov[a*q+a]))
		}
		for a := range z {
			for b := a + 1; opts.Covariance && b < q; b++ {
				w.number(cov[a*q+b])
			}
		}
		return w.end()
	})
	warnings := m.verdictNotes(func(v *Verdict) bool { return len(v.Voids) > 0 })
	return n, slices.Concat(warnings, notes, r.notes()), errors.Join(err, w.flush())
}

func transformHeader(q int, covariance bool) []string {
	header := []string{"id", "values"}
	for _, name := range []string{"factor_%d", "sd_%d"} {
		for a := range q {
			header = append(header, fmt.Sprintf(name, a+1))
		}
	}
	for a := range q {
		for b := a + 1; covariance && b < q; b++ {
			header = append(header, fmt.Sprintf("cov_%d_%d", a+1, b+1))
		}
	}
	return header
}

// lines writes CSV cell by cell.
type lines struct {
	buf    *bufio.Writer
	csv    *csv.Writer
	record []string
}

func newLines(to io.Writer, header ...string) *lines {
	buf := bufio.NewWriterSize(to, 64<<10)
	l := &lines{buf: buf, csv: csv.NewWriter(buf), record: header}
	l.end() // an error comes back from flush
	return l
}

func (l *lines) text(s string) *lines {
	l.record = append(l.record, s)
	return l
}

func (l *lines) number(x float64) *lines { return l.text(Number(x)) }

func (l *lines) end() error {
	err := l.csv.Write(l.record)
	l.record = l.record[:0]
	return err
}

func (l *lines) flush() error {
	l.csv.Flush()
	return errors.Join(l.csv.Error(), l.buf.Flush())
}
