package local_test

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/method"
	"parley/methods/regression"
	"parley/privacy"
	"parley/privacy/masks"
	"parley/sitestore"
	"parley/study"
)

// rehearsal is a study with a secure sum whose contributions a test may change on their way.
type rehearsal struct {
	t     *testing.T
	plan  *study.Plan
	study string
	half  method.Coordinator
	state method.State
	tasks []method.Task
	sites map[string]*rehearsed
	round int
}

type rehearsed struct {
	half     method.Site
	gate     *privacy.Gate
	requests []privacy.Listed
}

func rehearse(t *testing.T, p *study.Plan) *rehearsal {
	t.Helper()
	m, _ := ours.Lookup(p.Method.Name)
	whole := method.ForPlan(m, p)
	x := &rehearsal{t: t, plan: p, study: testkit.Get(p.Digest())(t).String(),
		half: testkit.Get(whole.Coordinator(p))(t), sites: map[string]*rehearsed{}}
	for site, data := range totalsData(t, p, nil) {
		list := testkit.Get(whole.Requests(p, site))(t)
		s := testkit.Get(privacy.StudyOf(p, site, list))(t)
		s.Party = testkit.Get(method.PartyOf(p, site, nil))(t)
		gate := privacy.NewGate(s, privacy.SimulationPolicy(), sitestore.NewMemory(), data)
		x.sites[site] = &rehearsed{testkit.Get(whole.Site(p, site))(t), gate, list}
	}
	x.state = testkit.Get(x.half.Init())(t)
	x.goOn()
	return x
}

func (x *rehearsal) next() error {
	step, err := x.half.Next(x.state)
	x.state, x.tasks = step.State, step.Tasks
	x.round++
	return err
}

func (x *rehearsal) goOn() { testkit.Do(x.t, x.next()) }

// answer is what a site says to its task.
func (x *rehearsal) answer(site string) method.Contribution {
	x.t.Helper()
	task, s := x.tasks[slices.IndexFunc(x.tasks, func(t method.Task) bool { return t.Site == site })], x.sites[site]
	id := sha256.Sum256(task.Body)
	ask := testkit.Get(s.gate.Vet(privacy.Ask{Study: x.study, Site: site, Round: x.round, Kind: task.Kind, Task: id,
		Common: id}, task.Body))(x.t)
	session := testkit.Get(s.gate.Admit(ask))(x.t)
	a := testkit.Get(s.half.Run(x.t.Context(), task, session))(x.t)
	i := slices.IndexFunc(s.requests, func(l privacy.Listed) bool { return l.Kind == task.Kind })
	o := testkit.Get(privacy.Open(testkit.Get(session.Seal(a.Body, a.State))(x.t).Bytes(), s.requests[i].Request))(x.t)
	return method.Contribution{Site: site, Kind: task.Kind, Body: o.Body, Sums: o.Sums, Masked: o.Masked}
}

func (x *rehearsal) fold(in method.Contribution) {
	x.t.Helper()
	x.state = testkit.Get(x.half.Fold(x.state, in))(x.t)
}

// refused says whether the coordinator's half refuses a contribution in these words, and goes on from its checkpoint.
func (x *rehearsal) refused(what string, in method.Contribution, says string) {
	x.t.Helper()
	kept := testkit.Get(x.state.MarshalBinary())(x.t)
	if _, err := x.half.Fold(x.state, in); err == nil || !strings.Contains(err.Error(), says) {
		x.t.Errorf("%s: %v, which does not say %q", what, err, says)
	}
	x.state = testkit.Get(x.half.Restore(kept))(x.t)
	if again := testkit.Get(x.state.MarshalBinary())(x.t); !bytes.Equal(kept, again) {
		x.t.Errorf("%s: the state was not restored", what)
	}
}

func changed(in method.Contribution, change func(*privacy.Masked)) method.Contribution {
	m := *in.Masked
	m.Vector = slices.Clone(m.Vector)
	change(&m)
	in.Masked = &m
	return in
}

const noisedSecure = noised + ", sum: secure, openers: [a, b]"

