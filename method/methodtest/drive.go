package methodtest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"testing"

	"parley/dataset"
	"parley/method"
	"parley/privacy"
	"parley/privacy/privacytest"
	"parley/sitestore"
	"parley/study"
)

// Drive runs a study as the engine does: state and answers pass as bytes, an answer
// that Fold does not take leaves no trace, and its site leaves.
type Drive struct {
	Method method.Method
	Plan   *study.Plan
	Data   map[string]dataset.Source
	Noise  map[string]privacy.Option // of sites; the others' is seeded
	Tamper func(site string, in *method.Contribution)
	Passed func(task method.Task, in method.Contribution)
	Absent func(task method.Task) bool // the site leaves in place of answering
	Order  func([]answered)            // in which answers to one step arrive; nil for that of asking
	Keeps  bool                        // the coordinator never crashes; else it is restored after each step and answer

	Releases map[string][][]byte // sealed, by site
	Left     []string

	carried map[string][][]byte // by each site, before each of its tasks
}

// errLeft wraps what a coordinator says of a study that cannot do without a site which has left.
var errLeft = errors.New("the study cannot do without it")

var errPanic = errors.New("panic")

// Ends is what a whole study came to.
type Ends struct {
	Result *method.Result
	Shares map[string][]byte
}

// answered is an answer on its way.
type answered struct {
	task method.Task
	ends float64
	in   method.Contribution
	none bool // the site leaves instead
}

// Run runs the study to its end.
func (d *Drive) Run(t testing.TB) (out Ends, err error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", errPanic, p, debug.Stack())
		}
	}()
	c, err := d.Method.Coordinator(d.Plan)
	if err != nil {
		return out, err
	}
	sites := map[string]*drivenSite{}
	for _, name := range d.Plan.Sites {
		if sites[name], err = d.site(name); err != nil {
			return out, err
		}
	}
	s, err := c.Init()
	if err != nil {
		return out, err
	}
	d.Releases, d.carried = map[string][][]byte{}, map[string][][]byte{}
	restored := func(data []byte) (method.State, error) {
		if d.Keeps {
			return s, nil
		}
		return c.Restore(data)
	}
	var pending []answered
	now := 0.0
	for round := 1; ; round++ {
		step, err := c.Next(s)
		if err != nil {
			return out, fmt.Errorf("next: %w", err)
		}
		for name, x := range step.Info {
			if !finite(x) {
				return out, fmt.Errorf("%s is %v", name, x)
			}
		}
		s = step.State
		before, err := s.MarshalBinary()
		if err != nil {
			return out, fmt.Errorf("encoding the state: %w", err)
		}
		if s, err = restored(before); err != nil {
			return out, fmt.Errorf("restoring: %w", err)
		}
		if step.Done {
			break
		}
		for _, task := range step.Tasks {
			if d.Absent != nil && d.Absent(task) {
				pending = append(pending, answered{task: task, ends: now + task.Takes, none: true})
				continue
			}
			in, err := sites[task.Site].answer(t, d, task, round)
			if err != nil {
				return out, fmt.Errorf("site %s, task %q: %w", task.Site, task.Kind, err)
			}
			pending = append(pending, answered{task: task, ends: now + task.Takes, in: in})
		}
		fold := slices.Clone(pending)
		if d.Order != nil && step.Wait == method.All {
			d.Order(fold)
		}
		if step.Wait == method.Any && len(pending) > 0 {
			first := slices.MinFunc(pending, func(a, b answered) int {
				if a.ends < b.ends {
					return -1
				}
				return 1
			})
			now = first.ends
			fold = []answered{first}
		}
		var gone []string
		for _, x := range fold {
			pending = slices.DeleteFunc(slices.Clone(pending), func(y answered) bool {
				return y.task.Site == x.task.Site
			})
			if x.none {
				d.Left, gone = append(d.Left, x.task.Site), append(gone, x.task.Site)
				continue
			}
			next, err := c.Fold(s, x.in)
			if err == nil {
				s = next
				if before, err = s.MarshalBinary(); err != nil {
					return out, fmt.Errorf("encoding the state after an answer of site %s: %w", x.task.Site, err)
				}
				if s, err = restored(before); err != nil {
					return out, fmt.Errorf("restoring the state after an answer of site %s: %w", x.task.Site, err)
				}
				continue
			}
			d.Left, gone = append(d.Left, x.task.Site), append(gone, x.task.Site)
			if s, err = c.Restore(before); err != nil {
				return out, fmt.Errorf("restoring without site %s: %w", x.task.Site, err)
			}
		}
		for _, site := range gone {
			if s, err = c.Leave(s, site); err != nil {
				return out, fmt.Errorf("%w: %w", errLeft, err)
			}
		}
		if round > 2000 {
			return out, errors.New("the study does not end")
		}
	}
	return d.ends(t, c, s, sites)
}

