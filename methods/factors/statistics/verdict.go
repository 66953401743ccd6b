package statistics

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/methods/factors/assess"
	"parley/methods/factors/fitted"
	"parley/methods/factors/halves"
	"parley/methods/factors/moments"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/privacy/account"
	"parley/problem"
)

// A gain is what a view gains from being predicted from all others, over giving
// everybody the mean: 1 − the ratio of the mean squared errors. It is what the model and the
// known law of the noise lead to expect: the variance that the model leaves, and what
// privacy noise adds to it, over the whole. Of a single view, which nothing predicts, it is the R² that the model
// claims.
type gain struct {
	view string
	gain float64
}

// leastGain is the expected gain below which a model counts as no better than the mean:
// expectations rest on moments that are noised themselves.
const leastGain = 0.1

// poor says whether the model cannot be told to be better than the mean.
func (v gain) poor() bool { return !(v.gain >= leastGain) }

// gains are those of every view.
func (c way) gains(s *halves.State) ([]gain, error) {
	model, err := s.Model.Unpack(c.Layout)
	if err != nil {
		return nil, err
	}
	others := assess.New(c.Layout, model)
	if err := others.Prepare(c.Layout.AllFeatures()); err != nil {
		return nil, err
	}
	explained := own(s).Pooled.Explained()
	var out []gain
	for k, view := range c.Plan.Views {
		v := gain{view: view.Name, gain: explained.R2(k, explained.Rank)}
		if others.OK[k] {
			left, whole := 0.0, 0.0
			for lo, hi := c.Layout.View(k); lo < hi; lo++ {
				left += others.Within[lo]*others.Within[lo] + s.Doubt[lo]
				whole += others.SD[lo] * others.SD[lo]
			}
			v.gain = 1 - left/whole
		}
		out = append(out, v)
	}
	return out, nil
}

// falseWorse is the probability that a study of sites that are alike has a site of which it is
// said that a view is predicted worse there than by its mean.
const falseWorse = 0.01

// worseThanTheMean lists the views of sites for which the model expects another gain than what
// the site released shows, beyond the noise and beyond chance.
func (c way) worseThanTheMean(repaired *moments.ProjectedMoments, model *ppca.Params, sites []string, told [][]moments.NoisyMoments) (list []worse, err error) {
	if len(sites) < 2 {
		return nil, nil
	}
	far := distuv.UnitNormal.Quantile(1 - falseWorse/float64(len(sites)*c.Layout.Views()))
	for i := range told {
		var gains []moments.SiteR2
		if gains, err = repaired.SiteGains(told[i], model); err != nil {
			return nil, fmt.Errorf("site %s: %w", sites[i], err)
		}
		for k, g := range gains {
			if g.Known && g.Gain < 0 && g.Less > far*g.SD {
				list = append(list, worse{sites[i], k, g.Gain})
			}
		}
	}
	return list, nil
}

// worseVerdict names them; nothing if there are none.
func (c way) worseVerdict(list []worse) (v fitted.Verdict) {
	if len(list) == 0 {
		return v
	}
	var where, views []string
	for _, w := range list {
		view := c.Plan.Views[w.View].Name
		where = append(where, fmt.Sprintf("%s at %s (R² about −%.2f)", view, w.Site, -w.Gain))
		if !slices.Contains(views, view) {
			views = append(views, view)
		}
	}
	return fitted.Verdict{Kind: fitted.OnSites, Says: "Predicted worse than by their means at single sites: " + strings.Join(where, ", "), Views: views,
		Advice: "What these sites released says so, beyond the noise in it. Views do not go together there as they do elsewhere, or the site's means are others. Look for scales that run the other way there, ids that belong to other subjects in one of the files, mixed-up columns and other units. Do not impute these views for subjects of these sites; intervals there are too narrow, and the loadings everywhere are blurred."}
}

const (
	// leastApart is the share of a view's variance between sites from which on it is said: of two sites
	// of one size, means are then at least two thirds of a standard deviation apart. Of single
	// features, of which a view can have many, it is more.
	leastApart, leastApartAlone = 0.1, 0.3
	// falseApart is the probability that means are said to differ of sites that are alike.
	falseApart = 0.01
)

