package private

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"parley/figure"
)

// each goes through the rows of the table: private fits by ε, then what they
// are compared with.
func (m *measured) each(row func(fit, epsilon string, s summary)) {
	for i, s := range m.private {
		row("private", fmt.Sprint(m.epsilons[i]), s)
	}
	row("without privacy", "", m.open)
	row("the mean", "", m.mean)
}

func (m *measured) print(w io.Writer) {
	m.each(func(fit, epsilon string, s summary) {
		fmt.Fprintf(w, "%-17s %-15s %3s  error %.4f ± %.4f  coverage %.3f ± %.3f\n", m.name, fit, epsilon, s.error, s.errorSD, s.coverage, s.coverageSD)
	})
}

// write keeps the table and draws both kinds of data.
func write(dir string, all []*measured) error {
	var b bytes.Buffer
	fmt.Fprintln(&b, "data,scenario,subjects,fit,epsilon,draws,error,error_sd,coverage,coverage_sd")
	for _, m := range all {
		kind, _, _ := strings.Cut(m.name, ",")
		m.each(func(fit, epsilon string, s summary) {
			coverage := "," // the mean has no intervals
			if !math.IsNaN(s.coverage) {
				coverage = fmt.Sprintf("%.4f,%.4f", s.coverage, s.coverageSD)
			}
			fmt.Fprintf(&b, "%s,%s,%d,%s,%s,%d,%.5f,%.5f,%s\n", kind, m.scenario, m.subjects, fit, epsilon, m.draws, s.error, s.errorSD, coverage)
		})
	}
	if err := os.WriteFile(filepath.Join(dir, "private-statistics.csv"), b.Bytes(), 0o666); err != nil {
		return err
	}
	for _, kind := range []struct{ name, title string }{{"paper", "33 features, data like the paper's"}, {"wide", "130 features"}} {
		l := figure.Lines{X: figure.Axis{Label: "ε of the total", Log: true}, Y: figure.Axis{Label: "test error (parts of the range)", Log: true}}
		for _, m := range all {
			if strings.HasPrefix(m.name, kind.name) && len(m.epsilons) > 1 {
				l.Series = append(l.Series, m.lines()...)
			}
		}
		if len(l.Series) == 0 {
			continue
		}
		f := figure.Figure{ID: "private-statistics-" + kind.name, Title: "What private statistics leave to learn: " + kind.title, Chart: l,
			Alt: "Test error against ε, a line for each number of subjects, with the spread between draws, beside no privacy and the mean."}
		b.Reset()
		if err := f.SVG(&b); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, f.ID+".svg"), b.Bytes(), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// lines are the curve of an experiment and what to compare it with.
func (m *measured) lines() []figure.Line {
	subjects := fmt.Sprintf("%d subjects", m.subjects)
	own, plain := figure.Line{Name: subjects}, figure.Line{Name: "plain release, " + subjects, Reference: true}
	for i, s := range m.private {
		own.X, own.Y = append(own.X, m.epsilons[i]), append(own.Y, s.error)
		own.Low, own.High = append(own.Low, s.error-s.errorSD), append(own.High, s.error+s.errorSD)
		if m.plain != nil && m.plain[i] > 0 {
			plain.X, plain.Y = append(plain.X, m.epsilons[i]), append(plain.Y, m.plain[i])
		}
	}
	out := []figure.Line{own}
	if len(plain.X) > 1 {
		out = append(out, plain)
	}
	ends := figure.Numbers{m.epsilons[0], m.epsilons[len(m.epsilons)-1]}
	if m.subjects == 400 { // the least; of more it is less
		out = append(out, figure.Line{Name: "the mean", X: ends, Y: figure.Numbers{m.mean.error, m.mean.error}, Reference: true})
	}
	return append(out, figure.Line{Name: fmt.Sprintf("no privacy, %d", m.subjects), X: ends, Y: figure.Numbers{m.open.error, m.open.error}, Reference: true})
}
