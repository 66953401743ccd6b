package privacy_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/policy"
	"parley/sitestore"
)

// Each limit of a policy on ε and δ binds by itself, and where a plan keeps to all nothing is refused.
func TestEachLimitOfAPolicyBinds(t *testing.T) {
	const delta = 1e-6
	budget := func(epsilon, delta float64) *account.Budget {
		return &account.Budget{Epsilon: epsilon, Delta: delta}
	}
	factor := testkit.Get(account.AnalyticGaussian(3, delta))(t)
	whole := vectors(1.01*factor, 2) // moves as much by a site that comes as by half of what a subject may do
	whole.Unit = privacy.WholeSite
	for name, x := range map[string]struct {
		study         *account.Budget
		largest       float64
		unit          privacy.Unit
		epsilon, plan float64
		sum           privacy.Sum
		want          string
	}{
		"all kept": {budget(3, delta), 1e-3, privacy.Subject, 3, delta, vectors(40, 2), ""},
		"a study's δ": {budget(3, delta), 1e-3, privacy.Subject, 3, 1.01 * delta, vectors(40, 2),
			"study: the plan's guarantee is"},
		"a study's ε": {budget(3, delta), 1e-3, privacy.Subject, 3.01, delta, vectors(40, 2),
			"study: the plan's guarantee is"},
		"the largest δ": {budget(3, 1e-3), delta, privacy.Subject, 3, 1.01 * delta, vectors(40, 2),
			"max_delta: the plan's δ"},
		"loss of subjects": {budget(3, delta), 1e-3, privacy.WholeSite, 3, delta, whole,
			"the policy's limit for a study"},
		"larger limit": {budget(30, delta), 1e-3, privacy.WholeSite, 3, delta, whole, ""},
	} {
		err := privacy.Check(policy.Policy{Study: x.study, MaxDelta: x.largest},
			guaranteed(x.unit, account.AddRemove, x.epsilon, x.plan), differential(x.sum))
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
}

// Noise on what a site gives as a whole protects a subject who may move that by its diameter: with noise of ten
// bounds, and vectors two bounds apart, as noise of five protects from one.
func TestAWholeSitesNoiseIsChargedByItsDiameter(t *testing.T) {
	whole := vectors(10, 2)
	whole.Unit = privacy.WholeSite
	subject := testkit.Get(differential(whole).Mechanisms(privacy.Subject))(t)[0]
	if want := mechanism(account.Gaussian, 5, 1); subject != want {
		t.Errorf("charged to a subject as %+v, want %+v", subject, want)
	}
	if site := testkit.Get(differential(whole).Mechanisms(privacy.WholeSite))(t)[0]; site != whole.Mechanism {
		t.Errorf("charged to a site as %+v, want %+v", site, whole.Mechanism)
	}
	if _, err := differential(vectors(10, 2)).Mechanisms(privacy.WholeSite); err == nil {
		t.Error("noise on a sum over subjects was charged to a whole site")
	}
}

// What is drawn is a little more than what is charged: by the millionth that discreteness may cost, and by next to
// nothing beyond.
func TestNoiseIsAMillionthMoreThanCharged(t *testing.T) {
	for _, sum := range formsOfSums {
		for _, noise := range []float64{0.5, 3, 250} {
			sum.Mechanism.Noise = noise
			g := privacy.NewGate(study, open, sitestore.NewMemory(), subjects(2))
			s := testkit.Get(g.AdmitAny(ask, differential(sum)))(t)
			n := testkit.Get(s.Sum(t.Context(), sum.Name, func(*dataset.Row, []float64) int { return -1 }))(t)
			charged := noise * sum.Bound
			if sum.Form == privacy.Moments {
				charged *= sum.Bound
			}
			if sum.Mechanism.Kind == account.Laplace {
				charged *= math.Sqrt2
			}
			if more := n.SD()/charged - 1; !(more > 0.99e-6 && more < 3e-6) {
				t.Errorf("%s, %s: noise is %v beyond what is charged", sum.Form, sum.Mechanism.Kind, more)
			}
		}
	}
}

// A release is no larger than what was declared takes, at the site and for its receiver.
func TestAReleaseIsNoLargerThanDeclared(t *testing.T) {
	r := privacy.Request{Protection: privacy.Unprotected, Contents: []privacy.Content{{What: "means", Values: 100}}}
	const most = 1<<14 + 18*100
	seal := func(bytes int) (privacy.Release, error) {
		s := testkit.Get(privacy.NewGate(study, open, sitestore.NewMemory(), subjects(2)).AdmitAny(ask, r))(t)
		return s.Seal(make([]byte, bytes), nil)
	}
	if _, err := seal(most); err == nil || !strings.Contains(err.Error(), fmt.Sprint("takes at most ", most)) {
		t.Errorf("%d bytes beside a frame: %v", most, err)
	}
	sealed := testkit.Get(seal(most - 1<<10))(t)
	small := r
	small.Contents = []privacy.Content{{What: "means", Values: 10}}
	if _, err := privacy.Open(sealed.Bytes(), small); err == nil || !strings.Contains(err.Error(), "takes at most") {
		t.Errorf("a release of ten times as many numbers was opened: %v", err)
	}
}
