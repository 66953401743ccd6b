package mvppca

import (
	"context"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mvppca/internal/synthetic"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
)

func TestSiteRefusesTasksThatItsPlanDoesNotHave(t *testing.T) {
	for options, kinds := range map[string][]string{
		federated:                    {options.TaskIterate, "rows", ""},
		"  latent: 2\n  rounds: 0\n": {options.TaskIterate, options.TaskRefine},
		published:                    {options.TaskFit, options.TaskRefine, options.TaskScale},
	} {
		half := newPlay(t, threeSites(t, options)).halves["site-0"]
		for _, kind := range kinds {
			if _, err := half.(*site).request(kind); err == nil || !strings.Contains(err.Error(), "no task") {
				t.Errorf("task %q under %q: %v", kind, options, err)
			}
		}
	}
}

// A coordinator cannot get more out of a site by asking with another rank.
func TestSiteRefusesModelsOfAnotherRank(t *testing.T) {
	other := map[string][]byte{}
	for _, opts := range []string{"  latent: 3\n", strings.Replace(published, "latent: 2", "latent: 3", 1)} {
		for _, x := range exchanges(t, threeSites(t, opts)) {
			other[x.tasks[0].Kind] = x.tasks[0].Body
		}
	}
	for _, opts := range []string{federated, published} {
		for _, x := range exchanges(t, threeSites(t, opts)) {
			kind := x.tasks[0].Kind
			if kind == options.TaskScale || kind == options.TaskFit {
				continue // they carry no model
			}
			p := newPlay(t, x.study)
			if _, err := p.answer(method.Task{Site: "site-0", Kind: kind, Body: other[kind]}); err == nil || !strings.Contains(err.Error(), "3 factors") {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

func TestSiteWithoutASingleValueSaysSo(t *testing.T) {
	s := threeSites(t, federated)
	table, err := dataset.NewTable(s.data["site-0"].Schema(), []dataset.Row{{ID: "a", Views: make([][]float64, 2)}})
	if err != nil {
		t.Fatal(err)
	}
	s.data["site-0"] = table
	p := newPlay(t, s)
	if _, err := p.run(); err == nil || !strings.Contains(err.Error(), "no subject has any value") {
		t.Fatalf("got %v", err)
	}
}

// The one pass over the rows gives the sums that the scale needs, and scaling
// the statistics is scaling the rows.
func TestScaledStatisticsAreThoseOfScaledRows(t *testing.T) {
	s := shape{dims: []int{3, 2}, sites: 1, rows: 40, missing: 0.1, gaps: 0.2, options: federated, seed: 3}.study(t)
	half := newPlay(t, s).halves["site-0"].(*site)
	sums, err := half.read(context.Background(), s.data["site-0"])
	if err != nil {
		t.Fatal(err)
	}
	direct := newFeatureSums(5)
	scale := &ppca.Scale{Shift: []float64{1, -2, 0, 3, 0.5}, Factor: []float64{2, 0.1, 1, 3, 7}}
	scaled := synthetic.Must(ppca.NewAccumulator(half.layout, scale))(t)
	for row, err := range s.data["site-0"].Rows(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		direct.addRow(row.Views, half.layout.Dims, false)
		if err := scaled.Add(row.Views); err != nil {
			t.Fatal(err)
		}
	}
	moments := sums.moments(5)
	for name, x := range map[string][2][]float64{"counts": {direct.N, moments.N}, "means": {direct.A, moments.A}, "squares": {direct.B, moments.B}} {
		if w := synthetic.Worst(x[0], x[1]); w > 1e-12 {
			t.Errorf("%s differ by %.1e", name, w)
		}
	}
	want := scaled.Blocks()
	for i := range sums.blocks {
		got := sums.blocks[i].Scaled(scale)
		dense, other := ppca.Moments(got), ppca.Moments(want[i]) // in one form, whatever theirs is
		if w := max(synthetic.Worst(dense[0].Mean, other[0].Mean), synthetic.Worst(dense[0].Scatter, other[0].Scatter)); w > 1e-12 || got.N != want[i].N {
			t.Errorf("block %d differs by %.1e", i, w)
		}
	}
}

func TestMergedSumsAreThoseOfAllRows(t *testing.T) {
	for _, extremes := range []bool{false, true} {
		all, merged := newFeatureSums(2), newFeatureSums(2)
		for _, part := range [][]float64{{1e3, 1e3 + 2, 1e3 - 5}, {}, {1e3 + 7}, {1e3, 1e3}} {
			one := newFeatureSums(2)
			for _, x := range part {
				all.add(0, x, extremes)
				one.add(0, x, extremes)
			}
			if err := one.check(2, extremes); err != nil {
				t.Fatal(err)
			}
			merged.merge(one, extremes)
		}
		if all.N[0] != 6 || merged.N[0] != 6 || all.N[1] != 0 || merged.N[1] != 0 {
			t.Fatalf("counts %v and %v", all.N, merged.N)
		}
		if w := max(synthetic.Worst(all.A, merged.A), synthetic.Worst(all.B, merged.B)); w > 1e-12 {
			t.Errorf("extremes %v: %v and %v", extremes, all, merged)
		}
	}
}

// FuzzTask lets the coordinator ask anything, of sites of both variants.
func FuzzTask(f *testing.F) {
	list := everyKind(f)
	plays := make([]*play, len(list))
	for i, x := range list {
		plays[i] = newPlay(f, x.study)
		f.Add(uint8(i), x.tasks[0].Kind, x.tasks[0].Body)
		f.Add(uint8(i), options.TaskAssess, list[(i+3)%len(list)].tasks[0].Body)
	}
	empty, err := wire.Marshal(scaleTask{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint8(0), options.TaskScale, empty)
	f.Fuzz(func(t *testing.T, which uint8, kind string, body []byte) {
		p := *plays[int(which)%len(plays)]
		p.t = t
		p.answer(method.Task{Site: "site-0", Kind: kind, Body: body})
	})
}
