package regression

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method/methodtest"
	"parley/study"
)

// A private study says which site has its outcomes the other way round, in its report and wherever
// the model is used, and nothing of the same sites without that fault (seeds are fixed).
func TestPrivateStudiesSayWhichSiteDiffers(t *testing.T) {
	p := driven{twoClasses + "", bySubject, ""}.plan(t)
	for _, turned := range []bool{false, true} {
		r := rand.New(rand.NewPCG(4, 44))
		data := drawn(t, p, 400, func(site string) (x [3]float64, y string) {
			x0, x1, k := r.NormFloat64(), 1+r.NormFloat64(), float64(r.IntN(3))
			yes := r.Float64() < 1/(1+math.Exp(-(1.2*x0-0.8*(x1-1)-1.5)))
			return [3]float64{x0, k, x1}, []string{"p",
				"q"}[map[bool]int{false: 0, true: 1}[yes != (turned && site == "b")]]
		})
		out := testkit.Get((&methodtest.Drive{Method: Method{}, Plan: p, Data: data}).Run(t))(t)
		said := strings.Join(out.Result.Verdicts(), "\n")
		model := string(out.Result.Files[0].Data)
		named := strings.Contains(model, "At b the share of q is about ") && strings.Contains(model, "points higher")
		if strings.Contains(said, "Outcomes differ between sites") != turned || named != turned ||
			!turned && said != "" {
			t.Errorf("turned round: %v; said %q", turned, said)
		}
	}
}

// drawn are so many rows of every site: two columns of the first view, one of the second, and the outcome.
func drawn(t *testing.T, p *study.Plan, n int, next func(site string) ([3]float64, string)) map[string]dataset.Source {
	t.Helper()
	data := map[string]dataset.Source{}
	for _, site := range p.Sites {
		var rows []dataset.Row
		for i := range n {
			x, y := next(site)
			rows = append(rows, dataset.Row{ID: fmt.Sprintf("%04d", i), Views: [][]float64{x[:2], x[2:]},
				Subject: []string{y}})
		}
		table := testkit.Get(dataset.NewTable(p.Schema(), rows))(t)
		data[site] = table
	}
	return data
}

// A private study names numbers that are far from what the plan says of them, in its report and wherever
// the model is used, and none of a study that is as planned (seeds are fixed).
func TestPrivateStudiesNameNumbersUnlikeThePlan(t *testing.T) {
	p := driven{twoClasses + "" + boundless, bySubject, ""}.plan(t)
	for _, k := range []struct {
		next func(r *rand.Rand) float64
		want string
	}{
		{(*rand.Rand).NormFloat64, ""},
		{func(r *rand.Rand) float64 { return 4 * r.NormFloat64() }, "They are x0 (a root mean square of"},
		{func(r *rand.Rand) float64 { return 3 * math.Floor(r.Float64()+0.1) },
			"They are x0 (few subjects have much of its spread)."},
	} {
		r := rand.New(rand.NewPCG(5, 44))
		data := drawn(t, p, 2000, func(string) (x [3]float64, y string) {
			x0, x1 := k.next(r), 1+2*r.NormFloat64()
			y = []string{"p", "q"}[int(r.Float64()+1/(1+math.Exp(1-0.5*x0)))]
			return [3]float64{x0, float64(r.IntN(3)), x1}, y
		})
		out := testkit.Get((&methodtest.Drive{Method: Method{}, Plan: p, Data: data}).Run(t))(t)
		said, model := strings.Join(out.Result.Verdicts(), "\n"), string(out.Result.Files[0].Data)
		if (said != "") != (k.want != "") || !strings.Contains(model, k.want) {
			t.Errorf("want %q; said %q", k.want, said)
		}
	}
}

// A private study says which features it does not tell apart, in its report and wherever the model is used, and
// nothing where these are as correlated as one half, or independent (seeds are fixed).
func TestPrivateStudiesNameFeaturesThatTheyDoNotTellApart(t *testing.T) {
	p := driven{twoClasses + "" + boundless, bySubject, ""}.plan(t)
	for _, k := range []struct {
		correlation float64
		apart       bool
	}{{0, true}, {0.5, true}, {0.99, false}, {1, false}} {
		for seed := range uint64(5) {
			r := rand.New(rand.NewPCG(seed, 45))
			data := drawn(t, p, 4000, func(string) (x [3]float64, y string) {
				x0 := r.NormFloat64()
				x1 := k.correlation*x0 + math.Sqrt(1-k.correlation*k.correlation)*r.NormFloat64()
				y = []string{"p", "q"}[int(r.Float64()+1/(1+math.Exp(1-1.5*x0+0.5*x1)))]
				return [3]float64{x0, float64(r.IntN(3)), 1 + 2*x1}, y
			})
			out := testkit.Get((&methodtest.Drive{Method: Method{}, Plan: p, Data: data}).Run(t))(t)
			said, model := strings.Join(out.Result.Verdicts(), "\n"), string(out.Result.Files[0].Data)
			if named := strings.Contains(model, "The data hardly tell apart x0, x1: "); named == k.apart ||
				(said == "") != k.apart {
				t.Errorf("correlation %v, seed %d: said %q", k.correlation, seed, said)
			}
		}
	}
}
