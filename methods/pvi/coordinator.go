package pvi

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/wire"
	"parley/method"
	"parley/privacy"
)

// coordinator is the coordinator's half: a common scale where the plan has none,
// updates of the sites' factors in the order of a schedule, an assessment of the
// model by every site.
type coordinator struct{ *setup }

// The phases beside those that are named by the task they wait for.
const phaseDone = "done"

// state is what the coordinator carries. The posterior is nowhere in it: it is the
// prior times the factors, in the plan's order, so that no change can be in q and
// not in a factor.
type state struct {
	Phase string `cbor:"phase"`
	Turn  int    `cbor:"turn"`  // sequential: place in the plan's sites of the next to be asked
	Round int    `cbor:"round"` // sequential, synchronous: complete rounds
	Asked int    `cbor:"asked"` // updates asked for, of all sites
	// Of all sites: updates folded, the divergence that the last one made, and how
	// many weights a factor was projected in, over all updates.
	Folded    int                    `cbor:"folded"`
	LastKL    float64                `cbor:"last_kl"`
	Projected int                    `cbor:"projected"`
	Left      []string               `cbor:"left"`
	Scale     *scaleMessage          `cbor:"scale"`
	Point     wire.Vector            `cbor:"point"` // variant global: means, then logarithms of variances
	Sites     map[string]*siteRecord `cbor:"sites"`
	Trace     []tracePoint           `cbor:"trace"`
	Stride    int                    `cbor:"stride"` // of the trace; 0 is 1
}

// siteRecord is what the coordinator knows of one site.
type siteRecord struct {
	Factor  gaussianMessage `cbor:"factor"`
	From    gaussianMessage `cbor:"from"`  // q as the site was sent it with the update that it works on
	Asked   int             `cbor:"asked"` // updates asked for
	Folded  int             `cbor:"folded"`
	Moved   float64         `cbor:"moved"` // by its last update, before damping: see moved
	Moments *scaleAnswer    `cbor:"moments"`
	Report  *assessment     `cbor:"report"`
}

// tracePoint is what one update did.
type tracePoint struct {
	Update int     `cbor:"update"` // the study's count, from 1
	KL     float64 `cbor:"kl"`     // of the new q from the old, in nats
}

// maxTrace bounds what a checkpoint holds of a long study.
const maxTrace = 1000

// follow keeps a point of the trace; of a long study only every second, fourth, …
func (s *state) follow(kl float64) {
	s.Folded++
	s.LastKL = kl
	stride := max(s.Stride, 1)
	if s.Folded%stride != 0 {
		return
	}
	s.Trace = append(s.Trace, tracePoint{s.Folded, kl})
	if len(s.Trace) > maxTrace {
		s.Stride = 2 * stride
		s.Trace = slices.DeleteFunc(s.Trace, func(p tracePoint) bool { return p.Update%s.Stride != 0 })
	}
}

// MarshalBinary implements [method.State].
func (s *state) MarshalBinary() ([]byte, error) { return wire.Marshal(s) }

// Init implements [method.Coordinator].
func (c *coordinator) Init() (method.State, error) {
	s := &state{Sites: map[string]*siteRecord{}}
	for _, name := range c.plan.Sites {
		s.Sites[name] = &siteRecord{Factor: packGaussian(Flat(c.weights()))}
	}
	if c.opts.Variant == VariantGlobal {
		s.Point = Point(c.prior)
	}
	return s, nil
}

// Restore implements [method.Coordinator].
func (c *coordinator) Restore(data []byte) (method.State, error) {
	s := new(state)
	if err := wire.Unmarshal(data, s); err != nil {
		return nil, err
	}
	if c.opts.Variant == VariantGlobal && len(s.Point) != 2*c.weights() {
		return nil, fmt.Errorf("the state's point has %d coordinates, and there are %d", len(s.Point), 2*c.weights())
	}
	for _, name := range c.plan.Sites {
		r := s.Sites[name]
		if r == nil {
			return nil, fmt.Errorf("the state has no site %s", name)
		}
		if _, err := r.Factor.factor(c.weights()); err != nil {
			return nil, fmt.Errorf("the state's factor of site %s: %w", name, err)
		}
		if s.waits(name) {
			if _, err := r.From.density(c.weights()); err != nil {
				return nil, fmt.Errorf("the state's q for site %s: %w", name, err)
			}
		}
	}
	return s, nil
}