// ends holds what a finished study leaves against what anybody can take.
func (d *Drive) ends(t testing.TB, c method.Coordinator, s method.State,
	sites map[string]*drivenSite) (out Ends, err error) {
	t.Helper()
	if out.Result, err = c.Result(s); err != nil {
		return out, fmt.Errorf("result: %w", err)
	}
	for name, x := range out.Result.Metrics {
		if !finite(x) {
			return out, fmt.Errorf("metric %s is %v", name, x)
		}
	}
	out.Shares = map[string][]byte{}
	for _, name := range d.Plan.Sites {
		if out.Shares[name], err = c.Share(s, name); err != nil {
			return out, fmt.Errorf("share: %w", err)
		}
		if _, err := sites[name].half.Report(t.Context(), out.Shares[name], d.Data[name]); err != nil {
			return out, fmt.Errorf("report of site %s: %w", name, err)
		}
	}
	return out, nil
}

// drivenSite is a site with its gate.
type drivenSite struct {
	study privacy.Study
	half  method.Site
	gate  *privacy.Gate
}

func (d *Drive) site(name string) (*drivenSite, error) {
	list, err := d.Method.Requests(d.Plan, name)
	if err != nil {
		return nil, err
	}
	x := &drivenSite{}
	if x.study, err = privacy.StudyOf(d.Plan, name, list); err != nil {
		return nil, err
	}
	x.study.Digest = "driven" // seeded noise goes by it, and a plan's may change with what plans can say
	if x.half, err = d.Method.Site(d.Plan, name); err != nil {
		return nil, err
	}
	noise := d.Noise[name]
	if noise == nil {
		noise = privacytest.Seeded(11)
	}
	x.gate = privacy.NewGate(x.study, privacy.SimulationPolicy(), sitestore.NewMemory(), d.Data[name], noise)
	return x, nil
}

// answer is what a site's release opens to.
func (x *drivenSite) answer(t testing.TB, d *Drive, task method.Task, round int) (in method.Contribution, err error) {
	t.Helper()
	session, err := x.gate.Admit(privacy.Ask{Study: x.study.Digest, Site: task.Site, Round: round, Kind: task.Kind,
		Task: sha256.Sum256(fmt.Append(task.Body, round))})
	if err != nil {
		return in, err
	}
	d.carried[task.Site] = append(d.carried[task.Site], session.State())
	a, err := x.half.Run(t.Context(), task, session)
	if err != nil {
		return in, err
	}
	release, err := session.Seal(a.Body, a.State)
	if err != nil {
		return in, err
	}
	d.Releases[task.Site] = append(d.Releases[task.Site], release.Bytes())
	i := slices.IndexFunc(x.study.Requests, func(l privacy.Listed) bool { return l.Kind == task.Kind })
	o, err := privacy.Open(release.Bytes(), x.study.Requests[i].Request)
	if err != nil {
		return in, err
	}
	in = method.Contribution{Site: task.Site, Kind: task.Kind, Body: o.Body, Sums: o.Sums}
	if d.Passed != nil {
		d.Passed(task, in)
	}
	if d.Tamper != nil {
		d.Tamper(task.Site, &in)
	}
	return in, nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
