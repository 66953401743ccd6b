package factors

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method"
	"parley/method/methodtest"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/privacy"
	"parley/privacy/privacytest"
	"parley/study"
)

// small is a study on drawn data, small enough to be run hundreds of times.
type small struct {
	plan *study.Plan
	data map[string]*dataset.Table
}

// shape is what a small study is drawn from.
type shape struct {
	dims    []int
	sites   int
	rows    int             // at each site
	missing float64         // share of cells
	gaps    float64         // share of views that a subject lacks
	lacks   map[[2]int]bool // site, view
	options string          // lines below method, but for the name
	privacy string          // the plan's privacy section; none if empty
	shift   float64         // standard deviation of each feature's mean between sites
	along   float64         // and of one shift of all features
	// by which the first view's features rise in ten years, and fall by as much with one level of sex
	ageing  float64
	unknown float64 // share of subjects of whom no age is known
	seed    uint64
}

// columns are the subject columns of a shape whose plan adjusts for some.
var columns = []dataset.Column{{Name: "age", Kind: dataset.Label}, {Name: "sex", Kind: dataset.Label},
	{Name: "scanner", Kind: dataset.Label}}

// aged draws a subject's columns, and adds their effects to the first view. Sites differ in age
// and have a scanner each.
func (s shape) aged(rng *rand.Rand, site int, subject []float64) []string {
	age, sex := 60+5*float64(site)+10*rng.NormFloat64(), rng.IntN(2)
	for j := range s.dims[0] {
		subject[j] += s.ageing * ((age-60)/10 - float64(sex))
	}
	cells := []string{strconv.FormatFloat(age, 'g', -1, 64), []string{"f", "m"}[sex], fmt.Sprint(site)}
	if rng.Float64() < s.unknown {
		cells[0] = "NA"
	}
	return cells
}

func (s shape) study(t testing.TB) *small {
	t.Helper()
	rng := rand.New(rand.NewPCG(s.seed, 7))
	truth := factorstest.NewTruth(rng, factorstest.Shape(t, ppca.NoisePerView, s.dims...), 1, 0.4)
	plan := &strings.Builder{}
	fmt.Fprintf(plan, "parley: 1\nname: small\nseed: %d\nprivacy: %s\nviews:\n", s.seed,
		cmp.Or(s.privacy, "{protection: none}"))
	var schema dataset.Schema
	for k, d := range s.dims {
		v := dataset.View{Name: fmt.Sprintf("v%d", k)}
		fmt.Fprintf(plan, "  - name: %s\n    features:\n", v.Name)
		for j := range d {
			v.Columns = append(v.Columns, dataset.Column{Name: fmt.Sprintf("f%d_%d", k, j)})
			fmt.Fprintf(plan, "      - {name: f%d_%d, range: [-20, 20]}\n", k, j)
		}
		schema.Views = append(schema.Views, v)
	}
	ages := rand.New(rand.NewPCG(s.seed, 8))
	if strings.Contains(s.options, "adjust") || s.ageing != 0 {
		schema.Subject = columns
		fmt.Fprint(plan, "subjects: [age, sex, scanner]\n")
	}
	out := &small{data: map[string]*dataset.Table{}}
	fmt.Fprint(plan, "sites: [")
	for i := range s.sites {
		name := fmt.Sprintf("site-%d", i)
		fmt.Fprint(plan, name, ", ")
		var rows []dataset.Row
		shift := make([]float64, truth.L.Features())
		for j := range shift {
			if s.shift > 0 {
				shift[j] = s.shift * rng.NormFloat64()
			}
		}
		if s.along > 0 {
			floats.AddConst(s.along*rng.NormFloat64(), shift)
		}
		for n := range s.rows {
			row := dataset.Row{ID: fmt.Sprintf("%s-%04d", name, n)}
			subject := truth.Subject(rng)
			floats.Add(subject, shift)
			if schema.Subject != nil {
				row.Subject = s.aged(ages, i, subject)
			}
			for k, view := range factorstest.Split(truth.L, subject) {
				switch {
				case s.lacks[[2]int{i, k}], n > 0 && len(s.dims) > 1 && rng.Float64() < s.gaps:
					view = nil
				default:
					factorstest.Hole(rng, [][]float64{view}, s.missing)
				}
				row.Views = append(row.Views, view)
			}
			rows = append(rows, row)
		}
		table, err := dataset.NewTable(schema, rows)
		if err != nil {
			t.Fatal(err)
		}
		out.data[name] = table
	}
	fmt.Fprintf(plan, "]\nmethod:\n  name: factors\n%s", s.options)
	var err error
	if out.plan, err = study.Parse("plan.yaml", []byte(plan.String()), method.Registry{Method{}}); err != nil {
		t.Fatalf("%v in:\n%s", err, plan)
	}
	return out
}