// posterior returns q.
func (c *coordinator) posterior(s *state) (Gaussian, error) {
	if c.opts.Variant == VariantGlobal {
		return FromPoint(s.Point)
	}
	factors := make([]Gaussian, 0, len(c.plan.Sites))
	for _, name := range c.plan.Sites {
		f := s.Sites[name].Factor
		factors = append(factors, Gaussian{f.Eta, f.Lambda})
	}
	q := c.prior
	if c.opts.private(c.plan) {
		q = noiseAware(c.prior, factors, noiseVariance(*c.opts.Clip, c.noise(), c.opts.Rounds))
	} else {
		for _, f := range factors {
			q = q.Times(f)
		}
	}
	return q, q.CheckProper(c.weights())
}

// staying lists the sites that have not left, in the plan's order.
func (c *coordinator) staying(s *state) []string {
	return slices.DeleteFunc(slices.Clone(c.plan.Sites), func(site string) bool { return slices.Contains(s.Left, site) })
}

// Next implements [method.Coordinator].
func (c *coordinator) Next(ms method.State) (method.Step, error) {
	s := ms.(*state)
	step := method.Step{State: s}
	was := s.Phase
	var err error
	switch was {
	case "":
		s.Phase = taskUpdate
		if c.opts.Scaling == ScaleStandard {
			s.Phase = taskScale
			step.Tasks, err = c.ask(taskScale, c.staying(s), func(string) (any, error) { return scaleTask{}, nil })
		}
	case taskScale:
		s.Phase = taskUpdate
		s.Scale, err = c.poolMoments(s)
	case taskUpdate:
		step, err = c.update(s)
	case taskAssess:
		s.Phase = phaseDone
	}
	if err != nil {
		return method.Step{}, err
	}
	step.Done = s.Phase == phaseDone
	step.Progress, step.Of = c.progress(s)
	if was == taskUpdate && s.Folded > 0 {
		step.Info = method.Info{"KL to the q before": s.LastKL}
	}
	return step, nil
}

// ask makes a task for each of the sites.
func (c *coordinator) ask(kind string, sites []string, body func(site string) (any, error)) ([]method.Task, error) {
	var tasks []method.Task
	for _, site := range sites {
		b, err := body(site)
		if err != nil {
			return nil, err
		}
		data, err := wire.Marshal(b)
		if err != nil {
			return nil, fmt.Errorf("encoding task %q: %w", kind, err)
		}
		tasks = append(tasks, method.Task{Site: site, Kind: kind, Body: data, Optional: kind == taskAssess})
	}
	return tasks, nil
}

// update asks the sites whose turn it is, or goes on to the assessment.
func (c *coordinator) update(s *state) (method.Step, error) {
	step := method.Step{State: s}
	sites := c.turn(s)
	if c.opts.Schedule == ScheduleAsynchronous {
		step.Wait = method.Any
	}
	if len(sites) == 0 {
		if slices.ContainsFunc(c.staying(s), s.waits) {
			return step, nil // for what is still on its way
		}
		return c.assess(s)
	}
	q, err := c.posterior(s)
	if err != nil {
		return step, err
	}
	step.Tasks, err = c.ask(taskUpdate, sites, func(site string) (any, error) {
		r := s.Sites[site]
		r.Asked++
		s.Asked++
		r.From = packGaussian(q)
		return updateTask{Scale: s.Scale, Q: packGaussian(q), Factor: r.Factor, Update: r.Asked}, nil
	})
	if c.opts.Schedule == ScheduleAsynchronous {
		for i, site := range sites {
			step.Tasks[i].Takes = c.takes(site, s.Sites[site].Asked)
		}
	}
	return step, err
}

