package mixture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/method"
	"parley/method/methodtest"
	"parley/methods/mixture/fitted"
	"parley/methods/mixture/gmm"
	"parley/study"
)

// refittable are plans whose releases are enough for another number of components.
var refittable = []string{"frequencies", "private", "private, few"}

// ended runs a study of a plan and returns its result.
func ended(t testing.TB, name string) (*study.Plan, *method.Result) {
	t.Helper()
	x := caseOf(t, name, 60, rand.New(rand.NewPCG(6, 6)).NormFloat64)
	d := &methodtest.Drive{Method: Method{}, Plan: x.Plan, Data: x.Data}
	return x.Plan, testkit.Get(d.Run(t))(t).Result
}

func fileOf(r *method.Result, name string) []byte {
	at := slices.IndexFunc(r.Files, func(f method.File) bool { return f.Name == name })
	if at < 0 {
		return nil
	}
	return r.Files[at].Data
}

// What a site is asked for follows from the plan without its number of components, once the number
// of frequencies is given.
func TestReleasesDoNotDependOnTheNumberOfComponents(t *testing.T) {
	for _, name := range refittable {
		list := func(k int) string {
			text := strings.Replace(plans[name], "components: 2", fmt.Sprintf("components: %d", k), 1)
			if !strings.Contains(text, "sketch") {
				text = strings.Replace(text, "draws: 64", "draws: 64, sketch: {frequencies: 64}", 1)
			}
			all := testkit.Get(Method{}.Requests(parsePlan(t, text), "a"))(t)
			return fmt.Sprintf("%+v", all)
		}
		if two, five := list(2), list(5); two != five {
			t.Errorf("%s: sites with 5 components are asked for %s, with 2 for %s", name, five, two)
		}
	}
}

// A refit with the study's own number of components is the study's result, byte by byte; with
// another, it is another, and the releases and the plan stay.
func TestRefitIsTheStudysMixtureAgain(t *testing.T) {
	for _, name := range refittable {
		p, r := ended(t, name)
		if file, err := (Method{}).ReleasedFile(p); file != releasedName || err != nil {
			t.Errorf("%s: the file is %q, %v", name, file, err)
		}
		released := fileOf(r, releasedName)
		for _, k := range []int{2, 1, 3} {
			again := testkit.Get(Method{}.Refit(p, released, k))(t)
			if !bytes.Equal(fileOf(again, releasedName), released) {
				t.Errorf("%s, %d components: the releases changed", name, k)
			}
			m := testkit.Get(fitted.LoadModel(fileOf(again, "model/model.json")))(t)
			if m.Mean.Components() != k {
				t.Errorf("%s, %d components: the model has %d", name, k, m.Mean.Components())
			}
			for _, file := range []string{"model/model.json", "model/posterior.csv"} {
				if same := bytes.Equal(fileOf(again, file), fileOf(r, file)); same != (k == 2) {
					t.Errorf("%s, %d components: %s is that of the study: %v", name, k, file, same)
				}
			}
			for metric, x := range again.Metrics {
				if k == 2 && x != r.Metrics[metric] {
					t.Errorf("%s: %s is %v, and was %v", name, metric, x, r.Metrics[metric])
				}
			}
		}
		if k := p.Method.Options.(*Options).Components; k != 2 {
			t.Errorf("%s: the plan now has %d components", name, k)
		}
	}
}

func TestOtherMixturesAreRefusedWithTheReason(t *testing.T) {
	p, r := ended(t, "private")
	released := fileOf(r, releasedName)
	for k, want := range map[int]string{0: "0 components", 22: "more parameters than the 64 frequencies",
		65: "from 1 to 21, or another study"} {
		if _, err := (Method{}).Refit(p, released, k); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d components: %v, want %q", k, err, want)
		}
	}
}

