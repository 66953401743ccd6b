package ledger_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/ledger"
	plans "parley/study"
)

// promising is a plan of three sites with nothing in it but what a cost needs.
func promising(unit string, a account.Adjacency, total, perRelease *account.Budget) *plans.Plan {
	return &plans.Plan{Version: 1, Name: "s", Sites: []string{"north", "centre", "south"}, Privacy: plans.Privacy{
		Protection: plans.ProtectionDifferential, Unit: unit, Adjacency: a, Total: total, PerRelease: perRelease,
	}}
}

// noised is a request for one sum, granted count times.
func noised(unit privacy.Unit, noise float64, count int) privacy.Request {
	return privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{{
		Name: "a sum", Unit: unit, Form: privacy.Vectors, Blocks: []int{4}, Bound: 1,
		Mechanism: account.Mechanism{Kind: account.Gaussian, Noise: noise, Rate: 1, Diameter: 2, Count: count},
	}}}
}

func constant(requests ...privacy.Request) func(string) ([]privacy.Request, error) {
	return func(string) ([]privacy.Request, error) { return requests, nil }
}

func cost(t *testing.T, p *plans.Plan, charges func(string) ([]privacy.Request, error)) *ledger.Cost {
	t.Helper()
	return testkit.Get(ledger.CostOf(p, charges))(t)
}

// gaussian is the privacy loss of T sums with noise s: δ(ε) = Φ(μ/2 − ε/μ) −
// e^ε Φ(−μ/2 − ε/μ) with μ = √T/s (Balle and Wang 2018, theorem 8), solved for
// ε by bisection.
func gaussian(mu, delta float64) float64 {
	phi := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	low, high := 0.0, 1000.0
	for range 200 {
		e := (low + high) / 2
		if phi(mu/2-e/mu)-math.Exp(e)*phi(-mu/2-e/mu) > delta {
			low = e
		} else {
			high = e
		}
	}
	return high
}

func epsilon(t *testing.T, s ledger.SiteCost, a account.Adjacency) float64 {
	t.Helper()
	for _, l := range s.Losses {
		if l.Adjacency == a && l.Epsilon != nil {
			return *l.Epsilon
		}
	}
	t.Fatalf("no loss for %s in %+v", a, s)
	return 0
}

func TestCostIsTheTightTotal(t *testing.T) {
	b := account.Budget{Epsilon: 3, Delta: 1e-5}
	c := cost(t, promising("subject", account.AddRemove, &b, nil),
		constant(noised(privacy.Subject, 10, 1), noised(privacy.Subject, 5, 4)))
	want := gaussian(math.Sqrt(1.0/100+4.0/25), 1e-5)
	for i, s := range c.Sites {
		if len(s.Mechanisms) != 2 || s.Mechanisms[1].Noise != 5 || s.Mechanisms[1].Count != 4 ||
			s.Site != []string{"north", "centre", "south"}[i] || s.Releases != 2 || s.Sums != 5 ||
			math.Abs(epsilon(t, s, account.AddRemove)/want-1) > 1e-6 {
			t.Errorf("got %+v, want ε %v", s, want)
		}
	}
	if got := fmt.Sprint(c.Lines()); got != "[(ε 3, δ 1e-5) in total, for one subject, add-remove; 5 noised sums per "+
		"site a subject is a row: the plan states that every row is another person]" {
		t.Errorf("got %s", got)
	}
	// Three rows of a person move a sum three times as far.
	three := gaussian(3*math.Sqrt(1.0/100+4.0/25), 1e-5)
	if e, ok := c.ForRows(3); !ok || math.Abs(e/three-1) > 1e-6 {
		t.Errorf("ε %v for three rows, want %v", e, three)
	}
	if says := c.Worth()(3); !strings.Contains(says,
		fmt.Sprintf("it is ε %.4g, at the same δ, for a person with 3 rows", three)) {
		t.Errorf("for three rows: %s", says)
	}
	// What hides a whole site hides all rows of a person.
	whole := cost(t, promising("subject", account.AddRemove, nil, &b), constant(noised(privacy.WholeSite, 10, 1)))
	one, _ := whole.ForRows(1)
	if e, ok := whole.ForRows(3); !ok || e != one || whole.Worth() != nil {
		t.Errorf("sums of a whole site: ε %v for three rows, %v for one", e, one)
	}
	if text, err := json.Marshal(c); err != nil || !strings.Contains(string(text), `"noised_sums":5`) {
		t.Errorf("%s, %v", text, err)
	}
}

