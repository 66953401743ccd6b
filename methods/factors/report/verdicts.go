package report

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"

	"parley/figure"
	"parley/internal/stats"
	"parley/methods/factors/assess"
	"parley/methods/factors/fitted"
	"parley/methods/factors/ppca"
)

// Limits of what is said.
const (
	// falseVerdict is the probability that a study whose model is right gets any verdict of
	// one kind by chance, of those that hold what sites saw against what the model expects.
	// Large studies notice whatever differs, so a difference also has to matter.
	falseVerdict = 0.01
	// noiseRatio is by how much the noise of a site must differ: with a variance 1.3 times as
	// large, 15 values of a hundred lie outside intervals of 90 %, half as many again.
	noiseRatio = 1.3
	// minVarianceRatio is the ratio of a feature's variances below which it hardly varies at a site: a quarter
	// of the standard deviation, as in another unit. minVarianceN subjects tell how much it does.
	minVarianceRatio, minVarianceN = 1. / 16, 10
	// unvarying is the ratio that rounding leaves of a constant.
	unvarying = 1e-12
	// offCoverage is by how much a coverage must differ from 0.9.
	offCoverage = 0.015
	// minUniqueness is the share of a feature's variance given all others that its noise must make
	// up for the feature not to be a Heywood case: with a factor for what a feature has
	// alone it is a hundredth or so, and where two features share a factor a half.
	minUniqueness = 0.05
	// minPairUniqueness is the same of a feature given all others but one: a correlation of .99 with that one.
	minPairUniqueness = 0.01
	// muchMissing is the share of single cells: with a fiftieth of them missing, what is said
	// of sites loses hundredths of a nat per subject, and with three tenths half a nat.
	muchMissing = 0.1
	// valuesPerNumber is how many values of a feature tell each of its numbers: loadings, mean and noise.
	valuesPerNumber = 5
)

// Verdicts are what speaks against relying on a model, most severe first, from what the
// sites, at least one, said of it, and from views that lie apart. Its parameters are those of
// subjects of one site.
// Nothing in verdicts says more of subjects than the sites did.
func Verdicts(set ppca.Frame, m *fitted.Model, p *ppca.Params, sites []Site, apart []ppca.Apart) error {
	predictor, err := ppca.NewPredictor(set.Layout, p)
	if err != nil {
		return err
	}
	v := verdicts{set: set, m: m, predictor: predictor, sites: sites, all: leftOut(set, sites)}
	for range sites {
		v.said = append(v.said, make([]bool, set.Layout.Views()))
	}
	v.unconnected()
	v.apart(apart)
	v.negativeR2()
	v.useless()
	v.flat()
	v.noise()
	v.mahalanobisMisfit()
	v.intervals()
	v.outliers()
	v.tooMany()
	if err := v.heywood(); err != nil {
		return err
	}
	v.missing()
	v.selected()
	v.serial()
	return nil
}

// VerdictsOfTotals are those of [Verdicts] that follow from the model, what is said of others and the share of values
// that were filled, which is all that is known of a study of totals.
func VerdictsOfTotals(set ppca.Frame, m *fitted.Model, p *ppca.Params, filled float64) error {
	predictor, err := ppca.NewPredictor(set.Layout, p)
	if err != nil {
		return err
	}
	v := verdicts{set: set, m: m, predictor: predictor}
	v.useless()
	v.tooMany()
	v.muchMissing(filled, "%.0f %% of the values are missing, those of whole views among them: the model rests on "+
		"what is left")
	return v.heywood()
}

// verdicts collects them.
type verdicts struct {
	set       ppca.Frame
	m         *fitted.Model
	predictor *ppca.Predictor
	sites     []Site
	all       *assess.Sums // of all sites
	said      [][]bool     // of each site's views: why they differ has been said
}

// add adds a verdict of a kind.
func (v *verdicts) add(kind fitted.Kind, views []string, advice, says string, a ...any) {
	v.m.Warn(fitted.Verdict{Kind: kind, Says: fmt.Sprintf(says, a...), Advice: advice, Views: views})
}

// voids adds a verdict by which no number on how well the model describes its subjects may
// be relied on.
func (v *verdicts) voids(kind fitted.Kind, views []string, advice, says string, a ...any) {
	v.m.Warn(fitted.Verdict{Kind: kind, Says: fmt.Sprintf(says, a...), Advice: advice, Views: views, Voids: v.views()})
}

// views names some views, or all.
func (v *verdicts) views(ks ...int) (names []string) {
	for k, x := range v.m.Views {
		if len(ks) == 0 || slices.Contains(ks, k) {
			names = append(names, x.Name)
		}
	}
	return names
}

