package mixture

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/figure"
	"parley/method"
	"parley/methods/mixture/fitted"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/sketch"
)

// Result implements [method.Coordinator].
func (c *coordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*state)
	p, err := s.sample()
	if err != nil {
		return nil, err
	}
	return c.result(p, c.released(s))
}

// view holds a posterior against what it was made of.
func (s *setup) view(p *gmm.Posterior, all *released) (*view, error) {
	o, err := s.observation(all)
	if err != nil {
		return nil, err
	}
	fit, err := s.Of.Fit(o, p)
	if err != nil {
		return nil, err
	}
	v := &view{View: fitted.NewView(s.Setup, p), own: s, observed: o, fit: fit}
	v.Called, v.Options = "posterior", s.Options
	for _, a := range all.Sites {
		v.lacking += a.Lacking
	}
	v.doubt()
	return v, nil
}

// result is that of a posterior made of what the sites released.
func (s *setup) result(p *gmm.Posterior, all *released) (*method.Result, error) {
	v, err := s.view(p, all)
	if err != nil {
		return nil, err
	}
	files, err := v.Files()
	if err != nil {
		return nil, err
	}
	file, err := all.file(s.Plan)
	if err != nil {
		return nil, err
	}
	files = append(files, file)
	var counted []figure.SiteSubjects
	for _, a := range all.Sites {
		counted = append(counted, method.Complete(s.Plan, a.Site, a.Rows, a.RowsSD))
	}
	return &method.Result{Files: files, Metrics: v.metrics(), Found: v.Found(), Sure: v.sure(), Headline: v.headline(),
		Sections: []figure.Section{v.Overview(counted), v.componentsSection()}}, nil
}

// view is a posterior beside what it was made of.
type view struct {
	fitted.View
	own      *setup
	observed sketch.Observation
	fit      *sketch.Fit
	lost     int // how many of the doubts are about the groups
	lacking  int // subjects who lack a feature; 0 where nothing tells
}

func (v *view) metrics() map[string]float64 {
	p := v.Posterior
	out := map[string]float64{"rows": v.observed.Rows, "frequencies": float64(v.own.Of.Len()),
		"draws": float64(len(p.Draws)), "effective_sample_size": p.Size, "temperatures": float64(p.Stages),
		"acceptance": p.Acceptance, "largest_residual_sd": v.fit.Largest, "misfit_chi_square": v.fit.ChiSq,
		"misfit_p": v.fit.Tail, "noise_sd_of_frequency_means": math.Sqrt(v.observed.NoiseVar),
		"doubts": float64(len(v.Doubted))}
	if v.own.Sum == nil {
		out["left_out"] = float64(v.lacking)
	}
	v.Components(out)
	return out
}

func (v *view) headline() []figure.Fact {
	rows := figure.Fact{Name: "rows", Value: figure.Count.Text(v.observed.Rows)}
	if v.observed.RowsVar > 0 {
		rows.Name += fmt.Sprintf(", by a noised count (± %.0f)", math.Sqrt(v.observed.RowsVar))
	}
	return []figure.Fact{{Name: "components", Value: strconv.Itoa(v.Prior.Components())}, rows,
		{Name: fmt.Sprintf("effective sample size, of %d draws", len(v.Posterior.Draws)),
			Value: fmt.Sprintf("%.0f", v.Posterior.Size)}}
}

// sure says in words whether groups were found, how well the mixture fits, and how precisely it was computed.
func (v *view) sure() string {
	says := "The groups are found, and the mixture agrees with what the sites released, as far as that tells."
	switch {
	case v.Prior.Components() == 1 && !v.misfits() && len(v.Doubted) == 0:
		says = "One group agrees with what the sites released, as far as that tells."
	case v.lost > 0:
		says = "The groups are not to be relied on as they are: see below."
	case v.misfits():
		says = "The groups are found, and their shape is not normal, or there are more of them: see below."
	}
	return says + fmt.Sprintf(" The largest residual is %.1f standard deviations, and a misfit as large would come by "+
		"chance with probability %s. The effective sample size is %.0f of %d draws.",
		v.fit.Largest, figure.General.Text(v.fit.Tail), v.Posterior.Size, len(v.Posterior.Draws))
}

const misfit = "it misfits the sums"

