package mixture

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"parley/method"
	"parley/methods/mixture/fitted"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/sketch"
	"parley/problem"
	"parley/study"
)

// coordinator is the coordinator's half: one release of every
// site, then a posterior that no site is asked anything for.
type coordinator struct{ *setup }

// state is what the coordinator carries.
type state struct {
	Phase  string           `cbor:"phase"`
	Left   []string         `cbor:"left"`
	Sites  map[string]*sums `cbor:"sites"`  // of those that have answered
	Sample *gmm.Posterior   `cbor:"sample"` // when done
}

// MarshalBinary implements [method.State].
func (s *state) MarshalBinary() ([]byte, error) { return method.SealState(s) }

// Init implements [method.Coordinator].
func (c *coordinator) Init() (method.State, error) {
	return &state{Sites: map[string]*sums{}}, nil
}

// Restore implements [method.Coordinator].
func (c *coordinator) Restore(data []byte) (method.State, error) {
	s := new(state)
	return s, method.OpenState(data, s)
}

// sample returns the posterior of a study that is done.
func (s *state) sample() (*gmm.Posterior, error) {
	if s.Phase != method.Done {
		return nil, fmt.Errorf("the study is not done: it waits for %q", s.Phase)
	}
	return s.Sample, nil
}

// Next implements [method.Coordinator].
func (c *coordinator) Next(ms method.State) (method.Step, error) {
	s := ms.(*state)
	step := method.Step{State: s, Of: 2}
	switch s.Phase {
	case "":
		s.Phase = task
		var err error
		step.Tasks, err = method.Ask(task, method.Staying(c.Plan.Sites, s.Left),
			func(string) (any, error) { return sumsTask{}, nil })
		return step, err
	case task:
		o, err := c.observation(c.released(s))
		if err != nil {
			return step, err
		}
		p, err := c.posterior(o)
		if err != nil {
			return step, err
		}
		s.Sample, s.Phase = p, method.Done
		step.Info = method.Info{"effective sample size": p.Size, "temperatures": float64(p.Stages)}
	}
	step.Done, step.Progress = true, 2
	return step, nil
}

// posterior is a sample of it, given what was observed.
func (s *setup) posterior(o sketch.Observation) (*gmm.Posterior, error) {
	return s.Of.Posterior(o, s.Prior, s.Options.Draws, fitted.SeedOf(s.Plan, "posterior"))
}

// released adds the sites up.
func (c *coordinator) released(s *state) *released {
	all := &released{Sums: make([]float64, c.Of.Len())}
	for _, name := range c.Plan.Sites {
		a := s.Sites[name]
		if a == nil {
			continue
		}
		for r, v := range a.Sums {
			all.Sums[r] += v
		}
		all.Sites = append(all.Sites, releasedSite{name, a.counted})
	}
	return all
}

// observation is the means of what the sites released.
func (c *setup) observation(all *released) (sketch.Observation, error) {
	o := sketch.Observation{Mean: slices.Clone(all.Sums)}
	for _, a := range all.Sites {
		o.Rows += a.Rows
		o.NoiseVar += a.SD * a.SD
		o.RowsVar += a.RowsSD * a.RowsSD
	}
	if c.Sum == nil && o.Rows < 1 {
		return o, fitted.ErrNoRows
	}
	o.Rows = max(o.Rows, 1) // noise may leave less
	for r := range o.Mean {
		if o.Mean[r] /= o.Rows; c.Sum == nil { // last digits go by the order of sites, and a fit multiplies them
			o.Mean[r] = math.Round(o.Mean[r]*0x1p40) / 0x1p40
		}
	}
	o.NoiseVar /= o.Rows * o.Rows
	if c.Sum != nil {
		// A mean of φ is between its ends, and noise is not as far off as what else may be sent.
		off := farOff * (math.Sqrt(o.NoiseVar) + math.Sqrt(o.RowsVar)/o.Rows)
		for r, x := range o.Mean {
			o.Mean[r] = min(max(x, -1-off), 1+off)
		}
	}
	return o, o.Check(c.Of.Len())
}

