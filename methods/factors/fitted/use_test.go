package fitted

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"parley/dataset"
	"parley/figure"
	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/assess"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// modelOf names a model with scales of its own for every feature.
func modelOf(t testing.TB, tr factorstest.Truth, r *rand.Rand) *Model {
	t.Helper()
	p, strengths, _, err := ppca.Canonical(tr.L, &tr.P)
	if err != nil {
		t.Fatal(err)
	}
	o := options.Defaults()
	o.Latent = options.Factors(p.Rank)
	if tr.L.Noise == ppca.NoisePerFeature {
		o.Noise = "feature"
	}
	m := &Model{Format: ModelFormat, Plan: strings.Repeat("0123456789abcdef", 4),
		Study: "test", Seed: 5,
		Options: o, Scaling: ppca.ScaleStandard, Factors: strengths}
	group, view := tr.L.GroupOf(), tr.L.ViewOf()
	sdW, sdMu := 0.1, 0.2
	for j := range view {
		if view[j] == len(m.Views) {
			r2 := 0.5
			m.Views = append(m.Views, ModelView{Name: fmt.Sprintf("view%d", view[j]), LoadingSD: &sdW, MeanSD: &sdMu,
				Values: 10, R2: &r2, R2Each: make(figure.Numbers, p.Rank)})
		}
		v := &m.Views[view[j]]
		v.Features = append(v.Features, ModelFeature{Name: fmt.Sprintf("f%d", j), Unit: "mm",
			Shift: 10 * r.NormFloat64(), Factor: math.Exp(r.NormFloat64()),
			Mean: p.Mu[j], Noise: p.Noise[group[j]], Loadings: p.W[j*p.Rank : (j+1)*p.Rank]})
	}
	for _, name := range []string{"one", "two"} {
		s := ModelSite{Name: name, Subjects: 5}
		for _, v := range m.Views {
			s.Views = append(s.Views, v.Name)
		}
		m.Sites = append(m.Sites, s)
	}
	return m
}

// ownUnits brings rows in scaled units (NaN where missing) to the features' own.
func ownUnits(m *Model, rows [][]float64) *dataset.Table {
	l, _ := m.Layout()
	scale := m.scale()
	var list []dataset.Row
	for i, row := range rows {
		x := slices.Clone(row)
		for j := range x {
			x[j] = x[j]/scale.Factor[j] + scale.Shift[j]
		}
		list = append(list, dataset.Row{ID: fmt.Sprintf("s%05d", i), Views: factorstest.Split(l, x)})
	}
	table, err := dataset.NewTable(m.Schema(), list)
	if err != nil {
		panic(err)
	}
	return table
}

func readCSV(t testing.TB, b *bytes.Buffer) (header []string, lines [][]string) {
	t.Helper()
	all := testkit.Get(csv.NewReader(b).ReadAll())(t)
	return all[0], all[1:]
}

func cellNumber(t testing.TB, cell string) float64 {
	t.Helper()
	return testkit.Get(strconv.ParseFloat(cell, 64))(t)
}

// closedForm is the law of the factors, and of what is missing of a row, given the rest of it, by the textbook: with
// the covariance S of all, factors first, S_us S_ss⁻¹ (t_s − μ_s) and S_uu − S_us S_ss⁻¹ S_su.
func closedForm(m *Model, extra float64, row []float64) (missing []int, mean *mat.VecDense, cov *mat.Dense) {
	l, _ := m.Layout()
	p := m.params()
	q, d, group := p.Rank, len(row), l.GroupOf()
	all, law := mat.NewDense(q+d, q, nil), new(mat.Dense)
	var seen, unseen []int
	var off []float64
	for i := range q + d {
		if i < q {
			all.Set(i, i, 1)
			unseen = append(unseen, i)
		} else if j := i - q; math.IsNaN(row[j]) {
			all.SetRow(i, p.W[j*q:][:q])
			unseen, missing = append(unseen, i), append(missing, j)
		} else {
			all.SetRow(i, p.W[j*q:][:q])
			seen, off = append(seen, i), append(off, row[j]-p.Mu[j])
		}
	}
	law.Mul(all, all.T())
	for j := range d {
		law.Set(q+j, q+j, law.At(q+j, q+j)+p.Noise[group[j]]+extra)
	}
	part := func(rows, columns []int) *mat.Dense {
		out := mat.NewDense(len(rows), len(columns), nil)
		for i, r := range rows {
			for k, c := range columns {
				out.Set(i, k, law.At(r, c))
			}
		}
		return out
	}
	mean, cov = mat.NewVecDense(len(unseen), nil), part(unseen, unseen)
	if len(seen) > 0 {
		var gain, less mat.Dense
		if err := gain.Solve(part(seen, seen), part(seen, unseen)); err != nil {
			panic(err)
		}
		mean.MulVec(gain.T(), mat.NewVecDense(len(off), off))
		less.Mul(part(unseen, seen), &gain)
		cov.Sub(cov, &less)
	}
	for k, j := range missing {
		mean.SetVec(q+k, mean.AtVec(q+k)+p.Mu[j])
	}
	return missing, mean, cov
}

