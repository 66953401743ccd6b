package dataset

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// barWidth is how many blocks stand for all subjects in the drawing.
const barWidth = 40

// Blocks of the drawing. A block stands for subjects of one pattern.
const (
	present = "█"
	absent  = "·"
	mixed   = "▒" // patterns too rare to be drawn one by one
)

// Print draws the summary as text: a bar for each view with gaps where subjects
// lack it, one block column for each pattern of views, and below it the
// patterns, the subject columns and, if asked for, the features.
func (s *Summary) Print(w io.Writer, features bool) error {
	count := 0
	for _, v := range s.Views {
		count += len(v.Features)
	}
	views := "views"
	if len(s.Views) == 1 {
		views = "view"
	}
	fmt.Fprintf(w, "%d subjects, %d %s, %d features\n\n", s.Subjects, len(s.Views), views, count)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "view\tsubjects\tfeatures\tmissing cells\twho has it (%s) and who lacks it (%s)\n", present, absent)
	blocks := s.blocks()
	for _, v := range s.Views {
		var missing int64
		for _, f := range v.Features {
			missing += f.Missing
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\n", v.Name, v.Subjects, len(v.Features),
			share(missing, v.Subjects*int64(len(v.Features))), s.bar(blocks, v.Name))
	}
	fmt.Fprintf(t, "\nsubjects\t\tviews\n")
	for _, p := range s.Patterns {
		names := strings.Join(p.Views, ", ")
		fmt.Fprintf(t, "%d\t%s\t%s\n", p.Subjects, percent(p.Subjects, s.Subjects), cmp.Or(names, "none"))
	}
	if s.OtherPatterns > 0 {
		fmt.Fprintf(t, "%d\t%s\t%s\n", s.OtherPatterns, percent(s.OtherPatterns, s.Subjects), "other combinations")
	}
	if len(s.Columns) > 0 {
		fmt.Fprintf(t, "\nsubject column\tvalues\n")
	}
	for _, c := range s.Columns {
		fmt.Fprintf(t, "%s\t%s\n", c.Name, c.text())
	}
	if features {
		s.printFeatures(t)
	}
	return t.Flush()
}

func (s *Summary) printFeatures(t io.Writer) {
	for _, v := range s.Views {
		fmt.Fprintf(t, "\n%s\tobserved\tmin\tmean\tmax\tsd\n", v.Name)
		for _, f := range v.Features {
			fmt.Fprintf(t, "%s\t%d", f.Name, f.Observed)
			if m := f.Moments; m != nil {
				fmt.Fprintf(t, "\t%.4g\t%.4g\t%.4g\t%.4g", m.Min, m.Mean, m.Max, m.SD)
			} else if f.Levels != nil {
				fmt.Fprintf(t, "\t%s", levels(f.Levels))
			}
			fmt.Fprintln(t)
		}
	}
}

// blocks shares the bar among the patterns, in proportion to their subjects
// and at least one block each, as long as there are blocks. The last element is
// for all patterns that got none.
func (s *Summary) blocks() []int {
	drawn := s.Patterns[:min(len(s.Patterns), barWidth-1)]
	blocks := make([]int, len(drawn)+1)
	left := s.Subjects
	for _, p := range drawn {
		left -= p.Subjects
	}
	free := barWidth
	order := make([]int, 0, len(blocks))
	counts := make([]int64, len(blocks))
	for i := range blocks {
		counts[i] = left
		if i < len(drawn) {
			counts[i] = drawn[i].Subjects
		}
		if counts[i] > 0 {
			blocks[i] = 1
			free--
			order = append(order, i)
		}
	}
	// The rest goes one by one to whoever has the most subjects for a block.
	for ; free > 0 && len(order) > 0; free-- {
		most := slices.MaxFunc(order, func(a, b int) int {
			// counts[a]/blocks[a] against counts[b]/blocks[b]; the first wins ties.
			return cmp.Or(cmp.Compare(float64(counts[a])*float64(blocks[b]), float64(counts[b])*float64(blocks[a])),
				cmp.Compare(b, a))
		})
		blocks[most]++
	}
	return blocks
}

func (s *Summary) bar(blocks []int, view string) string {
	var b strings.Builder
	for i, n := range blocks {
		block := mixed
		if i < len(blocks)-1 {
			block = absent
			if slices.Contains(s.Patterns[i].Views, view) {
				block = present
			}
		}
		b.WriteString(strings.Repeat(block, n))
	}
	return b.String()
}

func (c *ColumnSummary) text() string {
	switch {
	case c.Many:
		return fmt.Sprintf("more than %d different values", MaxLevels)
	case len(c.Levels) > 12:
		return fmt.Sprintf("%d different values", len(c.Levels))
	}
	return levels(c.Levels)
}

func levels(all []Level) string {
	var b strings.Builder
	for i, l := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %d", cmp.Or(l.Name, "(empty)"), l.Subjects)
	}
	return b.String()
}

// share writes a count and, unless it is 0, its percentage.
func share(n, of int64) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%s)", n, percent(n, of))
}

func percent(n, of int64) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(max(of, 1))) }