// Fold implements [method.Coordinator].
func (c *coordinator) Fold(ms method.State, in method.Contribution) (method.State, error) {
	s := ms.(*state)
	if err := method.Expect(in, c.Plan.Sites, s.Phase); err != nil {
		return nil, err
	}
	if in.Kind != task {
		return nil, fmt.Errorf("an answer to %q, which was not asked for", in.Kind)
	}
	if err := method.Once(in, s.Sites[in.Site] != nil); err != nil {
		return nil, err
	}
	a, err := open(c.setup, in)
	if err != nil {
		return nil, err
	}
	s.Sites[in.Site] = a
	return s, nil
}

// Leave implements [method.Coordinator]: what the site has released stays.
func (c *coordinator) Leave(ms method.State, site string) (method.State, error) {
	s := ms.(*state)
	var err error
	s.Left, err = method.Leave(c.Plan.Sites, s.Left, site)
	return s, err
}

// Share gives every site the posterior mean of the mixture.
func (c *coordinator) Share(ms method.State, _ string) ([]byte, error) {
	p, err := ms.(*state).sample()
	if err != nil {
		return nil, err
	}
	return fitted.Share(p.Mean())
}

// releasedName is the file of a result that keeps what its posterior was made of.
const releasedName = "model/released.json"

// releasedFormat names the format of that file and its version.
const releasedFormat = "parley/graffl-released/1"

// released is what the sites of a study released, added up: all that its posterior is made of, and any other that is
// made without asking them again. It tells no more than the report, which draws the sums and lists the rows.
type released struct {
	Format string         `json:"format"`
	Plan   string         `json:"plan_sha256"`
	Sums   []float64      `json:"sums"`  // Σ φ(x) over the rows of all sites, with their noise
	Sites  []releasedSite `json:"sites"` // that released something, in the plan's order
}

type releasedSite struct {
	Site string `json:"site"`
	counted
}

// file is [releasedName].
func (all *released) file(p *study.Plan) (method.File, error) {
	digest, err := p.Digest()
	if err != nil {
		return method.File{}, err
	}
	all.Format, all.Plan = releasedFormat, digest.String()
	data, err := json.Marshal(all)
	return method.File{Name: releasedName, Data: append(data, '\n')}, err
}

// readReleased reads what the sites of a plan's study released, and checks it: the file may have come from anywhere.
func (s *setup) readReleased(data []byte) (*released, error) {
	all := new(released)
	err := method.DecodeJSON(data, all)
	var sites []string
	for _, a := range all.Sites {
		sites = append(sites, a.Site)
	}
	if err = cmp.Or(err, method.CheckReleased(s.Plan, releasedFormat, all.Format, all.Plan, sites)); err == nil {
		err = s.checkSums(all)
	}
	if err != nil {
		return nil, problem.Problem{What: "this is not what the study's sites released: " + err.Error(),
			Hint: "the file " + releasedName + " of the results of this plan's study, which has ended"}
	}
	return all, nil
}

// checkSums reports numbers that the sites cannot have released.
func (s *setup) checkSums(all *released) error {
	if len(all.Sums) != s.Of.Len() {
		return fmt.Errorf("%d sums at the frequencies where the plan has %d", len(all.Sums), s.Of.Len())
	}
	most := 0.0
	for _, a := range all.Sites {
		if err := a.check(); err != nil {
			return fmt.Errorf("site %s: %w", a.Site, err)
		}
		if private := s.Sum != nil; a.SD > 0 != private || a.RowsSD > 0 != private {
			return fmt.Errorf("site %s: %v rows with noise %v and %v are not what the plan has it release", a.Site,
				a.Rows, a.SD, a.RowsSD)
		}
		most += a.most()
	}
	return within(all.Sums, most)
}
