package judge

import (
	"fmt"
	"strings"

	"parley/internal/version"
	"parley/judge/evaluate"
)

// store keeps records.
type store = Store[foldRecord]

// EvaluationSettings are what an experiment's outcome depends on. Repeats and scenarios
// are not among them: more of them may be asked for later.
type EvaluationSettings struct {
	Program string   `json:"program"`
	Study   string   `json:"study"`
	Plan    string   `json:"plan_sha256"`
	Data    string   `json:"data_sha256"`
	Folds   int      `json:"folds"`
	Sites   []string `json:"sites"`            // simulated, or real
	Groups  string   `json:"groups"`           // the column that G and G/K divide by
	Label   string   `json:"label"`            // the column that folds are stratified by: what is told apart in latent space, or predicted
	Scheme  string   `json:"scheme,omitempty"` // how far unequal sites differ
	Unused  []string `json:"unused,omitempty"` // values of the column of groups, of which nobody is at a site
}

func (e *evaluation) settings() (*EvaluationSettings, error) {
	digest, err := e.Plan.Digest()
	if err != nil {
		return nil, err
	}
	s := &EvaluationSettings{
		Program: "parley " + version.Number, Study: e.Plan.Name, Plan: digest.String(), Data: e.fingerprint,
		Folds: e.Folds, Sites: e.sites, Groups: e.groupColumn, Label: e.Label,
	}
	if e.scheme != nil {
		s.Scheme = e.scheme.String()
	}
	if split := e.Plan.Local.Split; split != nil {
		s.Unused = split.Unused
	}
	return s, nil
}

// Differs names what another evaluation was made with, or returns "".
func (s *EvaluationSettings) Differs(old *EvaluationSettings) string {
	for _, c := range []struct{ what, was, is string }{
		{"program", old.Program, s.Program},
		{"plan", fmt.Sprintf("%.12s", old.Plan), fmt.Sprintf("%.12s", s.Plan)},
		{"data", fmt.Sprintf("%.12s", old.Data), fmt.Sprintf("%.12s", s.Data)},
		{"folds", fmt.Sprint(old.Folds), fmt.Sprint(s.Folds)},
		{"sites", strings.Join(old.Sites, " "), strings.Join(s.Sites, " ")},
		{"column of groups", old.Groups, s.Groups},
		{"label", old.Label, s.Label},
		{"local.split of unequal sites", old.Scheme, s.Scheme},
		{"local.split.unused", strings.Join(old.Unused, " "), strings.Join(s.Unused, " ")},
	} {
		if c.was != c.is {
			return fmt.Sprintf("%s %s, not %s", c.what, c.was, c.is)
		}
	}
	return ""
}

// foldRecord is what came of one experiment.
type foldRecord struct {
	Scores      map[string]evaluate.Marks        `json:"scores"`                // by fit
	Calibration map[string]*evaluate.Calibration `json:"calibration,omitempty"` // by fit, of classes
	// Home is by fit and site: of those held out of the site alone, where one site alone is
	// that site. Of features, "" is all of these together.
	Home   map[string]map[string]evaluate.Marks `json:"home,omitempty"`
	Failed map[string]string                    `json:"failed,omitempty"` // why a fit could not be made, or not at every site
}

func (r *foldRecord) add(fit string, s *scored) {
	r.Scores[fit] = s.marks
	if s.home != nil {
		if r.Home == nil {
			r.Home = map[string]map[string]evaluate.Marks{}
		}
		r.Home[fit] = s.home
		if s.beside != nil {
			r.Home[Federated] = s.beside
		}
	}
	if s.calibration == nil {
		return
	}
	if r.Calibration == nil {
		r.Calibration = map[string]*evaluate.Calibration{}
	}
	r.Calibration[fit] = s.calibration
}

// against is what a fit is compared with: the federated fit, where it was asked about
// the same subjects.
func (r *foldRecord) against(fit string) evaluate.Marks {
	if same, ok := r.Home[Federated][everySite]; ok && fit == Alone {
		return same
	}
	return r.Scores[Federated]
}

// at is what is known of those held out of one site.
func (r *foldRecord) at(site string) *foldRecord {
	own := &foldRecord{Scores: map[string]evaluate.Marks{}}
	for fit, sites := range r.Home {
		if marks, ok := sites[site]; ok {
			own.Scores[fit] = marks
		}
	}
	return own
}
