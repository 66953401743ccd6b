package private

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
)

// coordinator asks all sites for totals, for products, for one gradient after the other,
// and at the end, where that is paid for, how well the model predicts.
type coordinator struct{ *common }

// New works out what a plan says to the coordinator.
func New(s *options.Setup) (method.Coordinator, error) {
	c, err := newCommon(s)
	return coordinator{c}, err
}

// state is what the coordinator carries.
type state struct {
	Phase string   `cbor:"phase"`
	Left  []string `cbor:"left"`
	Units units    `cbor:"units"` // what numbers are brought to
	// Window has the lower ends and widths of bins of the last histogram.
	Window *options.Scale `cbor:"window,omitempty"`
	// Sums are by task, gradients of either kind being one, and by site: gradients of the exchange under way, of the
	// sites that are there then, and the last histogram, totals and products of those that stay, as the Gram matrix is
	// of the same rows as gradients are.
	Sums    map[string]map[string]*released `cbor:"sums"`
	Scale   float64                         `cbor:"scale"` // of the products
	Base    int                             `cbor:"base"`  // the class that others are compared with
	Fits    []*fit                          `cbor:"fits"`  // of pairs of classes
	Reports map[string]*predict.Assessment  `cbor:"reports"`
}

// MarshalBinary implements [method.State].
func (s *state) MarshalBinary() ([]byte, error) { return method.SealState(s) }

// Init implements [method.Coordinator].
func (c coordinator) Init() (method.State, error) {
	s := &state{Sums: map[string]map[string]*released{}, Reports: map[string]*predict.Assessment{}}
	for range c.columns.pairs() {
		s.Fits = append(s.Fits, newFit(c.columns, c.Options.Rounds))
	}
	for _, kind := range []string{taskHistogram, taskTotals, taskProducts, taskLate} {
		s.Sums[kind] = map[string]*released{}
	}
	return s, nil
}

// Restore implements [method.Coordinator].
func (c coordinator) Restore(data []byte) (method.State, error) {
	s := new(state)
	return s, method.OpenState(data, s)
}

// asked is the task for gradients where the fits are.
func (s *state) asked(units *options.Scale) *gradientTask {
	first := s.Fits[0]
	t := &gradientTask{columnsTask: columnsTask{Units: units}, point: first.at(), Base: s.Base}
	for _, f := range s.Fits[1:] {
		t.Others = append(t.Others, f.at())
	}
	return t
}

// Next implements [method.Coordinator].
func (c coordinator) Next(ms method.State) (method.Step, error) {
	s := ms.(*state)
	step := method.Step{State: s, Of: c.Options.Rounds + 3}
	if c.learned() {
		step.Of += histograms
	}
	var err error
	switch s.Phase {
	case "", taskHistogram:
		if s.Phase == taskHistogram {
			counts := c.pooled(s, taskHistogram)
			s.Window = c.window(&s.Units)
			s.Units = c.tell(&s.Units, &counts)
		}
		if c.learned() && s.Units.After < histograms {
			clear(s.Sums[taskHistogram])
			step.Tasks, err = c.ask(s, taskHistogram, columnsTask{c.window(&s.Units), s.Units.After > 0})
		} else {
			step.Tasks, err = c.ask(s, taskTotals, columnsTask{Units: c.scale(&s.Units)})
		}
	case taskTotals:
		s.Base = c.largestClass(s)
		s.Scale = c.divisor(s)
		step.Tasks, err = c.ask(s, taskProducts, productsTask{columnsTask{Units: c.scale(&s.Units)}, s.Scale})
	case taskProducts:
		step.Tasks, err = c.gradient(s)
	case taskEarly, taskLate:
		if gradients := s.Sums[taskLate]; len(gradients) > 0 {
			sum := c.pooled(s, taskLate)
			far := 0.0
			for i, f := range s.Fits {
				if s.Phase == taskLate {
					f.Late.take(f.at(), gradients, i)
				}
				g := c.gram(s, i)
				f.Take(g, g.prior, sum.Values[i*len(f.Mean):], sum.sd())
				far = max(far, f.Trace[len(f.Trace)-1])
			}
			clear(gradients)
			step.Info = method.Info{"root mean square step in activations": far}
		} else {
			for _, f := range s.Fits {
				f.Round++ // nobody who was asked is still there
			}
		}
		step.Tasks, err = c.gradient(s)
	case options.TaskAssess:
		s.Phase = method.Done
	}
	if err != nil {
		return method.Step{}, err
	}
	step.Done = s.Phase == method.Done
	step.Progress = min(s.Units.After+s.Fits[0].Round+min(len(s.Sums[taskTotals]), 1)+min(len(s.Sums[taskProducts]), 1),
		step.Of)
	if step.Done {
		step.Progress = step.Of
	}
	return step, nil
}

