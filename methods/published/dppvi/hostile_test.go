package dppvi

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
)

const hostilePlan = `
parley: 1
name: hostile
sites: [a, b]
views:
  - {name: v, features: [{name: x0, range: [0, 1]}, {name: x1, range: [0, 1]}]}
subjects: [y]
method: {name: dp-pvi, outcome: {column: y, levels: [no, yes]}, rounds: 3}
privacy: {protection: none}
`

func hostileSetup(t testing.TB, change ...string) (coordinator, *siteHalf) {
	t.Helper()
	text := strings.NewReplacer(change...).Replace(hostilePlan)
	p := parse(t, text)
	c, err := Method{}.Coordinator(p)
	if err != nil {
		t.Fatal(err)
	}
	h, err := Method{}.Site(p, "a")
	if err != nil {
		t.Fatal(err)
	}
	return c.(coordinator), h.(*siteHalf)
}

func pack(t testing.TB, v any) []byte {
	t.Helper()
	b, err := wire.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func constant(n int, x float64) wire.Vector { return slices.Repeat(wire.Vector{x}, n) }

// Steps that all lead one way, each as long as may be, end where sites can still
// work.
func TestStepsEndWhereSitesCanWork(t *testing.T) {
	rows := "rounds: 3, algorithm: global, rows: [{site: a, rows: 5}, {site: b, rows: 5}], global: {learning_rate: "
	for rate, signs := range map[float64][]float64{40: {1, 1}, 50: {1, -1}, 1e20: {-1, 1}, 1e40: {-1, -1}} {
		c, h := hostileSetup(t, "rounds: 3}", rows+fmt.Sprint(rate)+"}}")
		ms, err := c.Init()
		if err != nil {
			t.Fatal(err)
		}
		s := ms.(*State)
		s.Phase = options.TaskUpdate
		for range 30 {
			s.Sites["a"].Asked++
			step := append(constant(3, signs[0]*rate), constant(3, signs[1]*rate)...)
			if _, err := c.Fold(s, method.Contribution{Site: "a", Kind: options.TaskUpdate, Body: pack(t, stepAnswer{step})}); err != nil {
				t.Fatalf("rate %v: %v", rate, err)
			}
			q, err := c.posterior(s)
			if err != nil {
				t.Fatalf("rate %v: %v", rate, err)
			}
			task := updateTask{Q: packed(q), Factor: packed(glm.Flat(3)), Update: 1, Scale: &options.Scale{Centre: constant(2, 0), Scale: constant(2, 1)}}
			if _, _, err := h.openUpdate(&task, 3, true); err != nil {
				t.Fatalf("rate %v: %v", rate, err)
			}
		}
	}
}