// doubt collects what speaks against the posterior: that groups were not found, by the components themselves and the
// effective sample size; and that their shape is another than normal, by the predictive check.
func (v *view) doubt() {
	all := groupDoubts(v.Posterior, v.Prior, v.observed.Rows)
	if v.Posterior.Size < leastDraws {
		all = append(all, fmt.Sprintf("the sample is worth %.0f independent draws only", v.Posterior.Size))
	}
	pairs := together(v.Mean, fitted.SeedOf(v.Plan, "apart"))
	for i, pair := range pairs {
		if v.misfits() {
			all = append(all, fmt.Sprintf("component %d may be a part of the group of component %d: they do not stand "+
				"apart, and groups are not normal distributions", pair[0]+1, pair[1]+1))
		} else if !slices.Contains(pairs[:i], [2]int{pair[1], pair[0]}) && v.one(pair) {
			all = append(all, fmt.Sprintf("components %d and %d may be one group: a normal distribution in their "+
				"place agrees with what the sites released, too", min(pair[0], pair[1])+1, max(pair[0], pair[1])+1))
		}
	}
	v.lost = len(all)
	if v.misfits() {
		all = append(all, misfit+": a misfit of the sums as large would come by chance in 1 % of studies or fewer")
	}
	v.Doubted = all
}

// one says whether the sums agree with a mixture that has one component in place of a pair, with their mean and
// covariance.
func (v *view) one(pair [2]int) bool {
	m := merged(v.Mean, pair[0], pair[1])
	fit, err := v.own.Of.Fit(v.observed, &gmm.Posterior{Draws: []gmm.Mixture{m}, Weights: []float64{1}})
	return err == nil && fit.Tail > fitted.Level
}

// statements say of the groups whether they were found, and of their shape whether it is normal: each by what was
// measured for it, and neither because of the other.
func (v *view) statements() (notes []figure.Note) {
	groups := v.Doubted[:v.lost]
	switch {
	case len(groups) > 0:
		notes = append(notes, figure.Note{Warning: true, Title: "Do not rely on these groups: " + titles(groups),
			Text: fmt.Sprintf("Against them speaks that %s. More rows, a larger ε, fewer features or another number "+
				"of components (parley select) may help.", strings.Join(groups, "; that "))})
	case v.Prior.Components() > 1:
		text := "No component is off by half of the distance to its neighbour with a probability above 1 %, other " +
			"starts of the search led to no rival, and each has weight."
		if v.misfits() {
			text += " Of rows of any component nine in ten are its own."
		}
		notes = append(notes, figure.Note{Title: "The groups are found", Text: text})
	}
	if v.misfits() {
		notes = append(notes, figure.Note{Warning: true, Title: "The groups' shape is not normal, or there are more " +
			"of them",
			Text: "The sums are further from what the mixture expects than chance and noise explain. Who belongs " +
				"together may stand all the same, and the statement on the groups says so. Standard deviations, " +
				"tails and densities of single rows are not to be relied on, and intervals are too narrow. parley " +
				"select tells whether another number of components fits."})
	}
	return notes
}

// componentsSection draws the components over what is known of the rows.
func (v *view) componentsSection() figure.Section {
	section := v.View.ComponentsSection()
	var says []figure.Item
	for _, note := range v.statements() {
		says = append(says, figure.Item{Note: &note})
	}
	if note := fitted.LeftOut(v.lacking, int(v.observed.Rows)+v.lacking); note != nil {
		says = append(says, figure.Item{Note: note})
	}
	if sd := math.Sqrt(v.observed.RowsVar); v.observed.Rows < 5*sd {
		says = append(says, figure.Item{Note: &figure.Note{Warning: true, Title: "Noise is as large as the data",
			Text: fmt.Sprintf("The sites have about %.0f rows together, by a count whose noise has a standard "+
				"deviation of %.0f. Nothing here should be believed: it takes a larger ε, or more rows.",
				v.observed.Rows, sd)}})
	}
	says = append(says, figure.Item{Note: v.fits()})
	section.Items = slices.Concat(says, section.Items)
	return section
}

// misfits reports whether what was released speaks against the mixture.
func (v *view) misfits() bool { return v.fit.Tail <= fitted.Level }

// fits compares what sites released with what the mixture expects.
func (v *view) fits() *figure.Note {
	tail := fmt.Sprintf("%.2g\u00a0%%", 100*v.fit.Tail)
	if v.misfits() {
		tail = "1\u00a0% or fewer"
	}
	return &figure.Note{Title: fmt.Sprintf("A mixture that is right is off from the sums by as much in %s of studies",
		tail),
		Text: fmt.Sprintf("All that is known of the rows are the means of a cosine and a sine at each of %d public "+
			"frequencies. The largest distance from what the posterior expects is %.1f standard deviations of chance "+
			"and noise; of so many the largest should be below about %.1f. All together, χ² is %.0f with %.0f degrees "+
			"of freedom. Data sets were drawn from this mixture, with the same noise, to tell how often that is.",
			v.own.Of.Len()/2, v.fit.Largest, sketch.LikelyLargest(v.own.Of.Len()), v.fit.ChiSq, v.fit.Freedom)}
}