// TestUseEqualsTheClosedForm holds what is written for any pattern of views
// and cells to the textbook, for subjects of known and of new sites.
func TestUseEqualsTheClosedForm(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 81))
		l := factorstest.Shape(t, ppca.Noise(rapid.IntRange(0, 1).Draw(rt, "noise")), 4, 3, 5)
		m := modelOf(t, factorstest.NewTruth(r, l, 3, 0.5), r)
		rows := factorstest.Hole(r, factorstest.NewTruth(r, l, 3, 0.5).Subjects(r, 6), 0.3)
		rows[1] = factorstest.Lacking(l, rows[1:2], 0, 1, 2)[0] // nothing at all
		rows[2] = factorstest.Lacking(l, rows[2:3], 1)[0]
		data := ownUnits(m, rows)
		newSite, extra := rapid.Bool().Draw(rt, "new site"), 0.0
		if newSite {
			extra = 0.2*0.2 + 3*0.1*0.1 // times 2/C, and there are two sites
		}
		var scores, values bytes.Buffer
		n, _, err := m.Transform(context.Background(), data, &scores,
			method.TransformOptions{NewSite: newSite})
		if err != nil || n != len(rows) {
			rt.Fatalf("%d subjects, %v", n, err)
		}
		header, lines := readCSV(t, &scores)
		if got := strings.Join(header, ","); got != "id,values,factor_1,factor_2,factor_3,sd_1,sd_2,sd_3" {
			rt.Fatalf("header %s", got)
		}
		if _, _, err := m.Impute(context.Background(), data, &values,
			method.ImputeOptions{NewSite: newSite, Level: 0.9}); err != nil {
			rt.Fatal(err)
		}
		_, imputed := readCSV(t, &values)
		scale := m.scale()
		for i, row := range rows {
			missing, mean, cov := closedForm(m, extra, row)
			if lines[i][0] != data.Row(i).ID || lines[i][1] != fmt.Sprint(len(row)-len(missing)) {
				rt.Fatalf("line %v", lines[i])
			}
			near := func(what, cell string, want float64) {
				if got := cellNumber(t, cell); math.Abs(got-want) > 1e-12*max(1, math.Abs(want)) {
					rt.Fatalf("subject %d: %s is %v, want %v", i, what, got, want)
				}
			}
			for a := range 3 {
				near("mean", lines[i][2+a], mean.AtVec(a))
				near("sd", lines[i][5+a], math.Sqrt(cov.At(a, a)))
			}
			for k, j := range missing {
				line := imputed[0]
				imputed = imputed[1:]
				if line[0] != data.Row(i).ID || line[1] != m.Views[l.ViewOf()[j]].Name ||
					line[2] != fmt.Sprintf("f%d", j) {
					rt.Fatalf("subject %d, feature %d: line %v", i, j, line)
				}
				// Own units may be large against the scaled ones.
				close := func(cell string, want float64) {
					if got := cellNumber(t, cell); math.Abs((got-want)*scale.Factor[j]) > 1e-11 {
						rt.Fatalf("subject %d, feature %d: %v, want %v", i, j, got, want)
					}
				}
				centre := mean.AtVec(3+k)/scale.Factor[j] + scale.Shift[j]
				sd := math.Sqrt(cov.At(3+k, 3+k)) / scale.Factor[j]
				close(line[3], centre)
				close(line[4], sd)
				const z = 1.6448536269514722 // 95 % point of N(0, 1)
				close(line[5], centre-z*sd)
				close(line[6], centre+z*sd)
			}
			if len(missing) == len(row) && (lines[i][2] != "0" || lines[i][5] != "1") {
				rt.Fatalf("a subject without a value has %v, not the prior", lines[i])
			}
		}
		if len(imputed) > 0 {
			rt.Fatalf("observed values were imputed: %v", imputed)
		}
	})
}