// What hostile sites, openers and whoever carries their answers may do is refused in one line each, and the study goes
// on; what cannot be told apart from an honest vector ends it, if the total shows it.
func TestHostileContributionsToATotal(t *testing.T) {
	p := totalsPlan(t, ofRegression, noisedSecure)
	x := rehearse(t, p)
	a, b := x.answer("a"), x.answer("b")
	x.refused("numbers without a mask", method.Contribution{Site: "a", Kind: a.Kind, Sums: a.Sums}, "not masked")
	x.refused("another site's vector", method.Contribution{Site: "b", Kind: a.Kind, Masked: a.Masked},
		"of another site")
	x.refused("a vector that was changed on its way", changed(a, func(m *privacy.Masked) { m.Signed.Digest[0]++ }),
		"has not signed")
	x.refused("a site outside the plan", method.Contribution{Site: "z", Kind: a.Kind, Masked: a.Masked},
		"not a site of this study")
	x.refused("an answer to another task", method.Contribution{Site: "a", Kind: "open", Masked: a.Masked}, "waits for")
	x.fold(a)
	x.refused("a second answer", a, "has already answered")
	x.refused("part of another sum", changed(b, func(m *privacy.Masked) { m.Sum.Round++ }), "another sum")
	for _, in := range []method.Contribution{b, x.answer("c"), x.answer("d"), x.answer("e")} {
		x.fold(in)
	}
	x.goOn()
	if len(x.tasks) != 2 || x.tasks[0].Site != "a" || x.tasks[1].Site != "b" {
		t.Fatalf("the openers' tasks are %v", x.tasks)
	}
	shut := testkit.Get(x.state.MarshalBinary())(t)
	a, b = x.answer("a"), x.answer("b")
	x.refused("an opening of nobody's that was asked", method.Contribution{Site: "c", Kind: "open", Body: a.Body},
		"was not asked")
	x.refused("an opening that is too short", method.Contribution{Site: "a", Kind: "open", Body: a.Body[8:]}, "bytes")
	x.fold(a)
	x.refused("a second opening", a, "was not asked to open the sum, or has answered")
	if _, err := x.half.Leave(testkit.Get(x.half.Restore(shut))(t), "b"); err == nil ||
		!strings.Contains(err.Error(), "opener b has left") {
		t.Errorf("an opener that leaves: %v", err)
	}
	wrong := b
	wrong.Body = bytes.Clone(b.Body)
	for i := 7; i < len(wrong.Body); i += 8 {
		wrong.Body[i] ^= 0x80
	}
	opened := testkit.Get(x.state.MarshalBinary())(t)
	x.fold(wrong)
	if err := x.next(); err == nil || !strings.Contains(err.Error(), "larger than any rows have") ||
		!strings.Contains(err.Error(), "hint: a site or an opener") {
		t.Errorf("a wrong opening: %v", err)
	}
	x.state = testkit.Get(x.half.Restore(opened))(t)
	x.fold(b)
	x.goOn() // openings are as they should be
}

// A site that adds 2⁶³ to its numbers, which no mask shows, ends the study when the total does.
func TestNumbersThatNoRowsHaveEndTheStudy(t *testing.T) {
	x := rehearse(t, totalsPlan(t, ofRegression, noisedSecure))
	for _, site := range x.plan.Sites {
		in := x.answer(site)
		if site == "e" {
			party, v := testkit.Get(method.PartyOf(x.plan, "e", nil))(t), make(masks.Vector, len(in.Masked.Vector))
			for i := range v {
				v[i] = 1 << 63
			}
			signed := testkit.Get(party.Mask(in.Masked.Sum, [32]byte{1}, v))(t)
			in = changed(in, func(m *privacy.Masked) { m.Vector, m.Signed = v, signed })
		}
		x.fold(in)
	}
	x.goOn()
	x.fold(x.answer("a"))
	x.fold(x.answer("b"))
	if err := x.next(); err == nil || !strings.Contains(err.Error(), "larger than any rows have") {
		t.Errorf("a site that adds 2⁶³: %v", err)
	}
}

// An opening that leaves an exact total larger than sites' sums can be is an error, whatever the method makes of its
// numbers.
func TestExactTotalsThatNoSitesHaveEndTheStudy(t *testing.T) {
	x := rehearse(t, totalsPlan(t, ofFactors, exactSecure+", openers: [a, b]"))
	for _, site := range x.plan.Sites {
		x.fold(x.answer(site))
	}
	x.goOn()
	wrong := x.answer("a")
	wrong.Body = bytes.Clone(wrong.Body)
	wrong.Body[len(wrong.Body)-1] ^= 0x40 // of the squares of one feature
	x.fold(wrong)
	x.fold(x.answer("b"))
	if err := x.next(); err == nil || !strings.Contains(err.Error(), "larger than any sites' sums") ||
		!strings.Contains(err.Error(), "hint: a site or an opener") {
		t.Errorf("a wrong opening of an exact total: %v", err)
	}
}

// Below the quorum no total is opened; exact totals are all of the same sites; with noise the others go on.
func TestSitesThatLeaveTotals(t *testing.T) {
	for privacy, says := range map[string]string{noisedSecure: "", exactSecure +
		", openers: [a, b]": "all over the same sites"} {
		x := rehearse(t, totalsPlan(t, ofRegression, privacy))
		for _, site := range []string{"a", "b", "c", "d"} {
			x.fold(x.answer(site))
		}
		x.state = testkit.Get(x.half.Leave(x.state, "e"))(t)
		x.goOn()
		for _, task := range x.tasks {
			if task.Site != "e" {
				x.fold(x.answer(task.Site))
			}
		}
		if len(x.tasks) == 0 {
			t.Fatal("nobody was asked to open the total")
		}
		x.goOn()
		if slices.ContainsFunc(x.tasks, func(t method.Task) bool { return t.Site == "e" }) {
			t.Error("a site that has left is asked again")
		}
		_, err := x.half.Leave(x.state, "d")
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: a site that leaves after the first total: %v", privacy, err)
		}
	}
	x := rehearse(t, totalsPlan(t, ofRegression, noisedSecure))
	for _, site := range []string{"a", "b", "c"} {
		x.fold(x.answer(site))
	}
	for _, site := range []string{"d", "e"} {
		x.state = testkit.Get(x.half.Leave(x.state, site))(t)
	}
	if err := x.next(); err == nil || !strings.Contains(err.Error(), "quorum is 4") {
		t.Errorf("three of a quorum of four: %v", err)
	}
}