// ask asks all sites that stay for the same.
func (c coordinator) ask(s *state, kind string, body any) ([]method.Task, error) {
	s.Phase = kind
	return method.Ask(kind, method.Staying(c.Plan.Sites, s.Left), func(string) (any, error) { return body, nil })
}

// pooled adds up what sites gave to a task; it has no values if none gave any.
func (c coordinator) pooled(s *state, kind string) (all released) {
	for _, site := range c.Plan.Sites {
		if own := s.Sums[kind][site]; own != nil {
			all.add(own)
		}
	}
	return all
}

// gradient asks for the next one, or goes on to the end.
func (c coordinator) gradient(s *state) ([]method.Task, error) {
	switch round := s.Fits[0].Round; {
	case round < burn(c.Options.Rounds):
		return c.ask(s, taskEarly, s.asked(c.scale(&s.Units)))
	case round < c.Options.Rounds:
		return c.ask(s, taskLate, s.asked(c.scale(&s.Units)))
	case c.release(options.TaskAssess) == nil:
		s.Phase = method.Done
		return nil, nil
	}
	m, _ := c.posterior(s)
	tasks, err := c.ask(s, options.TaskAssess, m)
	return method.Optional(tasks), err
}

// largestClass is that of which most rows are; 0 where all rows are in one sum.
func (c coordinator) largestClass(s *state) (at int) {
	totals, most := c.pooled(s, taskTotals), math.Inf(-1)
	for k := range len(totals.Values) / c.columns.totalsLen() {
		if n, _ := c.columns.rows(totals.part(k, c.columns.totalsLen()).Values, 0); n > most {
			at, most = k, n
		}
	}
	return at
}

// divisor is what rows are divided by before their products are summed, by how many the base has.
func (c coordinator) divisor(s *state) float64 {
	totals := c.pooled(s, taskTotals)
	if totals.Values == nil { // all have left
		return 1
	}
	sum := c.release(taskProducts)
	count, _ := c.columns.rows(totals.part(s.Base, c.columns.totalsLen()).Values, totals.Variance)
	return scaleOf(count,
		sum.Mechanism.Noise*sum.Bound*sum.Bound*math.Sqrt(float64(len(s.Sums[taskTotals]))))
}

// gram is what the sites that stay released of the rows of pair i.
func (c coordinator) gram(s *state, i int) *gram {
	var totals, products released
	for _, site := range c.Plan.Sites {
		if t, p := s.Sums[taskTotals][site], s.Sums[taskProducts][site]; t != nil && p != nil {
			totals.add(t)
			products.add(p)
		}
	}
	if totals.Values == nil { // all have left
		classes := max(c.columns.classes, 1)
		totals, products = released{make(wire.Vector, classes*c.columns.totalsLen()), 1},
			released{make(wire.Vector, classes*glm.Triangle(c.columns.width())), 1}
	}
	return c.gramOf(&totals, &products, s, i)
}