func TestANewSiteNeedsASpread(t *testing.T) {
	r := rand.New(rand.NewPCG(82, 1))
	tr := factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerView, 3, 2), 1, 0.5)
	m := modelOf(t, tr, r)
	data := ownUnits(m, tr.Subjects(r, 2))
	use := func() (method.Notes, error) {
		_, notes, err := m.Transform(context.Background(), data, new(bytes.Buffer),
			method.TransformOptions{NewSite: true})
		return notes, err
	}
	m.Sites[1].Views = []string{"view0"}
	if notes, err := use(); err != nil || !strings.Contains(notes.Error(), "view1: too few sites or subjects") ||
		strings.Contains(notes.Error(), "view0:") {
		t.Errorf("%v, %v", notes, err)
	}
	m.Views[0].LoadingSD, m.Views[1].LoadingSD = nil, nil
	m.Options = &options.Options{}
	if _, err := use(); err == nil || !strings.Contains(err.Error(), "nothing estimated how sites differ") ||
		!strings.Contains(err.Error(), "hint: leave out --new-site") {
		t.Errorf("got %v", err)
	}
	m.Scaling = ppca.ScaleSiteRange
	if _, err := use(); err == nil || !strings.Contains(err.Error(), "every site had units of its own") {
		t.Errorf("got %v", err)
	}
}

// TestNewSiteVariance: a pooled fit has part of what sites differ by in its
// noise, and all of it with many sites; a typical site has none.
func TestNewSiteVariance(t *testing.T) {
	w, mu := 0.1, 0.2
	v := ModelView{Name: "v", LoadingSD: &w, MeanSD: &mu}
	for _, c := range []struct {
		typical bool
		sites   int
		want    float64
	}{{false, 2, 0.07}, {false, 7, 0.02}, {true, 2, 0.105}, {true, 7, 0.08}} {
		m := &Model{Published: &Published{TypicalSite: c.typical}, Factors: make([]float64, 3),
			Sites: make([]ModelSite, c.sites)}
		for i := range m.Sites {
			m.Sites[i].Views = []string{"v"}
		}
		if got := m.newSiteVariance(&v); math.Abs(got-c.want) > 1e-15 {
			t.Errorf("typical: %t, %d sites: %v, want %v", c.typical, c.sites, got, c.want)
		}
	}
}

// A new site's subjects have the covariance that a model's directions make: μ and the variances of features stay, and
// what is told of one view shifts what is expected of the other. Of all sites together directions have the same share.
func TestDirectionsOfNewSites(t *testing.T) {
	r := rand.New(rand.NewPCG(85, 1))
	m := modelOf(t, factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerFeature, 3, 2), 1, 0.5), r)
	m.SiteMeans = []modelSiteMeans{{"one", make([]float64, 5), make([]float64, 5), nil}}
	m.NewSiteDirections = [][]float64{{1, -1, .5, .5, 0}, {0, 1, .5, -.5, 0}}
	for k := range m.Views {
		m.Views[k].LoadingSD = nil
		for i := range m.Views[k].Features {
			m.Views[k].Features[i].SiteVariance, m.Views[k].Features[i].NewSiteVariance = 2, 3
		}
	}
	m = testkit.Get(LoadModel(testkit.Get(json.Marshal(m))(t)))(t)
	for times, who := range map[float64]Population{1: {New: true}, 2. / 3: {}} {
		p, _, err := m.PredictorFor(who)
		testkit.Do(t, err)
		l, md := p.Model()
		want := factorstest.Covariance(l, m.params(), l.AllFeatures())
		for at, x := range want {
			j, k, got, own := at/5, at%5, 0.0, 0.0
			for a := range md.Q {
				got += md.W[j*md.LD+a] * md.W[k*md.LD+a]
			}
			for _, along := range m.NewSiteDirections {
				own += along[j] * along[k]
			}
			if j == k {
				got, own = got+md.Psi[j], 3
			}
			if math.Abs(got-x-times*own) > 1e-12 {
				t.Errorf("%+v: covariance of features %d and %d is %v, want %v", who, j, k, got, x+times*own)
			}
		}
	}
}

