package evaluate

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
)

// Scaling is an affine map of every feature, x ↦ (x − Shift)·Factor, indexed
// by view and column.
type Scaling struct {
	Shift, Factor [][]float64
}

// FitMinMax returns the scaling that maps the observed values of every number
// in the pooled sources onto [0, 1]. A constant becomes 0; categories, and
// numbers that nobody observed, stay as they are. This is the protocol under
// which methods are compared: it reads all rows in one place, which a study
// over real sites cannot.
func FitMinMax(ctx context.Context, sources ...dataset.Source) (*Scaling, error) {
	schema, err := commonSchema(sources)
	if err != nil {
		return nil, fmt.Errorf("fitting min-max scaling: %w", err)
	}
	low, high := newShape(schema, math.Inf(1)), newShape(schema, math.Inf(-1))
	for _, src := range sources {
		for row, err := range src.Rows(ctx) {
			if err != nil {
				return nil, fmt.Errorf("fitting min-max scaling: %w", err)
			}
			for k, x := range row.Views {
				for j, v := range x {
					if !math.IsNaN(v) {
						low[k][j] = min(low[k][j], v)
						high[k][j] = max(high[k][j], v)
					}
				}
			}
		}
	}
	s := &Scaling{newShape(schema, 0), newShape(schema, 1)}
	for k, v := range schema.Views {
		for j, c := range v.Columns {
			if c.Kind != dataset.Number || low[k][j] > high[k][j] {
				continue
			}
			s.Shift[k][j] = low[k][j]
			if high[k][j] > low[k][j] {
				s.Factor[k][j] = 1 / (high[k][j] - low[k][j])
			}
		}
	}
	return s, nil
}

// Apply returns the source with every value scaled.
func (s *Scaling) Apply(src dataset.Source) dataset.Source {
	schema := src.Schema()
	return dataset.Derive(src, schema, func() func(*dataset.Row) *dataset.Row {
		workspace := newShape(schema, 0)
		views := make([][]float64, len(workspace))
		return func(row *dataset.Row) *dataset.Row {
			for k, x := range row.Views {
				views[k] = nil
				if x == nil {
					continue
				}
				views[k] = workspace[k]
				for j, v := range x {
					views[k][j] = (v - s.Shift[k][j]) * s.Factor[k][j]
				}
			}
			return &dataset.Row{ID: row.ID, Views: views, Subject: row.Subject}
		}
	})
}

// Select returns the rows of the source that pick accepts, without the views
// whose indices it names as lacking.
func Select(src dataset.Source, pick func(id string) (lacking []int, ok bool)) dataset.Source {
	schema := src.Schema()
	return dataset.Derive(src, schema, func() func(*dataset.Row) *dataset.Row {
		views := make([][]float64, len(schema.Views))
		return func(row *dataset.Row) *dataset.Row {
			lacking, ok := pick(row.ID)
			if !ok {
				return nil
			}
			copy(views, row.Views)
			for _, k := range lacking {
				views[k] = nil
			}
			return &dataset.Row{ID: row.ID, Views: views, Subject: row.Subject}
		}
	})
}

// newShape returns one value for every column of every view.
func newShape(schema dataset.Schema, value float64) [][]float64 {
	s := make([][]float64, len(schema.Views))
	for k, v := range schema.Views {
		s[k] = make([]float64, len(v.Columns))
		for j := range s[k] {
			s[k][j] = value
		}
	}
	return s
}

// commonSchema returns the schema that the sources share in views and columns.
func commonSchema(sources []dataset.Source) (dataset.Schema, error) {
	if len(sources) == 0 {
		return dataset.Schema{}, fmt.Errorf("no sources")
	}
	first := sources[0].Schema()
	for i, src := range sources[1:] {
		s := src.Schema()
		same := len(s.Views) == len(first.Views)
		for k := 0; same && k < len(s.Views); k++ {
			a, b := s.Views[k], first.Views[k]
			same = a.Name == b.Name && len(a.Columns) == len(b.Columns)
			for j := 0; same && j < len(a.Columns); j++ {
				same = a.Columns[j].Name == b.Columns[j].Name
			}
		}
		if !same {
			return dataset.Schema{}, fmt.Errorf("source %d has other views or columns than the first", i+2)
		}
	}
	return first, nil
}

