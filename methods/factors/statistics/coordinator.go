package statistics

import (
	"fmt"
	"math"
	"slices"

	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/halves"
	"parley/methods/factors/moments"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/privacy"
)

// Coordinator is the coordinator's half of a study of noised statistics.
func Coordinator(set options.Setup) (method.Coordinator, error) {
	noised, err := declaredBy(set)
	if err != nil {
		return nil, err
	}
	return halves.NewCoordinator(set, way{halves.Common{Setup: set}, noised}), nil
}

// way makes the model of noised sums, released once, and asks for its
// diagnostics if the plan spends a share on them.
type way struct {
	halves.Common
	noised map[string]*declared // what every site releases
}

// checking says whether the plan spends a share on diagnostics, as all sites do.
func (c way) checking() bool { return c.noised[c.Plan.Sites[0]].check != nil }

// record is what the coordinator keeps of the releases.
type record struct {
	Pooled   *options.Assessment           `cbor:"pooled"`           // the variance explained by the noised sums
	Released map[string]*siteSums          `cbor:"released"`         // by site
	Checked  map[string]*checkAnswer       `cbor:"checked"`          // diagnostics of the model, of the sites that gave any
	Worse    []worse                       `cbor:"worse,omitempty"`  // views that the model predicts worse than by their means at a site
	Apart    []moments.BetweenSiteVariance `cbor:"apart,omitempty"`  // by feature
	Beyond   []beyond                      `cbor:"beyond,omitempty"` // features of which values lie beyond their ranges
	Still    []int                         `cbor:"still,omitempty"`  // features that hardly vary within their ranges
	Biases   *fitted.Biases                `cbor:"biases,omitempty"` // nil where nothing tells of any
}

// worse is a view that the model predicts worse at a site than its mean does, and worse than it
// would for subjects like those of the whole study.
type worse struct {
	Site string  `cbor:"site"`
	View int     `cbor:"view"`
	Gain float64 `cbor:"gain"` // over the mean, noised
}

// beyond is a feature of which many values lie beyond its range.
type beyond struct {
	Feature int  `cbor:"feature"`
	Low     bool `cbor:"low,omitempty"` // below it
	High    bool `cbor:"high,omitempty"`
}

func (way) Record() any {
	return &record{Released: map[string]*siteSums{}, Checked: map[string]*checkAnswer{}}
}

// Check implements [halves.Way].
func (c way) Check(s *halves.State) error {
	o := own(s)
	if o.Released == nil || o.Checked == nil {
		return fmt.Errorf("it lacks what sites have released")
	}
	if s.Phase != options.TaskCheck && s.Phase != method.Done {
		return nil
	}
	if o.Pooled == nil || len(o.Released) == 0 || len(s.Doubt) != c.Layout.Features() {
		return fmt.Errorf("it has no sums behind its model, or no doubt about them")
	}
	if r := o.Pooled.Residual; r.Rows != c.Layout.Views() || r.Cols != c.Rank()+1 {
		return fmt.Errorf("the variance explained of %d views by %d factors", r.Rows, r.Cols-1)
	}
	if err := o.Pooled.Explained().Check(c.Layout); err != nil {
		return err
	}
	if err := method.Kept(o.Released, c.Plan.Sites, "sums", func(*siteSums) error { return nil }); err != nil {
		return err
	}
	if _, _, err := c.releases(s); err != nil {
		return err
	}
	if err := method.Kept(o.Checked, c.Plan.Sites, "diagnostics", func(*checkAnswer) error { return nil }); err != nil {
		return err
	}
	for site, a := range o.Checked {
		if p := c.noised[site]; p == nil || p.check == nil {
			return fmt.Errorf("diagnostics of site %s, which were not asked for", site)
		} else if err := a.check(p); err != nil {
			return err
		}
	}
	for _, x := range o.Worse {
		if err := method.Member(c.Plan.Sites, x.Site); err != nil || x.View < 0 || x.View >= c.Layout.Views() {
			return fmt.Errorf("view %d of site %q is none of the plan's", x.View, x.Site)
		}
	}
	for _, x := range o.Beyond {
		if err := c.HasFeatures(x.Feature); err != nil {
			return err
		}
	}
	if n := len(o.Apart); n != c.Layout.Features() {
		return fmt.Errorf("how far sites are apart in %d features, where there are %d", n, c.Layout.Features())
	}
	return c.HasFeatures(o.Still...)
}

func own(s *halves.State) *record { return s.Own.(*record) }

func (c way) Steps() int {
	if c.checking() {
		return 2
	}
	return 1
}

func (c way) Begin(s *halves.State) ([]method.Task, method.Info, error) {
	tasks, err := c.Ask(s, options.TaskStatistics, func(string) (any, error) { return Task{}, nil })
	return tasks, nil, err
}

func (c way) Advance(s *halves.State) ([]method.Task, method.Info, error) {
	switch s.Phase {
	case options.TaskStatistics:
		return c.statistics(s)
	case options.TaskCheck:
		return c.checked(s)
	}
	return nil, nil, fmt.Errorf("unknown phase %q", s.Phase)
}

