// Package gaps measures what sites of very unequal size, whose subjects lack views and cells,
// cost the factor model. What sites say in one exchange and in two, with and without offsets of
// the sites, is held against fits to all rows in one place by another program
// (papers/reference/central.c) and against simpler rivals: on rows held out at the same sites, and
// at sites that took no part. And it counts how often the rule of a study finds the means of
// sites to differ, which may be shifted.
package gaps

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"parley/dataset"
	"parley/figure"
	"parley/papers/deal"
	"parley/papers/experiment"
)

const (
	factors = 5
	missing = 0.02 // of the cells, beside whole views
	tries   = 10   // cuts on which the rule for means of their own is tried
)

// source is a data set, and how often it is cut.
type source struct {
	name string
	cuts int
}

// line is one row of a table before it is cut.
type line struct {
	source
	sites      int
	perFeature bool
	shift      float64 // standard deviation of what is added to every feature of a site, in those of the features
}

func lines(sources []source) (all []line) {
	for _, s := range sources {
		for _, sites := range []int{5, 15, 34} {
			for _, perFeature := range []bool{true, false} {
				for _, shift := range []float64{0, 0.5} {
					all = append(all, line{s, sites, perFeature, shift})
				}
			}
		}
	}
	return all
}

func (l line) noise() string {
	if l.perFeature {
		return "feature"
	}
	return "view"
}

func (l line) id(what string, seed int) string {
	return experiment.Slug(fmt.Sprintf("%s %s %d %s %v %d", what, l.name, l.sites, l.noise(), l.shift, seed))
}

const (
	comparison = "ways"
	rule       = "rule"
)

// Experiments are those of this package.
func Experiments() experiment.List {
	return experiment.List{
		of("parley-gaps", "Small sites with gaps", source{"adcsf", 3}),
		of("parley-gaps-more", "Small sites with gaps, other data", source{"brca", 2}, source{"mfeat", 1}, source{"pseudo-adni", 3}),
	}
}