// ofRows is a study of these rows, site by site, with other lines of the plan and of what stands below method.
func ofRows(t testing.TB, plan, options string, schema dataset.Schema, rows [][]dataset.Row) *small {
	t.Helper()
	s := &small{data: map[string]*dataset.Table{}}
	var names []string
	for i, own := range rows {
		names = append(names, fmt.Sprint("site-", i))
		s.data[names[i]] = testkit.Get(dataset.NewTable(schema, own))(t)
	}
	plan += "parley: 1\nname: small\nprivacy: {protection: none}\nsites: [" + strings.Join(names, ", ") + "]\nviews:\n"
	for _, v := range schema.Views {
		var features []string
		for _, c := range v.Columns {
			features = append(features, strconv.Quote(c.Name))
		}
		plan += fmt.Sprintf("  - {name: %s, features: [%s]}\n", v.Name, strings.Join(features, ", "))
	}
	s.plan = testkit.Get(parse(plan + "method: {name: factors, " + options + "}\n"))(t)
	return s
}

// viewsNamed are views of so many features each.
func viewsNamed(dims ...int) (s dataset.Schema) {
	for k, d := range dims {
		v := dataset.View{Name: fmt.Sprint("v", k)}
		for j := range d {
			v.Columns = append(v.Columns, dataset.Column{Name: fmt.Sprintf("f%d_%d", k, j)})
		}
		s.Views = append(s.Views, v)
	}
	return s
}

// all are the rows of all sites in one place.
func (s *small) all(t testing.TB) *dataset.Table {
	t.Helper()
	var rows []dataset.Row
	for _, site := range s.plan.Sites {
		rows = append(rows, tableRows(s, site)...)
	}
	return testkit.Get(dataset.NewTable(s.plan.Schema(), rows))(t)
}

func tableRows(s *small, site string) (rows []dataset.Row) {
	for i := range s.data[site].Len() {
		rows = append(rows, s.data[site].Row(i))
	}
	return rows
}

// play is a small study that runs as engines run it.
type play struct {
	*small
	methodtest.Drive
	methodtest.Ends
	t     testing.TB
	kinds []string
}

func newPlay(t testing.TB, s *small) *play {
	p := &play{small: s, t: t, Drive: methodtest.Drive{Method: Method{}, Plan: s.plan, Data: sources(s), Keeps: true}}
	p.Passed = func(task method.Task, _ method.Contribution) {
		if n := len(p.kinds); n == 0 || p.kinds[n-1] != task.Kind {
			p.kinds = append(p.kinds, task.Kind)
		}
	}
	return p
}

// seeded gives every site other noise.
func (p *play) seeded(seed uint64) *play {
	p.Noise = map[string]privacy.Option{}
	for _, site := range p.plan.Sites {
		p.Noise[site] = privacytest.Seeded(seed)
	}
	return p
}

// run plays the study to its end, from which no site may stay away but those that are absent.
func (p *play) run() (*method.Result, error) {
	var err error
	if p.Ends, err = p.Run(p.t); err == nil && len(p.Left) > 0 && p.Absent == nil {
		err = fmt.Errorf("sites %v left", p.Left)
	}
	return p.Result, err
}

// threeSites is a study that all tests of single steps can share: the last
// site alone lacks nothing, so that the others may leave.
func threeSites(t testing.TB, options string) *small {
	t.Helper()
	s := shape{dims: []int{3, 2}, sites: 3, rows: 20, missing: 0.05, gaps: 0.1, lacks: map[[2]int]bool{{1, 1}: true},
		options: options, seed: 5}
	return s.study(t)
}

const (
	federatedOptions = "  latent: 2\n"
	adjustedOptions  = "  latent: 2\n  adjust: [age, {column: sex, levels: [f, m]}]\n"
)

