package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/engine"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/privacy"
	"parley/privacy/ledger"
	"parley/privacy/policy"
	"parley/sitestore"
	"parley/study"
)

// entries returns how many charges of a study a site's ledger holds.
func entries(t *testing.T, stores, site string, p *study.Plan) (n int) {
	t.Helper()
	store := testkit.Get(sitestore.Open(local.StorePath(stores, site)))(t)
	defer store.Close()
	charged := testkit.Get(ledger.Read(store))(t)
	digest := testkit.Get(p.Digest())(t)
	for _, e := range charged.Entries {
		if e.Study == digest.String() {
			n++
		}
	}
	return n
}

// A site whose lifetime allows one study of this size, but not two, takes no
// part in the second, and is charged nothing for a study that it could not end.
func TestSitesRefuseAStudyBeforeItsFirstCharge(t *testing.T) {
	_, dir := folders(t)
	change(t, dir, "plan.yaml", "[age, weight]", "[{name: age, range: [0, 120]}, {name: weight, range: [0, 120]}]")
	change(t, dir, "plan.yaml", "[g1, g2]", "[{name: g1, range: [-30, 30]}, {name: g2, range: [-30, 30]}]")
	change(t, dir, "plan.yaml", "name: factors, latent: 1", "name: fed-mv-ppca, latent: 1, rounds: 2")
	change(t, dir, "plan.yaml", "protection: none", "protection: differential, unit: subject, adjacency: add-remove, "+
		"total: {epsilon: 3, delta: 1e-5}")
	first := config(t, load(t, dir))
	first.Stores = filepath.Join(dir, "stores")
	first.Policy = &policy.Policy{Protection: policy.Required, MaxDelta: 1e-5,
		Lifetime: &policy.Lifetime{Epsilon: 4.5, Delta: 1e-5, Filter: policy.RenyiFilter}}
	testkit.Get(local.Run(t.Context(), first))(t)
	if n := entries(t, first.Stores, "centre", first.Plan); n != 2 {
		t.Fatalf("%d charges for 2 rounds", n)
	}

	change(t, dir, "plan.yaml", "name: small", "name: second")
	second := first
	second.Plan = load(t, dir)
	if _, err := local.Run(t.Context(), second); !errors.Is(err, privacy.ErrRefused) ||
		!strings.Contains(err.Error(), "0 of 3 sites would take part, and the plan's quorum is 2") {
		t.Fatalf("got %v", err)
	}
	if n := entries(t, first.Stores, "centre", second.Plan); n != 0 {
		t.Errorf("%d charges for a study that nobody takes part in", n)
	}

	for _, site := range []string{"north", "south"} { // as if they had released nothing yet
		testkit.Do(t, os.RemoveAll(filepath.Join(first.Stores, site)))
	}
	var reason error
	second.Observe = func(e engine.Event) {
		if e.Left != nil {
			reason = e.Left.Reason
		}
	}
	out := testkit.Get(local.Run(t.Context(), second))(t)
	if !slices.Equal(out.Left, []string{"centre"}) || !errors.Is(reason, privacy.ErrRefused) ||
		!strings.Contains(out.Rounds[0].Sites[1].Left, "lifetime") {
		t.Errorf("left %v because of %v", out.Left, reason)
	}
	if n := entries(t, first.Stores, "centre", second.Plan); n != 0 {
		t.Errorf("%d charges at a site that takes no part", n)
	}
	// It continues where it was: a study that has begun was agreed to.
	if again, err := local.Run(t.Context(), second); err != nil ||
		again.Rounds[1].Sites[0].Release != out.Rounds[1].Sites[0].Release {
		t.Errorf("running it again: %v", err)
	}
}
