package gaps

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gonum.org/v1/gonum/mat"

	"parley/methods/factors/ppca"
)

// build compiles the central fit; done removes it.
func build(ctx context.Context, source string) (program string, done func(), err error) {
	dir, err := os.MkdirTemp("", "central")
	if err != nil {
		return "", nil, err
	}
	done = func() { os.RemoveAll(dir) }
	program = filepath.Join(dir, "central")
	if out, err := exec.CommandContext(ctx, "cc", "-O2", "-o", program, source, "-lm").CombinedOutput(); err != nil {
		done()
		return "", nil, fmt.Errorf("compiling %s: %w: %s\n  hint: run this in a clone of the repository, on a machine with a C compiler called cc", source, err, out)
	}
	return program, done, nil
}

// central fits all training rows in one place by the other program, from starts of its own and
// from the one given, if any. Its likelihoods and ours of its parameters must be the same.
func (c *cut) central(ctx context.Context, program string, q int, siteMeans bool, start *ppca.Params) (way, error) {
	if program == "" {
		return nil, nil
	}
	var in bytes.Buffer
	flag := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	n := len(c.newRows)
	for i := range c.rows {
		n += len(c.rows[i]) + len(c.held[i])
	}
	d := c.layout.Features()
	fmt.Fprintln(&in, n, d, q, c.layout.Views(), flag(c.layout.Noise == ppca.NoisePerFeature), flag(siteMeans), flag(start != nil), ppca.LeastNoise, strings.Trim(fmt.Sprint(c.layout.Dims), "[]"))
	write := func(site int, train bool, rows [][][]float64) {
		for _, row := range rows {
			fmt.Fprint(&in, site, " ", flag(train))
			for k, v := range row {
				for a := range c.layout.Dims[k] {
					x := math.NaN()
					if v != nil {
						x = v[a]
					}
					fmt.Fprintf(&in, " %.17g", x)
				}
			}
			fmt.Fprintln(&in)
		}
	}
	for i := range c.rows {
		write(i, true, c.rows[i])
		write(i, false, c.held[i])
	}
	write(elsewhere, false, c.newRows)
	group := c.layout.GroupOf()
	if start != nil {
		for j := range d {
			fmt.Fprintf(&in, "%.17g %s %.17g\n", start.Mu[j], strings.Trim(fmt.Sprint(start.W[j*q:(j+1)*q]), "[]"), start.Noise[group[j]])
		}
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	from := bytes.NewReader(out)
	var failed error
	next := func() (x float64) {
		if _, err := fmt.Fscan(from, &x); err != nil && failed == nil {
			failed = fmt.Errorf("the central fit's answer: %w", err)
		}
		return x
	}
	train := next()
	next() // of all other rows: those at sites that took no part have columns of their own
	p := ppca.Params{Rank: q, W: make([]float64, d*q), Mu: make([]float64, d), Noise: make([]float64, c.layout.Groups())}
	for j := range d {
		p.Features = append(p.Features, j)
		p.Mu[j] = next()
		for a := range q {
			p.W[j*q+a] = next()
		}
		p.Noise[group[j]] = next()
	}
	own := make([]ppca.Params, len(c.rows))
	for i := range own {
		own[i] = p
		if siteMeans {
			own[i].Mu = make([]float64, d)
			for j := range d {
				own[i].Mu[j] = p.Mu[j] + next()
			}
		}
	}
	if failed != nil {
		return nil, failed
	}
	at := func(site int) (*ppca.Predictor, error) {
		if site == elsewhere {
			return ppca.NewPredictor(c.layout, &p)
		}
		return ppca.NewPredictor(c.layout, &own[site])
	}
	return at, c.agrees(at, train)
}

// agrees holds the other program's likelihood against ours of the same parameters.
func (c *cut) agrees(at way, train float64) error {
	predictors := make([]*ppca.Predictor, len(c.train))
	for i := range predictors {
		var err error
		if predictors[i], err = at(i); err != nil {
			return err
		}
	}
	ours, err := nats(predictors, c.train)
	if err == nil && !(math.Abs(ours-train) <= 1e-6*math.Abs(train)) {
		err = fmt.Errorf("the central fit says %v nats a row, and the same parameters give %v", train, ours)
	}
	return err
}

// alone fits each site's rows by themselves, with as many factors as they bear.
func (c *cut) alone(q int) (score, error) {
	s := score{name: siteAlone, train: math.NaN(), unseen: unjudged, numbers: 0}
	s.seen.nats = math.NaN() // not of the same features everywhere
	own := make([]*ppca.Predictor, len(c.train))
	for i, b := range c.train {
		rows := 0.0
		for _, x := range b {
			rows += x.N
		}
		fit, err := ppca.Fit(c.layout, b, ppca.LocalRank(q, c.layout.Features(), rows), nil, likeliest)
		if err == nil {
			own[i], err = ppca.NewPredictor(c.layout, &fit.Params)
		}
		if err != nil {
			own[i] = nil // it can say nothing
		}
	}
	err := c.hide(&s.seen, c.held, func(site int, rest [][]float64) (guess, variance []float64, err error) {
		if own[site] == nil {
			return spreadOut(c.layout, nil, nil)
		}
		post, values, err := own[site].Subject(rest, nil)
		if err != nil {
			return nil, nil, err
		}
		return spreadOut(c.layout, post, values)
	})
	return s, err
}

// mean guesses the pooled mean, 0, with the pooled variance, 1.
func (c *cut) mean() score {
	guess, variance, _ := spreadOut(c.layout, nil, nil)
	at := func(int, [][]float64) ([]float64, []float64, error) { return guess, variance, nil }
	s := score{name: byMean, train: math.NaN(), numbers: 0}
	s.seen.nats, s.unseen.nats = math.NaN(), math.NaN()
	c.hide(&s.seen, c.held, at)
	c.hide(&s.unseen, [][][][]float64{c.newRows}, at)
	return s
}

// softImpute is that of Mazumder, Hastie and Tibshirani (JMLR 2010), as alternating ridge
// regressions of the given rank (Hastie, Mazumder, Lee and Zadeh, JMLR 2015) over the
// training rows; a tenth of their cells chooses the penalty.
func (c *cut) softImpute(rank int) score {
	var rows []sparse
	for _, site := range c.rows {
		for _, row := range site {
			rows = append(rows, c.sparse(row))
		}
	}
	d := c.layout.Features()
	rank = min(rank, d, len(rows))
	fit, check := make([]sparse, len(rows)), make([]sparse, len(rows))
	for i, r := range rows {
		for a, j := range r.at {
			to := &fit[i]
			if (i*7+j*13)%10 == 0 {
				to = &check[i]
			}
			to.at, to.values = append(to.at, j), append(to.values, r.values[a])
		}
	}
	best, least := 0.0, math.Inf(1)
	for penalty := 0.5 * float64(len(rows)); penalty > 1; penalty /= 2 {
		features := factorize(fit, d, rank, penalty)
		off := 0.0
		for i := range fit {
			guess := fit[i].guess(features, penalty)
			for a, j := range check[i].at {
				off += math.Pow(check[i].values[a]-guess[j], 2)
			}
		}
		if off < least {
			best, least = penalty, off
		}
	}
	features := factorize(rows, d, rank, best)
	at := func(_ int, rest [][]float64) ([]float64, []float64, error) {
		r := c.sparse(rest)
		return r.guess(features, best), nil, nil
	}
	s := score{name: byLowRank, train: math.NaN(), numbers: math.NaN()}
	s.seen.nats, s.unseen.nats = math.NaN(), math.NaN()
	c.hide(&s.seen, c.held, at)
	c.hide(&s.unseen, [][][][]float64{c.newRows}, at)
	return s
}

// sparse is what was observed of a row, or of a feature.
type sparse struct {
	at     []int
	values []float64
}

func (c *cut) sparse(row [][]float64) (s sparse) {
	j := 0
	for k, v := range row {
		for a := range c.layout.Dims[k] {
			if v != nil && !math.IsNaN(v[a]) {
				s.at, s.values = append(s.at, j), append(s.values, v[a])
			}
			j++
		}
	}
	return s
}

// ridge returns the coefficients of what was observed on the rows of factors.
func (s sparse) ridge(factors *mat.Dense, penalty float64) *mat.VecDense {
	_, rank := factors.Dims()
	gram, right := mat.NewSymDense(rank, nil), mat.NewVecDense(rank, nil)
	for a := range rank {
		gram.SetSym(a, a, penalty)
	}
	for i, j := range s.at {
		f := factors.RowView(j)
		gram.SymRankOne(gram, 1, f)
		right.AddScaledVec(right, s.values[i], f)
	}
	var c mat.Cholesky
	out := mat.NewVecDense(rank, nil)
	if !c.Factorize(gram) || c.SolveVecTo(out, right) != nil {
		return mat.NewVecDense(rank, nil)
	}
	return out
}

func (s sparse) guess(features *mat.Dense, penalty float64) []float64 {
	d, _ := features.Dims()
	var out mat.VecDense
	out.MulVec(features, s.ridge(features, penalty))
	return out.RawVector().Data[:d]
}

// factorize returns the features' factors, d × rank.
func factorize(rows []sparse, d, rank int, penalty float64) *mat.Dense {
	columns := make([]sparse, d)
	for i, r := range rows {
		for a, j := range r.at {
			columns[j].at, columns[j].values = append(columns[j].at, i), append(columns[j].values, r.values[a])
		}
	}
	features, subjects := mat.NewDense(d, rank, nil), mat.NewDense(len(rows), rank, nil)
	for j := range d {
		for a := range rank {
			features.Set(j, a, math.Cos(float64(1+j*(a+1))))
		}
	}
	for range 20 {
		for i, r := range rows {
			subjects.SetRow(i, r.ridge(features, penalty).RawVector().Data)
		}
		for j, c := range columns {
			features.SetRow(j, c.ridge(subjects, penalty).RawVector().Data)
		}
	}
	return features
}
