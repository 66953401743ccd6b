package ppca_test

import (
	"math/rand/v2"
	"testing"

	"parley/methods/mvppca/internal/synthetic"
	"parley/methods/mvppca/ppca"
)

// BenchmarkMAPIteration130x6 is one MAP iteration at a complete site, d = 130,
// q = 6: its cost does not depend on the number of subjects.
func BenchmarkMAPIteration130x6(b *testing.B) {
	l := synthetic.Shape(b, ppca.NoisePerView, 7, 41, 41, 41)
	r := rand.New(rand.NewPCG(1, 1))
	tr := synthetic.NewTruth(r, l, 6, 0.5)
	blocks := synthetic.BlocksOf(b, l, tr.Subjects(r, 300))
	prior := synthetic.Must(ppca.Weak(l, &tr.P))(b)
	s := synthetic.Must(ppca.NewPublished(l, blocks, 6, tr.P.W, tr.P.Noise))(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Step(prior); err != nil {
			b.Fatal(err)
		}
	}
}

// publishedRun is the whole of the paper's algorithm: 100 rounds of 15
// iterations at 3 sites, with the updates of the coordinator.
func publishedRun(b *testing.B, q, subjects int, dims ...int) {
	l := synthetic.Shape(b, ppca.NoisePerView, dims...)
	r := rand.New(rand.NewPCG(1, 1))
	tr := synthetic.NewTruth(r, l, q, 0.1)
	var sites [][]ppca.Block
	for range 3 {
		sites = append(sites, synthetic.BlocksOf(b, l, tr.Subjects(r, subjects)))
	}
	b.ReportAllocs()
	for b.Loop() {
		w, noise := tr.P.W, tr.P.Noise
		var prior *ppca.Prior
		for range 100 {
			var local []ppca.Params
			for _, blocks := range sites {
				s := synthetic.Must(ppca.NewPublished(l, blocks, q, w, noise))(b)
				for range 15 {
					if err := s.Step(prior); err != nil {
						b.Fatal(err)
					}
				}
				local = append(local, s.Params())
			}
			var err error
			if prior, _, err = ppca.PublishedMaster(l, local); err != nil {
				b.Fatal(err)
			}
			w, noise = prior.W, prior.Noise
		}
	}
}

func BenchmarkPublishedRunSynthetic(b *testing.B) { publishedRun(b, 5, 89, 15, 8, 10) }

func BenchmarkPublishedRunADCSF(b *testing.B) { publishedRun(b, 6, 200, 7, 41, 41, 42) }

// BenchmarkAccumulate100000x130 is the one pass over rows in memory.
func BenchmarkAccumulate100000x130(b *testing.B) {
	l := synthetic.Shape(b, ppca.NoisePerView, 7, 41, 41, 41)
	r := rand.New(rand.NewPCG(1, 1))
	rows := synthetic.NewTruth(r, l, 6, 0.5).Subjects(r, 1000)
	var views [][][]float64
	for _, row := range rows {
		views = append(views, synthetic.Split(l, row))
	}
	b.ReportAllocs()
	for b.Loop() {
		a := synthetic.Must(ppca.NewAccumulator(l, nil))(b)
		for i := range 100_000 {
			if err := a.Add(views[i%1000]); err != nil {
				b.Fatal(err)
			}
		}
		a.Blocks()
	}
}

// BenchmarkOneShot is the default method's round 1: three local fits of rank
// 2q and the coordinator's fit, synthetic shapes.
func BenchmarkOneShot(b *testing.B) {
	l := synthetic.Shape(b, ppca.NoisePerView, 15, 8, 10)
	r := rand.New(rand.NewPCG(1, 1))
	tr := synthetic.NewTruth(r, l, 5, 0.1)
	var sites [][]ppca.Block
	for range 3 {
		sites = append(sites, synthetic.BlocksOf(b, l, tr.Subjects(r, 89)))
	}
	b.ReportAllocs()
	for b.Loop() {
		oneShot(b, l, sites, 5)
	}
}