// Fold is one division of the subjects into those that are fitted and those
// that are held out.
type Fold struct {
	Repeat, Index int      // from 0
	Test          []string // ids held out, ascending
}

// FoldsOf divides the subjects into k folds, for one of several repeats, counted from 0. Each
// subject is held out once; folds differ by at most one subject in size and in the number of
// subjects of each group. The result depends on the seed and the set of subjects, not on their order.
func FoldsOf(subjects []Subject, k, repeat int, seed uint64) ([]Fold, error) {
	subjects, others := together(subjects)
	if k < 2 || k > len(subjects) {
		return nil, fmt.Errorf("folds: %d folds of %d subjects; needs at least two folds, and a subject for each", k,
			len(subjects))
	}
	byGroup, groups, err := stratify(subjects, seed, fmt.Sprintf("fold %d", repeat))
	if err != nil {
		return nil, fmt.Errorf("folds: %w", err)
	}
	folds := make([]Fold, k)
	next := 0
	for _, g := range groups {
		for _, id := range byGroup[g] {
			folds[next%k].Test = append(append(folds[next%k].Test, id), others[id]...)
			next++
		}
	}
	for i := range folds {
		folds[i].Repeat, folds[i].Index = repeat, i
		slices.Sort(folds[i].Test)
	}
	return folds, nil
}

// Split is one experiment: who is held out, and who of the others is where.
type Split struct {
	Fold
	Train   []Placement // in any order
	Sites   int
	Lacking [][]int // for each site, indices of the views it lacks; nil if no site lacks any
}

// Sources returns the rows of each site, the same rows all together, and those
// held out, which lack nothing.
func (s Split) Sources(src dataset.Source) (sites []dataset.Source, train, test dataset.Source) {
	site := make(map[string]int, len(s.Train))
	for _, p := range s.Train {
		site[p.ID] = p.Site
	}
	from := func(wanted func(site int) bool) dataset.Source {
		return Select(src, func(id string) ([]int, bool) {
			at, ok := site[id]
			if !ok || !wanted(at) {
				return nil, false
			}
			if s.Lacking == nil {
				return nil, true
			}
			return s.Lacking[at], true
		})
	}
	for i := range s.Sites {
		sites = append(sites, from(func(at int) bool { return at == i }))
	}
	train = from(func(int) bool { return true })
	test = Select(src, func(id string) ([]int, bool) {
		_, held := slices.BinarySearch(s.Test, id)
		return nil, held
	})
	return sites, train, test
}

// stratify returns the ids of every group in a random order and the groups in
// ascending order. Ids are ordered by SHA-256 of seed, purpose and id: uniform,
// the same on every machine, and independent of the order they came in.
func stratify(subjects []Subject, seed uint64,
	purpose string) (byGroup map[string][]string, groups []string, err error) {
	type keyed struct {
		Subject
		key [sha256.Size]byte
	}
	prefix := append(binary.BigEndian.AppendUint64(nil, seed), purpose+"\x00"...)
	all := make([]keyed, len(subjects))
	seen := make(map[string]bool, len(subjects))
	for i, s := range subjects {
		if seen[s.ID] {
			return nil, nil, fmt.Errorf("subject %s appears twice", s.ID)
		}
		seen[s.ID] = true
		all[i] = keyed{s, sha256.Sum256(append(prefix[:len(prefix):len(prefix)], s.ID...))}
	}
	slices.SortFunc(all, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), bytes.Compare(a.key[:], b.key[:]))
	})
	byGroup = map[string][]string{}
	for _, k := range all {
		if len(byGroup[k.Group]) == 0 {
			groups = append(groups, k.Group)
		}
		byGroup[k.Group] = append(byGroup[k.Group], k.ID)
	}
	return byGroup, groups, nil
}
