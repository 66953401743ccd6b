package study

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"parley/problem"
)

const (
	maxSites   = 1000
	maxViews   = 1000
	maxCodes   = 100 // for missing values, in one list
	maxNameLen = 200 // of features, columns, levels and units, in bytes
)

var (
	namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)
	viewPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$`)
)

const (
	nameHint = "lower-case letters, digits and hyphens, at most 40, beginning with a letter or digit"
	viewHint = "letters, digits, hyphens and underscores, at most 40, beginning with a letter or digit"
)

// checker holds a decoded plan against everything that types do not say.
type checker struct {
	p       *Plan
	methods Methods
	missing func(path string) bool
	report  func(path, what, hint string)
}

// check reports what is wrong with a plan. missing says whether nothing was
// written for a path.
func check(p *Plan, methods Methods, missing func(path string) bool, report func(path, what, hint string)) {
	c := &checker{p, methods, missing, report}
	switch {
	case missing("parley"):
		report("parley", "missing", fmt.Sprintf("the version of the plan format: parley: %d", Version))
	case p.Version != Version:
		report("parley", fmt.Sprintf("version %d of the plan format is unknown", p.Version),
			fmt.Sprintf("this program reads version %d", Version))
	}
	if c.required("name", "a short name for the study, such as alzheimer") {
		c.pattern("name", p.Name, namePattern, nameHint)
	}
	// A question may have several lines.
	c.printable("question", strings.ReplaceAll(p.Question, "\n", " "), len(p.Question))
	c.sites()
	c.views()
	c.method()
	c.privacy()
	if p.Local != nil {
		c.local()
	}
}

func (c *checker) required(path, hint string) bool {
	if c.missing(path) {
		c.report(path, "missing", hint)
		return false
	}
	return true
}

// IsName says whether a text can be the name of a plan or of a site.
func IsName(s string) bool { return namePattern.MatchString(s) }

// IsView says whether a text can be the name of a view.
func IsView(s string) bool { return viewPattern.MatchString(s) }

// IsLabel says whether a text can be the name of a feature or of a subject column.
func IsLabel(s string) bool {
	return s != "" && len(s) <= maxNameLen && strings.TrimSpace(s) == s &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

func (c *checker) pattern(path, s string, pattern *regexp.Regexp, hint string) {
	if !pattern.MatchString(s) {
		c.report(path, fmt.Sprintf("%q cannot be a name", s), hint)
	}
}

// printable demands text that looks the same wherever it is shown.
func (c *checker) printable(path, s string, limit int) bool {
	switch {
	case len(s) > limit:
		c.report(path, fmt.Sprintf("longer than %d bytes", limit), "")
	case strings.TrimSpace(s) != s:
		c.report(path, fmt.Sprintf("%q begins or ends with a space", s), "")
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		c.report(path, fmt.Sprintf("%+q has characters that cannot be printed", s), "")
	default:
		return true
	}
	return false
}

// label demands a name that comes from somebody's table.
func (c *checker) label(path, s string) bool {
	if s == "" {
		c.report(path, "has no name", "")
		return false
	}
	return c.printable(path, s, maxNameLen)
}

// once reports a name that was seen before, and remembers where it stands.
func (c *checker) once(seen map[string]string, path, key, name, where string) {
	if first, ok := seen[key]; ok {
		c.report(path, name+" is named twice", "the first is "+first)
		return
	}
	seen[key] = where
}

// visible reports a name or level that nobody can tell from one before.
func (c *checker) visible(seen map[string]string, path, name string) {
	key := problem.Key(name)
	if first, ok := seen[key]; ok && problem.Confusable(first, name) {
		one, other := problem.Spelt(first, name)
		c.report(path, fmt.Sprintf("%s looks like %s and is another", other, one),
			"write it once, and the same way in the data of all sites; a site's mapping.yaml can do that")
		return
	}
	seen[key] = name
}

func (c *checker) sites() {
	if !c.required("sites", "the names of the sites, such as sites: [north, centre, south]") {
		return
	}
	n := len(c.p.Sites)
	if n < 1 || n > maxSites {
		c.report("sites", fmt.Sprintf("%d sites", n), fmt.Sprintf("from 1 to %d", maxSites))
		return
	}
	seen := map[string]string{}
	for i, name := range c.p.Sites {
		path := fmt.Sprintf("sites[%d]", i)
		c.pattern(path, name, namePattern, nameHint)
		c.once(seen, path, name, "site "+name, fmt.Sprintf("site %d of the list", i+1))
	}
	c.duration("deadline", c.p.Deadline, 1000*time.Hour)
	c.duration("approval_deadline", c.p.ApprovalDeadline, 10000*time.Hour)
	if q := c.p.Quorum; q < 1 || q > n {
		c.report("quorum", fmt.Sprintf("%d contributions cannot come from %d sites", q, n),
			fmt.Sprintf("from 1 to %d", n))
	}
}

func (c *checker) views() {
	if !c.required("views", "a list of views, each with a name and its features") {
		return
	}
	if n := len(c.p.Views); n < 1 || n > maxViews {
		c.report("views", fmt.Sprintf("%d views", n), fmt.Sprintf("from 1 to %d", maxViews))
		return
	}
	views, features, visible := map[string]string{}, map[string]string{}, map[string]string{}
	c.codes("missing", c.p.Missing)
	for k, v := range c.p.Views {
		path := fmt.Sprintf("views[%d]", k)
		if c.required(path+".name", viewHint) {
			c.pattern(path+".name", v.Name, viewPattern, viewHint)
			// Views become files, and some file systems do not know case.
			c.once(views, path+".name", strings.ToLower(v.Name), "view "+v.Name,
				fmt.Sprintf("view %d of the list", k+1))
		}
		c.codes(path+".missing", v.Missing)
		if c.required(path+".features", "a list of the columns of the view") && len(v.Features) == 0 {
			c.report(path+".features", "no features", "a view has at least one")
		}
		for j, f := range v.Features {
			at := fmt.Sprintf("%s.features[%d]", path, j)
			c.feature(at, f)
			c.codes(at+".missing", f.Missing)
			for _, code := range c.p.Codes(k, j) {
				if slices.Contains(f.Levels, code) {
					c.report(at+".levels", fmt.Sprintf("level %s is a code for missing values too", code),
						"either a level, or a code under missing")
				}
			}
			c.column(features, at, f.Name, "feature", "in view "+v.Name)
			c.visible(visible, at, f.Name)
		}
	}
	for i, name := range c.p.Subjects {
		c.column(features, fmt.Sprintf("subjects[%d]", i), name, "column", "in subjects")
		c.visible(visible, fmt.Sprintf("subjects[%d]", i), name)
	}
	seen := map[string]string{}
	for i, name := range c.p.CompleteCases {
		at := fmt.Sprintf("complete_cases[%d]", i)
		if c.once(seen, at, name, "column "+name, "in complete_cases"); !slices.Contains(c.p.Subjects, name) {
			c.report(at, fmt.Sprintf("%q is not under subjects", name),
				"a column of the subjects table that the plan lists there")
		}
	}
}

// column checks the name of a feature or of a column of the subjects table.
// All of them must differ, so that a table with any of them can be read.
func (c *checker) column(seen map[string]string, path, name, what, where string) {
	switch {
	case name == "id":
		c.report(path, "id names the subjects and cannot be a "+what, "")
	case c.label(path, name):
		c.once(seen, path, name, what+" "+name, where)
	}
}

// codes checks the cells that stand for missing values.
func (c *checker) codes(path string, codes []Code) {
	if len(codes) > maxCodes {
		c.report(path, fmt.Sprintf("%d codes", len(codes)), fmt.Sprintf("at most %d", maxCodes))
	}
	seen := map[string]string{}
	for i, code := range codes {
		at := fmt.Sprintf("%s[%d]", path, i)
		if c.label(at, string(code)) {
			c.once(seen, at, string(code), "code "+string(code), fmt.Sprintf("code %d", i+1))
		}
	}
}

func (c *checker) feature(path string, f Feature) {
	switch f.Kind {
	case Number:
		if len(f.Levels) > 0 {
			c.report(path+".levels", "a number has no levels", "for one of a list of values: kind: category")
		}
		if f.Other != "" {
			c.report(path+".other", "a number has no levels", "leave it out")
		}
		if r := f.Range; r != nil && !(r[0] < r[1] && !math.IsInf(r[0], 0) && !math.IsInf(r[1], 0)) {
			c.report(path+".range", fmt.Sprintf("%v is not below %v", r[0], r[1]),
				"the lowest and the highest plausible value, such as [0, 120]")
		}
		c.printable(path+".unit", f.Unit, maxNameLen)
	case Category:
		if f.Range != nil {
			c.report(path+".range", "a category has no range", "")
		}
		if f.Unit != "" {
			c.report(path+".unit", "a category has no unit", "")
		}
		if len(f.Levels) < 2 {
			c.report(path+".levels", fmt.Sprintf("%d levels", len(f.Levels)),
				"a category names at least two, such as levels: [I, II, III]")
		}
		seen, visible := map[string]string{}, map[string]string{}
		for i, level := range f.Levels {
			at := fmt.Sprintf("%s.levels[%d]", path, i)
			c.visible(visible, at, level)
			if c.label(at, level) {
				c.once(seen, at, level, "level "+level, fmt.Sprintf("level %d", i+1))
			}
		}
		if f.Other != "" && !slices.Contains(f.Levels, f.Other) {
			c.report(path+".other", fmt.Sprintf("%q is not one of the levels", f.Other),
				"the level that a level not listed counts as")
		}
	default:
		c.report(path+".kind", fmt.Sprintf("unknown kind %q", f.Kind), "number or category")
	}
}

// Renamed says how a method is named now that plans and policies once named so; empty for others.
func Renamed(method string) string {
	return map[string]string{"mvppca": "factors, or fed-mv-ppca as it was published", "pvi": "regression, or dp-pvi " +
		"as it was published", "graffl": "mixture, or graffl-abc as it was published"}[method]
}

func (c *checker) method() {
	if !c.required("method", "a method with its options, such as name: "+
		strings.Join(c.methods.Names(), " or name: ")) {
		return
	}
	names := c.methods.Names()
	valid := "valid here: " + strings.Join(names, ", ")
	if !c.required("method.name", valid) {
		return
	}
	m := c.p.Method
	if m.Options == nil {
		hint := problem.DidYouMean(m.Name, names, valid)
		if now := Renamed(m.Name); now != "" {
			hint = "name: " + now
		}
		c.report("method.name", fmt.Sprintf("unknown method %q", m.Name), hint)
		return
	}
	if o, ok := m.Options.(Checker); ok {
		o.Check(c.p, func(key, what, hint string) {
			if !strings.HasPrefix(key, "views[") && !strings.HasPrefix(key, "privacy.") {
				key = strings.TrimSuffix("method."+key, ".")
			}
			c.report(key, what, hint)
		})
	}
}

func (c *checker) local() {
	l := c.p.Local
	if !c.missing("local.policy") && l.Policy == "" {
		c.report("local.policy", "empty", "a site policy file, relative to the plan's file")
	}
	if !c.missing("local.stores") && l.Stores == "" {
		c.report("local.stores", "empty", "a folder, relative to the plan's file")
	}
	data, split, sites := !c.missing("local.data"), !c.missing("local.split"), !c.missing("local.sites")
	switch {
	case !data && !split && !sites:
		c.report("local", "names no data", "data and split, or a folder for each site under sites")
	case sites && (data || split):
		c.report("local.sites", "stands beside data or split", "either data and split, or sites")
	case sites:
		c.localSites(l.Sites)
	default:
		if c.required("local.data", "the folder that is split among the sites") && l.Data == "" {
			c.report("local.data", "empty", "a folder, relative to the plan's file")
		}
		if c.required("local.split", "how the data are spread over the sites, such as split: {scenario: IID}") &&
			l.Split != nil {
			c.split(l.Split)
		}
	}
}

func (c *checker) localSites(folders map[string]string) {
	for _, name := range c.p.Sites {
		if _, ok := folders[name]; !ok {
			c.report("local.sites", "no folder for site "+name,
				fmt.Sprintf("add it: %s: FOLDER, relative to the plan's file", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		path := "local.sites." + name
		if !slices.Contains(c.p.Sites, name) {
			c.report(path, "not a site of the plan",
				problem.DidYouMean(name, c.p.Sites, "its sites are "+problem.Names(c.p.Sites)))
		} else if folders[name] == "" {
			c.report(path, "empty", "a folder, relative to the plan's file")
		}
	}
}

func (c *checker) split(s *Split) {
	valid := "one of " + strings.Join(Scenarios, ", ")
	if !c.required("local.split.scenario", valid) {
		return
	}
	scenario := canonicalScenario(s.Scenario)
	if scenario == "" {
		c.report("local.split.scenario", fmt.Sprintf("unknown scenario %q", s.Scenario), valid)
		return
	}
	s.Scenario = scenario
	if (scenario == "K" || scenario == "G/K") && len(c.p.Views) > 0 && len(c.p.Views) < 3 {
		c.report("local.split.scenario", fmt.Sprintf("%s takes the second and the third view away from some sites, "+
			"but there are %d views", scenario, len(c.p.Views)), "IID or G")
	}
	if scenario == "G" || scenario == "G/K" || scenario == "column" || scenario == "unequal" {
		c.required("local.split.by", "a column of the subjects table, which scenario "+scenario+" goes by")
	}
	c.unequal(s)
	if scenario != "column" && scenario != "unequal" && !c.missing("local.split.unused") {
		c.report("local.split.unused", "means nothing here", "scenario: column or unequal, or leave it out")
	}
	for i, level := range s.Unused {
		if slices.Contains(c.p.Sites, level) {
			c.report(fmt.Sprintf("local.split.unused[%d]", i), fmt.Sprintf("%s is a site of the plan", level),
				"levels whose subjects no site is given")
		}
	}
	if scenario == "column" && !c.missing("local.split.seed") {
		c.report("local.split.seed", "has no effect", "scenario column leaves nothing to chance")
	}
}

// unequal checks what scenario unequal alone may have, and must.
func (c *checker) unequal(s *Split) {
	scheme, rho, kappa := !c.missing("local.split.scheme"), !c.missing("local.split.rho"),
		!c.missing("local.split.kappa")
	if s.Scenario != "unequal" {
		for _, key := range []string{"scheme", "rho", "kappa"} {
			if path := "local.split." + key; !c.missing(path) {
				c.report(path, "means nothing here", "scenario: unequal, or leave it out")
			}
		}
		return
	}
	if n := len(c.p.Sites); n%2 != 0 {
		c.report("local.split.scenario", fmt.Sprintf("unequal makes half of the sites small and half large, but there "+
			"are %d", n), "an even number of sites")
	}
	switch {
	case !scheme && !rho && !kappa:
		c.report("local.split", "does not say how far sites differ",
			"rho and kappa, such as rho: 0.75, kappa: 0.95, or a scheme: "+strings.Join(Schemes, ", "))
	case scheme && (rho || kappa):
		c.report("local.split.scheme", "stands beside rho or kappa", "either a scheme, or rho and kappa")
	case scheme && !slices.Contains(Schemes, s.Scheme):
		c.report("local.split.scheme", fmt.Sprintf("unknown scheme %q", s.Scheme),
			"one of "+strings.Join(Schemes, ", "))
	}
	if !(s.Rho >= 0 && s.Rho < 1) {
		c.report("local.split.rho", fmt.Sprintf("%v is out of range", s.Rho),
			"from 0 (sites of equal size) to below 1 (small sites would have nobody)")
	}
	if !(s.Kappa <= 1) || math.IsInf(s.Kappa, -1) {
		c.report("local.split.kappa", fmt.Sprintf("%v is out of range", s.Kappa),
			"at most 1 (small sites have the larger class alone); 0 for classes as everywhere, below 0 for more of "+
				"the smaller class")
	}
}

// canonicalScenario returns the scenario as Scenarios writes it, "" if unknown.
func canonicalScenario(name string) string {
	for _, s := range Scenarios {
		if strings.EqualFold(name, s) || strings.EqualFold(name, strings.ReplaceAll(s, "/", "")) {
			return s
		}
	}
	return ""
}