// What is not what the plan's sites release is an error that says so.
func TestReleasesOfMixturesFromElsewhereAreRefused(t *testing.T) {
	p, r := ended(t, "private")
	released := string(fileOf(r, releasedName))
	changed := func(change func(file map[string]any, first map[string]any)) string {
		var file map[string]any
		testkit.Do(t, json.Unmarshal([]byte(released), &file))
		change(file, file["sites"].([]any)[0].(map[string]any))
		data := testkit.Get(json.Marshal(file))(t)
		return string(data)
	}
	if _, err := (Method{}).Refit(p, []byte(changed(func(_, _ map[string]any) {})), 1); err != nil {
		t.Fatal(err)
	}
	for want, text := range map[string]string{
		"not what the study's sites": "",
		"something follows its end":  released + "{}",
		`unknown field "note"`:       strings.Replace(released, `"format"`, `"note":"","format"`, 1),
		"this program reads":         strings.Replace(released, "released/1", "released/2", 1),
		"for another plan":           strings.Replace(released, `"plan_sha256":"`, `"plan_sha256":"0`, 1),
		"2 sums at the frequencies":  changed(func(f, _ map[string]any) { f["sums"] = []int{1, 2} }),
		"quorum is 2":                changed(func(f, first map[string]any) { f["sites"] = []any{first} }),
		"or there twice":             changed(func(f, first map[string]any) { f["sites"] = []any{first, first} }),
		"are not what the plan has":  changed(func(_, first map[string]any) { first["sd"] = 0 }),
		"is negative":                changed(func(_, first map[string]any) { first["rows_sd"] = -1 }),
		"site a: 1e+300 rows":        changed(func(_, first map[string]any) { first["rows"] = 1e300 }),
		"sum 1 of": changed(func(f, _ map[string]any) {
			f["sums"].([]any)[0] = math.MaxFloat64
		}),
	} {
		if _, err := (Method{}).Refit(p, []byte(text), 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Selection says of every number what a refit with it says, whatever others are tried.
func TestSelectionSaysWhatRefitsSay(t *testing.T) {
	p, r := ended(t, "private")
	released := fileOf(r, releasedName)
	last := 0.0
	out := testkit.Get(Method{}.SelectReleased(t.Context(), p, released,
		method.SelectConfig{Values: []int{1, 3}, Progress: func(done, of float64) { last = done / of }}))(t)
	if last != 1 || len(out.Candidates) != 2 || out.Table.Len() != 2 || out.Option != "components" {
		t.Errorf("%v done, %+v", last, out)
	}
	for _, c := range out.Candidates {
		one := testkit.Get(Method{}.Refit(p, released, c.Value))(t)
		for name, x := range c.Scores {
			if x != one.Metrics[name] {
				t.Errorf("%d components: %s %v, a refit says %v", c.Value, name, x, one.Metrics[name])
			}
		}
		if len(c.Doubts) != int(c.Scores["doubts"]) {
			t.Errorf("%d components: %v doubts, %q", c.Value, c.Scores["doubts"], c.Doubts)
		}
	}
	if _, err := (Method{}).SelectReleased(t.Context(), p, released,
		method.SelectConfig{Values: []int{2, 1}}); err == nil {
		t.Error("descending candidates were taken")
	}
}

// Whatever a file says, there is an error or an observation of finite numbers.
func FuzzReleased(f *testing.F) {
	var setups []*setup
	for _, privacy := range []string{"{protection: none}",
		"{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 2, delta: 1e-5}}"} {
		for _, features := range []int{1, 3} {
			s := known(text(features, "components: 2", privacy))
			all := &released{Sums: make([]float64, s.Of.Len())}
			for _, site := range s.Plan.Sites {
				one := releasedSite{site, counted{Rows: 100}}
				if s.Sum != nil {
					one.SD, one.RowsSD = 2, 5
				}
				all.Sites = append(all.Sites, one)
			}
			file := testkit.Get(all.file(s.Plan))(f)
			if _, err := s.readReleased(file.Data); err != nil {
				f.Fatal(err)
			}
			setups = append(setups, s)
			f.Add(file.Data)
			for _, cut := range [][2]string{{"[0,", "[1e300,"}, {`"rows":100`, `"rows":-1e300`},
				{`"rows":100`, `"rows":0`}, {`"sd":`, `"sd":1e308,"_":`}, {`"site":"`, `"site":"x`}} {
				f.Add([]byte(strings.Replace(string(file.Data), cut[0], cut[1], 1)))
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, s := range setups {
			all, err := s.readReleased(data)
			if err != nil {
				continue
			}
			o, err := s.observation(all)
			if err != nil {
				continue
			}
			if text, err := json.Marshal(o); err != nil || !(o.Rows > 0) || math.IsInf(o.Rows, 0) {
				t.Errorf("%s is observed, %v", text, err)
			}
		}
	})
}

// Sums of sites added in another order differ in their last digits, and say the same.
func TestTheOrderOfSitesIsNotSeen(t *testing.T) {
	s := known("parley: 1\nname: order\nsites: [a]\nviews: [{name: v, features: [{name: x, range: [0, 9]}]}]\n" +
		"method: {name: mixture, components: 2}\nprivacy: {protection: none}\n")
	told := func(digits float64) []float64 {
		all := &released{Sums: make([]float64, s.Of.Len()), Sites: []releasedSite{{"a", counted{Rows: 300}}}}
		for i := range all.Sums {
			all.Sums[i] = 300 * math.Cos(float64(i)) * (1 + digits)
		}
		return testkit.Get(s.observation(all))(t).Mean
	}
	if a, b := told(0), told(1e-15); !slices.Equal(a, b) {
		t.Errorf("%v is told, and %v where last digits differ", a, b)
	}
}

// What a sampler found its draws to be worth is no more than they are.
func TestASampleKeepsItsEffectiveSize(t *testing.T) {
	one := gmm.NewMixture(1, 1)
	one.Weights[0], one.Covs[0] = 1, 1
	p := &gmm.Posterior{Draws: []gmm.Mixture{one, one, one, one}, Weights: []float64{.25, .25, .25, .25}, Size: 1.5}
	testkit.Do(t, p.Check(1, 1))
	for _, size := range []float64{-1, 4.1, math.NaN()} {
		p.Size = size
		if p.Check(1, 1) == nil {
			t.Errorf("a size of %v was taken", size)
		}
	}
}
