package halves

import (
	"encoding/json"
	"fmt"
	"math"

	"parley/figure"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/moments"
	"parley/methods/factors/report"
	"parley/privacy"
)

// ReleasedName is the file of a result that holds what the sites released under
// [options.MechanismStatistics].
const ReleasedName = "model/released.json"

// ReleasedFormat names the format of that file and its version.
const ReleasedFormat = "parley/mvppca-released/3"

// releasedFile is the noised sums as they left the sites. Everything that is
// computed from them, by whomever, is covered by the study's guarantee.
type releasedFile struct {
	Format string              `json:"format"`
	Plan   string              `json:"plan_sha256"`
	Coarse []moments.Whitening `json:"coarse_lenses"`
	Fine   []moments.Whitening `json:"fine_lenses"`
	Sites  []releasedOfASite   `json:"sites"`
}

type releasedOfASite struct {
	Site     string         `json:"site"`
	Overview privacy.Noised `json:"overview"`
	Coarse   privacy.Noised `json:"coarse"` // a block per pattern of the site, in the plan's order
	Fine     privacy.Noised `json:"fine"`
}

// noisedResult is the result where the sites released noised statistics.
func (c Coordinator) noisedResult(s *State, m *fitted.Model, files []method.File) (*method.Result, error) {
	sites, releases, err := c.releases(&s.Noised)
	if err != nil {
		return nil, err
	}
	guided := s.Noised.Whitenings
	out := releasedFile{Format: ReleasedFormat, Plan: m.Plan, Coarse: guided[0], Fine: guided[1]}
	for _, name := range sites {
		sums := s.Noised.Released[name]
		out.Sites = append(out.Sites, releasedOfASite{name, *sums[0], *sums[1], *sums[2]})
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", ReleasedName, err)
	}
	subjects, noise := subjectsOf(releases...)
	differences := report.AndAmongSites
	if len(releases) < 2 {
		differences = report.OfOneSite
	}
	r := report.Described(c.Frame, m, append(files, method.File{Name: ReleasedName, Data: append(data, '\n')}),
		s.Noised.Pooled, figure.Fact{Name: "subjects at " + figure.Plural(len(releases), "site") + ", noised",
			Value: countText(subjects, noise)}, differences, report.SureOfNoised)
	r.Metrics["subjects_noised"], r.Metrics["subjects_noised_sd"] = math.Round(subjects), noise
	r.Sections = append(r.Sections, report.Reading(), c.overview(out.Sites, releases), c.noisedVarianceSection(s),
		m.LoadingSection(), releasedSection())
	for k, gain := range s.Noised.Gains {
		if !math.IsNaN(gain) {
			r.Metrics["gain_over_mean/"+c.Plan.Views[k].Name] = gain
		}
	}
	return r, nil
}

// describeNoised adds to the model's file what only noised sums tell.
func (c Coordinator) describeNoised(s *State, m *fitted.Model) {
	m.Explains(s.Noised.Pooled)
	m.Doubts(s.Doubt)
	m.Biases = s.Noised.Biases
	m.Warn(c.verdictOf(s.Noised.Gains), c.apartVerdict(&s.Noised), c.rareVerdict(&s.Noised))
}

// overview shows who has what, by the sites' noised counts.
func (c Coordinator) overview(sites []releasedOfASite, releases []moments.Released) figure.Section {
	var all []figure.SiteSubjects
	for i, site := range sites {
		_, noise := subjectsOf(releases[i])
		x := figure.SiteSubjects{Name: site.Site, Noise: noise}
		for _, of := range releases[i] {
			x.Patterns = append(x.Patterns, report.PatternOf(c.Frame, of.Fine.Views, int(math.Round(max(of.Count, 0)))))
		}
		all = append(all, x)
	}
	return method.Overview(c.Plan, all)
}

// releasedSection says what the sites released, and what that does not tell.
func releasedSection() figure.Section {
	return figure.Section{ID: "released", Title: "What the sites released",
		Lead: "Each site released noised counts, sums and second moments of its subjects. The model above, and any " +
			"other that is made of them, costs no more privacy; they are in " + ReleasedName + ".",
		Items: []figure.Item{{Note: &figure.Note{Title: "Little is known of how sites differ",
			Text: "What two sites released differs by the noise of each, and by how their subjects differ. Only " +
				"means that are far apart are seen beyond that noise; a scale that runs the other way at one site, " +
				"or ids that were mixed up there, are not, and blur the model of all. By how much predictions miss " +
				"on average at single sites is estimated: intervals of a view at a site that lacks it, and at a new " +
				"site, allow for it."}},
			{Note: &figure.Note{Title: "Values beyond their ranges are not seen here",
				Text: "They count at the ends of the ranges. Each site's own page, and parley plan check --data " +
					"there, says exactly how many they are, and which features take up little of their range."}}}}
}

// noisedVarianceSection is the variance explained, of pooled and noised moments.
func (c Coordinator) noisedVarianceSection(s *State) figure.Section {
	sec := report.Variance(c.Frame, "All sites", s.Noised.Pooled, nil)
	sec.Lead += "\n\nBoth sums of squares are estimates from the noised releases, repaired for the noise that is " +
		"known to be in them. The model was made of the same releases and follows their noise a little, so what it " +
		"explains of new subjects is less."
	return sec
}

// countText writes a noised number of subjects with the standard deviation of the noise in it; what noise
// hides as the most that is plausible.
func countText(n, sd float64) string {
	if n < 4*sd {
		return fmt.Sprintf("below\u00a0%.0f", math.Ceil(max(0, n)+2*sd))
	}
	return fmt.Sprintf("%.0f\u00a0±\u00a0%.0f", n, sd)
}
