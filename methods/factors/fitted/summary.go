package fitted

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"parley/figure"
	"parley/method"
)

// modelSummary is the summary as JSON.
type modelSummary struct {
	Format   string           `json:"format"`
	Program  string           `json:"program,omitempty"`
	Method   string           `json:"method"`
	Study    string           `json:"study"`
	Plan     string           `json:"plan_sha256"`
	Seed     uint64           `json:"seed"`
	Options  any              `json:"options"`
	Scaling  string           `json:"scaling"`
	Subjects int              `json:"subjects"`
	Features int              `json:"features"`
	LogLik   *float64         `json:"log_likelihood_per_subject"`
	Factors  []factorJSON     `json:"factors"`
	Views    []viewJSON       `json:"views"`
	Sites    []siteJSON       `json:"sites"`
	Loadings []rankedLoading  `json:"loadings"` // the strongest of each factor
	Rotation *factorRotation  `json:"rotation,omitempty"`
	Adjusted []modelCovariate `json:"covariates,omitempty"`
}

type factorJSON struct {
	Factor   int     `json:"factor"`
	Strength float64 `json:"strength"`
}

type viewJSON struct {
	Name      string         `json:"name"`
	Features  int            `json:"features"`
	Values    float64        `json:"values"`
	Sites     int            `json:"sites"`
	R2        *float64       `json:"r2"`
	R2Each    figure.Numbers `json:"r2_by_factor"`
	LoadingSD *float64       `json:"loading_sd_between_sites"`
	MeanSD    *float64       `json:"mean_sd_between_sites"`
	Shares    figure.Numbers `json:"share_by_factor,omitempty"` // of a rotated model
}

type siteJSON struct {
	Name     string   `json:"name"`
	Subjects int      `json:"subjects"`
	Views    []string `json:"views"`
}

type rankedLoading struct {
	Factor       int      `json:"factor"`
	Rank         int      `json:"rank"`
	View         string   `json:"view"`
	Feature      string   `json:"feature"`
	Unit         string   `json:"unit,omitempty"`
	Standardised float64  `json:"standardised"`
	Scaled       float64  `json:"scaled"`
	Own          *float64 `json:"own"`
	Correlation  *float64 `json:"correlation,omitempty"` // with a correlated factor
}