// assess asks every site how well the model predicts, where that costs nothing.
func (c *coordinator) assess(s *state) (method.Step, error) {
	if p := c.protected[c.plan.Sites[0]]; p != nil && p.quality == nil {
		s.Phase = phaseDone
		return method.Step{State: s}, nil
	}
	s.Phase = taskAssess
	q, err := c.posterior(s)
	if err != nil {
		return method.Step{}, err
	}
	tasks, err := c.ask(taskAssess, c.staying(s), func(string) (any, error) {
		return assessTask{Scale: s.Scale, Q: packGaussian(q)}, nil
	})
	return method.Step{State: s, Tasks: tasks}, err
}

// Fold implements [method.Coordinator].
func (c *coordinator) Fold(ms method.State, in method.Contribution) (method.State, error) {
	s := ms.(*state)
	r := s.Sites[in.Site]
	if r == nil {
		return nil, fmt.Errorf("%q is not a site of this study", in.Site)
	}
	if in.Kind != s.Phase {
		return nil, fmt.Errorf("an answer to %q while the study waits for %q", in.Kind, s.Phase)
	}
	var err error
	switch in.Kind {
	case taskScale:
		a := new(scaleAnswer)
		if err = decodeAnswer(in, a); err == nil {
			err = a.check(len(c.numbers()))
		}
		r.Moments = a
	case taskUpdate:
		if !s.waits(in.Site) {
			return nil, fmt.Errorf("site %s was not asked for an update", in.Site)
		}
		if err = c.fold(s, in); err == nil {
			r.Folded++
			r.From = gaussianMessage{}
		}
	case taskAssess:
		r.Report, err = c.quality(in)
	default:
		err = fmt.Errorf("an answer to %q, which was not asked for", in.Kind)
	}
	return s, err
}

// quality reads how well a site's outcomes are predicted.
func (c *coordinator) quality(in method.Contribution) (*assessment, error) {
	if c.protected[in.Site] != nil {
		sum, err := sumOf(in, sumQuality)
		if err != nil {
			return nil, err
		}
		return noisedQuality(sum)
	}
	a := new(assessment)
	if err := decodeAnswer(in, a); err != nil {
		return nil, err
	}
	return a, a.check()
}

// sumOf returns the noised sum that an answer consists of.
func sumOf(in method.Contribution, name string) (*privacy.Noised, error) {
	if len(in.Body) > 0 {
		return nil, fmt.Errorf("the answer to %q has a body beside its noised sum", in.Kind)
	}
	return in.Sum(name)
}

func decodeAnswer(in method.Contribution, a any) error {
	if err := wire.Unmarshal(in.Body, a); err != nil {
		return fmt.Errorf("decoding the answer to %q: %w", in.Kind, err)
	}
	return nil
}

// waits says whether an update of the site is on its way.
func (s *state) waits(site string) bool { return s.Sites[site].Asked > s.Sites[site].Folded }

// fold replaces the site's factor, which nobody else has touched since the site was
// asked: the change belongs to it whatever q has become meanwhile.
func (c *coordinator) fold(s *state, in method.Contribution) error {
	before, err := c.posterior(s)
	if err != nil {
		return err
	}
	switch {
	case c.opts.Variant == VariantGlobal:
		err = c.foldStep(s, in)
	case c.opts.private(c.plan):
		err = c.foldSum(s, in)
	default:
		err = c.foldChange(s, in, before)
	}
	if err != nil {
		return err
	}
	after, err := c.posterior(s)
	if err != nil {
		return fmt.Errorf("after this answer: %w", err)
	}
	kl, err := after.KL(before)
	if err != nil {
		return fmt.Errorf("after this answer: %w", err)
	}
	if !finite(kl) { // precisions so far apart that their quotient has no digits
		kl = math.MaxFloat64
	}
	s.follow(kl)
	return nil
}

func (c *coordinator) foldChange(s *state, in method.Contribution, q Gaussian) error {
	a := new(updateAnswer)
	if err := decodeAnswer(in, a); err != nil {
		return err
	}
	change, err := a.Change.factor(c.weights())
	if err != nil {
		return err
	}
	r := s.Sites[in.Site]
	// Damping and projection need the quotient of the optimum and q alone.
	factor, applied, projected := Refine(Gaussian{r.Factor.Eta, r.Factor.Lambda}, Flat(c.weights()), change, c.opts.Damping)
	if err := c.workable(factor); err != nil {
		return fmt.Errorf("after this answer: %w", err)
	}
	r.Factor = packGaussian(factor)
	r.Moved = moved(q, applied) / c.opts.Damping
	s.Projected += projected
	return nil
}

