package evaluate

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"parley/dataset"
)

// Fold is one division of the subjects into those that are fitted and those
// that are held out.
type Fold struct {
	Repeat, Index int      // from 0
	Test          []string // ids held out, ascending
}

// Folds divides the subjects into k folds, and does so repeats times. Each
// subject is held out once in every repeat; folds differ by at most one subject
// in size and in the number of subjects of each group. The result depends on
// the seed and the set of subjects, not on their order.
func Folds(subjects []Subject, k, repeats int, seed uint64) ([]Fold, error) {
	var folds []Fold
	for r := range repeats {
		some, err := FoldsOf(subjects, k, r, seed)
		if err != nil {
			return nil, err
		}
		folds = append(folds, some...)
	}
	return folds, nil
}

// FoldsOf returns the folds of one repeat alone, counted from 0.
func FoldsOf(subjects []Subject, k, repeat int, seed uint64) ([]Fold, error) {
	subjects, others := together(subjects)
	if k < 2 || k > len(subjects) {
		return nil, fmt.Errorf("folds: %d folds of %d subjects; needs at least two folds, and a subject for each", k, len(subjects))
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
func stratify(subjects []Subject, seed uint64, purpose string) (byGroup map[string][]string, groups []string, err error) {
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
