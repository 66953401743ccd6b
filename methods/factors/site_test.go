package factors

import (
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/halves"
	"parley/methods/factors/options"
)

func TestSiteRefusesTasksThatItsPlanDoesNotHave(t *testing.T) {
	for options, kinds := range map[string][]string{
		federatedOptions:             {options.TaskFine, "rows", ""},
		"  latent: 2\n  rounds: 0\n": {options.TaskAdjust, options.TaskCheck},
	} {
		half := newPlay(t, threeSites(t, options)).halves["site-0"]
		for _, kind := range kinds {
			if _, err := half.(*halves.Site).Request(kind); err == nil || !strings.Contains(err.Error(), "no task") {
				t.Errorf("task %q under %q: %v", kind, options, err)
			}
		}
	}
}

// A coordinator cannot get more out of a site by asking with another rank.
func TestSiteRefusesModelsOfAnotherRank(t *testing.T) {
	other := map[string][]byte{}
	for _, x := range exchanges(t, threeSites(t, "  latent: 3\n  noise: view\n")) {
		other[x.tasks[0].Kind] = x.tasks[0].Body
	}
	for _, x := range exchanges(t, threeSites(t, federatedOptions+"  noise: view\n")) {
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

func TestSiteWithoutASingleValueSaysSo(t *testing.T) {
	s := threeSites(t, federatedOptions)
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

// FuzzTask lets the coordinator ask anything, of sites of both variants.
func FuzzTask(f *testing.F) {
	list := everyKind(f)
	plays := make([]*play, len(list))
	for i, x := range list {
		plays[i] = newPlay(f, x.study)
		f.Add(uint8(i), x.tasks[0].Kind, x.tasks[0].Body)
		f.Add(uint8(i), options.TaskAssess, list[(i+3)%len(list)].tasks[0].Body)
	}
	empty, err := wire.Marshal(options.ScaleTask{})
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
