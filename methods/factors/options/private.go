package options

import (
	"fmt"
	"slices"

	"parley/problem"
	"parley/study"
)

// Patterns are the sets of views that subjects can have: a public fact of private plans, because
// what a site releases depends on it and on nothing that its subjects turn out to have. What
// a pattern calls for is noised and sent even if nobody has it.
type Patterns []pattern

type pattern struct {
	// Site is where subjects can have it; without one, every site that no pattern names.
	Site  string   `json:"site,omitempty"`
	Views []string `json:"views,omitempty"`
}

// At returns the patterns of a site in the plan's order, each as rising indices of the plan's views: one of all views
// where the plan states none. What is summed over sites is of the same sets at each: of all that the plan states.
func (all Patterns) At(p *study.Plan, site string) (patterns [][]int) {
	summed := p.Privacy.Secure()
	if !slices.ContainsFunc(all, func(one pattern) bool { return one.Site == site }) {
		site = "" // not named
	}
	for _, one := range all {
		if one.Site != site && !summed {
			continue
		}
		var views []int
		for k, v := range p.Views {
			if slices.Contains(one.Views, v.Name) {
				views = append(views, k)
			}
		}
		same := func(other []int) bool { return slices.Equal(other, views) }
		if summed && (len(views) == 0 || slices.ContainsFunc(patterns, same)) {
			continue
		}
		patterns = append(patterns, views)
	}
	if patterns == nil {
		whole := make([]int, len(p.Views))
		for k := range whole {
			whole[k] = k
		}
		patterns = [][]int{whole}
	}
	return patterns
}

// sites is how many sites can have a set of views.
func (all Patterns) sites(p *study.Plan, views []string) (n int) {
	for _, site := range p.Sites {
		named := slices.ContainsFunc(all, func(one pattern) bool { return one.Site == site })
		if slices.ContainsFunc(all, func(one pattern) bool {
			return sameViews(one.Views, views) && (one.Site == site || one.Site == "" && !named)
		}) {
			n++
		}
	}
	return n
}

// Counts says whether a subject with these views, nil where it has none, has one of the
// patterns of its site.
func Counts(patterns [][]int, views [][]float64) bool {
	return slices.ContainsFunc(patterns, func(pattern []int) bool {
		return !slices.ContainsFunc(pattern, func(k int) bool { return views[k] == nil })
	})
}

// Views returns the views that a site holds, by the plan: those of its patterns.
func (all Patterns) Views(p *study.Plan, site string) []int {
	views := slices.Concat(all.At(p, site)...)
	slices.Sort(views)
	return slices.Compact(views)
}

// Check demands that every pattern can occur, and every view at some site.
func (all Patterns) Check(p *study.Plan, report study.Report) {
	for i, x := range all {
		at := fmt.Sprintf("patterns[%d]", i)
		if x.Site != "" && !slices.Contains(p.Sites, x.Site) {
			report(at+".site", fmt.Sprintf("%q is not a site of the plan", x.Site), "one of "+problem.Names(p.Sites))
		}
		if len(x.Views) == 0 {
			report(at+".views", "no views", "leave out subjects without any")
		}
		for j, name := range x.Views {
			key := fmt.Sprintf("%s.views[%d]", at, j)
			switch {
			case !slices.ContainsFunc(p.Views, func(v study.View) bool { return v.Name == name }):
				report(key, fmt.Sprintf("%q is not a view of the plan", name), "")
			case slices.Contains(x.Views[:j], name):
				report(key, fmt.Sprintf("view %s is named twice", name), "")
			}
		}
		if slices.ContainsFunc(all[:i], func(y pattern) bool {
			return y.Site == x.Site && sameViews(x.Views, y.Views)
		}) {
			report(at+".views", "the same set of views is stated twice", "each once for a site")
		}
		if x.Site == "" && !slices.ContainsFunc(p.Sites, func(site string) bool {
			return !slices.ContainsFunc(all, func(y pattern) bool { return y.Site == site })
		}) {
			report(at, "no subject can have it: every site has patterns of its own", "leave it out, or name a site")
		}
	}
	held := map[int]bool{}
	for _, site := range p.Sites {
		for _, k := range all.Views(p, site) {
			held[k] = true
		}
	}
	for k, v := range p.Views {
		if len(p.Sites) > 0 && !held[k] {
			report("patterns", fmt.Sprintf("no subject can have view %s", v.Name),
				"leave the view out of the plan, or state who has it")
		}
	}
}

// sameViews says whether two lists name the same views, in any order.
func sameViews(a, b []string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(name string) bool { return !slices.Contains(b, name) })
}

// MechanismStatistics releases noised sufficient statistics of the site's subjects once; all
// fitting is the coordinator's.
const MechanismStatistics = "statistics"

// checkMechanism holds the mechanism against the plan's privacy and the other options.
func (o *Options) checkMechanism(p *study.Plan, report study.Report) {
	if !p.Privacy.Differential() {
		if o.Mechanism != "" {
			report("mechanism", "noises releases, and the plan has no differential protection",
				"privacy: {protection: differential, …}, or leave it out")
		}
		report.Absent("belongs to private plans, and the plan has no differential protection",
			"privacy: {protection: differential, …}, or leave it out",
			map[string]bool{"patterns": o.Patterns != nil && !p.Privacy.Secure()})
		o.Patterns.Check(p, report)
		return
	}
	if o.Mechanism != MechanismStatistics {
		report("mechanism", fmt.Sprintf("%q is not known", o.Mechanism), MechanismStatistics+
			"; difference-clipping is what name: fed-mv-ppca does")
		return
	}
	o.Patterns.Check(p, report)
	if slices.Contains([]string{ScaleStandard, ScaleView, ScaleMinMax}, o.Scaling) {
		report("scaling", fmt.Sprintf("%q takes the scale from the subjects' values, which mechanism %q does not "+
			"protect", o.Scaling, o.Mechanism),
			"range, with the range of every feature in the plan")
	}
}

// checkStatistics holds the options against one release and no rounds.
func (o *Options) checkStatistics(p *study.Plan, report study.Report) {
	report.Absent(fmt.Sprintf("has no meaning for mechanism %q: sites release three sums, and all fitting is the "+
		"coordinator's", MechanismStatistics), "leave it out",
		map[string]bool{"rounds": o.Rounds != 0, "site_means": o.SiteMeans != "", "outliers": o.Outliers != ""})
	if o.Scaling == ScaleNone {
		report("scaling", fmt.Sprintf("mechanism %q clips values to their public ranges", MechanismStatistics),
			"range, with the range of every feature in the plan")
	}
	if p.Privacy.Total == nil && p.Privacy.PerRelease != nil {
		report("mechanism", fmt.Sprintf("%q splits a total over what it releases", MechanismStatistics),
			"privacy.total instead of privacy.per_release")
	}
	if p.Privacy.Diagnostics > 0 {
		report("privacy.diagnostics", "factors spends nothing on it: its report says what the known noise leaves of "+
			"predictions", "leave it out")
	}
	if p.Privacy.Unit == study.UnitSite {
		report("mechanism", fmt.Sprintf("%q protects single subjects, not a site as a whole", MechanismStatistics),
			"privacy.unit: subject, or name: fed-mv-ppca, whose noise hides whole sites")
	}
}

// BeyondRange implements [study.RangeTeller]: noised statistics are of values within the ranges. A
// scaling by ranges alone moves nothing to their ends.
func (o *Options) BeyondRange(*study.Plan) string {
	if o.Mechanism == MechanismStatistics {
		return study.RangeEnds
	}
	return study.RangeAsIs
}