// Nine sums in each of 100 rounds, as in the published study.
func TestPublishedClaimsAreHeldAgainstTheTotal(t *testing.T) {
	claim := account.Budget{Epsilon: 10, Delta: 0.01}
	p := promising("site", account.ReplaceOne, nil, &claim)
	c := cost(t, p, constant(noised(privacy.WholeSite, 4, 9), noised(privacy.WholeSite, 4, 891)))
	want := gaussian(2.0/4*30, 0.01) // 30 = √900
	if got := epsilon(t, c.Sites[1], account.ReplaceOne); math.Abs(got/want-1) > 1e-6 {
		t.Errorf("got ε %v, want %v", got, want)
	}
	lines := c.Lines()
	if len(lines) != 2 || lines[0] != "nothing is promised in total: (ε 10, δ 0.01) is meant for each noised sum "+
		"alone, for one site, replace-one" ||
		!strings.HasPrefix(lines[1], "losses add up: 900 noised sums per site together cost (ε ") {
		t.Errorf("got %q", lines)
	}
	var shown float64
	exact := epsilon(t, c.Sites[0], account.ReplaceOne)
	if _, err := fmt.Sscanf(lines[1], "losses add up: 900 noised sums per site together cost (ε %g,",
		&shown); err != nil || shown < exact || shown > 1.001*exact {
		t.Errorf("%q rounds %v down, or too far up: %v", lines[1], exact, err)
	}
	// Noise on a site's whole contribution protects each of its subjects too.
	p.Privacy.Unit = "subject"
	if got := epsilon(t, cost(t, p, constant(noised(privacy.WholeSite, 4, 900))).Sites[0],
		account.ReplaceOne); math.Abs(got/want-1) > 1e-6 {
		t.Errorf("for a subject: got ε %v, want %v", got, want)
	}
}

// A first round in clear, as published, leaves nothing to promise at all.
func TestExactReleasesHaveNoBound(t *testing.T) {
	claim := account.Budget{Epsilon: 10, Delta: 0.01}
	c := cost(t, promising("site", account.ReplaceOne, nil, &claim), constant(request, noised(privacy.WholeSite, 4, 9)))
	if s := c.Sites[0]; s.Releases != 2 || s.Unprotected != 1 || s.Sums != 9 ||
		!(epsilon(t, s, account.ReplaceOne) > 0) {
		t.Errorf("got %+v", s)
	}
	if lines := c.Lines(); len(lines) != 3 || lines[1] != "nothing bounds the total: of the 2 releases of a site, 1 "+
		"without noise" {
		t.Errorf("got %q", lines)
	}
}

func TestSitesMayDiffer(t *testing.T) {
	claim := account.Budget{Epsilon: 1, Delta: 1e-5}
	c := cost(t, promising("subject", account.AddRemove, nil, &claim), func(site string) ([]privacy.Request, error) {
		if site == "centre" {
			return []privacy.Request{noised(privacy.Subject, 2, 5)}, nil
		}
		return []privacy.Request{noised(privacy.Subject, 2, 1)}, nil
	})
	if few := epsilon(t, c.Sites[0], account.AddRemove); few != epsilon(t, c.Sites[2], account.AddRemove) ||
		epsilon(t, c.Sites[1], account.AddRemove) <= few {
		t.Errorf("got %+v", c.Sites)
	}
	if line := c.Lines()[1]; !strings.HasPrefix(line, "losses add up: 1 to 5 noised sums per site") {
		t.Errorf("got %q", line)
	}
}

func TestPlansThatDoNotKeepTheirPromise(t *testing.T) {
	b := account.Budget{Epsilon: 1, Delta: 1e-5}
	broken := errors.New("broken")
	for want, c := range map[string]struct {
		unit    string
		charges func(string) ([]privacy.Request, error)
	}{
		"site north: privacy.total: the releases of a site would come to ε ": {
			"subject", constant(noised(privacy.Subject, 1, 1))},
		"site north: privacy.total: 1 of the 2 releases of a site would have no noise": {
			"subject", constant(request, noised(privacy.Subject, 100, 1))},
		`site north: privacy.total: sum "a sum": noise on a sum over subjects promises nothing for a site as a ` +
			`whole`: {"site", constant(noised(privacy.Subject, 100, 1))},
		"site north: broken":               {"subject", func(string) ([]privacy.Request, error) { return nil, broken }},
		`site north: sum "a sum": noise 0`: {"subject", constant(noised(privacy.Subject, 0, 1))},
	} {
		if _, err := ledger.CostOf(promising(c.unit, account.AddRemove, &b, nil), c.charges); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestPlansWithoutProtectionSaySo(t *testing.T) {
	p := &plans.Plan{Sites: []string{"north"}, Privacy: plans.Privacy{Protection: plans.ProtectionNone}}
	c := cost(t, p, func(string) ([]privacy.Request, error) { panic("nobody asks what costs nothing") })
	if lines := c.Lines(); len(c.Sites) != 0 || len(lines) != 1 ||
		!strings.HasPrefix(lines[0], "no differential privacy") {
		t.Errorf("got %q", lines)
	}
}