// apartVerdict names the views, or else features, of which much lies between sites, beyond the noise
// and beyond chance; nothing if there are none.
func (c way) apartVerdict(r *record) (v fitted.Verdict) {
	if len(r.Apart) != c.Layout.Features() {
		return v
	}
	far := distuv.UnitNormal.Quantile(1 - falseApart/float64(2*max(1, len(r.Released))*c.Layout.Features()))
	var shares, views []string
	for k, view := range c.Plan.Views {
		views = append(views, view.Name) // a site whose means are others in one view may have others in any
		lo, hi := c.Layout.View(k)
		share, farthest := 0.0, 0.0
		var alone []string
		for j, a := range r.Apart[lo:hi] {
			share, farthest = share+a.Share/float64(hi-lo), max(farthest, a.Far)
			if a.Share > leastApartAlone && a.Far > far {
				alone = append(alone, fmt.Sprintf("at least %.0f %% in %s", 100*a.Share, view.Features[j].Name))
			}
		}
		if few := alone != nil && 2*len(alone) < hi-lo; !few && share > leastApart && farthest > far {
			alone = []string{fmt.Sprintf("at least %.0f %% in %s", 100*share, view.Name)}
		}
		if alone != nil {
			shares = append(shares, alone...)
		}
	}
	if shares == nil {
		return v
	}
	return fitted.Verdict{Kind: fitted.OnSites, Says: "Sites' means differ, which is part of the variance: " + strings.Join(shares, ", "), Views: views,
		Advice: "What the sites released says so, beyond the noise in it. A private model has one mean for all sites. So its factors tell sites apart as well as subjects, what is explained counts that, variances come out too small, and values that are imputed at a site lean toward those of the others. See whether units, instruments or diagnoses differ. If a site's own level is publicly known, give values as differences from it; otherwise let sites that are alike make a study of their own."}
}

// falseBeyond is the probability that a study of good ranges has a feature of which it is said that
// values lie beyond its range.
const falseBeyond = 0.01

// beyondRanges lists the features of which many values lie beyond their ranges, beyond the noise.
func (c way) beyondRanges(ends []moments.FloorCeiling) (list []beyond) {
	const tests = 3 // of each feature
	far := distuv.UnitNormal.Quantile(1 - falseBeyond/float64(tests*len(ends)))
	for j, e := range ends {
		low, high, between := e.Low > far, e.High > far, e.NotTwo
		if _, feature := c.Feature(j); twoNumbers(*feature.Range) {
			between = e.NotZeroOne
			if !(e.NotRare > far) {
				low, high = false, false
			}
		}
		if between > far && e.Spread > far {
			low, high = true, true
		}
		if low || high {
			list = append(list, beyond{Feature: j, Low: low, High: high})
		}
	}
	return list
}

// twoNumbers says whether a range is that of a feature of two numbers, such as 0 and 1: if one of them
// is rare, the mean is rightly near an end.
func twoNumbers(r [2]float64) bool { return r[1]-r[0] == 1 && r[0] == math.Trunc(r[0]) }

// mostNamed is how many features of each kind a verdict names.
const mostNamed = 4

// beyondVerdict names them; nothing if there are none.
func (c way) beyondVerdict(list []beyond) (v fitted.Verdict) {
	if len(list) == 0 {
		return v
	}
	var below, above, both, views []string
	for _, b := range list { // in the order of features
		view, feature := c.Feature(b.Feature)
		to := &below
		if b.Low && b.High {
			to = &both
		} else if b.High {
			to = &above
		}
		*to, views = append(*to, feature.Name), append(views, view.Name)
	}
	views = slices.Compact(views)
	var where []string
	for _, side := range []struct {
		says  string
		names []string
	}{{"below that of ", below}, {"above that of ", above}, {"on both sides of that of ", both}} {
		if n := len(side.names); n > mostNamed {
			where = append(where, fmt.Sprintf("%s%s and %d more", side.says, strings.Join(side.names[:mostNamed], ", "), n-mostNamed))
		} else if n > 0 {
			where = append(where, side.says+strings.Join(side.names, ", "))
		}
	}
	return fitted.Verdict{Kind: fitted.OnRanges, Says: "Many values lie beyond the plan's ranges, at whose ends they count: " + strings.Join(where, "; "), Views: views, Voids: views,
		Advice: "What the sites released says so, beyond the noise in it: values are nearer to an end, or more spread, than values within a range are. The model describes what is left of them: means and variances are wrong, what is explained is of no meaning, and intervals of imputed values are too narrow. Give these features a wider range, in the unit of the files, from what is publicly known of them, and see that the sites' files have that unit: parley plan check --data tells each site how many of its values lie beyond. " +
			"If no value can lie beyond an end, most values are crowded there, or have few steps; then a logarithm or a root of the values may suit a model of normal laws better. A new study costs its privacy again."}
}

