package mixture

import (
	"crypto/sha256"
	"slices"
	"testing"

	"parley/dataset"
	"parley/method"
	"parley/privacy"
	"parley/sitestore"
	"parley/study"
)

// gated is a site behind a gate that grants what the plan lists, as the engine
// has it. Its rounds rise by themselves.
type gated struct {
	study privacy.Study
	half  method.Site
	gate  *privacy.Gate
	round int
}

// behindGate puts a fresh half behind a gate, on what the store has kept.
func behindGate(t testing.TB, p *study.Plan, site string, store *sitestore.Memory, data dataset.Source, options ...privacy.Option) *gated {
	t.Helper()
	list, err := Method{}.Requests(p, site)
	if err != nil {
		t.Fatal(err)
	}
	terms, err := privacy.StudyOf(p, site, list)
	if err != nil {
		t.Fatal(err)
	}
	half, err := Method{}.Site(p, site)
	if err != nil {
		t.Fatal(err)
	}
	charges, err := store.Reservations(0)
	if err != nil {
		t.Fatal(err)
	}
	return &gated{terms, half, privacy.NewGate(terms, privacy.SimulationPolicy(), store, data, options...), len(charges)}
}

// admit is what the gate grants for a task.
func (g *gated) admit(task method.Task) (*privacy.Session, error) {
	g.round++
	return g.gate.Admit(privacy.Ask{Study: g.study.Digest, Site: g.study.Site, Round: g.round, Kind: task.Kind, Task: sha256.Sum256(task.Body)})
}

// answer is what the coordinator gets to see of the answer to a task.
func (g *gated) answer(t testing.TB, task method.Task) (in method.Contribution, err error) {
	t.Helper()
	s, err := g.admit(task)
	if err != nil {
		return in, err
	}
	a, err := g.half.Run(t.Context(), task, s)
	if err != nil {
		return in, err
	}
	release, err := s.Seal(a.Body, a.State)
	if err != nil {
		t.Fatalf("what answers %q is not what was declared: %v", task.Kind, err)
	}
	at := slices.IndexFunc(g.study.Requests, func(l privacy.Listed) bool { return l.Kind == task.Kind })
	o, err := privacy.Open(release.Bytes(), g.study.Requests[at].Request)
	if err != nil {
		t.Fatalf("what answers %q cannot be opened: %v", task.Kind, err)
	}
	return method.Contribution{Site: task.Site, Kind: task.Kind, Body: o.Body, Sums: o.Sums}, nil
}

// everySite puts every site of a plan behind a gate of its own, all on the same data.
func everySite(t testing.TB, p *study.Plan, data dataset.Source, options ...privacy.Option) map[string]*gated {
	t.Helper()
	all := map[string]*gated{}
	for _, site := range p.Sites {
		all[site] = behindGate(t, p, site, sitestore.NewMemory(), data, options...)
	}
	return all
}