// gramOf is what released sums say of the rows of pair i.
func (c coordinator) gramOf(totals, products *released, s *state, i int) *gram {
	d, prior := c.columns.width(), c.prior
	if n := c.columns.totalsLen(); !c.columns.linear && c.Encoding.Intercept {
		counts := totals.Values[max(n-2, 0):]
		if c.columns.classes > 1 {
			counts = []float64{totals.Values[(1+s.Base)*n-1], totals.Values[(1+c.columns.pair(s.Base, i))*n-1]}
		}
		prior = prior.about(counts, totals.Variance)
	}
	of := func(r *released, length int) *released {
		if c.columns.classes < 2 {
			return r
		}
		both := new(released)
		both.add(r.part(s.Base, length))
		both.add(r.part(c.columns.pair(s.Base, i), length))
		return both
	}
	totals, products = of(totals, c.columns.totalsLen()), of(products, glm.Triangle(d))
	m := mat.NewSymDense(d, nil)
	at := 0
	for i := range d { // the upper triangle by rows
		for j := i; j < d; j++ {
			m.SetSym(i, j, products.Values[at])
			at++
		}
	}
	g := newGram(c.columns, totals.Values, totals.Variance, m, products.Variance, s.Scale)
	g.law, g.edges, g.prior = s.Units.Law, s.Units.Edges, prior
	g.Dispersion, g.asymmetry = s.Fits[i].Dispersion, s.Fits[i].Asymmetry
	return g
}

// Fold implements [method.Coordinator]. The noise of an honest site may be anything: no
// sum is refused for its size, but cut where nobody could go on from it.
func (c coordinator) Fold(ms method.State, in method.Contribution) (method.State, error) {
	s := ms.(*state)
	if err := method.Expect(in, c.Plan.Sites, s.Phase); err != nil {
		return nil, err
	}
	declared := c.release(in.Kind)
	if declared == nil {
		return nil, fmt.Errorf("an answer to %q, which was not asked for", in.Kind)
	}
	sum, err := method.OnlySum(in, declared.Name)
	if err != nil {
		return nil, err
	}
	if in.Kind == options.TaskAssess {
		if err := method.Once(in, s.Reports[in.Site] != nil); err != nil {
			return nil, err
		}
		s.Reports[in.Site], err = predict.Noised(sum)
		return s, err
	}
	of := s.Sums[in.Kind]
	if in.Kind == taskEarly {
		of = s.Sums[taskLate]
	}
	if err := method.Once(in, of[in.Site] != nil); err != nil {
		return nil, err
	}
	r := &released{Variance: sum.SD() * sum.SD()}
	for block := range declared.Blocks {
		for _, v := range sum.Floats(block) {
			r.Values = append(r.Values, glm.Clamp(v, largest))
		}
	}
	if in.Kind == taskProducts {
		floats.Scale(s.Scale*s.Scale, r.Values)
		r.Variance *= math.Pow(s.Scale, 4)
	}
	of[in.Site] = r
	return s, nil
}

// Leave implements [method.Coordinator]. The Gram matrix is of those who stay, and so are
// the gradients from here on: what was filtered of others is dropped, but not at the end.
func (c coordinator) Leave(ms method.State, site string) (method.State, error) {
	s := ms.(*state)
	left, err := method.Leave(c.Plan.Sites, s.Left, site)
	if err != nil {
		return nil, err
	}
	s.Left = left
	if s.Phase == options.TaskAssess || s.Phase == method.Done {
		return s, nil
	}
	for _, of := range s.Sums {
		delete(of, site)
	}
	for _, f := range s.Fits {
		delete(f.Late.Sums, site)
		f.Forget()
	}
	return s, nil
}

// Share gives every site the model: it is the study's result.
func (c coordinator) Share(ms method.State, _ string) ([]byte, error) {
	m, _ := c.posterior(ms.(*state))
	return wire.Marshal(m)
}

