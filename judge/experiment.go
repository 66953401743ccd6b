package judge

import (
	"fmt"
	"slices"

	"parley/judge/evaluate"
)

// The parts of an evaluation.
const (
	partFolds = "folds" // hold out some subjects of every site
	partSites = "sites" // hold out one site
)

// experiment is one thing to hold out in one repeat of one scenario.
type experiment struct {
	part          string
	scenario      evaluate.Scenario
	repeat, index int // from 0; index counts folds or sites
}

// String names the experiment for people.
func (x experiment) String() string {
	what := "fold"
	if x.part == partSites {
		what = "without site"
	}
	return fmt.Sprintf("scenario %v, repeat %d, %s %d", x.scenario, x.repeat+1, what, x.index+1)
}

// Key names the experiment for files.
func (x experiment) Key() string {
	return fmt.Sprintf("%s-%s-%03d-%03d", x.part, slug(x.scenario), x.repeat+1, x.index+1)
}

// slug is a scenario's name as people type it.
func slug(sc evaluate.Scenario) string {
	return map[evaluate.Scenario]string{evaluate.IID: "iid", evaluate.G: "g", evaluate.K: "k", evaluate.GK: "gk", evaluate.Column: "column", evaluate.Unequal: "unequal"}[sc]
}

// experiments lists everything to do, repeat by repeat, so that what is left
// is like what was done, and its time can be told.
func (e *evaluation) experiments() []experiment {
	var all []experiment
	for r := range e.Repeats {
		for _, sc := range e.scenarios {
			for f := range e.Folds {
				all = append(all, experiment{partFolds, sc, r, f})
			}
			n := len(e.sitesOf(sc))
			if n < 2 || sc == evaluate.Column && r > 0 {
				continue // real sites stay as they are from repeat to repeat
			}
			for i := range n {
				all = append(all, experiment{partSites, sc, r, i})
			}
		}
	}
	return all
}

func (e *evaluation) sitesOf(sc evaluate.Scenario) []string {
	if sc == evaluate.Column {
		return e.Plan.Sites
	}
	return e.sites
}

// division is who is held out in an experiment, and who of the others is where.
type division struct {
	evaluate.Split
	names  []string // of the sites
	hidden []int    // views that those held out lack
}

// split divides the subjects.
func (e *evaluation) split(x experiment) (*division, error) {
	sites, views := e.sitesOf(x.scenario), len(e.Plan.Views)
	groups, strata := e.groups, e.labels
	if x.scenario == evaluate.Column {
		groups, strata = e.own, make([]string, len(e.own))
		for i := range strata { // folds within each site
			strata[i] = e.own[i] + "\x00" + e.labels[i]
		}
	}
	lacking, err := evaluate.Lacking(x.scenario, len(sites), views)
	if err != nil {
		return nil, err
	}
	d := &division{names: sites, Split: evaluate.Split{Fold: evaluate.Fold{Repeat: x.repeat, Index: x.index}, Sites: len(sites), Lacking: lacking}}
	subjects := e.subjects(groups)
	if x.part == partFolds {
		folds, err := evaluate.FoldsOf(e.subjects(strata), e.Folds, x.repeat, e.Plan.Seed)
		if err != nil {
			return nil, err
		}
		d.Test = folds[x.index].Test
		subjects = slices.DeleteFunc(subjects, func(s evaluate.Subject) bool {
			_, held := slices.BinarySearch(d.Test, s.ID)
			return held
		})
	}
	d.Train, err = e.assign(x, subjects)
	if err != nil || x.part == partFolds {
		return d, err
	}
	return d.without(x.index), nil
}

// assign spreads subjects over the scenario's sites.
func (e *evaluation) assign(x experiment, subjects []evaluate.Subject) ([]evaluate.Placement, error) {
	sites, seed := e.sitesOf(x.scenario), e.Plan.Seed+uint64(x.repeat)
	if x.scenario == evaluate.Unequal {
		return e.scheme.Assign(subjects, sites, seed)
	}
	return evaluate.Assign(subjects, sites, x.scenario, seed)
}

// without holds out a whole site.
func (d *division) without(site int) *division {
	own := &division{Split: d.Split, names: slices.Delete(slices.Clone(d.names), site, site+1), hidden: d.Lacking[site]}
	own.Sites--
	own.Lacking = slices.Delete(slices.Clone(d.Lacking), site, site+1)
	own.Train = nil
	for _, p := range d.Train { // in order of id
		switch {
		case p.Site == site:
			own.Test = append(own.Test, p.ID)
			continue
		case p.Site > site:
			p.Site--
		}
		own.Train = append(own.Train, p)
	}
	return own
}
