package judge

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"parley/figure"
	"parley/judge/evaluate"
	"parley/problem"
)

// Evaluation is what came of it.
type Evaluation struct {
	EvaluationSettings
	Subjects int       `json:"subjects"`
	Repeats  int       `json:"repeats"`
	Level    float64   `json:"level"` // of predictive intervals, and of those of means and differences
	Results  []Summary `json:"results"`
	// Calibrations are of all experiments of a part together; of classes only.
	Calibrations []Calibrated `json:"calibration,omitempty"`
	Notes        []string     `json:"notes"` // what was left out, and why

	judge   judge
	views   []string
	plan    string // question of the plan
	promise string // of a private plan
}

// Summary is one measure of one fit over the experiments of a part.
type Summary struct {
	Part     string `json:"part"`     // folds: some subjects of every site are held out; sites: one site is
	Scenario string `json:"scenario"` // as it is typed
	// that is held out, or whose subjects are; of all if empty. "all sites": each asked about its own
	Site    string  `json:"site,omitempty"`
	Fit     string  `json:"fit"`
	Measure string  `json:"measure"`
	View    string  `json:"view,omitempty"` // all if empty
	N       int     `json:"n"`              // experiments
	Mean    float64 `json:"mean"`
	// too far from what was observed for its size to mean anything; people read these words
	FarOff bool     `json:"far_off,omitempty"`
	SD     *float64 `json:"sd"` // between experiments; null of one
	// Interval is for the mean. Experiments share subjects, and it allows for
	// that; see [evaluate.Paired]. Null of one experiment.
	Interval *[2]float64 `json:"interval"`
	// Difference is the fit minus the federated fit in the same experiments.
	Difference *Difference `json:"minus_federated,omitempty"`
}

// Calibrated is expected against observed frequency of a fit's predictions for all who
// were held out, each as often as they were.
type Calibrated struct {
	Part     string               `json:"part"`
	Scenario string               `json:"scenario"`
	Fit      string               `json:"fit"`
	Bins     evaluate.Calibration `json:"bins"`
}

// Difference compares two fits.
type Difference struct {
	Mean     float64    `json:"mean"`
	Interval [2]float64 `json:"interval"`
	Lower    int        `json:"lower"` // experiments in which the fit's value is below the federated one's
	Higher   int        `json:"higher"`
	Equal    int        `json:"equal"`
}

// allSites is the site of summaries over all sites where one site alone is asked about its
// own subjects, and the federated fit about the same.
const allSites = "all sites"

// Find returns the summary of a measure over all sites, or nil.
func (ev *Evaluation) Find(part, scenario, fit, measure, view string) *Summary {
	return ev.find(part, scenario, "", fit, measure, view)
}

func (ev *Evaluation) find(part, scenario, site, fit, measure, view string) *Summary {
	i := slices.IndexFunc(ev.Results, func(s Summary) bool {
		return s.Part == part && s.Scenario == scenario && s.Site == site && s.Fit == fit && s.Measure == measure &&
			s.View == view
	})
	if i < 0 {
		return nil
	}
	return &ev.Results[i]
}

// group is the experiments that are summarised together.
type group struct {
	part     string
	scenario evaluate.Scenario
}