// Summary implements [method.Summariser].
func (m *Model) Summary(top int) (*method.Account, error) {
	m = m.shown()
	s := modelSummary{
		Format: m.Format, Program: m.Program, Method: m.Method(), Study: m.Study, Plan: m.Plan, Seed: m.Seed,
		Scaling: m.Scaling, LogLik: m.LogLik, Sites: []siteJSON{}, Rotation: m.Rotation, Adjusted: m.Covariates,
	}
	for a, x := range m.Factors {
		s.Factors = append(s.Factors, factorJSON{a + 1, x})
	}
	for _, v := range m.Views {
		s.Features += len(v.Features)
		s.Views = append(s.Views, viewJSON{v.Name, len(v.Features), v.Values, m.sitesWith(v.Name), v.R2, v.R2Each, v.LoadingSD, v.MeanSD, v.shares})
	}
	names := make([]string, len(m.Sites))
	for i, x := range m.Sites {
		s.Subjects += x.Subjects
		s.Sites = append(s.Sites, siteJSON{x.Name, x.Subjects, x.Views})
		names[i] = fmt.Sprintf("%s (%d)", x.Name, x.Subjects)
	}
	loadings := m.loadingTable(max(1, top))
	for i := range loadings.Len() {
		c := loadings.Columns
		r := rankedLoading{Factor: int(c[0].Numbers[i]), Rank: int(c[1].Numbers[i]), View: c[2].Text[i], Feature: c[3].Text[i], Unit: c[4].Text[i],
			Standardised: c[5].Numbers[i], Scaled: c[6].Numbers[i]}
		if own := c[7].Numbers[i]; own == own {
			r.Own = &own
		}
		if len(c) > 8 {
			r.Correlation = &c[8].Numbers[i]
		}
		s.Loadings = append(s.Loadings, r)
	}
	logLik := "not known"
	if m.LogLik != nil {
		logLik = figure.General.Text(*m.LogLik) + " nats, scaled units"
	}
	if m.Published != nil {
		s.Options = m.Published.Options
	}
	rounds, noise := "as published", "view"
	if m.Options != nil {
		rounds = fmt.Sprintf("at most %s", figure.Plural(m.Options.Rounds, "round"))
		s.Options, noise = m.Options, m.Options.Noise
	}
	subjects := "not known: the sites did not release it"
	if len(m.Sites) > 0 {
		subjects = fmt.Sprintf("%d at %s: %s", s.Subjects, figure.Plural(len(m.Sites), "site"), strings.Join(names, ", "))
	}
	account := &method.Account{
		Facts: []figure.Fact{
			{Name: "study", Value: m.Study},
			{Name: "method", Value: m.Method() + ", " + rounds},
			{Name: "format", Value: m.Format},
			{Name: "plan", Value: fmt.Sprintf("%.12s", m.Plan)},
			{Name: "seed", Value: strconv.FormatUint(m.Seed, 10)},
			{Name: "subjects", Value: subjects},
			{Name: "features", Value: fmt.Sprintf("%d in %s", s.Features, figure.Plural(len(m.Views), "view"))},
			{Name: "scaling", Value: m.Scaling + ", noise per " + noise},
			{Name: "log-likelihood", Value: logLik + ", per subject"},
		},
		Tables: m.summaryTables(loadings),
		Notes:  m.verdictNotes(func(*Verdict) bool { return true }),
		Value:  s,
	}
	account.Facts = append(account.Facts, m.adjustedFact()...)
	if m.Rotation != nil {
		account.Facts = append(account.Facts, figure.Fact{Name: "rotation", Value: m.Rotation.Method})
	}
	return account, nil
}

// summaryTables are the tables of the export with words for people.
func (m *Model) summaryTables(loadings figure.Table) []figure.Table {
	factors, views := m.factorTable(), m.viewTable()
	factors.Title = "Factors"
	factors.Caption = "Strength is the eigenvalue of WᵀΨ⁻¹W: how far the factor stands out of the noise. r2 is the share of the view's variance within sites that the factor explains by itself; shares do not add up."
	views.Title = "Views"
	views.Caption = "r2 is for all factors together. Standard deviations between sites are in scaled units; n/a where nothing estimated them, and 0 also where a single site had the view."
	views.Columns[5].Name, views.Columns[6].Name = "loadings between sites", "means between sites"
	loadings.Title = "Strongest loadings"
	loadings.Caption = "Standardised is the correlation of feature and factor. Own is the feature's own unit for one standard deviation of the factor. The sign of a factor is a rule, not a finding."
	if m.Rotation == nil {
		return []figure.Table{factors, views, loadings}
	}
	factors.Caption = "Factors are rotated, in the order of the variance that they account for. Strength is λᵀΨ⁻¹λ of a factor's own loadings. share is the share of the view's variance, as the model describes it, that the factor explains by itself."
	if !m.Rotation.correlated() {
		return []figure.Table{factors, views, loadings}
	}
	factors.Caption += " The factors are correlated, so that shares overlap."
	views.Caption += " The spread of loadings is that before the rotation."
	loadings.Caption = "The factors are correlated: standardised is the coefficient of the feature on the factor with the others held constant, and correlation that of the two. Own is the feature's own unit for one standard deviation of the factor. The sign of a factor is a rule, not a finding."
	return []figure.Table{factors, m.Rotation.correlationTable(), views, loadings}
}

// DrawnFactors is how many factors get pictures of their own; the files have all.
const DrawnFactors = 6

// FactorNames numbers q factors from 1.
func FactorNames(q int) []string {
	names := make([]string, q)
	for a := range names {
		names[a] = fmt.Sprintf("Factor %d", a+1)
	}
	return names
}

// value returns what x points to; NaN if nothing is known.
func value(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

// Number writes x with as many digits as bring it back.
func Number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