// serial says that subjects who follow each other are alike: far along the rows, or the next ones only.
func (v *verdicts) serial() {
	var all stats.SerialSums
	var order []*assess.OrderSums
	for _, s := range v.sites {
		all.Add(s.Serial)
		if s.Order != nil {
			order = append(order, s.Order)
		}
	}
	var slow fitted.Found
	for a, c := range assess.Slow(order, len(v.m.Factors), falseVerdict) {
		if c > 0 {
			slow.Add(fmt.Sprintf("factor %d (correlation %.2f with the mean of the next eight)", a+1, c))
		}
	}
	if said := slow.Verdict(fitted.OnOrder, "Batches, a drift, seasons or a change of kit do that where rows are in "+
		"the order of measuring, and such a factor is no biology: let the plan adjust for the batch, or leave the "+
		"measurements out that drift. Where a file is sorted, by group for instance, nothing is wrong; nor is it "+
		"where many rows are of one person or family, but then intervals are too narrow.",
		"Scores change slowly along the rows of the sites' files: %s"); said.Says != "" {
		v.m.Warn(said)
		return
	}
	if c := all.Correlation(falseVerdict); c > 0 {
		v.add(fitted.OnOrder, nil, "So it is where rows are visits of one person, members of a family, or of one "+
			"batch after the other. Each then says less than a subject of its own: all intervals are too narrow, and "+
			"the spread of subjects is that of their visits. Keep one row of each person, and see whether factors are "+
			"batches.",
			"Subjects whose ids follow each other are alike: their scores have a correlation of %.2f with those of "+
				"the next", c)
	}
}

// apart names the views of sites that have nothing in common with the same views elsewhere:
// they spoil what all sites have together, the scale first.
func (v *verdicts) apart(list []ppca.Apart) {
	var far fitted.Found
	for _, a := range list {
		view := v.m.Views[a.View].Name
		far.Add(fmt.Sprintf("%s at %s (%.2g times the spread within a site)", view, v.set.Plan.Sites[a.Site], a.Times),
			view)
	}
	said := far.Verdict(fitted.OnScale, "Whatever else this report says follows from that, and the other views suffer "+
		"too. Look for other units, an instrument that is set otherwise, codes for missing values or mixed-up columns "+
		"there, and run the study again.", "Values have nothing in common with those of other sites: %s")
	said.Voids = v.views()
	v.m.Warn(said)
}

// useless names views that are predicted no better than by their means for subjects who took no part in the fit.
// What is not above 0 by one standard error and two thirds may be chance: one view of twenty that has nothing in
// common with others gains more.
func (v *verdicts) useless() {
	var found fitted.Found
	for _, view := range v.m.Views {
		h := view.HeldOut
		if h == nil || h.Gain > 1.645*h.GainSE {
			continue
		}
		chance := ""
		if h.Gain > 0 {
			chance = ", as far as can be told"
		}
		found.Add(fmt.Sprintf("%s (%.2f times%s)", view.Name, 1-h.Gain, chance), view.Name)
	}
	says := "Predicted from the other views no better than by its mean"
	if len(v.m.Views) == 1 {
		says = "Features are predicted from each other no better than by their means"
	}
	v.m.Warn(found.Verdict(fitted.OnPrediction, "In brackets stands how many times that of the mean the squared "+
		"error is at subjects who took no part in the fit. Do not impute it with this model. If the views have "+
		"anything in common, other factors or more subjects may find it.", "%s: %s", says))
}

// intervals names views whose intervals of 90 % hold too little, beyond chance, by what matters, or too much, by what
// matters beyond chance: that is harmless.
func (v *verdicts) intervals() {
	errors := distuv.UnitNormal.Quantile(1 - falseVerdict/float64(2*len(v.m.Views))) // that chance takes any coverage
	for k := range v.m.Views {
		coverage := covered(v.m, v.all, k)
		more, chance := coverage-0.9, errors*v.all.CoverageError(k)
		kind, too := "narrow", " So do batches and drifts within sites: a factor more may hold them."
		switch {
		case more > offCoverage+chance:
			kind, too = "wide", ""
		case !(-more > max(offCoverage, chance)): // NaN too
			continue
		}
		v.add(fitted.OnIntervals, v.views(k), "Values that are not normally distributed do that: skewed, cut off at a "+
			"limit, or 0 and 1. Logarithms help skewed features."+too,
			"Intervals for view %s are too %s: those of 90 %% hold %.1f %% of its values", v.m.Views[k].Name, kind,
			100*coverage)
	}
}

// outliers says how many subjects the model does not describe because they were far from
// all others.
func (v *verdicts) outliers() {
	var found fitted.Found
	total := 0.0
	for _, s := range v.sites {
		if s.Outlying == 0 {
			continue
		}
		var views []string
		for k, n := range s.Outliers {
			if n > 0 {
				views = append(views, v.m.Views[k].Name)
			}
		}
		total += s.Outlying
		found.Add(fmt.Sprintf("%.0f at %s (%s)", s.Outlying, s.Name, strings.Join(views, ", ")))
	}
	v.m.Warn(found.Verdict(fitted.OnOutliers, "Each site's own report names them. They count as if they had not been "+
		"measured in these views. Look for wrong units, codes for missing values and mixed-up columns; if they are "+
		"right, outliers: keep in the plan keeps them.",
		"%s so far from all others of the site that the fit left these values out: %s", subjectsAre(total)))
}