func TestRequestsThatMakeNoSenseAreRefused(t *testing.T) {
	r := rand.New(rand.NewPCG(83, 1))
	m := modelOf(t, factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerView, 3, 2), 1, 0.5), r)
	data := ownUnits(m, nil)
	_, _, noOne := m.Transform(context.Background(), data, new(bytes.Buffer), method.TransformOptions{})
	impute := func(o method.ImputeOptions) error {
		_, _, err := m.Impute(context.Background(), data, new(bytes.Buffer), o)
		return err
	}
	for want, err := range map[string]error{
		"there are no subjects in them": noOne,
		"0 is not between 0 and 1":      impute(method.ImputeOptions{}),
		"1 is not between 0 and 1":      impute(method.ImputeOptions{Level: 1}),
		"hint: did you mean view1?":     impute(method.ImputeOptions{Level: 0.5, Views: []string{"vew1"}}),
		"hint: one of view0, view1":     impute(method.ImputeOptions{Level: 0.5, Views: []string{"other"}}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestOtherUnitsAreNoticed gives one view in other units, or scaled already.
func TestOtherUnitsAreNoticed(t *testing.T) {
	r := rand.New(rand.NewPCG(84, 1))
	tr := factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerView, 4, 3), 2, 0.5)
	m := modelOf(t, tr, r)
	for i := range m.Views[0].Features { // positive, as heights are
		m.Views[0].Features[i].Shift, m.Views[0].Features[i].Factor = 170, 0.1
	}
	rows := tr.Subjects(r, 40)
	notes := func(change func([]float64)) string {
		table := ownUnits(m, rows)
		var changed []dataset.Row
		for i := range table.Len() {
			row := table.Row(i)
			x := slices.Clone(row.Views[0])
			change(x)
			changed = append(changed, dataset.Row{ID: row.ID, Views: [][]float64{x, row.Views[1]}})
		}
		data := testkit.Get(dataset.NewTable(m.Schema(), changed))(t)
		_, found, err := m.Transform(context.Background(), data, new(bytes.Buffer), method.TransformOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return found.Error()
	}
	if got := notes(func([]float64) {}); got != "" {
		t.Errorf("without a cause: %s", got)
	}
	if got := notes(func(x []float64) {
		for j := range x {
			x[j] /= 100
		}
	}); !strings.Contains(got, "view view0: 4 of 4 features are far") || !strings.Contains(got, "f0 (mean") ||
		!strings.Contains(got, "a factor of about 10^-2") || !strings.Contains(got, "hint: are they in the units") ||
		strings.Contains(got, "view1") {
		t.Errorf("metres for centimetres: %s", got)
	}
	if got := notes(func(x []float64) { x[2] = 999 }); !strings.Contains(got, "1 of 4 features") ||
		!strings.Contains(got, "f2 (mean 999") {
		t.Errorf("a code for missing values: %s", got)
	}
	if got := notes(func(x []float64) {
		for j := range x {
			x[j] = (x[j] - 170) * 0.1
		}
	}); !strings.Contains(got, "4 of 4 features") || !strings.Contains(got, "scaled already") {
		t.Errorf("scaled values: %s", got)
	}
}

// TestAViewThatNobodyHadIsNotDescribed: it is never imputed, and values of it
// are passed over.
func TestAViewThatNobodyHadIsNotDescribed(t *testing.T) {
	r := rand.New(rand.NewPCG(87, 1))
	tr := factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerView, 3, 2), 1, 0.5)
	m := modelOf(t, tr, r)
	data := ownUnits(m, tr.Subjects(r, 2))
	for i := range m.Views[1].Features {
		f := &m.Views[1].Features[i]
		f.Noise, f.Mean, f.Loadings = 0, 0, make([]float64, 1)
	}
	m = testkit.Get(LoadModel(testkit.Get(m.Encode())(t)))(t)
	var scores, values bytes.Buffer
	if _, notes, err := m.Transform(context.Background(), data, &scores, method.TransformOptions{}); err != nil ||
		len(notes) > 0 {
		t.Fatal(notes, err)
	}
	if _, lines := readCSV(t, &scores); lines[0][1] != "3" {
		t.Errorf("%s values were used of 3", lines[0][1])
	}
	if n, _, err := m.Impute(context.Background(), data.Without(0), &values, method.ImputeOptions{Level: 0.9}); err !=
		nil || n != 6 {
		t.Errorf("%d values were imputed, %v", n, err)
	}
	testkit.Get(json.Marshal(testkit.Get(m.Summary(3))(t).Value))(t)
}

