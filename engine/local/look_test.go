package local_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/engine/local"
	"parley/internal/testkit"
)

// cell writes one value: of subject i, in column j.
type cell func(i, j int) string

// refill writes a view of a site anew, for its subjects from first to last.
func refill(t *testing.T, dir, site, view, header string, first, last int, value cell) {
	t.Helper()
	text := "id," + header + "\n"
	for i := first; i <= last; i++ {
		text += fmt.Sprintf("p%02d", i)
		for j := range strings.Split(header, ",") {
			text += "," + value(i, j)
		}
		text += "\n"
	}
	testkit.Do(t, os.WriteFile(filepath.Join(dir, site, "view_"+view+".csv"), []byte(text), 0o644))
}

// people writes the subjects of a site, p01 to the last.
func people(t *testing.T, dir, site string, last int) {
	t.Helper()
	text := "id,group\n"
	for i := 1; i <= last; i++ {
		text += fmt.Sprintf("p%02d,%s\n", i, []string{"a", "b"}[i%2])
	}
	testkit.Do(t, os.WriteFile(filepath.Join(dir, site, "subjects.csv"), []byte(text), 0o644))
}

// What sites together show of their data is said once, and so is a site of one subject.
func TestNotesOfSeveralSites(t *testing.T) {
	var rng *rand.Rand
	draw := func(scale float64) cell {
		return func(int, int) string { return fmt.Sprintf("%.4g", scale*(5+rng.NormFloat64())) }
	}
	names, views := map[string]string{"clinic": "age,weight", "genes": "g1,g2"}, []string{"clinic", "genes"}
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		want   string // all notes
	}{
		"nothing": {func(*testing.T, string) {}, ""},
		"one subject": {func(t *testing.T, dir string) {
			people(t, dir, "south", 1)
			refill(t, dir, "south", "clinic", names["clinic"], 1, 1, draw(1))
			refill(t, dir, "south", "genes", names["genes"], 1, 1, draw(1))
		}, "site south, subjects: there is only one: without privacy, what leaves this site tells of single " +
			"people\n  hint: join this site with another, or protect the study with privacy: {protection: " +
			"differential, …}"},
		"another unit": {func(t *testing.T, dir string) {
			refill(t, dir, "centre", "genes", names["genes"], 1, 20, func(i, j int) string {
				return draw([]float64{1, 1000}[j])(i, j)
			})
		}, "view genes, feature g2: values at centre are about 900 times as large as at north, south\n  hint: is it " +
			"another unit? write them the same way at all sites, or let 'mapping.yaml' convert them"},
		"no value and no variation": {func(t *testing.T, dir string) {
			refill(t, dir, "north", "genes", names["genes"], 1, 20, func(i, j int) string {
				return []string{draw(1)(i, j), ""}[j]
			})
			refill(t, dir, "north", "clinic", names["clinic"], 1, 20, func(int, int) string { return "5" })
		}, "view clinic, features age, weight: they do not vary at north\nview genes, feature g2: it has no value at " +
			"north"},
		"nobody has both at one site": {func(t *testing.T, dir string) {
			refill(t, dir, "north", "genes", names["genes"], 1, 10, draw(1))
			refill(t, dir, "north", "clinic", names["clinic"], 11, 20, draw(1))
		}, "views clinic and genes: no subject has both at north\n  hint: are the ids written the same way in both " +
			"files there?"},
		"nobody has both": {func(t *testing.T, dir string) {
			for _, site := range []string{"north", "centre", "south"} {
				refill(t, dir, site, "genes", names["genes"], 1, 10, draw(1))
				refill(t, dir, site, "clinic", names["clinic"], 11, 20, draw(1))
			}
		}, "views clinic and genes: no subject has both at any site, and no other view connects them\n  hint: " +
			"nothing can be learnt of what they have in common; are the ids written the same way in both files?"},
		"a code at two sites": {func(t *testing.T, dir string) {
			for n, site := range []string{"north", "south"} {
				refill(t, dir, site, "clinic", names["clinic"], 1, 20, func(i, j int) string {
					if j == 0 && i <= 2+n {
						return "-9"
					}
					return draw(1)(i, j)
				})
			}
		}, "sites north, south, view clinic, feature age: -9, at 2 of 20 subjects, looks like a code for a missing " +
			"value; these are the numbers of north\n  hint: if it is one, list it in the plan: {name: age, missing: " +
			"[-9]}"},
	} {
		rng = rand.New(rand.NewPCG(3, 4)) // the cases come in any order
		p, dir := folders(t)
		for _, site := range p.Sites {
			people(t, dir, site, 20)
			for _, view := range views {
				refill(t, dir, site, view, names[view], 1, 20, draw(1))
			}
		}
		c.change(t, dir)
		b, err := local.Bind(t.Context(), p, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := b.Notes.Error(); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}