// The model cannot do without the only site that has a view; its assessment can.
func TestOnlySiteWithAViewLeaves(t *testing.T) {
	s := shape{dims: []int{3, 2}, sites: 3, rows: 20, lacks: map[[2]int]bool{{1, 1}: true, {2, 1}: true},
		options: federatedOptions, seed: 6}.study(t)
	whole := newPlay(t, s)
	if _, err := whole.run(); err != nil {
		t.Fatal(err)
	}
	leave := func(at string) (*method.Result, error) {
		p := newPlay(t, s)
		p.Absent = func(task method.Task) bool { return task.Site == "site-0" && task.Kind == at }
		return p.run()
	}
	first := whole.kinds[slices.IndexFunc(whole.kinds, func(k string) bool { return k != options.TaskScale })]
	if _, err := leave(first); err == nil ||
		!strings.Contains(err.Error(), "no site has a single value of feature f1_0 of view v1") {
		t.Errorf("leaving at %q: %v", first, err)
	}
	r, err := leave(options.TaskAssess)
	if err != nil {
		t.Fatal(err)
	}
	checkResult(t, s.plan, r)
	if _, ok := r.Metrics["r2/v1"]; ok {
		t.Error("nobody assessed view v1, and yet something of it is explained")
	}
}

// Sites of one subject each are a study: it ends with a model, and says that nothing
// varies within a site where the explained variance would stand.
func TestSitesOfOneSubject(t *testing.T) {
	s := shape{dims: []int{6, 5}, sites: 40, rows: 1, gaps: 0.2, seed: 4, options: "  latent: 2\n"}
	r := testkit.Get(newPlay(t, s.study(t)).run())(t)
	for name, x := range r.Metrics {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			t.Errorf("%s is %v", name, x)
		}
	}
	if got := fmt.Sprint(r.Headline); !strings.Contains(got, "unknown: no view varies within a site") ||
		strings.Contains(got, "Inf") {
		t.Errorf("the headline is %s", got)
	}
}

// Where many single values are missing, the report begins with a warning.
func TestManyMissingCellsAreSaidFirst(t *testing.T) {
	for _, missing := range []float64{0, 0.3} {
		s := shape{dims: []int{8, 6}, sites: 3, rows: 60, missing: missing, seed: 6,
			options: "  latent: 2\n  rounds: 0\n"}
		r := testkit.Get(newPlay(t, s.study(t)).run())(t)
		said := said(r.Verdicts(), "single values are missing")
		if first := r.Sections[0].ID == "verdicts"; said != (missing > 0) || first != said {
			t.Errorf("%v of the cells are missing: %v, %+v", missing, r.Verdicts(), r.Sections[0])
		}
	}
}

// numbersOf collects every text and number of a result that a reader sees.
func numbersOf(t *testing.T, r *method.Result) string {
	t.Helper()
	var b strings.Builder
	for _, s := range r.Sections {
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatalf("section %s: %v", s.ID, err)
		}
		b.Write(data)
	}
	for _, h := range r.Headline {
		fmt.Fprintln(&b, h.Name, h.Value)
	}
	data := testkit.Get(json.Marshal(r.Metrics))(t)
	b.Write(data)
	for _, f := range r.Files {
		b.Write(f.Data)
	}
	return b.String()
}

// Twenty subjects at ε = 0.1 tell nothing. The result says so and has no hole.
func TestNothingIsLearnedFromNextToNothing(t *testing.T) {
	for seed := range uint64(4) {
		s := shape{dims: []int{3, 2, 1}, sites: 2, rows: 10, gaps: 0.2, missing: 0.2,
			lacks: map[[2]int]bool{{1, 1}: true}, options: statisticsOptions,
			privacy: strings.Replace(totalBudget, "epsilon: 3", "epsilon: 0.1", 1), seed: 3 + seed}.study(t)
		r := testkit.Get(newPlay(t, s).seeded(seed).run())(t)
		if text := numbersOf(t, r); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Error("the result has a number that is none")
		}
		if said := strings.Join(r.Verdicts(), " "); !strings.Contains(said, "as far as anybody can tell") {
			t.Errorf("the result says %q", said)
		}
	}
}
