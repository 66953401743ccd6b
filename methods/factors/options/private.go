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
	if slices.Contains([]string{ppca.ScaleStandard, ppca.ScaleView, ppca.ScaleMinMax}, o.Scaling) {
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
	if o.Scaling == ppca.ScaleNone {
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