func (c way) Receive(a method.Contribution) (halves.Answer, error) {
	switch a.Kind {
	case options.TaskStatistics:
		sent := new(Answer)
		if err := method.DecodeAnswer(a, sent); err != nil {
			return halves.Answer{}, err
		}
		x := &siteSums{Lenses: sent.Lenses}
		want := c.noised[a.Site]
		for i, to := range []*privacy.Noised{&x.Overview, &x.Coarse, &x.Fine} {
			sum, err := a.Sum(want.sums[i].Name)
			if err != nil {
				return halves.Answer{}, err
			}
			*to = *sum
		}
		r, err := want.released(x)
		if err == nil {
			err = want.follows(r, x.Overview.Floats(0), x.Overview.SD())
		}
		return halves.Keep(x, err)
	case options.TaskCheck:
		sum, err := method.OnlySum(a, moments.SumDiagnostics)
		if err != nil {
			return halves.Answer{}, err
		}
		x := &checkAnswer{Sum: *sum}
		return halves.Keep(x, x.check(c.noised[a.Site]))
	}
	return halves.Answer{}, fmt.Errorf("no such task")
}

// statistics makes the model of what all sites released. Nothing after this
// costs anything, but for the diagnostics if the plan spends a share on them.
func (c way) statistics(s *halves.State) ([]method.Task, method.Info, error) {
	var releases []moments.Released
	sites, all, err := halves.Answers(c.Common, s, func(site string, a *siteSums) error {
		r, err := c.noised[site].released(a)
		if err == nil {
			releases = append(releases, *r)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	repaired, err := moments.Project(c.Layout, releases, c.Plan.Seed)
	if err != nil {
		return nil, nil, fmt.Errorf("repairing the sums: %w", err)
	}
	fit, err := repaired.Fit(c.Rank())
	if err != nil {
		return nil, nil, fmt.Errorf("fitting one model to all sites: %w", err)
	}
	if s.Doubt, err = repaired.Uncertainty(fit); err != nil {
		return nil, nil, err
	}
	model, err := ppca.Weak(c.Layout, &fit.Params)
	if err != nil {
		return nil, nil, err
	}
	if err := c.Finish(s, model); err != nil {
		return nil, nil, err
	}
	explained, err := ppca.NewExplained(c.Layout, &model.Params, repaired.Blocks())
	if err != nil {
		return nil, nil, err
	}
	own(s).Pooled = options.Pooled(explained)
	for i, name := range sites {
		own(s).Released[name] = all[i]
	}
	told := make([][]moments.NoisyMoments, len(releases))
	for i := range releases {
		if told[i], err = repaired.Unrepaired(&releases[i], c.Plan.Seed); err != nil {
			return nil, nil, fmt.Errorf("site %s: %w", sites[i], err)
		}
	}
	if own(s).Worse, err = c.worseThanTheMean(repaired, &model.Params, sites, told); err != nil {
		return nil, nil, err
	}
	own(s).Apart = repaired.Apart(told, &model.Params)
	if own(s).Biases, err = c.biases(repaired, &model.Params, sites, releases, told); err != nil {
		return nil, nil, err
	}
	ends, err := repaired.Ends(releases, told)
	if err != nil {
		return nil, nil, err
	}
	own(s).Beyond, own(s).Still = c.beyondRanges(ends), c.nearConstant(ends)
	info := method.Info{"iterations": float64(fit.Iterations), "subjects, noised": math.Round(subjectsOf(releases))}
	if c.checking() {
		tasks, err := c.askCheck(s)
		return tasks, info, err
	}
	s.Phase = method.Done
	return nil, info, nil
}

// biases are those of predictions at single sites; nil where nothing tells of any.
func (c way) biases(repaired *moments.ProjectedMoments, model *ppca.Params, sites []string, releases []moments.Released, told [][]moments.NoisyMoments) (*fitted.Biases, error) {
	found, err := repaired.Biases(told, model, c.Plan.Seed)
	if err != nil || math.IsNaN(found.All) {
		return nil, err
	}
	out := &fitted.Biases{NewSite: found.All}
	for i, name := range sites {
		at := fitted.SiteBias{Name: name, Subjects: max(1, subjectsOf(releases[i:i+1])), Variance: found.All}
		if found.Sites[i] > found.All {
			at.Variance = found.Sites[i]
		}
		for k, v := range c.Plan.Views {
			if !slices.ContainsFunc(releases[i].Fine, func(lens moments.Whitening) bool { return slices.Contains(lens.Views, k) }) {
				at.Lacks = append(at.Lacks, v.Name)
			}
		}
		out.Sites = append(out.Sites, at)
	}
	return out, nil
}

// subjectsOf is the noised number of subjects behind some releases: without bias, and
// so below 0 at times.
func subjectsOf(releases []moments.Released) (n float64) {
	for i := range releases {
		for _, lens := range releases[i].Fine {
			n += lens.Count
		}
	}
	return n
}

// subjectsSD is the standard deviation of the noise in it.
func subjectsSD(releases []moments.Released) float64 {
	variance := 0.0
	for i := range releases {
		for _, lens := range releases[i].Fine {
			variance += lens.CountVar
		}
	}
	return math.Sqrt(variance)
}
