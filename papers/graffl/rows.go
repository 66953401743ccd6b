package graffl

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"parley/dataset"
	"parley/papers/experiment"
	"parley/papers/graffl/scarce"
)

// source is a data set with an outcome, whose class "1" is the one that may be scarce.
type source struct{ name, outcome string }

var (
	heart     = source{"heart", "disease"}
	intensive = source{"physionet2012", "death"}
)

// open returns the features of all rows, and who is of the class. What is missing is NaN.
func (s source) open(ctx context.Context, at experiment.Data) (all scarce.Labelled, err error) {
	path, err := at.Folder(s.name)
	if err != nil {
		return all, err
	}
	dir, err := dataset.Open(ctx, path, dataset.Options{})
	if err != nil {
		return all, err
	}
	_, labels, err := dataset.Labels(ctx, dir, s.outcome)
	if err != nil {
		return all, err
	}
	for row, err := range dir.Rows(ctx) {
		if err != nil {
			return all, err
		}
		x := slices.Concat(row.Views...)
		if len(all.Rows) > 0 && len(x) != len(all.Rows[0]) {
			return all, fmt.Errorf("data set %s: %s lacks a view", s.name, row.ID)
		}
		add(&all, x, labels[len(all.Rows)] == "1")
	}
	return all, nil
}

// setting is how rows are dealt to sites.
type setting struct {
	source
	name    string
	codes   int     // numbers in a code
	among   int     // sites
	rows    int     // that each site learns from; 0 deals all that are not held
	aside   float64 // share of all rows that is kept for scoring
	targets int     // the first site that is to be helped; it and all after it are
	share   float64 // of the class at the targets, by leaving rows out; 0 leaves none out
}

// dealt is one split of a data set.
type dealt struct {
	sites []scarce.Labelled
	all   scarce.Labelled // what the sites would have if nothing had been left out
	held  scarce.Labelled // what nothing is learned from
}

// split deals rows: the same share of both classes to the held ones and to every site;
// then rows of the class are left out at the targets, down to the setting's share, but one.
func (s setting) split(t scarce.Labelled, rng *rand.Rand) (dealt, error) {
	d := dealt{sites: make([]scarce.Labelled, s.among)}
	room := float64(len(t.Rows)) * (1 - s.aside)
	if float64(s.rows*s.among) > room+1 {
		return d, fmt.Errorf("%d rows are too few for %d sites of %d", len(t.Rows), s.among, s.rows)
	}
	for _, class := range []bool{false, true} {
		var own []int
		for _, i := range rng.Perm(len(t.Rows)) {
			if t.Labels[i] == class {
				own = append(own, i)
			}
		}
		n := int(s.aside * float64(len(own)))
		for _, i := range own[:n] {
			add(&d.held, t.Rows[i], class)
		}
		own = own[n:]
		if s.rows > 0 {
			own = own[:min(len(own), int(math.Round(float64(len(own)*s.rows*s.among)/room)))]
		}
		for k, i := range own {
			add(&d.all, t.Rows[i], class)
			to := &d.sites[k%s.among]
			if class && s.share > 0 && k%s.among >= s.targets {
				scarce, other := to.Count()
				if float64(scarce) >= max(1, math.Round(float64(other)*s.share/(1-s.share))) {
					continue
				}
			}
			add(to, t.Rows[i], class)
		}
	}
	return d, nil
}

func add(to *scarce.Labelled, row []float64, label bool) {
	to.Rows, to.Labels = append(to.Rows, row), append(to.Labels, label)
}
