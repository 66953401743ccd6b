package private

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// write prints two tables, of the errors and of how many hidden values intervals hold.
func write(w io.Writer, all []*measured) {
	head := ""
	for _, e := range epsilons {
		head += fmt.Sprintf(" ε = %v |", e)
	}
	for i, what := range []string{"error", "intervals hold, %"} {
		fmt.Fprintf(w, "| %s |%s no privacy | the mean |\n|---|%s\n", what, head, strings.Repeat("---:|", len(epsilons)+2))
		for _, m := range all {
			fmt.Fprintf(w, "| %s |", m.name)
			for _, s := range append(m.private, m.open, m.mean) {
				fmt.Fprintf(w, " %s |", s.cells()[i])
			}
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w)
	}
}

// cells are the error and the coverage, each with its standard deviation between draws.
func (s *summary) cells() [2]string {
	coverage := "–" // the mean of all rows has no intervals
	if !math.IsNaN(s.coverage) {
		coverage = fmt.Sprintf("%.1f ± %.1f", 100*s.coverage, 100*s.coverageSD)
	}
	return [2]string{fmt.Sprintf("%.4f ± %.4f", s.error, s.errorSD), coverage}
}
