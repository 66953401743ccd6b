package fitted

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/between"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/problem"
)

// PutSiteMeans puts in how the sites' means differ. The standard deviation between sites of
// a view's means is then the total one.
func (m *Model) PutSiteMeans(l ppca.Layout, s *between.Offsets) {
	d, sd := l.Features(), s.SD(l)
	for k := range m.Views {
		m.Views[k].MeanSD = &sd[k]
	}
	for j, f := range m.features() {
		f.SiteVariance, f.NewSiteVariance = s.Variance[j], s.NewSite[j]
	}
	m.NewSiteDirections = slices.Collect(slices.Chunk([]float64(s.Along), d))
	for _, name := range slices.Sorted(slices.Values(s.Names)) {
		at := s.At(name)
		x := modelSiteMeans{Name: name, Offset: at.Mean, Variance: at.Diag, Factor: [][]float64{}}
		for row := range slices.Chunk([]float64(at.Factor.Data), d) {
			x.Factor = append(x.Factor, row)
		}
		m.SiteMeans = append(m.SiteMeans, x)
	}
}

// Separate says whether sites have means of their own, which are then in no factor.
func (m *Model) Separate() bool { return len(m.SiteMeans) > 0 }

// KnowsSites says whether subjects of a site are predicted in another way than those of all.
func (m *Model) KnowsSites() bool { return m.Separate() || len(m.SiteNoise) > 0 }

// offset returns the law of a site's offset.
func (s *modelSiteMeans) offset() *between.SiteOffset {
	return &between.SiteOffset{Mean: s.Offset, Diag: s.Variance, Factor: wire.Matrix{Data: slices.Concat(s.Factor...)}}
}

func (s *modelSiteMeans) check(d, q int) error {
	what := "means of site " + s.Name
	if len(s.Factor) > q {
		return fmt.Errorf("%s: %d directions for %d factors", what, len(s.Factor), q)
	}
	return cmp.Or(ppca.Numbers("variances of the "+what, d, 0, s.Variance),
		ppca.Numbers("offsets and directions of the "+what, d, math.Inf(-1),
			append([][]float64{s.Offset}, s.Factor...)...))
}

// PredictorFor returns what answers questions about subjects of a population in scaled units,
// and the scale that brings their values there.
func (m *Model) PredictorFor(who Population) (*ppca.Predictor, *ppca.Scale, error) {
	l, err := m.Layout()
	if err != nil {
		return nil, nil, err
	}
	params := m.params()
	sampling := m.samplingTimes()
	if who.New {
		m.spreadNoise(params, l)
		m.spareSampling(sampling)
	}
	if params, err = m.noiseAt(params, l, who); err != nil {
		return nil, nil, err
	}
	var p *ppca.Predictor
	if m.Separate() {
		p, err = between.AtSite(l, params, m.offsetOf(who))
	} else {
		p, err = ppca.NewPredictor(l, params)
	}
	if err != nil {
		return nil, nil, err
	}
	return p, m.scale(), errors.Join(p.Widen(m.doubt(who)), p.Sampled(sampling))
}

// offsetOf returns the law of the offset of a population, where sites have means of their
// own. That of all sites together has the variance between them.
func (m *Model) offsetOf(who Population) *between.SiteOffset {
	for i := range m.SiteMeans {
		if who.Site == m.SiteMeans[i].Name {
			return m.SiteMeans[i].offset()
		}
	}
	at, share := &between.SiteOffset{}, []float64(nil)
	for _, f := range m.features() {
		x := f.SiteVariance
		if who.New || who.Site != "" { // of a site that said nothing, no more is known
			x = f.NewSiteVariance
		}
		at.Mean, at.Diag, share = append(at.Mean, 0), append(at.Diag, x), append(share, x/f.NewSiteVariance)
	}
	for _, along := range m.NewSiteDirections {
		for j, x := range along {
			if x != 0 {
				x *= math.Sqrt(share[j])
			}
			at.Factor.Data, at.Diag[j] = append(at.Factor.Data, x), max(at.Diag[j]-x*x, 0)
		}
	}
	return at
}