// BenchmarkOneShotPerFeature is the same on adcsf shapes with noise per feature.
func BenchmarkOneShotPerFeature(b *testing.B) {
	l := synthetic.Shape(b, ppca.NoisePerFeature, 7, 41, 41, 42)
	r := rand.New(rand.NewPCG(1, 1))
	tr := synthetic.NewTruth(r, l, 6, 0.1)
	var sites [][]ppca.Block
	for range 3 {
		sites = append(sites, synthetic.BlocksOf(b, l, tr.Subjects(r, 200)))
	}
	b.ReportAllocs()
	for b.Loop() {
		oneShot(b, l, sites, 6)
	}
}

// BenchmarkHierarchicalRound is one round at three sites and the pooling, with
// noise per feature: the costly case.
func BenchmarkHierarchicalRound(b *testing.B) {
	for name, noise := range map[string]ppca.Noise{"PerView": ppca.NoisePerView, "PerFeature": ppca.NoisePerFeature} {
		b.Run(name, func(b *testing.B) {
			l := synthetic.Shape(b, noise, 7, 41, 41, 42)
			r := rand.New(rand.NewPCG(1, 1))
			tr := synthetic.NewTruth(r, l, 6, 0.1)
			var sites [][]ppca.Block
			for range 3 {
				sites = append(sites, synthetic.BlocksOf(b, l, tr.Subjects(r, 200)))
			}
			prior := synthetic.Must(ppca.Weak(l, &tr.P))(b)
			b.ReportAllocs()
			for b.Loop() {
				round(b, l, sites, prior, nil, 5)
			}
		})
	}
}

// BenchmarkFitMissingCells is one site of 300 subjects with 10 % of the cells
// missing, nearly every subject with a pattern of their own.
func BenchmarkFitMissingCells(b *testing.B) {
	l := synthetic.Shape(b, ppca.NoisePerView, 15, 8, 10)
	r := rand.New(rand.NewPCG(1, 1))
	tr := synthetic.NewTruth(r, l, 5, 0.1)
	blocks := synthetic.BlocksOf(b, l, synthetic.Hole(r, tr.Subjects(r, 300), 0.1))
	b.ReportAllocs()
	for b.Loop() {
		f := synthetic.Must(ppca.Fit(l, blocks, 5, nil, ppca.FitOptions{}))(b)
		b.ReportMetric(float64(f.Iterations), "iterations")
	}
}

// oneShot runs the default method's round 1.
func oneShot(t testing.TB, l ppca.Layout, sites [][]ppca.Block, q int) *ppca.Fitted {
	t.Helper()
	var pseudo []ppca.Block
	for _, blocks := range sites {
		n := 0.0
		for _, b := range blocks {
			n += b.N
		}
		fit := synthetic.Must(ppca.Fit(l, blocks, ppca.LocalRank(q, len(ppca.Observed(l, blocks)), n), nil, ppca.FitOptions{Tol: 1e-6}))(t)
		pseudo = append(pseudo, synthetic.Must(ppca.PseudoBlocks(l, &fit.Params, ppca.Patterns(l, blocks)))(t)...)
	}
	return synthetic.Must(ppca.Fit(l, pseudo, q, nil, ppca.FitOptions{}))(t)
}

// round runs one hierarchical round at all sites.
func round(t testing.TB, l ppca.Layout, sites [][]ppca.Block, prior *ppca.Prior, states []ppca.SiteState, steps int) (*ppca.Prior, []ppca.SiteState) {
	t.Helper()
	var messages []ppca.SiteMessage
	for i, blocks := range sites {
		var start *ppca.SiteState
		if states != nil {
			start = &states[i]
		}
		h := synthetic.Must(ppca.NewHierarchical(l, blocks, prior, start))(t)
		for range steps {
			if err := h.Step(); err != nil {
				t.Fatal(err)
			}
		}
		messages = append(messages, *synthetic.Must(h.Message())(t))
	}
	p, s, err := ppca.Pool(l, messages)
	if err != nil {
		t.Fatal(err)
	}
	return p, s
}