// summarise reads what is stored, in order. Of every experiment it holds only
// the scores.
func (e *evaluation) summarise(all []experiment, kept *store) (*Evaluation, error) {
	out := &Evaluation{Subjects: e.rows.Len(), Repeats: e.Repeats, Level: Level, Results: []Summary{},
		Notes: []string{}, judge: e.judge, plan: e.Plan.Question, promise: e.promise}
	for _, v := range e.Plan.Views {
		out.views = append(out.views, v.Name)
	}
	for _, n := range e.notes {
		out.Notes = append(out.Notes, n.Error())
	}
	for _, sc := range e.scenarios {
		for _, part := range []string{partFolds, partSites} {
			sites := e.sitesOf(sc)
			var some []experiment
			var records []*foldRecord
			for _, x := range all {
				if x.part != part || x.scenario != sc {
					continue
				}
				r, err := kept.Get(x.Key())
				if err != nil {
					return nil, err
				}
				some, records = append(some, x), append(records, r)
			}
			if len(some) == 0 {
				continue
			}
			out.failures(part, sc, records)
			out.calibrate(part, sc, records)
			out.group(group{part, sc}, "", records, len(sites), e.Folds)
			for i := 0; part == partSites && i < len(sites); i++ {
				var at []*foldRecord
				for n, x := range some {
					if x.index == i {
						at = append(at, records[n])
					}
				}
				out.group(group{part, sc}, sites[i], at, len(sites), e.Folds)
			}
			if part != partFolds {
				continue
			}
			for _, name := range append([]string{everySite}, sites...) {
				var at []*foldRecord
				for _, r := range records {
					at = append(at, r.at(name))
				}
				out.group(group{part, sc}, cmp.Or(name, allSites), at, len(sites), e.Folds)
			}
		}
	}
	return out, nil
}

// calibrate pools what predictions came to.
func (ev *Evaluation) calibrate(part string, sc evaluate.Scenario, records []*foldRecord) {
	for _, fit := range ev.judge.names() {
		c, some := Calibrated{Part: part, Scenario: slug(sc), Fit: fit}, false
		for _, r := range records {
			if own := r.Calibration[fit]; own != nil {
				c.Bins.Merge(own)
				some = true
			}
		}
		if some {
			ev.Calibrations = append(ev.Calibrations, c)
		}
	}
}

// failures notes which fits are missing.
func (ev *Evaluation) failures(part string, sc evaluate.Scenario, records []*foldRecord) {
	for _, fit := range ev.judge.names() {
		n, why := 0, ""
		for _, r := range records {
			if text, ok := r.Failed[fit]; ok {
				if n++; n == 1 {
					why, _, _ = strings.Cut(text, "\n")
				}
			}
		}
		if n > 0 {
			p := problem.Problem{Where: "scenario " + sc.String() + ", " + partTitle[part] + ", " + fit,
				What: figure.Plural(n, "experiment") + " of " + figure.Plural(len(records), "experiment") +
					" lack a fit, first because: " + why}
			ev.Notes = append(ev.Notes, p.Error())
		}
	}
}

// group summarises every measure of every fit.
func (ev *Evaluation) group(g group, site string, records []*foldRecord, sites, folds int) {
	// Test rows over training rows: one fold over the others, one site over the others.
	overlap := 1 / float64(folds-1)
	if g.part == partSites {
		overlap = 1 / float64(sites-1)
	}
	for _, fit := range ev.judge.names() {
		add := func(measure, view string) {
			name := measure
			if view != "" {
				name += "/" + view
			}
			var x, a, b []float64
			for _, r := range records {
				v, ok := r.Scores[fit][name]
				if !ok {
					continue
				}
				x = append(x, v)
				if w, ok := r.against(fit)[name]; ok {
					a, b = append(a, v), append(b, w)
				}
			}
			if len(x) == 0 {
				return
			}
			s := Summary{Part: g.part, Scenario: slug(g.scenario), Site: site, Fit: fit, Measure: measure, View: view,
				N: len(x), Mean: stat.Mean(x, nil)}
			s.FarOff = ev.judge.farOff(measure, s.Mean)
			if d, err := evaluate.Paired(x, make([]float64, len(x)), Level, overlap); err == nil {
				sd := math.Sqrt(stat.Variance(x, nil))
				s.SD, s.Interval = &sd, &[2]float64{d.Low, d.High}
			}
			if d, err := evaluate.Paired(a, b, Level, overlap); err == nil && fit != Federated {
				s.Difference = &Difference{d.Mean, [2]float64{d.Low, d.High}, d.Wins, d.Losses, d.Ties}
			}
			ev.Results = append(ev.Results, s)
		}
		for _, m := range ev.judge.measures() {
			add(m.name, "")
			for i := 0; m.views && i < len(ev.views); i++ {
				add(m.name, ev.views[i])
			}
		}
	}
}