func TestModelsThatDoNotFitTogetherAreRefused(t *testing.T) {
	minus := -1.0
	for want, change := range map[string]func(*Model){
		"loadings for 2 factors":          func(m *Model) { m.Views[0].Features[1].Loadings = []float64{1} },
		"several":                         func(m *Model) { m.Views[0].Features[1].Noise = 7 },
		"two views":                       func(m *Model) { m.Views[1].Name = "view0" },
		"two features":                    func(m *Model) { m.Views[1].Features[0].Name = "f0" },
		"deviations between sites: -1 is": func(m *Model) { m.Views[0].MeanSD = &minus },
		"of predictions, times: 0.5 is":   func(m *Model) { m.Views[1].SamplingTimes = 0.5 },
		"errors of factors: 3 numbers":    func(m *Model) { m.Errors = &assess.Errors{Turns: []float64{1, 1, 1}} },
		"standard errors of loadings: 0 ": func(m *Model) {
			m.Errors = &assess.Errors{Turns: []float64{1, 1}, Outside: []float64{1, 1}}
		},
		"shares of variance": func(m *Model) { m.Views[0].R2Each = figure.Numbers{1} },
		"noise variance": func(m *Model) {
			m.Views[0].Features[0].Noise, m.Views[0].Features[1].Noise, m.Views[0].Features[2].Noise = minus, minus,
				minus
		},
		"scale":               func(m *Model) { m.Views[0].Features[0].Factor = 0 },
		"layout has no views": func(m *Model) { m.Views = nil },
		"0 factors": func(m *Model) {
			m.Factors = nil
			for k := range m.Views {
				for i := range m.Views[k].Features {
					m.Views[k].Features[i].Loadings = nil
				}
			}
		},
	} {
		r := rand.New(rand.NewPCG(88, 1))
		m := modelOf(t, factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerView, 3, 2), 2, 0.5), r)
		change(m)
		if _, err := LoadModel(testkit.Get(m.Encode())(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := LoadModel([]byte(`{"format": "parley/mvppca-model/3", "program": "parley 9"}`)); err == nil ||
		!strings.Contains(err.Error(), "newer") {
		t.Errorf("got %v", err)
	}
}

// FuzzUseModel: whatever a file holds, reading it gives an error or a model
// that can be used.
func FuzzUseModel(f *testing.F) {
	r := rand.New(rand.NewPCG(89, 1))
	m := modelOf(f, factorstest.NewTruth(r, factorstest.Shape(f, ppca.NoisePerFeature, 2, 1), 1, 0.5), r)
	f.Add(testkit.Get(m.Encode())(f))
	m.PutAdjusted([]options.Covariate{{Column: "age"}, {Column: "sex", Levels: []string{"f", "m"}}}, &options.Estimates{
		Effects: options.Effects{Centre: []float64{60, 0.5},
			Slopes: wire.Matrix{Rows: 3, Cols: 2, Data: []float64{1, 2, 3, 0, 5, 6}}},
		Subjects: 20})
	f.Add(testkit.Get(m.Encode())(f))
	f.Add([]byte(`{"format": "parley/mvppca-model/1"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := LoadModel(data)
		if err != nil {
			return
		}
		if _, err := m.Encode(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := m.PredictorFor(Population{}); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Summary(2); err != nil {
			t.Fatal(err)
		}
		if m.Adjusts() {
			m.AdjustedSection()
		}
	})
}