func of(name, item string, sources ...source) experiment.Experiment {
	all := lines(sources)
	x := experiment.Experiment{Name: name, Paper: "parley", Item: item,
		About: fmt.Sprintf("Rows are cut into sites of log-normal sizes. Sites lack views at rates of their own, and subjects %v %% of the cells. Every fifth site takes no part, and a fifth of the rows of the others is held out. "+
			"Central fits are by `papers/reference/central.c`, which needs a C compiler. Of its own starts and the fit of two exchanges it keeps the one that becomes likeliest.", 100*missing),
		Cells: func(quick bool) (cells []experiment.Cell) {
			for _, l := range all {
				if quick && (l.sites > 5 || l.shift > 0 || l.perFeature || l.name != "adcsf" && l.name != "mfeat") {
					continue
				}
				for seed := range l.cuts {
					if quick && seed > 0 {
						continue
					}
					cells = append(cells, experiment.Cell{ID: l.id(comparison, seed), Run: func(ctx context.Context, at experiment.Data) (experiment.Values, error) {
						return l.compare(ctx, at, seed)
					}})
				}
				if l.name != "adcsf" || !l.perFeature || quick {
					continue
				}
				for seed := range tries {
					cells = append(cells, experiment.Cell{ID: l.id(rule, seed), Run: func(ctx context.Context, at experiment.Data) (experiment.Values, error) {
						c, err := l.cut(ctx, at, seed)
						if err != nil {
							return nil, err
						}
						differs, err := c.differs(factors)
						if err != nil {
							return nil, err
						}
						return experiment.Values{rule: {map[bool]float64{true: 1}[differs]}}, nil
					}})
				}
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion { return conclude(o, all) },
	}
	for _, s := range sources {
		x.Data = append(x.Data, s.name)
	}
	return x
}

func (l line) cut(ctx context.Context, at experiment.Data, seed int) (*cut, error) {
	folder, err := at.Folder(l.name)
	if err != nil {
		return nil, err
	}
	var rows *dataset.Table
	if rows, err = deal.Open(ctx, folder); err != nil {
		return nil, err
	}
	return newCut(ctx, rows, division{sites: l.sites, seed: uint64(seed), cells: missing, shift: l.shift, perFeature: l.perFeature})
}

// compare fits all ways to a cut, but without the central ones in a quick run, which asks for
// no compiler.
func (l line) compare(ctx context.Context, at experiment.Data, seed int) (experiment.Values, error) {
	c, err := l.cut(ctx, at, seed)
	if err != nil {
		return nil, err
	}
	peer, done := "", func() {}
	if !at.Quick {
		if peer, done, err = build(ctx, filepath.Join(at.Clone, "papers", "reference", "central.c")); err != nil {
			return nil, err
		}
	}
	defer done()
	scores, err := c.compare(ctx, peer, factors)
	if err != nil {
		return nil, err
	}
	v := experiment.Values{}
	for _, s := range scores {
		for i, x := range s.all() {
			if !math.IsNaN(x) {
				v[s.name+", "+measures[i]] = []float64{x}
			}
		}
	}
	return v, nil
}

// measures name the numbers of a [score].
var measures = []string{"nats a row, training", "held out", "error", "within 50 %", "90 %", "95 %", "other sites", "their error", "their 50 %", "their 90 %", "their 95 %", "numbers a site"}

const (
	ofTraining, ofHeldOut = 0, 1 // of the measures
)

func (s score) all() []float64 {
	return []float64{s.train, s.seen.nats, s.seen.error, s.seen.cover[0], s.seen.cover[1], s.seen.cover[2], s.unseen.nats, s.unseen.error, s.unseen.cover[0], s.unseen.cover[1], s.unseen.cover[2], s.numbers}
}

// What two exchanges may be behind the central fit, in nats a row.
const (
	trainingBehind = 0.1
	heldOutBehind  = 0.5
)

func conclude(o experiment.Outcomes, all []line) (c experiment.Conclusion) {
	t := figure.Table{ID: "ways", Title: "Ways to fit",
		Caption: "Means over cuts, in nats for each row and standard deviations of the features. An error is of a hidden view, and a share is of its cells within intervals of 50, 90 and 95 %.",
		Columns: figure.TextColumns(append([]string{"data", "sites", "noise", "shift", "cuts", "model"}, measures...)...)}
	found := figure.Table{ID: "rule", Title: "Whether the means of sites differ", Caption: fmt.Sprintf("In how many of %d cuts the rule of a study says so, with noise for each feature.", tries),
		Columns: figure.TextColumns("data", "sites", "shift", "means differ")}
	for _, l := range all {
		var cuts []experiment.Values
		for seed := range l.cuts {
			if v := o[l.id(comparison, seed)]; v != nil {
				cuts = append(cuts, v)
				for _, b := range broken(v) {
					c.Broken = append(c.Broken, fmt.Sprintf("%s, cut %d: %s", l.id(comparison, seed), seed, b))
				}
			}
		}
		for _, way := range ways {
			row := []any{l.name, fmt.Sprint(l.sites), l.noise(), fmt.Sprint(l.shift), fmt.Sprint(len(cuts)), way}
			known := false
			for i, m := range measures {
				sum, n := 0.0, 0.0
				for _, v := range cuts {
					for _, x := range v[way+", "+m] {
						sum, n = sum+x, n+1
					}
				}
				known = known || n > 0
				row = append(row, shown(sum/n, decimals[i]))
			}
			if known {
				t.Add(row...)
			}
		}
		if l.name == "adcsf" && l.perFeature {
			n := 0.0
			for seed := range tries {
				for _, x := range o[l.id(rule, seed)][rule] {
					n += x
				}
			}
			found.Add(l.name, fmt.Sprint(l.sites), fmt.Sprint(l.shift), fmt.Sprintf("%v of %d", n, tries))
		}
	}
	c.Tables = []figure.Table{t}
	if found.Len() > 0 {
		c.Tables = append(c.Tables, found)
	}
	return c
}

var decimals = []int{3, 3, 4, 3, 3, 3, 3, 4, 3, 3, 3, 0}

// broken are the bars that a cut misses.
func broken(v experiment.Values) (all []string) {
	for _, bar := range []struct {
		ours, theirs string
		measure      int
		behind       float64
	}{{twoExchanges, central, ofTraining, trainingBehind}, {twoExchanges, central, ofHeldOut, heldOutBehind}, {withOffsets, centralMeans, ofHeldOut, heldOutBehind}} {
		a, b := v[bar.ours+", "+measures[bar.measure]], v[bar.theirs+", "+measures[bar.measure]]
		if len(a) > 0 && len(b) > 0 && !(a[0] >= b[0]-bar.behind) {
			all = append(all, fmt.Sprintf("%s has %s nats, and %s %s (%s)", bar.ours, shown(a[0], 3), bar.theirs, shown(b[0], 3), measures[bar.measure]))
		}
	}
	return all
}

// shown is a number of a table, – where there is none.
func shown(x float64, decimals int) string {
	if math.IsNaN(x) {
		return "–"
	}
	return strings.Replace(fmt.Sprintf("%.*f", decimals, x), "-", "−", 1)
}
