package fitted

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/method"
	"parley/methods/factors/between"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/problem"
)

// PutSiteMeans puts in how the sites' means differ. The standard deviation between sites of
// a view's means is then the total one.
func (m *Model) PutSiteMeans(l ppca.Layout, s *options.SiteMeans) {
	j, sd := 0, s.SD(l)
	for k := range m.Views {
		v := &m.Views[k]
		v.MeanSD = &sd[k]
		for i := range v.Features {
			f := &v.Features[i]
			f.SiteVariance, f.NewSiteVariance = s.Variance[j], s.NewSite[j]
			j++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Sites)) {
		at := s.Sites[name]
		x := modelSiteMeans{Name: name, Offset: at.Mean, Variance: at.Diag, Factor: [][]float64{}}
		for row := range slices.Chunk([]float64(at.Factor.Data), j) {
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
	return &between.SiteOffset{Mean: s.Offset, Diag: s.Variance, Factor: slices.Concat(s.Factor...)}
}

func (s *modelSiteMeans) check(d, q int) error {
	if len(s.Offset) != d || len(s.Variance) != d || len(s.Factor) > q {
		return fmt.Errorf("the means of site %q: %d offsets, %d variances and %d factors for %d features and %d factors", s.Name, len(s.Offset), len(s.Variance), len(s.Factor), d, q)
	}
	for i, v := range s.Variance {
		if v < 0 {
			return fmt.Errorf("the means of site %q: variance %d is %v", s.Name, i, v)
		}
	}
	for _, row := range append([][]float64{s.Offset, s.Variance}, s.Factor...) {
		if len(row) != d {
			return fmt.Errorf("the means of site %q: %d numbers for %d features", s.Name, len(row), d)
		}
		if err := ppca.Finite("means of site "+s.Name, row); err != nil {
			return err
		}
	}
	return nil
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
	at := &between.SiteOffset{}
	for _, v := range m.Views {
		for _, f := range v.Features {
			x := f.SiteVariance
			if who.New || who.Site != "" { // of a site that said nothing, no more is known
				x = f.NewSiteVariance
			}
			at.Mean, at.Diag = append(at.Mean, 0), append(at.Diag, x)
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
		return problem.Problem{Where: "--site", What: "the model says nothing of single sites", Hint: "leave it out: without it subjects are those of all sites together"}
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
		p := problem.Problem{Where: "model " + m.Study, What: "nothing estimated how sites differ, so there is no spread for a new site",
			Hint: "leave out --new-site, and take the intervals for too narrow at a new site"}
		if m.Options != nil && m.Options.Mechanism == options.MechanismStatistics {
			p.Hint = "the private mechanism " + m.Options.Mechanism + " does not estimate that; " + p.Hint
		}
		return nil, p
	}
	var alone []string
	for _, v := range m.Views {
		if v.LoadingSD == nil && !m.Separate() || m.sitesWith(v.Name) < 2 {
			alone = append(alone, v.Name)
		}
	}
	if len(alone) > 0 {
		notes.Add(problem.Problem{Where: "views " + strings.Join(alone, ", "), What: "too few sites or subjects had them for anything to be known of how sites differ there: no spread was added"})
	}
	return notes, nil
}