// uncounted names the sites of which no subject may have counted: whose noised count is less
// than two standard deviations of its noise. Nothing if there is none.
func (c way) uncounted(s *halves.State) (v fitted.Verdict, err error) {
	sites, releases, err := c.releases(s)
	if err != nil {
		return v, err
	}
	var names []string
	for i, name := range sites {
		if n, noise := subjectsOf(releases[i]); n < 2*noise {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return v, nil
	}
	return fitted.Verdict{Kind: fitted.OnLinks, Says: "It may be that no subject counts at " + strings.Join(names, ", ") + ": the noised count is not above what noise makes of none",
		Advice: "Either the site has few subjects for this total, or hardly any of them has one of the sets of views that the plan states for the site (patterns): who has none of them counts for nothing. The site's own report says exactly how many that are. Are the patterns of two sites swapped?"}, nil
}

// verdictOf warns of the views that gain nothing; nothing if all do.
func verdictOf(all []gain) (v fitted.Verdict) {
	var poor []string
	for _, v := range all {
		if v.poor() {
			poor = append(poor, v.view)
		}
	}
	if len(poor) == 0 {
		return v
	}
	what, views := "Next to nothing was learned: no view is predicted better than by its mean, as far as anybody can tell", "any view"
	if len(poor) < len(all) {
		views = strings.Join(poor, ", ")
		what = "Predicted no better than by their means, as far as anybody can tell: " + views
	}
	return fitted.Verdict{Kind: fitted.OnPrediction, Says: what, Views: poor, Voids: poor,
		Advice: "By what is known of the privacy noise, this model may predict " + views + " worse than the features' means do. That does not mean that there is nothing to find: at this total, from so few subjects at so many sites, the noise hides it. Do not read the loadings there, and do not impute with them. " +
			"More would be learned from fewer views or features, from more subjects at each site, from fewer and larger sites, or at a larger ε: parley plan check and parley privacy curve say how many subjects a plan needs, before any budget is spent."}
}

// sharedVariance is what all factors together are taken to hold of the variance, each
// the same, where a plan is told how many subjects it needs: nobody knows it before.
const sharedVariance = 0.5

// RequiredSampleSize says, from the plan alone, how many subjects at each site the study needs to
// find any factor, what would lower that, and who counts for nothing.
func RequiredSampleSize(set options.Setup) (problem.List, error) {
	p := set.Plan
	features, sites, epsilon := set.Layout.Features(), len(p.Sites), p.Privacy.Total.Epsilon
	need := func(features int, epsilon float64) (float64, error) {
		other, total := *p, *p.Privacy.Total
		total.Epsilon, other.Privacy.Total = epsilon, &total
		of := set
		of.Plan = &other
		d, err := newDeclared(of, p.Sites[0])
		if err != nil {
			return 0, err
		}
		mu, ok := account.Mu(mechanisms(d.sums), p.Privacy.Adjacency)
		if !ok {
			return 0, fmt.Errorf("the sums have no Gaussian DP parameter")
		}
		return math.Ceil(moments.SubjectsToSee(features, sites, sharedVariance/float64(set.Rank()), mu)), nil
	}
	least, err := need(features, epsilon)
	if err != nil {
		return nil, err
	}
	looser, err := need(features, 3*epsilon)
	if err != nil {
		return nil, err
	}
	hint := fmt.Sprintf("several times as many for a good model; about %.0f would do at ε %g", looser, 3*epsilon)
	if few := features / 4; few > set.Rank() {
		narrower, err := need(few, epsilon)
		if err != nil {
			return nil, err
		}
		hint += fmt.Sprintf(", and about %.0f with %d features", narrower, few)
	}
	where := "the only site"
	if sites > 1 {
		where = fmt.Sprintf("each of the %d sites", sites)
		hint += "; the same subjects at fewer sites help too"
	}
	var notes problem.List
	notes.Add(problem.Problem{Where: "privacy.total",
		What: fmt.Sprintf("with fewer than about %.0f subjects at %s this study learns next to nothing: at ε %g, noise hides factors that together hold half of the variance of %d features",
			least, where, epsilon, features),
		Hint: hint + "; parley privacy curve simulates it"})
	if len(p.Views) > 1 && set.Options.Patterns == nil {
		notes.Add(problem.Problem{Where: "method.patterns", What: "none are stated, so subjects who lack a view count for nothing",
			Hint: "state the sets of views that many subjects have, that of all views among them"})
	}
	return notes, nil
}

// falseStill is the probability that a study of features that vary alike within their ranges has one
// of which it is said that it hardly does.
const falseStill = 0.01

// leaks is the share of what others vary that may show in a feature which does not: what clipping
// took of them is known no better.
const leaks = 0.004

// nearConstant lists the features of which noise hides whether they vary, though it does not hide that
// their standard deviation is less than half of what the others have, each in parts of its
// range, or else their mean less than a standard deviation from an end. What the others have is the median
// of all features, or, as half of them may be still, what those that are seen to vary have at least.
// Numbers such as 0 and 1 may be so, as one of them may be rare.
func (c way) nearConstant(ends []moments.FloorCeiling) (list []int) {
	const tests = 2 // of each feature
	far := distuv.UnitNormal.Quantile(1 - falseStill/float64(tests*max(1, len(ends))))
	var all, seen []float64
	for _, e := range ends {
		if e.VarianceSD > 0 {
			all = append(all, e.Variance)
			if least := e.Variance - far*e.VarianceSD; least > 0 {
				seen = append(seen, least)
			}
		}
	}
	least := math.Sqrt(max(0, upperMedian(all), upperMedian(seen))) / 2
	for j, e := range ends {
		if _, feature := c.Feature(j); !(e.VarianceSD > 0) || e.Variance > far*e.VarianceSD+leaks*least*least || twoNumbers(*feature.Range) {
			continue
		}
		if e.Variance+far*e.VarianceSD < least*least || e.Away+far*e.AwaySD < least {
			list = append(list, j)
		}
	}
	return list
}

// upperMedian is the upper one of the two in the middle, 0 of none.
func upperMedian(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	slices.Sort(x)
	return x[len(x)/2]
}

// stillVerdict names them; nothing if there are none.
func (c way) stillVerdict(list []int) (v fitted.Verdict) {
	if len(list) == 0 {
		return v
	}
	var names, views []string
	for _, j := range list { // in the order of features
		view, feature := c.Feature(j)
		names, views = append(names, feature.Name), append(views, view.Name)
	}
	views = slices.Compact(views)
	which := "these features vary"
	if n, all := len(names), c.Layout.Features(); 2*n > all {
		which = fmt.Sprintf("most features (%d of %d) vary", n, all)
	}
	if n := len(names); n > mostNamed {
		names = append(names[:mostNamed], fmt.Sprintf("%d more", n-mostNamed))
	}
	return fitted.Verdict{Kind: fitted.OnRanges, Says: "Noise hides whether " + which + " at all within the plan's ranges: " + strings.Join(names, ", "), Views: views, Voids: views,
		Advice: "What the sites released says, beyond the noise in it, that they vary by less than half of what the other features do in their ranges, or that their mean is at an end. Either nearly all values lie beyond an end, at which they count, as in another unit: then values that are imputed are wrong, and their intervals hold none. Or the range is far too wide: then these may be farther off than the mean, with intervals that are too wide. " +
			"See that the sites' files have the plan's unit, take a narrower range from what is publicly known, or leave the features out. A new study costs its privacy again."}
}