// checkSite refuses a site that took no part in the fit.
func (m *Model) checkSite(name string) error {
	var names []string
	for _, s := range m.SiteMeans {
		names = append(names, s.Name)
	}
	for _, s := range m.Sites {
		names = append(names, s.Name)
	}
	if m.Biases != nil {
		for _, s := range m.Biases.Sites {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	switch {
	case len(names) == 0:
		return problem.Problem{Where: "--site", What: "the model says nothing of single sites",
			Hint: "leave it out: without it subjects are those of all sites together"}
	case !slices.Contains(names, name):
		return problem.Problem{Where: "--site", What: fmt.Sprintf("%q is not a site of the fit", name),
			Hint: problem.DidYouMean(name, names, "one of "+problem.Names(names)+"; or leave it out")}
	}
	return nil
}

// spreadNotes says of which views nothing is known of how sites differ.
func (m *Model) spreadNotes() (notes method.Notes, err error) {
	if m.Biases != nil {
		return nil, nil
	}
	if !m.Separate() && !m.HasSpread() {
		return nil, problem.Problem{Where: "model " + m.Study,
			What: "nothing estimated how sites differ, so there is no spread for a new site",
			Hint: "leave out --new-site, and take the intervals for too narrow at a new site"}
	}
	var alone []string
	for _, v := range m.Views {
		if v.LoadingSD == nil && !m.Separate() || m.sitesWith(v.Name) < 2 {
			alone = append(alone, v.Name)
		}
	}
	if len(alone) > 0 {
		notes.Add(problem.Problem{Where: "views " + strings.Join(alone, ", "),
			What: "too few sites or subjects had them for anything to be known of how sites differ there: no spread " +
				"was added"})
	}
	return notes, nil
}

// siteMean is the mean of a feature at a site.
type siteMean struct {
	site string
	feature
	offset, sd float64 // in scaled units
}

// siteMeans lists the means of the features that a site has, for all sites.
func (m *Model) siteMeans() (list []siteMean) {
	for i := range m.SiteMeans {
		s := &m.SiteMeans[i]
		variance := s.offset().Variance()
		for j, f := range m.features() {
			if s.Offset[j] != 0 { // else nobody there has it
				list = append(list, siteMean{s.Name, f, s.Offset[j], math.Sqrt(variance[j])})
			}
		}
	}
	return list
}

// siteMeansCSV has the means in the features' own units, with intervals of 90 %, as a table for other programs.
func (m *Model) siteMeansCSV() ([]byte, error) {
	t := figure.Table{Columns: []figure.Column{{Name: "site"}, {Name: "view"}, {Name: "feature"}, {Name: "unit"}}}
	for _, name := range []string{"mean", "low", "high", "all sites", "sd within sites", "sd between sites"} {
		t.Columns = append(t.Columns, figure.Column{Name: name, Numbers: figure.Numbers{}})
	}
	for _, x := range m.siteMeans() {
		f := x.ModelFeature
		all := m.inUnits(f, f.Mean) + f.Shift
		mean, half := all+m.inUnits(f, x.offset), z90*m.inUnits(f, x.sd)
		t.Add(x.site, x.view, f.Name, f.Unit, mean, mean-half, mean+half, all, m.inUnits(f, f.total()),
			m.inUnits(f, math.Sqrt(f.SiteVariance)))
	}
	return asCSV(t)
}

// z90 is the normal quantile of intervals of 90 %.
const z90 = 1.6448536269514722

// shownMeans is how many of the sites' means the report shows.
const shownMeans = 20

// SiteMeansSection shows where the sites' means are furthest from those of all sites.
func (m *Model) SiteMeansSection() figure.Section {
	list := m.siteMeans()
	away := func(x siteMean) float64 { return math.Abs(x.offset) / x.total() }
	slices.SortStableFunc(list, func(a, b siteMean) int { return cmp.Compare(away(b), away(a)) })
	list = list[:min(shownMeans, len(list))]
	b := figure.Bars{X: figure.Axis{Label: "difference from all sites (standard deviations of the feature within a " +
		"site)"}}
	for _, x := range list {
		d, half := x.offset/x.total(), z90*x.sd/x.total()
		b.Labels, b.Groups = append(b.Labels, x.Name), append(b.Groups, x.site)
		b.Values, b.Low, b.High = append(b.Values, d), append(b.Low, d-half), append(b.High, d+half)
	}
	why := "The means of the sites' subjects differ by more than samples of one population would, and not along the " +
		"factors alone. So the model"
	if m.Options != nil && m.Options.SiteMeans == options.MeansSeparate {
		why = "By the plan, the model"
	}
	lead := why + " gives every site means of its own, and its factors describe how subjects of the same site " +
		"differ: a difference between sites is no factor, and scores compare a subject with others of its site. What " +
		"makes sites differ, devices, habits or whom they see, the model does not know. If that difference is what " +
		"the study is about, fit it again with site_means: pooled."
	return figure.Section{ID: "means-of-sites", Title: "How the sites' means differ", Lead: lead,
		Items: []figure.Item{{Figure: &figure.Figure{
			ID: "means-of-sites", Title: fmt.Sprintf("The %d means of sites that are furthest from the others",
				len(list)), Chart: b,
			Caption: "Marks are the differences of a site's mean from that of all sites, whiskers the intervals of " +
				"90 %, drawn towards 0 where few subjects tell. Coloured by site. model/site-means.csv has all, in " +
				"the features' own units.",
			Alt: "Forest plot of the largest differences of sites' means.",
		}}}}
}
