package options

import (
	"fmt"
	"slices"

	"parley/methods/factors/ppca"
	"parley/study"
)

// MechanismStatistics releases noised sufficient statistics of the site's subjects once; all
// fitting is the coordinator's.
const MechanismStatistics = "statistics"

// checkPrivate holds the options against the plan's privacy.
func (o *Options) checkPrivate(p *study.Plan, report study.Report) {
	o.Patterns.Check(p, report)
	if o.Mechanism == "" {
		report.Absent("belongs to private plans, and to those of one population",
			"site_means: pooled and scaling: standard or view; differential protection; or leave it out",
			map[string]bool{"patterns": o.Patterns != nil && !o.OnePopulation()})
		return
	}
	report.Absent("has no meaning in a private plan: sites release three sums, and all fitting is the coordinator's",
		"leave it out",
		map[string]bool{"rounds": o.Rounds != 0, "site_means": o.SiteMeans != "", "outliers": o.Outliers != ""})
	if o.Scaling != ppca.ScaleRange && slices.Contains(ppca.Scalings, o.Scaling) {
		report("scaling", fmt.Sprintf("%q is of the subjects' values, which a private plan clips to public ranges",
			o.Scaling), "range, with the range of every feature in the plan")
	}
	if p.Privacy.Total == nil && p.Privacy.PerRelease != nil {
		report("privacy.per_release", "factors splits a total over what it releases", "privacy.total in its place")
	}
	if p.Privacy.Diagnostics > 0 {
		report("privacy.diagnostics", "factors spends nothing on it: its report says what the known noise leaves of "+
			"predictions", "leave it out")
	}
	if p.Privacy.Unit == study.UnitSite {
		report("privacy.unit", "factors protects single subjects, not a site as a whole",
			"subject, or name: fed-mv-ppca, whose noise hides whole sites")
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