// moved says how far a change leads from q: the largest shift of a mean, in
// standard deviations, or of the logarithm of a precision.
func moved(q, change Gaussian) float64 {
	far := 0.0
	for j, l := range q.Lambda {
		next := l + change.Lambda[j]
		shift := (q.Eta[j]+change.Eta[j])/next - q.Eta[j]/l
		far = max(far, math.Abs(shift)*math.Sqrt(l), math.Abs(math.Log(next/l)))
	}
	if !finite(far) { // a change that belongs to another q may lead beyond this one
		return math.MaxFloat64
	}
	return far
}

// foldSum moves the site's factor by a noised natural gradient at the q that it was
// sent. The noise of an honest site may be anything: no integers are refused, and
// what they lead to is cut where nobody could go on from it.
func (c *coordinator) foldSum(s *state, in method.Contribution) error {
	noised, err := sumOf(in, sumNatural)
	if err != nil {
		return err
	}
	sum := noised.Floats(0)
	for i := range sum {
		sum[i] = clamp(sum[i], factorLargest)
	}
	r := s.Sites[in.Site]
	factor := Gaussian{r.Factor.Eta, r.Factor.Lambda}
	change, err := c.natural().change(Gaussian{r.From.Eta, r.From.Lambda}, factor, c.opts.Damping, r.Folded, sum)
	if err != nil {
		return err
	}
	factor = factor.Times(change)
	for j := range factor.Eta {
		factor.Eta[j], factor.Lambda[j] = clamp(factor.Eta[j], factorLargest), clamp(factor.Lambda[j], factorLargest)
	}
	r.Factor = packGaussian(factor)
	return nil
}

func (c *coordinator) foldStep(s *state, in method.Contribution) error {
	a := new(stepAnswer)
	if err := decodeAnswer(in, a); err != nil {
		return err
	}
	if len(a.Step) != len(s.Point) {
		return fmt.Errorf("a step of %d coordinates where there are %d", len(a.Step), len(s.Point))
	}
	// Adagrad moves no coordinate by more than its rate, but for the rounding of a
	// difference.
	rate := c.opts.Global.LearningRate * 1.001
	for i, x := range a.Step {
		if far := rate + 1e-9*math.Abs(s.Point[i]); !inside(x, -far, far) {
			return fmt.Errorf("a step of %v in coordinate %d, where the rate allows ±%v", x, i+1, rate)
		}
		most := pointLargest
		if i >= c.weights() {
			most = pointWidest
		}
		s.Point[i] = clamp(s.Point[i]+x, most)
	}
	return nil
}

// Leave implements [method.Coordinator]: the site's factor stays.
func (c *coordinator) Leave(ms method.State, site string) (method.State, error) {
	s := ms.(*state)
	r := s.Sites[site]
	if r == nil {
		return nil, fmt.Errorf("%q is not a site of this study", site)
	}
	s.Left = append(s.Left, site)
	r.Asked, r.From = r.Folded, gaussianMessage{}
	return s, nil
}

// poolMoments makes a common scale from the sites' moments, which are then forgotten.
func (c *coordinator) poolMoments(s *state) (*scaleMessage, error) {
	var moments []*scaleAnswer
	for _, site := range c.plan.Sites {
		if r := s.Sites[site]; r.Moments != nil {
			moments = append(moments, r.Moments)
			r.Moments = nil
		}
	}
	return c.pool(moments)
}

// Share gives every site the model: it is the study's result.
func (c *coordinator) Share(ms method.State, _ string) ([]byte, error) {
	s := ms.(*state)
	q, err := c.posterior(s)
	if err != nil {
		return nil, err
	}
	return wire.Marshal(assessTask{Scale: s.Scale, Q: packGaussian(q)})
}