// Result implements [method.Coordinator].
func (c coordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*state)
	if s.Phase != method.Done {
		return nil, fmt.Errorf("the study is not done: it waits for %q", s.Phase)
	}
	posterior, width := c.posterior(s)
	q, err := glm.NewNormal(posterior.Mean, posterior.Covariance)
	if err != nil {
		return nil, err
	}
	e, err := c.encoding(posterior.Units, false)
	if err != nil {
		return nil, err
	}
	before, err := c.before(s)
	if err != nil {
		return nil, err
	}
	o := *c.Options
	if c.columns.linear {
		o.NoiseVariance = &posterior.Noise
	}
	m, err := fitted.New(c.Plan, &o, before, q, e)
	if err != nil {
		return nil, err
	}
	rounds := s.Fits[0].Round
	for _, name := range c.Plan.Sites {
		m.Sites = append(m.Sites, fitted.ModelSite{Name: name, Updates: rounds, Left: slices.Contains(s.Left, name)})
	}
	m.Verdicts = slices.Concat(c.verdicts(s), m.HeldBack())
	sites, pooled := fitted.Reports(c.Plan.Sites, s.Reports)
	metrics := map[string]float64{"gradients": float64(rounds), "width_by_noise": width}
	facts := []figure.Fact{{Name: "standard errors, beside those without noise",
		Value: fmt.Sprintf("%.1f times", width)}}
	if c.columns.linear {
		g := c.gram(s, 0)
		sd, explained := math.Sqrt(posterior.Noise), g.explained(s.Fits[0].Mean)
		m.Free, metrics["residual_sd"], metrics["r_squared"] = s.Fits[0].free(g.Rows), sd, explained
		facts = append(facts,
			figure.Fact{Name: "of the outcome's variance explained", Value: fmt.Sprintf("%.0f %%", 100*explained)},
			figure.Fact{Name: "standard deviation of what is left", Value: fmt.Sprintf("%.3g", sd)})
	}
	r, err := fitted.Result(m, pooled, metrics, facts...)
	if err != nil {
		return nil, err
	}
	effects := fitted.Coefficients(m)
	var counted []figure.SiteSubjects
	for _, name := range c.Plan.Sites {
		if t := s.Sums[taskTotals][name]; t != nil {
			t = t.whole(c.columns.totalsLen())
			n, variance := c.columns.rows(t.Values, t.Variance)
			counted = append(counted, method.Complete(c.Plan, name, n, math.Sqrt(variance)))
		}
	}
	if c.learned() {
		effects.Items = append(effects.Items, c.limits(s))
	}
	people := method.Overview(c.Plan, counted)
	if t := c.baseline(s, e); t != nil {
		people.Items = append(people.Items, figure.Item{Table: t})
	}
	r.Sections = append(r.Sections, people, effects)
	if pooled != nil {
		r.Sections = append(r.Sections, fitted.Prediction(m.Options, sites, pooled))
	}
	return r, nil
}

// unseen is how many subjects, as a share, must have values in a few bins of a second histogram to be told from noise
// in 95 of 100 studies.
func (c coordinator) unseen(s *state) float64 {
	const few = 4
	counts := c.pooled(s, taskHistogram)
	if counts.Values == nil { // all sites have left
		return 1
	}
	rows := floats.Sum(counts.Values) / float64(len(c.columns.told))
	return min(max((math.Sqrt(2*surest)+within)*math.Sqrt(few)*counts.sd()/max(rows, 1), fewestOfLaw), 1)
}

// limits lists the units that histograms have told, and between which values numbers count as they are.
func (c coordinator) limits(s *state) figure.Item {
	t := &figure.Table{ID: "units", Title: "Units of numbers",
		Caption: fmt.Sprintf("Noised histograms over the plan's ranges tell about where numbers lie and how widely "+
			"they vary. The fit is in these units: a value more than %v scales from the centre counts as if it lay "+
			"there. If fewer than %.1f %% of subjects had values far from all others, noise could hide them, and the "+
			"effect of such a number would come out too large. The last column is by what factor noise leaves the "+
			"scale open (one standard deviation of its logarithm).", c.Options.Limit(), 100*c.unseen(s)),
		Columns: figure.TextColumns("feature", "centre", "scale", "counts from", "counts to", "open by a factor of")}
	limit := float64(c.Options.Limit())
	for k, x := range s.Units.Centre {
		if k == c.columns.scaled { // the last, of which all values count
			limit = math.NaN()
		}
		of, scale := c.columns.told[k], s.Units.Scale[k]
		t.Add(of.name, x, scale, max(x-limit*scale, of.low), min(x+limit*scale, of.high), math.Exp(s.Units.Open[k]))
	}
	return figure.Item{Table: t}
}