// A spare takes the place of an opener that leaves, whenever that is, and the sum that nobody can open is made once
// more, within the plan's total, which every site's gate keeps.
func TestASpareOpener(t *testing.T) {
	const once = ", once more"
	for _, what := range []string{ofPrivateFactors, ofRegression, ofMixture} {
		for _, when := range []string{"before the sum", "while it is made", "while it is opened", "when it is open"} {
			x := rehearse(t, totalsPlan(t, what, noisedSecure+", spare: e"))
			kind, repeats := x.tasks[0].Kind, 0
			leave := func(now string) {
				if now == when {
					x.state = testkit.Get(x.half.Leave(x.state, "b"))(t)
				}
			}
			leave("before the sum")
			for len(x.tasks) > 0 {
				for i, task := range x.tasks {
					gone := when == "before the sum" || when == "while it is opened" && task.Kind == "open"
					if task.Site == "b" && gone {
						continue
					}
					x.fold(x.answer(task.Site))
					if i == len(x.tasks)-1 && x.round == 1 {
						leave("while it is made")
					}
				}
				if x.round == 2 {
					leave("while it is opened")
					leave("when it is open")
				}
				x.state = testkit.Get(x.half.Restore(testkit.Get(x.state.MarshalBinary())(t)))(t)
				if err := x.next(); err != nil {
					t.Fatalf("%s, an opener leaves %s: %v", what, when, err)
				}
				for _, task := range x.tasks {
					opens := task.Site == "a" || task.Site == "e"
					if x.round > 2 && (task.Site == "b" || task.Kind == "open" && !opens) {
						t.Errorf("%s, an opener left %s: %s is asked for %q", what, when, task.Site, task.Kind)
					}
				}
				if len(x.tasks) > 0 && x.tasks[0].Kind == kind+once {
					repeats++
				}
			}
			if want := map[bool]int{true: 1}[when != "when it is open"]; repeats != want {
				t.Errorf("%s, an opener left %s: the sum was made %d times more", what, when, repeats)
			}
			testkit.Get(x.half.Result(x.state))(t)
		}
	}
}

// Nobody stands in for a second opener, masks are for no others than the plan names, a site repeats one task, and a
// plan that has room for that has more noise.
func TestASpareStandsInOnce(t *testing.T) {
	p := totalsPlan(t, ofRegression, noisedSecure+", spare: e")
	x := rehearse(t, p)
	first := x.tasks[0].Kind
	for _, site := range p.Sites {
		x.fold(x.answer(site))
	}
	for _, leaver := range []string{"b", "e"} {
		x.state = testkit.Get(x.half.Leave(x.state, leaver))(t)
		err := x.next()
		if leaver == "e" && (err == nil || !strings.Contains(err.Error(), "opener e has left")) {
			t.Errorf("the spare leaves: %v", err)
		}
		if leaver == "b" {
			a, c := x.answer("a"), x.answer("c")
			if c.Masked.Signed.Site != 2 || a.Kind != first+", once more" {
				t.Errorf("site c answered %q", c.Kind)
			}
		}
	}
	site := x.sites["a"]
	ask := privacy.Ask{Study: x.study, Site: "a", Round: 9, Kind: site.requests[1].Kind + ", once more"}
	if _, err := site.gate.Admit(ask); err == nil || !strings.Contains(err.Error(), "the plan repeats one task") {
		t.Errorf("a second task that repeats another: %v", err)
	}
	ask.Kind = site.requests[1].Kind
	session := testkit.Get(site.gate.Admit(ask))(t)
	for _, openers := range [][]int{{0, 2}, {4, 4}, {1, 0}, {0}, {0, 1, 4}, {0, -1}} {
		if err := session.MaskFor(openers); err == nil {
			t.Errorf("a site masks for openers %v", openers)
		}
	}
	for _, openers := range [][]int{{0, 1}, {0, 4}, {4, 1}} {
		if err := session.MaskFor(openers); err != nil {
			t.Errorf("openers %v: %v", openers, err)
		}
	}
	half := testkit.Get(method.ForPlan(regression.Method{}, p).Requests(p, "c"))(t)
	plain := testkit.Get(method.ForPlan(regression.Method{}, p).Requests(totalsPlan(t, ofRegression, noisedSecure),
		"c"))(t)
	if with, without := half[0].Request.Sums[0].Mechanism.Noise, plain[0].Request.Sums[0].Mechanism.Noise; with <
		1.01*without || with > 1.5*without {
		t.Errorf("noise of %v with a spare, and of %v without", with, without)
	}
}
