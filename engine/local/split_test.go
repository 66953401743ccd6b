package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/study"
)

// unequal binds 20 subjects, 10 of each of two groups, to four sites.
func unequal(t *testing.T, split string) (*local.Binding, error) {
	t.Helper()
	_, dir := folders(t)
	for i := range 3 { // a third group, beside the 20
		change(t, dir, "north/subjects.csv", "id,group\n", fmt.Sprintf("id,group\nnorth-%d,other\n", 90+i))
		change(t, dir, "north/view_clinic.csv", "id,age,weight\n",
			fmt.Sprintf("id,age,weight\nnorth-%d,%d,70\n", 90+i, 60+i))
	}
	text := strings.Replace(plan, "north, centre, south", "a, b, c, d", 1) +
		"local: {data: north, split: {scenario: unequal, by: group, " + split + "}}\n"
	testkit.Do(t, os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(text), 0o644))
	p := testkit.Get(study.Load(filepath.Join(dir, "plan.yaml"), methods))(t)
	return local.Bind(t.Context(), p, nil)
}

func TestUnequalSites(t *testing.T) {
	seen := map[string]string{}
	for split, want := range map[string]string{
		"rho: 0.5, kappa: 1":          "2+0 2+0 7 7",
		"rho: 0.5, kappa: -1":         "0+2 0+2 7 7",
		"rho: 0.5, kappa: 1, seed: 2": "2+0 2+0 7 7",
		"scheme: A":                   "2+3 2+3 5 5",
	} {
		b := testkit.Get(unequal(t, split+", unused: [other]"))(t)
		if other, ok := seen[b.Fingerprint()]; ok {
			t.Errorf("splits %s and %s have one fingerprint", split, other)
		}
		seen[b.Fingerprint()] = split
		var got []string
		for i, site := range []string{"a", "b", "c", "d"} {
			_, groups, err := dataset.Labels(t.Context(), b.Data[site], "group")
			if err != nil {
				t.Fatal(err)
			}
			n := map[string]int{}
			for _, g := range groups {
				n[g]++
			}
			if n["other"] > 0 {
				t.Errorf("%s: site %s has unused subjects", split, site)
			}
			if i < 2 {
				got = append(got, fmt.Sprintf("%d+%d", n["0"], n["1"]))
			} else {
				got = append(got, fmt.Sprint(len(groups)))
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: sites have %s, want %s", split, s, want)
		}
		noted := strings.Contains(b.Notes.Error(), "local.split: 2 of 20 subjects are at no site")
		if noted != strings.HasPrefix(split, "rho") {
			t.Errorf("%s: notes\n%v", split, b.Notes)
		}
	}
}

func TestUnequalSitesThatCannotBe(t *testing.T) {
	for split, want := range map[string]string{
		"scheme: A": "scenario unequal: needs a column with two values, found 3: 0, 1, other\n  " +
			"hint: name a column with two",
		"rho: 0.5, unused: ['0', other]": "found 1: 1",
		"rho: 0.95, unused: [other]":     "no subject for each of 2 small sites",
		"kappa: -1.5, unused: [other]":   "hint: kappa from -1.00 to 1",
	} {
		_, err := unequal(t, split)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", split, err, want)
		}
	}
}
