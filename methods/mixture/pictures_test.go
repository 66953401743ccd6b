package mixture

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/figure"
	"parley/internal/testkit"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/sketch"
)

// pictured is a posterior of k components in d features around known places, with what
// was observed of their mixture.
func pictured(t *testing.T, k, d int) *view {
	t.Helper()
	s := known(text(d, fmt.Sprintf("components: %d", k), "{protection: none}"))
	rng := rand.New(rand.NewPCG(uint64(k), uint64(d)))
	truth := gmm.NewMixture(k, d)
	for c := range k {
		truth.Weights[c] = 2 * float64(c+1) / float64(k*(k+1))
		for i := range d {
			truth.Mean(c)[i] = rng.Float64()*12 - 6
			truth.Cov(c)[i*d+i] = 1 + rng.Float64()
		}
	}
	post := &gmm.Posterior{Stages: 3, Acceptance: 0.25}
	const draws = 100
	for range draws {
		m := truth.Clone()
		for i := range m.Means {
			m.Means[i] += rng.NormFloat64() / 10
		}
		post.Draws, post.Weights = append(post.Draws, m), append(post.Weights, 1./draws)
	}
	post.Size = gmm.EffectiveSize(post.Weights)
	o := sketch.Observation{Mean: make([]float64, s.Of.Len()), Rows: 500}
	phi, x := make([]float64, s.Of.Len()), make([]float64, 500*d)
	testkit.Do(t, truth.SimulateBalanced(rng, x))
	for row := range slices.Chunk(x, d) {
		s.Of.Features(phi, row)
		for i, v := range phi {
			o.Mean[i] += v / 500
		}
	}
	fit := testkit.Get(s.Of.Fit(o, post))(t)
	return newView(s, post, o, fit)
}

// draws checks that everything in a section can be shown, and shows no row.
func draws(t *testing.T, s figure.Section) []*figure.Figure {
	t.Helper()
	figures, err := shown(s)
	if err != nil {
		t.Error(err)
	}
	return figures
}

func TestSectionsOfAnyMixture(t *testing.T) {
	for _, c := range []struct {
		k, d  int
		first string // picture of the components
		rows  int    // of the table
	}{{1, 1, "density", 1}, {3, 1, "density", 3}, {1, 2, "pair-1-2", 1}, {3, 2, "pair-1-2", 3}, {8, 2, "pair-1-2", 8}, {3, 5, "pairs", 15}, {2, 12, "pairs", 24}} {
		t.Run(fmt.Sprintf("%d components of %d features", c.k, c.d), func(t *testing.T) {
			v := pictured(t, c.k, c.d)
			ids := map[string]bool{}
			all := [][]*figure.Figure{draws(t, v.componentsSection()), draws(t, v.fitSection())}
			for _, figures := range all {
				for _, f := range figures {
					if ids[f.ID] {
						t.Errorf("two figures have the identifier %s", f.ID)
					}
					ids[f.ID] = true
				}
			}
			if id := all[0][0].ID; id != c.first {
				t.Errorf("the first picture is %s, want %s", id, c.first)
			}
			if n := v.ComponentTable("").Len(); n != c.rows {
				t.Errorf("a table of %d rows, want %d", n, c.rows)
			}
			if ids["weights"] != (c.k > 1) {
				t.Errorf("figures %v", ids)
			}
			if facts := v.headline(); len(facts) > 4 || len(facts) < 3 {
				t.Errorf("%d headlines", len(facts))
			}
			for _, f := range v.headline() {
				if len([]rune(f.Value)) > 22 {
					t.Errorf("the headline %q is long", f.Value)
				}
			}
		})
	}
}

func TestWeightsInAFewWords(t *testing.T) {
	for k, want := range map[int]string{1: "", 3: "50 · 33 · 17\u00a0%", 8: "22 % to 3 %"} {
		got := ""
		for _, f := range pictured(t, k, 1).Weights() {
			got += f.Value
		}
		if got != want {
			t.Errorf("%d components: %q, want %q", k, got, want)
		}
	}
}

// A mixture that does not fit is said not to before anything is read off it.
func TestMisfitIsSaidFirst(t *testing.T) {
	v := pictured(t, 2, 2)
	first := func() string {
		if n := v.componentsSection().Items[0].Note; n != nil {
			return n.Title
		}
		return ""
	}
	if got := first(); got != "The groups are found" {
		t.Errorf("a mixture that fits begins with %q", got)
	}
	v.fit.Tail = 0.005
	v.Doubted = v.doubt()
	if got := first(); !slices.Contains(v.Doubted, misfit+": a misfit of the sums as large would come by chance in 1 % of studies or fewer") {
		t.Errorf("a mixture that does not fit begins with %q", got)
	}
}

// How many rows lack a feature is in no private release: the shared report says who knows.
func TestPrivateReportsSayThatOnlySitesKnowTheRowsLeftOut(t *testing.T) {
	for _, privacy := range []string{noProtection, private} {
		v := &view{}
		v.Setup = known(text(3, "components: 2", privacy)).Setup
		says := strings.Contains(v.Overview(nil).Items[0].Figure.Caption, "Rows that lack a feature take no part, and only their sites know how many these are.")
		if says != (privacy == private) {
			t.Errorf("%s: it is said: %t", privacy, says)
		}
	}
}