func subjectsAre(n float64) string {
	if n == 1 {
		return "1 subject is"
	}
	return fmt.Sprintf("%.0f subjects are", n)
}

// heywood names features that hardly have noise beside a factor that rests on them, or on them and one other that says
// the same, alone: of the variance that a feature has given all others, 1/(C⁻¹)_jj, or all but one, its noise should be
// more than a trace. Where features of a view share their noise, one cannot drive it down.
func (v *verdicts) heywood() error {
	if v.set.Layout.Noise != ppca.NoisePerFeature {
		return nil
	}
	post, err := v.predictor.Given(v.features())
	if err != nil {
		return err
	}
	_, md := v.predictor.Model()
	view := v.set.Layout.ViewOf()
	var found fitted.Found
	for i, j := range post.Observed {
		// (C⁻¹)_jj = (ψ − wᵀMw)/ψ², and (C⁻¹)_jk = −wⱼᵀMwₖ/ψⱼψₖ.
		own, psi := post.ResidualVar(i), md.Psi[j]
		if own < minUniqueness*psi {
			found.Add(v.feature(j), v.m.Views[view[j]].Name)
			continue
		}
		w := md.W[j*md.LD:][:v.set.Factors]
		if psi > minPairUniqueness*(psi+floats.Dot(w, w)) {
			continue // no other says the same
		}
		for o, k := range post.Observed {
			c := md.Psi[k] * floats.Dot(post.Gain(o), w)
			if o != i && own-c*c/post.ResidualVar(o) < minPairUniqueness*psi {
				found.Add(v.feature(j)+" (as "+v.feature(k)+")", v.m.Views[view[j]].Name)
				break
			}
		}
	}
	v.m.Warn(found.Verdict(fitted.OnFactors, "A factor rests on such a feature alone, or on it and another that says "+
		"the same, and the model takes it as measured almost without error, so intervals of what follows from it are "+
		"too narrow, and what views tell of each other may be what one feature tells of its copy. Leave out a feature "+
		"that stands twice; else fewer factors usually cure it.",
		"Heywood case: the model leaves hardly any noise to %s"))
	return nil
}

// tooMany says so if there are more factors than covariances can tell, whatever the subjects.
func (v *verdicts) tooMany() {
	d := len(v.features())
	if v.set.TooManyFactors(d) {
		v.voids(fitted.OnFactors, v.views(), "Infinitely many models describe the same subjects as well as this one: "+
			"what it explains is not evidence, and another would impute otherwise. Ask parley select how many factors "+
			"the data support.",
			"%d factors are more than the covariances of %d features can tell", v.set.Factors, d)
	}
}

// features are those that the model describes.
func (v *verdicts) features() []int {
	return slices.DeleteFunc(v.set.Layout.AllFeatures(), func(j int) bool { return !v.predictor.Describes(j) })
}

// missing says so if many single cells are missing, or nearly all of a feature.
func (v *verdicts) missing() {
	observed, all := 0.0, 0.0
	values, most := make([]float64, v.set.Layout.Features()), make([]float64, len(v.m.Views))
	view := v.set.Layout.ViewOf()
	for _, s := range v.sites {
		for _, p := range s.Patterns {
			cells := float64(p.Subjects * v.set.Layout.Width(p.Views))
			observed, all = observed+p.Share*cells, all+cells
		}
		floats.Add(values, s.FeatureCells)
	}
	for j, n := range values {
		most[view[j]] = max(most[view[j]], n)
	}
	var found fitted.Found
	for j, n := range values {
		if n < most[view[j]]/2 && n < float64(valuesPerNumber*(v.set.Factors+2)) && v.predictor.Describes(j) {
			found.Add(fmt.Sprintf("%s (%.0f)", v.feature(j), n), v.m.Views[view[j]].Name)
		}
	}
	v.m.Warn(found.Verdict(fitted.OnMissing, onMissing, "Hardly any values of %s"))
	v.muchMissing(1-observed/all, "%.0f %% of the single values are missing in the views that subjects have: the "+
		"model rests on what is left")
}

const onMissing = "They are filled by what the model expects of them, so that the model is the likeliest for the " +
	"values that are there; but what few values say of many is uncertain, and other maxima may describe them " +
	"nearly as well. Look at the features that are missing most often."

// muchMissing says so where a share of values is missing.
func (v *verdicts) muchMissing(share float64, says string) {
	if share > muchMissing {
		v.add(fitted.OnMissing, v.views(), onMissing, says, 100*share)
	}
}

// VerdictNotes are verdicts as notes, for the section that opens a report.
func VerdictNotes(list []fitted.Verdict) (notes []figure.Note) {
	for _, v := range list {
		notes = append(notes, figure.Note{Title: v.Says, Text: v.Advice})
	}
	return notes
}
