package tabular

import (
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// labelled returns rows as CSV with labels in the place of values, each named as its cell is written. It begins the
// rows twice, since which labels describe numbers is known after the last.
func labelled(names []string, labels []map[string]string,
	rows func() (func(cells [][]byte) error, error)) (io.ReadCloser, error) {
	next, err := rows()
	if err != nil {
		return nil, err
	}
	known := false
	return inOrder(names, func(cells [][]byte) error {
		if !known {
			known = true
			unlabel(labels, rows)
		}
		if err := next(cells); err != nil {
			return err
		}
		for i, cell := range cells {
			if label, ok := labels[i][string(cell)]; ok && len(cell) > 0 {
				cells[i] = append(cell[:0], label...)
			}
		}
		return nil
	}, nil), nil
}

// unlabel takes the labels off that describe some of a column's numbers where more have none, as those of the ends of a
// scale do.
func unlabel(labels []map[string]string, rows func() (func(cells [][]byte) error, error)) {
	if !slices.ContainsFunc(labels, func(of map[string]string) bool { return len(of) > 0 }) {
		return
	}
	bare, row := make([]numbers, len(labels)), make([][]byte, len(labels))
	for next, err := rows(); err == nil && next(row) == nil; { // an error comes again where the rows are used
		for i, cell := range row {
			if _, ok := labels[i][string(cell)]; ok || len(labels[i]) == 0 {
				continue
			} else if x, err := strconv.ParseFloat(string(cell), 64); err == nil {
				bare[i].add(x)
			}
		}
	}
	for i, own := range labels {
		n, described := &bare[i], maps.Clone(own)
		maps.DeleteFunc(described, func(cell, _ string) bool {
			x, err := strconv.ParseFloat(cell, 64)
			return err != nil || len(n.distinct) < 3 || noValue.MatchString(own[cell]) || n.isNoAnswer(x, own)
		})
		for cell := range described {
			if len(described) < len(n.distinct) {
				delete(own, cell)
			}
		}
	}
}

// numbers are those of a column that have no label: the ends, and so many different ones as labels can be fewer than.
type numbers struct {
	low, high float64
	distinct  map[float64]bool
}

func (n *numbers) add(x float64) {
	if n.distinct == nil {
		*n = numbers{x, x, map[float64]bool{}}
	}
	n.low, n.high = min(n.low, x), max(n.high, x)
	if len(n.distinct) < mostDistinct {
		n.distinct[x] = true
	}
}

const mostDistinct = 1000

// noValue is how labels say that there is none, whatever number stands for it.
var noValue = regexp.MustCompile(`(?i)missing|unknown|refus|don.?t know|\bno (answer|data|value)|` +
	`\b(not|nicht) (avail|appl|ask|done|known|measur|record|test|bekannt|best|durch|erh|gem|verf|zutr)|` +
	`\bn\.?/?[ad]\b|fehl|unbekannt|keine? (ang|wert)|inconnu|manqu|non (connu|fait|mes|rens)|desconoc|sin dato`)

// noAnswer is how surveys number answers that are none, in two digits or more.
var noAnswer = regexp.MustCompile(`^(7{2,}|8{2,}|9+[6-9])$`)

// isNoAnswer says whether a labelled value is far from a column's other numbers or looks like a code beside them. A 7,
// 8 or 9 after them is an end only where the beginning has a label too.
func (n *numbers) isNoAnswer(x float64, labels map[string]string) bool {
	low, high := n.low, n.high
	return x < 0 && low >= 0 || max(low-x, x-high) > 2*(high-low) || noAnswer.MatchString(strconv.Itoa(int(x))) ||
		x > high && x >= 7 && x <= 9 && (x > high+1 || labels[strconv.Itoa(int(low)-1)] == "")
}
